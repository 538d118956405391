//! The second step: the node that runs on the instance becomes the claim's.

use api::{conditions::node_claim as condition, labels, v1::NodeClaim};
use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Node, Taint},
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{Resource, ResourceExt};
use std::sync::Arc;

use super::pre_registration;
use crate::{
    node_claim::Draft,
    objects::{class_label, held, label, taints_of},
};

/// Which node belongs to a claim.
#[derive(Clone, Debug, PartialEq)]
pub enum Registration {
    /// There is no instance yet that a node could run on.
    Waiting,
    NoNode,
    SeveralNodes,
    Join {
        node: Node,
        /// It came without the taint that keeps pods away until now.
        unmarked: bool,
    },
    Done(Node),
}

pub fn decide(draft: &Draft, nodes: &[&Arc<Node>]) -> Registration {
    if !draft.is_true(condition::LAUNCHED) {
        return Registration::Waiting;
    }
    match nodes {
        [] => Registration::NoNode,
        [node] if pre_registration::is_silent(node) => Registration::NoNode,
        [node] if draft.is_true(condition::REGISTERED) => Registration::Done((***node).clone()),
        [node] => Registration::Join {
            unmarked: label(&***node, labels::REGISTERED).is_empty() && !is_unregistered(node) && !is_held_open(node),
            node: (***node).clone(),
        },
        _ => Registration::SeveralNodes,
    }
}

/// The provider is not done with the node.
pub fn note_pending(draft: &mut Draft, hooks: &[String], now: Timestamp) {
    let message = format!("waiting for registration hooks: {}", hooks.join(", "));
    draft
        .conditions
        .set_unknown(condition::REGISTERED, "RegistrationHookPending", &message, now);
}

/// A condition that was reached stays, whatever becomes of the node.
pub fn note(draft: &mut Draft, found: &Registration, now: Timestamp) {
    if draft.is_true(condition::REGISTERED) {
        return;
    }
    match found {
        Registration::NoNode => {
            let message = "the node has not joined the cluster yet";
            draft
                .conditions
                .set_unknown(condition::REGISTERED, "NodeNotFound", message, now);
        }
        Registration::SeveralNodes => {
            let message = "several nodes claim to run on the instance";
            draft
                .conditions
                .set_false(condition::REGISTERED, "MultipleNodesFound", message, now);
        }
        Registration::Waiting | Registration::Join { .. } | Registration::Done(_) => {}
    }
}

/// The node with all that it takes from its claim, and still closed.
///
/// Startup taints are put on before registration and never again: whoever removes them later means it.
pub fn synced(claim: &NodeClaim, node: &Node) -> Node {
    let mut synced = held(node);
    let owners = synced.metadata.owner_references.get_or_insert_default();
    let uid = claim.uid().unwrap_or_default();
    if !owners.iter().any(|owner| owner.uid == uid) {
        owners.push(OwnerReference {
            api_version: NodeClaim::api_version(&()).into_owned(),
            kind: NodeClaim::kind(&()).into_owned(),
            name: claim.name_any(),
            uid,
            block_owner_deletion: Some(true),
            controller: None,
        });
    }
    let mut taints = taints_of(node).to_vec();
    if label(node, labels::DO_NOT_SYNC_TAINTS) != "true" {
        let planned = [&claim.spec.taints, &claim.spec.startup_taints];
        for taint in planned.into_iter().flatten().flatten() {
            if !taints.iter().any(|present| same(present, taint)) {
                taints.push(taint.clone());
            }
        }
    }
    synced.spec.get_or_insert_default().taints = (!taints.is_empty()).then_some(taints);

    let meta = &mut synced.metadata;
    meta.annotations
        .get_or_insert_default()
        .extend(claim.annotations().clone());
    let labels = meta.labels.get_or_insert_default();
    labels.extend(claim.labels().clone());
    synced
}

/// The node as a registered part of its claim, open for pods.
pub fn joined(claim: &NodeClaim, node: &Node) -> Node {
    let mut joined = synced(claim, node);
    let spec = joined.spec.get_or_insert_default();
    if let Some(taints) = &mut spec.taints {
        taints.retain(|taint| !is_unregistered_taint(taint));
    }
    spec.taints = spec.taints.take().filter(|taints| !taints.is_empty());
    let labels = joined.metadata.labels.get_or_insert_default();
    labels.insert(labels::REGISTERED.to_owned(), "true".to_owned());
    joined
}

