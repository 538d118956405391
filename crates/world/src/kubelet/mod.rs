//! Simulated kubelets: what happens on a machine once its node object exists.
//!
//! * [`readiness`]: the node becomes Ready some time after it appeared, and Unknown some time after its machine died.
//! * [`pods`]: bound pods start, jobs finish, deleted pods end gracefully.
//! * [`lifecycle`]: conditions become taints, as the node lifecycle controller does it.
//! * [`collector`]: pods of nodes that are no more are removed, as the pod garbage collector does it.
//!
//! A kubelet acts for nodes with the annotation `kwok.x-k8s.io/node: fake` and leaves all others alone.

pub mod collector;
pub mod lifecycle;
pub mod pods;
pub mod readiness;

use std::{collections::BTreeSet, sync::Arc};

use k8s_openapi::api::core::v1::{Node, NodeCondition};
use parking_lot::Mutex;

pub const ANNOTATION: &str = "kwok.x-k8s.io/node";

/// Which machines run. A machine that does not run neither starts nor ends a pod, and its node falls silent.
pub trait Machines: Send + Sync + 'static {
    fn is_running(&self, node: &Node) -> bool;
}

/// Every machine runs as long as its node object is there.
pub struct AlwaysRunning;

impl Machines for AlwaysRunning {
    fn is_running(&self, _: &Node) -> bool {
        true
    }
}

/// Nodes whose machine runs and whose kubelet does not answer any more. Clones are handles to the same.
#[derive(Clone, Default)]
pub struct Hung(Arc<Mutex<BTreeSet<String>>>);

impl Hung {
    pub fn hang(&self, node: &str) {
        self.0.lock().insert(node.to_owned());
    }

    pub fn recover(&self, node: &str) {
        self.0.lock().remove(node);
    }

    fn holds(&self, node: &Node) -> bool {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        self.0.lock().contains(name)
    }
}

/// Kubelets on machines, of which some may hang.
pub struct Kubelets<M> {
    pub machines: M,
    pub hung: Hung,
}

impl<M: Machines> Machines for Kubelets<M> {
    fn is_running(&self, node: &Node) -> bool {
        self.machines.is_running(node) && !self.hung.holds(node)
    }
}

/// Whether a simulated kubelet acts for this node.
pub fn is_simulated(node: &Node) -> bool {
    let annotations = node.metadata.annotations.as_ref();
    annotations
        .and_then(|all| all.get(ANNOTATION))
        .is_some_and(|value| value == "fake")
}

pub fn ready_condition(node: &Node) -> Option<&NodeCondition> {
    node.status
        .as_ref()?
        .conditions
        .as_ref()?
        .iter()
        .find(|condition| condition.type_ == "Ready")
}

pub fn is_ready(node: &Node) -> bool {
    ready_condition(node).is_some_and(|condition| condition.status == "True")
}
