//! Gauges that are read off the cluster at the moment of the scrape.
//!
//! Nothing is kept: a series is there for exactly as long as its object, and a cluster that nobody scrapes costs nothing.

pub mod kinds;
mod machines;

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::{Labels, NodeName, Pod, PoolName, Resources, pod::PodPhase};
use provider::NodeClassKind;
use state::View;

use super::{
    conditions::ConditionMetrics,
    cost,
    page::{Family, Kind, Page},
};
use crate::node_pool::counter::zeros;

/// The cluster as a scrape finds it.
pub struct Scene<'a> {
    pub view: &'a View,
    pub now: Timestamp,
    pub classes: &'a [NodeClassKind],
    /// Nothing is told of single pods, nodes, claims and pools.
    pub only_classes: bool,
}

impl Scene<'_> {
    pub(super) fn write(&self, page: &mut Page, conditions: &ConditionMetrics) {
        if !self.only_classes {
            machines::write(page, self);
            self.write_pools(page);
            self.write_pods(page);
        }
        kinds::write(page, self, conditions);
    }

    fn write_pools(&self, page: &mut Page) {
        let snapshot = &self.view.snapshot;
        let name = "karpenter_nodepools_limit";
        let mut family = page.family(name, Kind::Gauge, "Limits of node pools");
        for pool in snapshot.pools.values() {
            pool_resources(&mut family, &pool.name, &pool.limits);
        }
        let usage = usage(self.view);
        let zeros = zeros();
        let help = "What counts against the limits of node pools";
        let mut family = page.family("karpenter_nodepools_usage", Kind::Gauge, help);
        for name in snapshot.pools.keys() {
            pool_resources(&mut family, name, usage.get(name).unwrap_or(&zeros));
        }
        let help = "What the machines of a node pool cost per hour, in US dollars";
        let mut family = page.family("karpenter_nodepools_cost_total", Kind::Gauge, help);
        for (pool, cost) in cost::by_pool(snapshot) {
            family.sample(&[("nodepool", pool.as_str())], cost.total());
        }
    }

    fn write_pods(&self, page: &mut Page) {
        let mut family = page.family("karpenter_pods_state", Kind::Gauge, "Pods and where they are");
        for pod in self.view.snapshot.pods.values().filter(|pod| !pod.is_virtual()) {
            family.sample(&pod_labels(self.view, pod), 1.0);
            if !family.pass_on() {
                return;
            }
        }
    }
}

fn pool_resources(family: &mut Family<'_>, pool: &PoolName, resources: &Resources) {
    for (resource, amount) in resources.iter() {
        let labels = [
            ("resource_type", resource_label(resource.as_str())),
            ("nodepool", pool.to_string()),
        ];
        family.sample(&labels, amount.as_f64());
    }
}

/// What the machines of every pool add up to, in one pass over the machines.
fn usage(view: &View) -> BTreeMap<PoolName, Resources> {
    let mut usage: BTreeMap<PoolName, Resources> = BTreeMap::new();
    for machine in view.snapshot.nodes.values().filter(|machine| !machine.is_leaving()) {
        if let Some(pool) = machine.pool() {
            usage.entry(pool).or_insert_with(zeros).add_assign(&machine.capacity());
        }
    }
    usage
}

/// `ephemeral_storage` for `ephemeral-storage`.
fn resource_label(name: &str) -> String {
    name.to_lowercase().replace('-', "_")
}

fn pod_labels(view: &View, pod: &Pod) -> [(&'static str, String); 13] {
    let machine = pod.node.as_ref().and_then(|node| view.snapshot.node_named(node));
    let nothing = Labels::new();
    let labels = machine.map_or(&nothing, |machine| machine.labels());
    let label = |key: &str| labels.get(key).map_or_else(String::new, ToString::to_string);
    let owner = view.pod_notes.get(&pod.key).map(|notes| notes.owner.clone());
    let phase = match pod.phase {
        PodPhase::Pending => "Pending",
        PodPhase::Running => "Running",
        PodPhase::Succeeded => "Succeeded",
        PodPhase::Failed => "Failed",
        PodPhase::Unknown => "Unknown",
    };
    [
        ("name", pod.key.name.to_string()),
        ("namespace", pod.key.namespace.to_string()),
        ("owner", owner.unwrap_or_default()),
        ("node", pod.node.as_ref().map_or_else(String::new, NodeName::to_string)),
        ("scheduled", pod.node.is_some().to_string()),
        ("nodepool", label(api::labels::NODE_POOL)),
        ("zone", label(api::labels::ZONE)),
        ("arch", label(api::labels::ARCH)),
        ("capacity_type", label(api::labels::CAPACITY_TYPE)),
        ("instance_type", label(api::labels::INSTANCE_TYPE)),
        ("phase", phase.to_owned()),
        ("ready", pod.ready.to_string()),
        (
            "managed",
            machine.is_some_and(|machine| machine.is_managed()).to_string(),
        ),
    ]
}
