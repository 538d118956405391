//! What is stored as v1beta1 is written once more, so that its definition can do without v1beta1.
//!
//! ```text
//!   storage is v1, v1beta1 is among the stored versions ──► every object gets an annotation, and with it is stored as v1
//!                                                      ──► the stored versions of the definition are v1 alone
//! ```

use std::{collections::BTreeSet, time::Duration};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client,
    api::{ListParams, Patch, PatchParams},
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use legacy::beta::annotations::STORED_VERSION_MIGRATED;
use serde_json::json;
use tokio::time::sleep;
use tracing::{info, warn};

use super::trust::DEFINITIONS;

const LOOK_AGAIN: Duration = Duration::from_secs(60);
const VERSION: &str = "v1";

/// What there is to do about a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Nothing,
    /// Whatever is written is stored in another version still.
    NotYet,
    Rewrite,
}

fn work(definition: &CustomResourceDefinition) -> Work {
    let status = definition.status.as_ref();
    let stored = status.and_then(|status| status.stored_versions.as_ref());
    if stored.is_none_or(|stored| stored.iter().all(|version| version == VERSION)) {
        return Work::Nothing;
    }
    let storage = definition.spec.versions.iter().find(|version| version.storage);
    match storage.is_some_and(|storage| storage.name == VERSION) {
        true => Work::Rewrite,
        false => Work::NotYet,
    }
}

/// Looks after all definitions. Never returns.
pub async fn keep(client: &Client) {
    let mut told = BTreeSet::new();
    loop {
        for name in DEFINITIONS {
            match look_after(client, name).await {
                Ok(Work::NotYet) if told.insert(name) => {
                    info!(definition = name, "objects are not stored as v1; they stay as they are");
                }
                Ok(_) => {}
                Err(error) => warn!(definition = name, %error, "what is stored cannot be written once more"),
            }
        }
        sleep(LOOK_AGAIN).await;
    }
}

async fn look_after(client: &Client, name: &str) -> Result<Work, kube::Error> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let Some(definition) = definitions.get_opt(name).await? else {
        return Ok(Work::Nothing);
    };
    let work = work(&definition);
    if work != Work::Rewrite {
        return Ok(work);
    }
    let count = rewrite(client, &definition).await?;
    let patch = Patch::Merge(json!({ "status": { "storedVersions": [VERSION] } }));
    definitions.patch_status(name, &PatchParams::default(), &patch).await?;
    info!(definition = name, count, "everything is stored as v1");
    Ok(work)
}

/// Writes the objects that do not say yet that they were written; the answer is their number.
async fn rewrite(client: &Client, definition: &CustomResourceDefinition) -> Result<usize, kube::Error> {
    let names = &definition.spec.names;
    let gvk = GroupVersionKind::gvk(&definition.spec.group, VERSION, &names.kind);
    let api: Api<DynamicObject> =
        Api::all_with(client.clone(), &ApiResource::from_gvk_with_plural(&gvk, &names.plural));
    let patch = Patch::Merge(json!({ "metadata": { "annotations": { STORED_VERSION_MIGRATED: "true" } } }));
    let mut count = 0;
    for object in api.list_metadata(&ListParams::default()).await? {
        let annotations = object.metadata.annotations.as_ref();
        let is_done = annotations.is_some_and(|all| all.contains_key(STORED_VERSION_MIGRATED));
        let Some(name) = object.metadata.name.filter(|_| !is_done) else {
            continue;
        };
        match api.patch_metadata(&name, &PatchParams::default(), &patch).await {
            Ok(_) => count += 1,
            // Gone is as good as written.
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(storage: &str, stored: &[&str], expected: Work) {
        let mut definition = api::crds::all(api::crds::Variant::Aws).remove(0);
        let mut older = definition.spec.versions[0].clone();
        older.name = "v1beta1".to_owned();
        definition.spec.versions.push(older);
        for version in &mut definition.spec.versions {
            version.storage = version.name == storage;
        }
        definition.status = serde_json::from_value(json!({ "storedVersions": stored })).expect("a status");
        assert_eq!(work(&definition), expected);
    }

    #[test]
    fn only_what_is_stored_in_two_versions_is_written_again() {
        check("v1", &["v1"], Work::Nothing);
        check("v1beta1", &["v1beta1"], Work::NotYet);
        check("v1", &["v1beta1", "v1"], Work::Rewrite);
        check("v1beta1", &["v1beta1", "v1"], Work::NotYet);
    }
}
