//! Which pools, claims and nodes are ours: those whose node class the provider serves.

use std::collections::BTreeSet;

use api::{
    labels,
    v1::{NodeClaim, NodeClassReference, NodePool},
};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;

/// The kinds of node class that our provider serves. Several Karpenters may share a cluster; objects that refer to
/// another one's classes never enter the index as ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Served {
    kinds: BTreeSet<(String, String)>,
    labels: BTreeSet<String>,
}

impl Served {
    /// From pairs of group and kind.
    pub fn new(kinds: impl IntoIterator<Item = (String, String)>) -> Self {
        let kinds: BTreeSet<_> = kinds.into_iter().collect();
        let labels = kinds
            .iter()
            .map(|(group, kind)| format!("{group}/{}", kind.to_lowercase()));
        Self {
            labels: labels.collect(),
            kinds,
        }
    }

    pub fn class(&self, class: &NodeClassReference) -> bool {
        self.kinds
            .iter()
            .any(|(group, kind)| *group == class.group && *kind == class.kind)
    }

    pub fn pool(&self, pool: &NodePool) -> bool {
        self.class(&pool.spec.template.spec.node_class_ref)
    }

    pub fn claim(&self, claim: &NodeClaim) -> bool {
        self.class(&claim.spec.node_class_ref)
    }

    /// A node carries the name of its class as a label.
    pub fn node(&self, node: &Node) -> bool {
        node.labels().keys().any(|key| self.labels.contains(key))
    }
}

/// A node of ours that cannot be told apart from its claim yet: counting both would count the machine twice.
///
/// It joins with the unregistered taint, so no pod goes there before its claim is known.
pub(crate) fn is_unfinished(node: &Node) -> bool {
    let spec = node.spec.as_ref();
    let has_instance = spec
        .and_then(|spec| spec.provider_id.as_deref())
        .is_some_and(|id| !id.is_empty());
    let labelled = |key: &str| node.labels().get(key).is_some_and(|value| !value.is_empty());
    let unregistered = spec
        .and_then(|spec| spec.taints.as_ref())
        .is_some_and(|taints| taints.iter().any(|taint| taint.key == labels::taints::UNREGISTERED));
    !has_instance || unregistered || (!labelled(labels::INSTANCE_TYPE) && !labelled(labels::INITIALIZED))
}
