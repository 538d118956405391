//! Small questions to API objects, each answered in one place.

use api::{labels, v1::NodeClaim};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Taint};
use kube::{Resource, ResourceExt};
use model::ProviderId;

use crate::outbox::About;

/// A label's value, or nothing as an empty string: the form that metrics want.
pub fn label<'a, K: ResourceExt>(object: &'a K, key: &str) -> &'a str {
    object.labels().get(key).map_or("", String::as_str)
}

pub fn pool_of<K: ResourceExt>(object: &K) -> &str {
    label(object, labels::NODE_POOL)
}

pub fn is_deleting<K: Resource>(object: &K) -> bool {
    object.meta().deletion_timestamp.is_some()
}

pub fn deleted_at<K: Resource>(object: &K) -> Option<Timestamp> {
    object.meta().deletion_timestamp.as_ref().map(|time| time.0)
}

pub fn created_at<K: Resource>(object: &K) -> Option<Timestamp> {
    object.meta().creation_timestamp.as_ref().map(|time| time.0)
}

/// Whether our finalizer holds the object.
pub fn is_held<K: Resource>(object: &K) -> bool {
    let finalizers = object.meta().finalizers.as_deref().unwrap_or_default();
    finalizers
        .iter()
        .any(|finalizer| finalizer == labels::finalizers::TERMINATION)
}

/// The object with our finalizer.
pub fn held<K: Resource + Clone>(object: &K) -> K {
    let mut held = object.clone();
    if !is_held(object) {
        held.meta_mut()
            .finalizers
            .get_or_insert_default()
            .push(labels::finalizers::TERMINATION.to_owned());
    }
    held
}

/// The object without our finalizer. An absent list and an empty one mean the same.
pub fn released<K: Resource + Clone>(object: &K) -> K {
    let mut released = object.clone();
    if let Some(finalizers) = &mut released.meta_mut().finalizers {
        finalizers.retain(|finalizer| finalizer != labels::finalizers::TERMINATION);
    }
    released
}

/// The instance behind a claim, once there is one.
pub fn instance_of(claim: &NodeClaim) -> Option<&str> {
    let id = claim.status.as_ref()?.provider_id.as_deref()?;
    (!id.is_empty()).then_some(id)
}

/// The instance that a claim takes over instead of launching one.
pub fn adopted_by(claim: &NodeClaim) -> Option<ProviderId> {
    let id = claim.annotations().get(labels::compatibility::ADOPTS)?;
    (!id.is_empty()).then(|| id.as_str().into())
}

/// The instance that a node runs on.
pub fn instance_under(node: &Node) -> Option<&str> {
    let id = node.spec.as_ref()?.provider_id.as_deref()?;
    (!id.is_empty()).then_some(id)
}

pub fn taints_of(node: &Node) -> &[Taint] {
    node.spec
        .as_ref()
        .and_then(|spec| spec.taints.as_deref())
        .unwrap_or_default()
}

pub fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref());
    conditions
        .unwrap_or_default()
        .iter()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// The label that tells the class of a claim, on the claim and on its node.
pub fn class_label(claim: &NodeClaim) -> (String, String) {
    let class = &claim.spec.node_class_ref;
    (
        format!("{}/{}", class.group, class.kind.to_lowercase()),
        class.name.clone(),
    )
}

pub fn about_claim(claim: &NodeClaim) -> About {
    About::claim(&claim.name_any(), &claim.uid().unwrap_or_default())
}

pub fn about_node(node: &Node) -> About {
    About::node(&node.name_any(), &node.uid().unwrap_or_default())
}