/// A node that registered before its class was told by a label gets that label.
pub fn hydrated(claim: &NodeClaim, node: &Node) -> Node {
    let (key, class) = class_label(claim);
    let mut hydrated = node.clone();
    hydrated
        .metadata
        .labels
        .get_or_insert_default()
        .entry(key)
        .or_insert(class);
    hydrated
}

fn same(a: &Taint, b: &Taint) -> bool {
    a.key == b.key && a.effect == b.effect
}

fn is_unregistered_taint(taint: &Taint) -> bool {
    taint.key == labels::taints::UNREGISTERED && taint.effect == "NoExecute"
}

fn is_unregistered(node: &Node) -> bool {
    taints_of(node).iter().any(is_unregistered_taint)
}

/// It is ours since before its kubelet reported, and kept everybody but its own pods away.
fn is_held_open(node: &Node) -> bool {
    taints_of(node)
        .iter()
        .any(|taint| taint.key == labels::taints::NOT_READY)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(value: serde_json::Value) -> Node {
        serde_json::from_value(value).expect("the literal is a node")
    }

    fn claim(value: serde_json::Value) -> NodeClaim {
        let mut claim = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {"name": "c", "uid": "u"},
            "spec": {"requirements": [], "nodeClassRef": {"group": "g", "kind": "K", "name": "n"}},
        });
        json_patch_merge(&mut claim, value);
        serde_json::from_value(claim).expect("the literal is a claim")
    }

    fn json_patch_merge(into: &mut serde_json::Value, from: serde_json::Value) {
        match (into, from) {
            (serde_json::Value::Object(into), serde_json::Value::Object(from)) => {
                for (key, value) in from {
                    json_patch_merge(into.entry(key).or_insert(serde_json::Value::Null), value);
                }
            }
            (into, from) => *into = from,
        }
    }

    fn launched() -> Draft {
        let mut draft = Draft::of(&claim(json!({})), Timestamp::UNIX_EPOCH);
        draft.conditions.set_true(condition::LAUNCHED, Timestamp::UNIX_EPOCH);
        draft
    }

    /// LC-G1, LC-G2: matched with the taint; without it, matched and reported.
    #[test]
    fn one_node_joins_and_a_missing_taint_is_noticed() {
        let bare = Arc::new(node(json!({"metadata": {"name": "a"}})));
        let found = decide(&launched(), &[&bare]);
        assert_eq!(
            found,
            Registration::Join {
                node: (*bare).clone(),
                unmarked: true
            }
        );

        let tainted = json!([{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}]);
        let marked = Arc::new(node(json!({"metadata": {"name": "a"}, "spec": {"taints": tainted}})));
        let found = decide(&launched(), &[&marked]);
        assert_eq!(
            found,
            Registration::Join {
                node: (*marked).clone(),
                unmarked: false
            }
        );
        let joined = joined(&claim(json!({})), &marked);
        assert_eq!(taints_of(&joined), []);
        assert_eq!(label(&joined, labels::REGISTERED), "true");
    }

    #[test]
    fn no_node_leaves_the_condition_unknown_and_several_make_it_false_until_one_is_left() {
        let mut draft = launched();
        let status = |draft: &Draft| {
            draft
                .conditions
                .get(condition::REGISTERED)
                .map(|c| (c.status.clone(), c.reason.clone()))
        };
        let found = decide(&draft, &[]);
        note(&mut draft, &found, Timestamp::UNIX_EPOCH);
        assert_eq!(status(&draft), Some(("Unknown".into(), "NodeNotFound".into())));

        let (a, b) = (Arc::new(node(json!({}))), Arc::new(node(json!({}))));
        let found = decide(&draft, &[&a, &b]);
        note(&mut draft, &found, Timestamp::UNIX_EPOCH);
        assert_eq!(status(&draft), Some(("False".into(), "MultipleNodesFound".into())));
        assert!(matches!(decide(&draft, &[&a]), Registration::Join { .. }));
    }

    /// LC-G3: added once. LC-G4: labels and annotations of the claim win.
    #[test]
    fn metadata_is_taken_from_the_claim_once() {
        let claim = claim(json!({"metadata": {"labels": {"team": "blue"}, "annotations": {"a": "claim"}}}));
        let before = node(
            json!({"metadata": {"name": "n", "labels": {"team": "red", "own": "1"}, "annotations": {"a": "node"}}}),
        );
        let once = joined(&claim, &before);
        assert_eq!(joined(&claim, &once), once);
        assert_eq!((label(&once, "team"), label(&once, "own")), ("blue", "1"));
        assert_eq!(once.annotations()["a"], "claim");
        assert_eq!(once.owner_references().len(), 1);
        assert_eq!(once.finalizers(), ["karpenter.sh/termination"]);
    }

    /// LC-G11: the sync is made and the node stays closed. LC-G14: then it opens.
    #[test]
    fn a_node_that_a_hook_holds_up_is_synced_and_stays_closed() {
        let claim = claim(json!({"metadata": {"labels": {"team": "blue"}}}));
        let unregistered = json!([{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}]);
        let closed = synced(&claim, &node(json!({"spec": {"taints": unregistered}})));
        assert_eq!(
            (label(&closed, "team"), label(&closed, labels::REGISTERED)),
            ("blue", "")
        );
        assert!(is_unregistered(&closed));
        assert_eq!(closed.finalizers(), ["karpenter.sh/termination"]);
        let mut draft = launched();
        note_pending(
            &mut draft,
            &["rack".to_owned(), "row".to_owned()],
            Timestamp::UNIX_EPOCH,
        );
        let found = draft.conditions.get(condition::REGISTERED).expect("it was just set");
        assert_eq!((&*found.status, &*found.reason), ("Unknown", "RegistrationHookPending"));
        assert!(found.message.ends_with("rack, row"));

        let open = joined(&claim, &closed);
        assert_eq!(label(&open, labels::REGISTERED), "true");
        assert!(!is_unregistered(&open));
    }

    /// LC-G6: a registered node gets its class label at most.
    #[test]
    fn startup_taints_that_were_removed_after_registration_stay_away() {
        let claim = claim(json!({"spec": {"startupTaints": [{"key": "boot", "effect": "NoExecute"}]}}));
        let mut draft = Draft::of(&claim, Timestamp::UNIX_EPOCH);
        for reached in [condition::LAUNCHED, condition::REGISTERED] {
            draft.conditions.set_true(reached, Timestamp::UNIX_EPOCH);
        }
        let bare = Arc::new(node(json!({"metadata": {"name": "a", "labels": {"g/k": "n"}}})));
        let Registration::Done(found) = decide(&draft, &[&bare]) else {
            panic!("the node is registered");
        };
        assert_eq!(hydrated(&claim, &found), *bare);
    }

    /// LC-Y1.
    #[test]
    fn a_missing_class_label_is_added_and_a_present_one_kept() {
        let claim = claim(json!({}));
        assert_eq!(label(&hydrated(&claim, &node(json!({}))), "g/k"), "n");
        let labelled = node(json!({"metadata": {"labels": {"g/k": "other"}}}));
        assert_eq!(hydrated(&claim, &labelled), labelled);
    }

    /// LC-G5: synced unless the label says `true`.
    #[test]
    fn taints_are_synced_unless_the_node_says_no() {
        let claim = claim(json!({"spec": {
            "taints": [{"key": "gpu", "effect": "NoSchedule"}],
            "startupTaints": [{"key": "boot", "effect": "NoExecute"}],
        }}));
        let keys = |node: &Node| {
            taints_of(node)
                .iter()
                .map(|taint| taint.key.clone())
                .collect::<Vec<_>>()
        };
        let own = json!([{"key": "gpu", "effect": "NoSchedule", "value": "own"}]);
        let plain = joined(&claim, &node(json!({"spec": {"taints": own}})));
        assert_eq!(keys(&plain), ["gpu", "boot"]);
        let other = node(json!({"metadata": {"labels": {"karpenter.sh/do-not-sync-taints": "yes"}}}));
        assert_eq!(keys(&joined(&claim, &other)), ["gpu", "boot"]);
        let refusing = node(json!({"metadata": {"labels": {"karpenter.sh/do-not-sync-taints": "true"}}}));
        assert_eq!(keys(&joined(&claim, &refusing)), Vec::<String>::new());
    }
}
