//! Which kinds have their conditions told, and what is told of each.

use std::{collections::BTreeMap, sync::LazyLock};

use api::{
    conditions::HasConditions,
    v1::{NodeClaim, NodePool},
    v1beta1::CapacityBuffer,
};
use k8s_openapi::{
    api::core::v1::{Node, NodeCondition},
    apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, Time},
};
use kube::Resource;
use provider::NodeClassKind;
use state::NodeClass;

use super::Scene;
use crate::metrics::{
    conditions::{Buckets, ConditionMetrics, Object, Watched},
    page::Page,
};

static NO_LABELS: LazyLock<BTreeMap<String, String>> = LazyLock::new(BTreeMap::new);

pub fn write(page: &mut Page, scene: &Scene<'_>, metrics: &ConditionMetrics) {
    let view = scene.view;
    let node_conditions: Vec<_> = view.nodes.values().map(|node| node_conditions(node)).collect();
    let class_conditions: Vec<_> = view.classes.values().map(|class| class_conditions(class)).collect();
    let mut all: Vec<(Watched, Vec<Object<'_>>)> = Vec::new();
    if !scene.only_classes {
        let nodes = view.nodes.values().zip(&node_conditions);
        let nodes = nodes.map(|(node, conditions)| object(&node.metadata, conditions));
        all.push((
            claims_of(scene.classes),
            view.claims.values().map(|claim| claim_object(claim)).collect(),
        ));
        all.push((pools_of(), view.pools.values().map(|pool| pool_object(pool)).collect()));
        all.push((nodes_of(scene.classes), nodes.collect()));
        all.push((
            buffers_of(),
            view.buffers.values().map(|buffer| buffer_object(buffer)).collect(),
        ));
    }
    for kind in scene.classes {
        let its = view.classes.values().zip(&class_conditions);
        let its = its.filter(|(class, _)| is_of(class, kind));
        let its = its.map(|(class, conditions)| object(&class.object.metadata, conditions));
        all.push((class_of(kind), its.collect()));
    }
    for (kind, objects) in &all {
        metrics.write(page, kind, objects, scene.now);
    }
    let shared: Vec<_> = all.iter().map(|(kind, objects)| (kind, &objects[..])).collect();
    metrics.write_shared(page, &shared, scene.now);
}

pub fn claims_of(classes: &[NodeClassKind]) -> Watched {
    let mut labels: Vec<String> = classes.iter().map(NodeClassKind::label).collect();
    labels.push(api::labels::NODE_POOL.to_owned());
    watched::<NodeClaim>(labels, true)
}

pub fn pools_of() -> Watched {
    watched::<NodePool>(Vec::new(), true)
}

pub fn nodes_of(classes: &[NodeClassKind]) -> Watched {
    let mut labels: Vec<String> = classes.iter().map(NodeClassKind::label).collect();
    labels.extend([api::labels::NODE_POOL.to_owned(), api::labels::INITIALIZED.to_owned()]);
    watched::<Node>(labels, false)
}

pub fn buffers_of() -> Watched {
    watched::<CapacityBuffer>(Vec::new(), true)
}

pub fn class_of(kind: &NodeClassKind) -> Watched {
    Watched {
        group: kind.group.to_owned(),
        kind: kind.kind.to_owned(),
        shared: true,
        labels: Vec::new(),
        buckets: Buckets::Default,
    }
}

fn watched<K: Resource<DynamicType = ()>>(labels: Vec<String>, shared: bool) -> Watched {
    Watched {
        group: K::group(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
        shared,
        labels,
        buckets: Buckets::Wide,
    }
}

fn is_of(class: &NodeClass, kind: &NodeClassKind) -> bool {
    class.object.types.as_ref().is_some_and(|types| types.kind == kind.kind)
}

pub fn claim_object(claim: &NodeClaim) -> Object<'_> {
    object(&claim.metadata, claim.conditions())
}

pub fn pool_object(pool: &NodePool) -> Object<'_> {
    object(&pool.metadata, pool.conditions())
}

pub fn buffer_object(buffer: &CapacityBuffer) -> Object<'_> {
    let conditions = buffer.status.as_ref().and_then(|status| status.conditions.as_deref());
    object(&buffer.metadata, conditions.unwrap_or_default())
}

pub fn object<'a>(meta: &'a ObjectMeta, conditions: &'a [Condition]) -> Object<'a> {
    let finalizers = meta.finalizers.as_deref().unwrap_or_default();
    Object {
        namespace: meta.namespace.as_deref().unwrap_or_default(),
        name: meta.name.as_deref().unwrap_or_default(),
        labels: meta.labels.as_ref().unwrap_or(&NO_LABELS),
        deleting: meta.deletion_timestamp.as_ref().map(|time| time.0),
        is_held: finalizers
            .iter()
            .any(|held| held == api::labels::finalizers::TERMINATION),
        conditions,
    }
}

/// Conditions of nodes are of an older type.
pub fn node_conditions(node: &Node) -> Vec<Condition> {
    let listed = node.status.as_ref().and_then(|status| status.conditions.as_deref());
    let created = node.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let plain = |condition: &NodeCondition| Condition {
        type_: condition.type_.clone(),
        status: condition.status.clone(),
        reason: condition.reason.clone().unwrap_or_default(),
        message: condition.message.clone().unwrap_or_default(),
        last_transition_time: condition
            .last_transition_time
            .clone()
            .unwrap_or(Time(created.unwrap_or_default())),
        observed_generation: None,
    };
    listed.unwrap_or_default().iter().map(plain).collect()
}

pub fn class_conditions(class: &NodeClass) -> Vec<Condition> {
    let listed = class.object.data.pointer("/status/conditions").cloned();
    listed
        .and_then(|listed| serde_json::from_value(listed).ok())
        .unwrap_or_default()
}
