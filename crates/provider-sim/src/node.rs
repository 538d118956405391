//! The Node object that a machine joins the cluster as.
//!
//! Labels, annotations and figures are those of upstream's KWOK provider, so that whatever selects or counts its
//! nodes finds ours. Two things differ on purpose. The node joins with the claim's taints, as real nodes do, instead
//! of getting them at registration; and its capacity is that of its shape, where upstream's reports only what was
//! requested. The kubelet's part (readiness, addresses, versions) is left to whoever plays the kubelet.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Node, NodeSpec, NodeStatus, NodeSystemInfo, Taint as NodeTaint},
    apimachinery::pkg::api::resource::Quantity as QuantityText,
};
use kube::api::ObjectMeta;
use model::{InstanceType, Labels, Offering, Resources, Taint, vocabulary};

use crate::{machine::Machine, order::Order};

/// On label and annotation: this node has no machine behind it; kwok looks after it.
pub const FAKE_NODE: &str = "kwok.x-k8s.io/node";
pub const FAKE: &str = "fake";
/// The price, where eks-node-viewer looks for it.
pub const PRICE_LABEL: &str = "eks-node-viewer/instance-price";
const PARTITION_LABEL: &str = "kwok-partition";
/// Upstream spreads its nodes over partitions of kwok and has only this one.
const PARTITION: &str = "a";
/// The launch token, so that the machine is known again when all memory of its launch is lost.
pub const TOKEN_ANNOTATION: &str = "karpenter.kwok.sh/launch-token";

pub struct Figures {
    pub capacity: Resources,
    pub allocatable: Resources,
}

/// What the node reports. Requests come first: a resource that only an overlay gave to the shape exists on the node
/// as far as it was asked for.
pub fn figures(shape: &InstanceType, offering: &Offering, requests: &Resources) -> Figures {
    let mut capacity = requests.clone();
    let overrides = offering.capacity_override.iter().flat_map(Resources::iter);
    for (name, amount) in shape.capacity.iter().chain(overrides) {
        capacity.set(name.clone(), amount);
    }
    let mut allocatable = requests.clone();
    for (name, amount) in shape.allocatable_under(offering) {
        allocatable.set(name, amount);
    }
    Figures { capacity, allocatable }
}

/// Later ones win: the claim's, the shape's, the offering's, and those that only the simulation needs.
pub fn labels(order: &Order, shape: &InstanceType, offering: &Offering) -> Labels {
    let mut labels = order.labels.clone();
    labels.extend(shape.requirements.labels());
    labels.insert(vocabulary::INSTANCE_TYPE.into(), shape.name.as_str().into());
    labels.extend(offering.requirements.labels());
    labels.insert(PRICE_LABEL.into(), format!("{:.6}", offering.price).into());
    labels.insert(PARTITION_LABEL.into(), PARTITION.into());
    labels.insert(vocabulary::HOSTNAME.into(), order.claim.as_str().into());
    labels.insert(FAKE_NODE.into(), FAKE.into());
    labels
}

pub fn annotations(order: &Order) -> Labels {
    let mut annotations = order.annotations.clone();
    annotations.insert(FAKE_NODE.into(), FAKE.into());
    annotations.insert(TOKEN_ANNOTATION.into(), order.token.as_str().into());
    annotations
}

pub fn object(machine: &Machine) -> Node {
    let text = |labels: &Labels| -> BTreeMap<String, String> {
        labels
            .iter()
            .map(|(key, value)| (key.to_string(), value.to_string()))
            .collect()
    };
    let amounts = |resources: &Resources| -> BTreeMap<String, QuantityText> {
        let amount = |(name, amount): (&model::ResourceName, model::Quantity)| {
            (name.to_string(), QuantityText(amount.to_string()))
        };
        resources.iter().map(amount).collect()
    };
    let label = |key: &str| machine.labels.get(key).map(ToString::to_string).unwrap_or_default();
    Node {
        metadata: ObjectMeta {
            name: Some(machine.node.to_string()),
            labels: Some(text(&machine.labels)),
            annotations: Some(text(&machine.annotations)),
            ..ObjectMeta::default()
        },
        spec: Some(NodeSpec {
            provider_id: Some(machine.provider_id.to_string()),
            taints: Some(taints(&machine.taints)),
            ..NodeSpec::default()
        }),
        status: Some(NodeStatus {
            capacity: Some(amounts(&machine.capacity)),
            allocatable: Some(amounts(&machine.allocatable)),
            node_info: Some(NodeSystemInfo {
                architecture: label(vocabulary::ARCH),
                operating_system: label(vocabulary::OS),
                ..NodeSystemInfo::default()
            }),
            phase: Some("Pending".to_owned()),
            ..NodeStatus::default()
        }),
    }
}

/// The taint that registration removes, then the machine's own; of those alike in key and effect the first stays.
fn taints(own: &[Taint]) -> Vec<NodeTaint> {
    let unregistered = Taint::unregistered();
    let mut kept: Vec<&Taint> = Vec::new();
    for taint in std::iter::once(&unregistered).chain(own) {
        if !kept.iter().any(|present| present.same_kind(taint)) {
            kept.push(taint);
        }
    }
    let written = |taint: &Taint| NodeTaint {
        key: taint.key.clone(),
        value: (!taint.value.is_empty()).then(|| taint.value.clone()),
        effect: taint.effect.to_string(),
        time_added: None,
    };
    kept.into_iter().map(written).collect()
}
