//! The third step: the node takes pods.

use std::fmt;

use api::{conditions::node_claim as condition, labels};
use k8s_openapi::api::core::v1::{Node, Taint};

use crate::{
    node_claim::Draft,
    objects::{is_ready, taints_of},
};

/// What a registered node still lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lack {
    Node,
    Readiness,
    StartupTaint(String),
    EphemeralTaint(String),
    Resource(String),
    Devices(String),
}

impl Lack {
    pub fn reason(&self) -> &'static str {
        match self {
            Lack::Node => "NodeNotFound",
            Lack::Readiness => "NodeNotReady",
            Lack::StartupTaint(_) => "StartupTaintsExist",
            Lack::EphemeralTaint(_) => "KnownEphemeralTaintsExist",
            Lack::Resource(_) => "ResourceNotRegistered",
            Lack::Devices(_) => "DRADriverPoolsNotPublished",
        }
    }
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lack::Node => f.write_str("the node is not there"),
            Lack::Readiness => f.write_str("the node is not ready"),
            Lack::StartupTaint(taint) => write!(f, "startup taint {taint} has not been removed yet"),
            Lack::EphemeralTaint(taint) => write!(f, "taint {taint} goes away while the node starts, and has not yet"),
            Lack::Resource(resource) => write!(f, "resource {resource} was asked for and the node offers none yet"),
            Lack::Devices(driver) => write!(f, "driver {driver} has not published all devices of a pool yet"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Initialization {
    NotRegistered,
    Waiting(Lack),
    Ready,
    Done,
}

/// `unpublished` is a driver whose devices were asked for and are not there yet.
pub fn decide(draft: &Draft, node: Option<&Node>, unpublished: Option<String>) -> Initialization {
    if draft.is_true(condition::INITIALIZED) {
        return Initialization::Done;
    }
    if !draft.is_true(condition::REGISTERED) {
        return Initialization::NotRegistered;
    }
    let Some(node) = node else {
        return Initialization::Waiting(Lack::Node);
    };
    first_lack(draft, node)
        .or(unpublished.map(Lack::Devices))
        .map_or(Initialization::Ready, Initialization::Waiting)
}

fn first_lack(draft: &Draft, node: &Node) -> Option<Lack> {
    if !is_ready(node) {
        return Some(Lack::Readiness);
    }
    let spec = &draft.claim.spec;
    let taints = taints_of(node);
    let startup = spec.startup_taints.iter().flatten();
    if let Some(left) = startup.into_iter().find(|taint| {
        taints
            .iter()
            .any(|here| here.key == taint.key && here.effect == taint.effect)
    }) {
        return Some(Lack::StartupTaint(text(left)));
    }
    if let Some(left) = taints
        .iter()
        .find(|taint| labels::taints::is_known_ephemeral(&taint.key, &taint.effect))
    {
        return Some(Lack::EphemeralTaint(text(left)));
    }
    let requested = spec
        .resources
        .iter()
        .flat_map(|resources| &resources.requests)
        .flatten();
    let allocatable = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
    let offered = |name: &str| {
        allocatable
            .and_then(|amounts| amounts.get(name))
            .is_some_and(|amount| is_positive(&amount.0))
    };
    let missing = requested
        .into_iter()
        .find(|(name, amount)| is_positive(&amount.0) && !offered(name));
    missing.map(|(name, _)| Lack::Resource(name.clone()))
}

fn is_positive(quantity: &str) -> bool {
    model::Quantity::parse(quantity).is_ok_and(|amount| amount > model::Quantity::ZERO)
}

fn text(taint: &Taint) -> String {
    format!("{}:{}", taint.key, taint.effect)
}

pub fn labelled(node: &Node) -> Node {
    let mut labelled = node.clone();
    let labels = labelled.metadata.labels.get_or_insert_default();
    labels.insert(labels::INITIALIZED.to_owned(), "true".to_owned());
    labelled
}

#[cfg(test)]
mod tests {
    use api::v1::NodeClaim;
    use jiff::Timestamp;
    use serde_json::{Value, json};

    use super::*;

    fn registered(spec: Value) -> Draft {
        let mut claim: NodeClaim = NodeClaim::default();
        if let Some(taints) = spec.get("startupTaints") {
            claim.spec.startup_taints = serde_json::from_value(taints.clone()).expect("taints");
        }
        if let Some(resources) = spec.get("resources") {
            claim.spec.resources = serde_json::from_value(resources.clone()).expect("resources");
        }
        let mut draft = Draft::of(&claim, Timestamp::UNIX_EPOCH);
        draft.conditions.set_true(condition::REGISTERED, Timestamp::UNIX_EPOCH);
        draft
    }

    #[track_caller]
    fn check(claim: Value, taints: Value, ready: &str, expected: Initialization) {
        let node: Node = serde_json::from_value(json!({
            "spec": {"taints": taints},
            "status": {"conditions": [{"type": "Ready", "status": ready}], "allocatable": {"cpu": "4", "example.com/gpu": "0"}},
        }))
        .expect("the literal is a node");
        assert_eq!(decide(&registered(claim), Some(&node), None), expected);
    }

    /// LC-I1, LC-I3, LC-I4, LC-I5, LC-I6, LC-I7.
    #[test]
    fn a_node_takes_pods_once_nothing_is_lacking() {
        use Initialization::{Ready, Waiting};
        let gpu = |amount| json!({"resources": {"requests": {"cpu": "1", "example.com/gpu": amount}}});
        let startup = json!({"startupTaints": [{"key": "boot", "effect": "NoSchedule"}]});
        check(json!({}), json!([]), "True", Ready);
        check(json!({}), json!([]), "False", Waiting(Lack::Readiness));
        check(
            gpu("1"),
            json!([]),
            "True",
            Waiting(Lack::Resource("example.com/gpu".into())),
        );
        check(gpu("0"), json!([]), "True", Ready);
        check(
            startup.clone(),
            json!([{"key": "boot", "effect": "NoSchedule"}]),
            "True",
            Waiting(Lack::StartupTaint("boot:NoSchedule".into())),
        );
        check(startup, json!([{"key": "boot", "effect": "NoExecute"}]), "True", Ready);
        for (key, effect) in [
            ("node.kubernetes.io/not-ready", "NoExecute"),
            ("readiness.k8s.io/cni", "NoSchedule"),
        ] {
            let lack = Lack::EphemeralTaint(format!("{key}:{effect}"));
            check(
                json!({}),
                json!([{"key": key, "effect": effect}]),
                "True",
                Waiting(lack),
            );
        }
    }

    /// LC-I2.
    #[test]
    fn nothing_is_said_about_a_claim_that_is_not_registered() {
        let draft = Draft::of(&NodeClaim::default(), Timestamp::UNIX_EPOCH);
        assert_eq!(decide(&draft, None, None), Initialization::NotRegistered);
    }

    /// LC-I8.
    #[test]
    fn devices_are_the_last_that_is_waited_for() {
        let conditions = json!([{"type": "Ready", "status": "True"}]);
        let node: Node = serde_json::from_value(json!({"status": {"conditions": conditions}})).expect("a node");
        let found = decide(&registered(json!({})), Some(&node), Some("gpu.example.com".to_owned()));
        let Initialization::Waiting(lack) = found else {
            panic!("the node is not done: {found:?}");
        };
        assert_eq!(lack.reason(), "DRADriverPoolsNotPublished");
    }
}
