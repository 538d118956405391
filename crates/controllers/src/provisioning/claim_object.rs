//! A planned launch as the object that asks for it.

use std::collections::BTreeMap;

use api::{
    convert,
    hash::NODE_POOL_VERSION,
    labels::{self, annotations},
    v1::{NodeClaim, NodeClaimResources, NodeClaimSpec, NodePool},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource, ResourceExt};
use model::{Pool, Requirements};
use scheduler::Launch;

use super::names;

/// Keys that the solver uses for itself or that every node settles anew; a claim never asks for them.
const NEVER_WRITTEN: [&str; 3] = [labels::HOSTNAME, labels::REGISTERED, labels::INITIALIZED];

/// The claim for a launch, still without a name. The hash is that of the template it was planned from, even if the pool
/// has changed since.
pub fn claim(launch: &Launch, planned: &Pool, pool: &NodePool) -> NodeClaim {
    let template = &pool.spec.template;
    let class = &template.spec.node_class_ref;
    let mut claim = NodeClaim::new(
        "",
        NodeClaimSpec {
            taints: template.spec.taints.clone(),
            startup_taints: template.spec.startup_taints.clone(),
            requirements: convert::to_requirements(&written(&launch.requirements)),
            resources: Some(NodeClaimResources {
                requests: Some(convert::resources_text(&launch.requests)),
            }),
            node_class_ref: class.clone(),
            termination_grace_period: template.spec.termination_grace_period.clone(),
            expire_after: template.spec.expire_after.clone(),
        },
    );
    let meta = &mut claim.metadata;
    meta.name = None;
    meta.generate_name = Some(names::generate_name(&pool.name_any()));

    let mut wanted: BTreeMap<String, String> = launch
        .labels
        .iter()
        .map(|(key, value)| (key.to_string(), value.to_string()))
        .collect();
    wanted.insert(labels::NODE_POOL.to_owned(), pool.name_any());
    wanted.insert(
        format!("{}/{}", class.group, class.kind.to_lowercase()),
        class.name.clone(),
    );
    meta.labels = Some(wanted);

    let mut notes = template
        .metadata
        .as_ref()
        .and_then(|meta| meta.annotations.clone())
        .unwrap_or_default();
    notes.insert(annotations::NODE_POOL_HASH.to_owned(), planned.hash.clone());
    notes.insert(
        annotations::NODE_POOL_HASH_VERSION.to_owned(),
        NODE_POOL_VERSION.to_owned(),
    );
    notes.insert(
        annotations::MIN_VALUES_RELAXED.to_owned(),
        launch.min_values_relaxed.to_string(),
    );
    meta.annotations = Some(notes);

    meta.owner_references = Some(vec![OwnerReference {
        api_version: NodePool::api_version(&()).into_owned(),
        kind: NodePool::kind(&()).into_owned(),
        name: pool.name_any(),
        uid: pool.uid().unwrap_or_default(),
        block_owner_deletion: Some(true),
        controller: None,
    }]);
    claim
}

fn written(requirements: &Requirements) -> Requirements {
    let mut written = requirements.clone();
    for key in NEVER_WRITTEN {
        written.remove(key);
    }
    written
}
