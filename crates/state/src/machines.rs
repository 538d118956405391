//! How claims and nodes become machines.
//!
//! A claim and a node are two halves of one machine when they name the same instance. Whatever changes, all machines of
//! the instances concerned are put together anew from the objects, so the order of events cannot matter.

use std::sync::Arc;

use api::{convert, v1::NodeClaim};
use imbl::{OrdMap, OrdSet};
use k8s_openapi::api::core::v1::Node;
use model::{ClaimName, NodeFacts, NodeKey, NodeName, ProviderId, StateNode};

use crate::{Change, Kind, ObjectKey, index::Core, served};

fn instance_of_claim(claim: &NodeClaim) -> Option<ProviderId> {
    let id = claim.status.as_ref()?.provider_id.as_deref()?;
    (!id.is_empty()).then(|| id.into())
}

fn instance_of_node(node: &Node) -> Option<ProviderId> {
    let id = node.spec.as_ref()?.provider_id.as_deref()?;
    (!id.is_empty()).then(|| id.into())
}

pub(crate) fn claim_changed(core: &mut Core, change: &Change<NodeClaim>) {
    let name = ClaimName::from(&*change.key.name);
    let (before, after) = instances(change, instance_of_claim);
    let view = core.view_mut();
    if let Some(id) = &before {
        unlink(&mut view.claims_by_instance, id, &name);
    }
    if let Some(id) = &after {
        view.claims_by_instance
            .entry(id.clone())
            .or_default()
            .insert(name.clone());
    }
    match (&change.new, &after) {
        (Some(_), None) => view.unlaunched.insert(name.clone()),
        _ => view.unlaunched.remove(&name),
    };
    if after.is_none() {
        place_claim(core, &name, None);
    }
    settle_instances(core, before, after);
}

pub(crate) fn node_changed(core: &mut Core, change: &Change<Node>) {
    let name = NodeName::from(&*change.key.name);
    let (before, after) = instances(change, instance_of_node);
    let view = core.view_mut();
    if let Some(id) = &before {
        unlink(&mut view.nodes_by_instance, id, &name);
    }
    if let Some(id) = &after {
        view.nodes_by_instance
            .entry(id.clone())
            .or_default()
            .insert(name.clone());
    }
    if after.is_none() {
        place_node(core, &name);
    }
    settle_instances(core, before, after);
}

fn instances<T>(
    change: &Change<T>,
    instance: impl Fn(&T) -> Option<ProviderId>,
) -> (Option<ProviderId>, Option<ProviderId>) {
    (
        change.old.as_deref().and_then(&instance),
        change.new.as_deref().and_then(&instance),
    )
}

fn settle_instances(core: &mut Core, before: Option<ProviderId>, after: Option<ProviderId>) {
    if before != after
        && let Some(id) = before
    {
        settle(core, &id);
    }
    if let Some(id) = after {
        settle(core, &id);
    }
}

/// Joins what belongs to one instance. Where several claims or nodes name it, the first by name make the pair and the
/// rest stand alone.
fn settle(core: &mut Core, instance: &ProviderId) {
    let view = core.view_mut();
    let claims = view.claims_by_instance.get(instance).cloned().unwrap_or_default();
    let nodes = view.nodes_by_instance.get(instance).cloned().unwrap_or_default();
    let mut free = nodes.iter();
    let mut partner = if claims.is_empty() { None } else { free.next() };
    if let Some(taken) = partner {
        remove(core, &NodeKey::Node(taken.clone()));
    }
    for claim in &claims {
        place_claim(core, claim, partner.take());
    }
    for node in free {
        place_node(core, node);
    }
}

fn place_claim(core: &mut Core, name: &ClaimName, node: Option<&NodeName>) {
    let key = NodeKey::Claim(name.clone());
    let Some(claim) = core.view_mut().claims.named(name.as_str()).cloned() else {
        return remove(core, &key);
    };
    let claim = convert::claim(&claim);
    core.note_unread(Kind::NodeClaim, &ObjectKey::new("", name.as_str()), claim.errors);
    let node = node.and_then(|node| facts(core, node));
    put(
        core,
        StateNode {
            key,
            claim: Some(claim.value),
            node,
            nominated_until: None,
            marked_for_deletion: false,
        },
    );
}

fn place_node(core: &mut Core, name: &NodeName) {
    let key = NodeKey::Node(name.clone());
    let Some(node) = core.view_mut().nodes.named(name.as_str()).cloned() else {
        return remove(core, &key);
    };
    if core.served.node(&node) && served::is_unfinished(&node) {
        return remove(core, &key);
    }
    let node = facts(core, name);
    put(
        core,
        StateNode {
            key,
            claim: None,
            node,
            nominated_until: None,
            marked_for_deletion: false,
        },
    );
}

fn facts(core: &mut Core, name: &NodeName) -> Option<NodeFacts> {
    let node = core.view_mut().nodes.named(name.as_str()).cloned()?;
    let parsed = convert::node(&node);
    core.note_unread(Kind::Node, &ObjectKey::new("", name.as_str()), parsed.errors);
    Some(parsed.value)
}

fn put(core: &mut Core, mut machine: StateNode) {
    core.marks.put_on(&mut machine);
    core.view_mut().snapshot.put_node(Arc::new(machine));
}

fn remove(core: &mut Core, key: &NodeKey) {
    core.marks.forget(key);
    core.view_mut().snapshot.remove_node(key);
}

pub(crate) fn unlink<K: Ord + Clone, V: Ord + Clone>(map: &mut OrdMap<K, OrdSet<V>>, key: &K, value: &V) {
    if let Some(set) = map.get_mut(key) {
        set.remove(value);
        if set.is_empty() {
            map.remove(key);
        }
    }
}
