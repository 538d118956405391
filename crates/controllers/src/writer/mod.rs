//! Everything that we write to the cluster goes through here, and from here into the index at once.
//!
//! A write starts from the object as the index has it and a changed copy; what travels is the difference, as a merge
//! patch that names the version it was made from. So a list in it can never overwrite what somebody else has put there
//! meanwhile: the server answers with a conflict, and the decision is made anew.

mod difference;
mod failure;

use std::{fmt::Debug, sync::Arc, time::Duration};

use k8s_openapi::{
    NamespaceResourceScope,
    api::core::v1::{Binding, ObjectReference, Pod},
    api::policy::v1::Eviction,
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
};
use model::{PodKey, PodUid};
use serde::Serialize;
use serde_json::{Value, json};
use state::{Index, Indexed};
use tokio::time::timeout;

use difference::difference;
pub use failure::{ApiError, ApiFailure};

/// A request whose answer does not come within this time counts as failed, its outcome unknown.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// A cluster-wide kind that we write and the index holds.
pub trait Written: Indexed<DynamicType = ()> + Serialize {}
impl<K: Indexed<DynamicType = ()> + Serialize> Written for K {}

/// The way into the cluster.
#[derive(Clone)]
pub struct Writer {
    client: Client,
    index: Arc<Index>,
}

impl Writer {
    pub fn new(client: Client, index: Arc<Index>) -> Self {
        Self { client, index }
    }

    /// Reads past the index, where only the server's own word will do.
    pub async fn get<K: Written>(&self, name: &str) -> Result<Option<K>, ApiError> {
        let api: Api<K> = Api::all(self.client.clone());
        answer("get", name, api.get_opt(name)).await
    }

    pub async fn create<K: Written>(&self, object: &K) -> Result<K, ApiError> {
        let api: Api<K> = Api::all(self.client.clone());
        let created = answer("create", &object.name_any(), api.create(&PostParams::default(), object)).await?;
        self.index.apply(created.clone());
        Ok(created)
    }

    /// Writes what differs outside the status. Without a difference nothing is sent.
    pub async fn update<K: Written>(&self, before: &K, after: &K) -> Result<K, ApiError> {
        let (mut old, mut new) = (as_json(before), as_json(after));
        for side in [&mut old, &mut new] {
            if let Some(fields) = side.as_object_mut() {
                fields.remove("status");
            }
        }
        let Some(patch) = difference(&old, &new) else {
            return Ok(after.clone());
        };
        let api: Api<K> = Api::all(self.client.clone());
        let name = before.name_any();
        let patch = Patch::Merge(versioned(patch, before));
        let sent = answer("patch", &name, api.patch(&name, &PatchParams::default(), &patch)).await;
        self.take_in(before, sent)
    }

    /// Writes what differs in the status. Without a difference nothing is sent.
    pub async fn update_status<K: Written>(&self, before: &K, after: &K) -> Result<K, ApiError> {
        self.patch_status(&Api::all(self.client.clone()), before, after).await
    }

    async fn patch_status<K: Written>(&self, api: &Api<K>, before: &K, after: &K) -> Result<K, ApiError> {
        let status = |object: &K| as_json(object).get("status").cloned().unwrap_or_else(|| json!({}));
        let Some(patch) = difference(&status(before), &status(after)) else {
            return Ok(after.clone());
        };
        let name = before.name_any();
        let patch = Patch::Merge(versioned(json!({ "status": patch }), before));
        let params = PatchParams::default();
        let sent = answer("patch the status of", &name, api.patch_status(&name, &params, &patch)).await;
        self.take_in(before, sent)
    }

    fn take_in<K: Written>(&self, before: &K, sent: Result<K, ApiError>) -> Result<K, ApiError> {
        match &sent {
            Ok(written) => self.index.absorb(written.clone()),
            // The watch will say so too, but the next decision need not wait for it.
            Err(error) if error.failure == ApiFailure::NotFound => self.index.delete(before),
            Err(_) => {}
        }
        sent
    }

    /// Server-side apply by the name of a manager: the fields of the document are its own from now on, whoever had them
    /// before, and those that an earlier document had and this one lacks are removed.
    pub async fn apply<K: Indexed>(
        &self,
        kind: &K::DynamicType,
        manager: &str,
        name: &str,
        document: &Value,
    ) -> Result<K, ApiError> {
        let api: Api<K> = Api::all_with(self.client.clone(), kind);
        let params = PatchParams::apply(manager).force();
        let applied = answer("apply", name, api.patch(name, &params, &Patch::Apply(document))).await?;
        self.index.apply_with(applied.clone(), kind);
        Ok(applied)
    }

    /// A merge patch whatever the version, for fields that nobody else has a say in.
    pub async fn merge<K: Indexed>(&self, kind: &K::DynamicType, name: &str, patch: &Value) -> Result<K, ApiError> {
        let api: Api<K> = Api::all_with(self.client.clone(), kind);
        let params = PatchParams::default();
        let merged = answer("patch", name, api.patch(name, &params, &Patch::Merge(patch))).await?;
        self.index.apply_with(merged.clone(), kind);
        Ok(merged)
    }

