//! Puts rows before an API server.

use api::crds::{self, Variant};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, ListParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::wait::{await_condition, conditions::is_crd_established};
use kube::{Client, Error};
use serde_json::Value;

use crate::row::{Row, Verdict, Way, at, changed, drop};

/// Installs the manifests and sends every row.
///
/// # Panics
///
/// If the server judges a row differently; the message names each such row.
pub async fn judge(client: Client, variant: Variant, rows: &[Row]) {
    let definitions = crds::all(variant);
    for definition in &definitions {
        install(&client, definition).await;
    }
    let mut wrong = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let definition = definitions
            .iter()
            .find(|definition| row.object["kind"] == definition.spec.names.kind.as_str())
            .expect("every row is about a kind that is installed");
        let judge = Judge {
            api: api_of(&client, definition),
            name: format!("row-{index}"),
        };
        if let Err(complaint) = judge.judge(row).await {
            wrong.push(format!("{}: {complaint}", row.title()));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} rows are judged wrongly:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

async fn install(client: &Client, definition: &CustomResourceDefinition) {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let created = definitions
        .create(&PostParams::default(), definition)
        .await
        .unwrap_or_else(|error| panic!("{} is refused: {error}", definition.spec.names.kind));
    let name = created.metadata.name.unwrap_or_default();
    await_condition(definitions, &name, is_crd_established())
        .await
        .expect("the definition is established");
    // The endpoint follows a moment after the condition.
    let objects = api_of(client, definition);
    while objects.list(&ListParams::default()).await.is_err() {
        tokio::task::yield_now().await;
    }
}

fn api_of(client: &Client, definition: &CustomResourceDefinition) -> Api<DynamicObject> {
    let version = &definition.spec.versions[0].name;
    let gvk = GroupVersionKind::gvk(&definition.spec.group, version, &definition.spec.names.kind);
    let resource = ApiResource::from_gvk_with_plural(&gvk, &definition.spec.names.plural);
    if definition.spec.scope == "Namespaced" {
        Api::namespaced_with(client.clone(), "default", &resource)
    } else {
        Api::all_with(client.clone(), &resource)
    }
}

struct Judge {
    api: Api<DynamicObject>,
    name: String,
}

impl Judge {
    async fn judge(&self, row: &Row) -> Result<(), String> {
        let answer = match &row.way {
            Way::Create => self.create(&row.object, true).await,
            Way::Update(old) => {
                let stored = self
                    .create(old, false)
                    .await
                    .map_err(|error| format!("setting up: {error}"))?;
                let object = self.object(&row.object, &stored);
                self.api.replace(&self.name, &dry_run(), &object).await
            }
            Way::Status => {
                let old = changed(&row.object, &[drop("status")]);
                let stored = self
                    .create(&old, false)
                    .await
                    .map_err(|error| format!("setting up: {error}"))?;
                let object = self.object(&row.object, &stored);
                self.api.replace_status(&self.name, &dry_run(), &object).await
            }
        };
        match (&row.verdict, answer) {
            (Verdict::Admitted, Ok(stored)) => check_stored(row, &stored),
            (Verdict::Admitted, Err(error)) => Err(format!("refused: {error}")),
            (Verdict::Refused(_), Ok(_)) => Err("admitted".to_owned()),
            (Verdict::Refused(because), Err(Error::Api(status))) => {
                if status.code == 422 && status.message.contains(because) {
                    Ok(())
                } else {
                    Err(format!(
                        "refused with {} and not for {because:?}: {}",
                        status.code, status.message
                    ))
                }
            }
            (Verdict::Refused(_), Err(error)) => Err(format!("no answer: {error}")),
        }
    }

    async fn create(&self, object: &Value, dry_run: bool) -> Result<DynamicObject, Error> {
        let parameters = PostParams {
            dry_run,
            ..PostParams::default()
        };
        self.api.create(&parameters, &self.object(object, &Value::Null)).await
    }

    /// The object under its row's name, as a successor of what is stored.
    fn object<S: serde::Serialize>(&self, object: &Value, stored: &S) -> DynamicObject {
        let stored = serde_json::to_value(stored).expect("an object is plain data");
        let mut object = object.clone();
        object["metadata"]["name"] = self.name.as_str().into();
        if let Some(version) = stored.pointer("/metadata/resourceVersion") {
            object["metadata"]["resourceVersion"] = version.clone();
        }
        serde_json::from_value(object).expect("an object with metadata")
    }
}

fn dry_run() -> PostParams {
    PostParams {
        dry_run: true,
        ..PostParams::default()
    }
}

fn check_stored(row: &Row, stored: &DynamicObject) -> Result<(), String> {
    let stored = serde_json::to_value(stored).expect("an object is plain data");
    for (path, expected) in &row.stored {
        let found = at(&stored, path);
        if found != expected {
            return Err(format!("{path} is stored as {found}, not as {expected}"));
        }
    }
    Ok(())
}