    /// Asks for the end of this very object, not of another with its name. One that is gone already is no failure.
    pub async fn delete<K: Written>(&self, object: &K) -> Result<(), ApiError> {
        self.delete_of(&(), object).await
    }

    /// As [`delete`](Self::delete), for a kind that is known only when the program runs.
    pub async fn delete_of<K: Indexed>(&self, kind: &K::DynamicType, object: &K) -> Result<(), ApiError> {
        let api: Api<K> = Api::all_with(self.client.clone(), kind);
        let name = object.name_any();
        let params = DeleteParams::default().preconditions(Preconditions {
            uid: object.uid(),
            resource_version: None,
        });
        match answer("delete", &name, api.delete(&name, &params)).await {
            Ok(answer) => {
                match answer.left() {
                    Some(deleting) => self.index.absorb_with(deleting, kind),
                    None => self.index.delete_with(object, kind),
                }
                Ok(())
            }
            Err(error) if error.failure == ApiFailure::NotFound => {
                self.index.delete_with(object, kind);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Asks the eviction API to let a pod go, disruption budgets permitting.
    pub async fn evict(&self, pod: &PodKey, uid: &PodUid) -> Result<(), ApiError> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &pod.namespace);
        let mut eviction = Eviction::default();
        eviction.metadata.name = Some(pod.name.to_string());
        eviction.metadata.namespace = Some(pod.namespace.to_string());
        eviction.delete_options = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::DeleteOptions {
            preconditions: Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Preconditions {
                uid: Some(uid.to_string()),
                resource_version: None,
            }),
            ..Default::default()
        });
        // kube's own `evict` spells the options in a way that the server does not know, and so loses the UID.
        let params = PostParams::default();
        let sent = api.create_subresource::<Eviction, Value>("eviction", &pod.name, &params, &eviction);
        answer("evict", &pod.to_string(), sent).await.map(|_| ())
    }

    /// Binds a pod to a node in the scheduler's place. The server refuses one that is bound already.
    pub async fn bind(&self, pod: &PodKey, uid: &PodUid, node: &str) -> Result<(), ApiError> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &pod.namespace);
        let binding = Binding {
            metadata: ObjectMeta {
                name: Some(pod.name.to_string()),
                namespace: Some(pod.namespace.to_string()),
                uid: Some(uid.to_string()),
                ..ObjectMeta::default()
            },
            target: ObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Node".to_owned()),
                name: Some(node.to_owned()),
                ..ObjectReference::default()
            },
        };
        let params = PostParams::default();
        let sent = api.create_subresource::<Binding, Value>("binding", &pod.name, &params, &binding);
        answer("bind", &pod.to_string(), sent).await.map(|_| ())
    }

    /// Deletes a pod past every budget.
    pub async fn delete_pod(&self, pod: &PodKey, uid: &PodUid, grace_secs: u32) -> Result<(), ApiError> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &pod.namespace);
        let params = DeleteParams::default()
            .grace_period(grace_secs)
            .preconditions(Preconditions {
                uid: Some(uid.to_string()),
                resource_version: None,
            });
        match answer("delete", &pod.to_string(), api.delete(&pod.name, &params)).await {
            Ok(answer) => {
                if let Some(deleting) = answer.left() {
                    self.index.absorb(deleting);
                }
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// As [`update_status`](Self::update_status), for an object that lives in a namespace.
    pub async fn update_namespaced_status<K>(&self, before: &K, after: &K) -> Result<K, ApiError>
    where
        K: Written + Resource<Scope = NamespaceResourceScope>,
    {
        let api = Api::namespaced(self.client.clone(), &before.namespace().unwrap_or_default());
        self.patch_status(&api, before, after).await
    }

    /// Reads an object that the index does not hold.
    pub async fn read<K>(&self, namespace: &str, name: &str) -> Result<Option<K>, ApiError>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + serde::de::DeserializeOwned,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), namespace);
        answer("get", &format!("{namespace}/{name}"), api.get_opt(name)).await
    }

    /// Creates an object that the index does not hold.
    pub async fn post<K>(&self, namespace: &str, object: &K) -> Result<(), ApiError>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Serialize
            + Clone
            + Debug
            + serde::de::DeserializeOwned,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), namespace);
        answer("create", &object.name_any(), api.create(&PostParams::default(), object))
            .await
            .map(|_| ())
    }
}

fn as_json<K: Serialize>(object: &K) -> Value {
    serde_json::to_value(object).expect("an API object is plain data")
}

fn versioned<K: Resource>(mut patch: Value, before: &K) -> Value {
    if let Some(version) = before.meta().resource_version.as_deref() {
        patch["metadata"]["resourceVersion"] = version.into();
    }
    patch
}

async fn answer<T>(
    action: &'static str,
    object: &str,
    request: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, ApiError> {
    match timeout(ANSWER_TIMEOUT, request).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(cause)) => Err(ApiError::new(action, object, cause)),
        Err(elapsed) => Err(ApiError::new(action, object, kube::Error::Service(Box::new(elapsed)))),
    }
}
