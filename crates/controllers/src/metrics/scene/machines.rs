//! Nodes: what they have, what is asked of them, how old they are.

use std::collections::BTreeMap;

use model::{Quantity, Resources, StateNode};

use super::{Scene, resource_label};
use crate::metrics::page::{Kind, LabelText, Page};

/// What a family says of a machine.
struct Figures {
    labels: LabelText,
    allocatable: Resources,
    overhead: Resources,
    requests: Resources,
    limits: Resources,
    daemon_requests: Resources,
    daemon_limits: Resources,
    age_secs: f64,
}

type Pick = fn(&Figures) -> &Resources;

const FAMILIES: [(&str, &str, Pick); 6] = [
    ("karpenter_nodes_allocatable", "What nodes have for pods", |figures| {
        &figures.allocatable
    }),
    (
        "karpenter_nodes_total_pod_requests",
        "What the pods of nodes ask for, daemons included",
        |figures| &figures.requests,
    ),
    (
        "karpenter_nodes_total_pod_limits",
        "What the pods of nodes may use at most, daemons included",
        |figures| &figures.limits,
    ),
    (
        "karpenter_nodes_total_daemon_requests",
        "What the daemons of nodes ask for",
        |figures| &figures.daemon_requests,
    ),
    (
        "karpenter_nodes_total_daemon_limits",
        "What the daemons of nodes may use at most",
        |figures| &figures.daemon_limits,
    ),
    (
        "karpenter_nodes_system_overhead",
        "What nodes keep for themselves",
        |figures| &figures.overhead,
    ),
];

pub fn write(page: &mut Page, scene: &Scene<'_>) {
    let names = label_names(scene);
    let nodes = scene.view.snapshot.nodes.values();
    let all: Vec<Figures> = nodes.filter_map(|machine| figures(scene, &names, machine)).collect();
    for (name, help, pick) in FAMILIES {
        let mut family = page.family(name, Kind::Gauge, help);
        for figures in &all {
            for (resource, amount) in pick(figures).iter() {
                let resource = resource_label(resource.as_str());
                family.sample_with(&figures.labels, &[("resource_type", resource)], amount.as_f64());
            }
            if !family.pass_on() {
                return;
            }
        }
    }
    let help = "Age of nodes";
    let mut family = page.family("karpenter_nodes_current_lifetime_seconds", Kind::Gauge, help);
    for figures in &all {
        family.sample_with::<&str, &str>(&figures.labels, &[], figures.age_secs);
        family.pass_on();
    }
    write_utilization(page, &all);
}

fn write_utilization(page: &mut Page, all: &[Figures]) {
    let (mut has, mut asked) = (Resources::default(), Resources::default());
    for figures in all {
        has.add_assign(&figures.allocatable);
        asked.add_assign(&figures.requests);
    }
    let help = "Share of the allocatable resources that pods ask for, in percent";
    let mut family = page.family("karpenter_cluster_utilization_percent", Kind::Gauge, help);
    for (resource, amount) in has.iter().filter(|(_, amount)| *amount > Quantity::ZERO) {
        let share = 100.0 * asked.get(resource.as_str()).as_f64() / amount.as_f64();
        family.sample(&[("resource_type", resource_label(resource.as_str()))], share);
    }
}

/// The names of the well-known labels as labels of a series: the part after the slash. Known once a provider has said
/// what it knows.
fn label_names(scene: &Scene<'_>) -> BTreeMap<String, String> {
    let keys = scene.view.snapshot.vocabulary.well_known.iter();
    keys.map(|key| {
        let name = key.as_str().rsplit('/').next().unwrap_or_default();
        (name.to_lowercase().replace('-', "_"), key.to_string())
    })
    .collect()
}

/// Nothing for a machine that has not joined.
fn figures(scene: &Scene<'_>, names: &BTreeMap<String, String>, machine: &StateNode) -> Option<Figures> {
    let node = machine.node.as_ref()?;
    let value = |key: &String| {
        node.labels
            .get(key.as_str())
            .map_or_else(String::new, ToString::to_string)
    };
    let mut labels: Vec<_> = names.iter().map(|(name, key)| (name.as_str(), value(key))).collect();
    let raw = scene.view.nodes.named(node.name.as_str());
    let phase = raw.and_then(|node| node.status.as_ref()?.phase.clone());
    labels.push(("node_name", node.name.to_string()));
    labels.push(("phase", phase.unwrap_or_default()));
    labels.push(("managed", machine.is_managed().to_string()));

    let mut figures = Figures {
        labels: LabelText::of(&labels),
        allocatable: node.allocatable.clone(),
        overhead: node.capacity.clone().minus(&node.allocatable),
        requests: Resources::default(),
        limits: Resources::default(),
        daemon_requests: Resources::default(),
        daemon_limits: Resources::default(),
        age_secs: scene.now.duration_since(node.created).as_secs_f64(),
    };
    for pod in scene.view.snapshot.pods_on(&node.name).filter(|pod| !pod.is_terminal()) {
        let notes = scene.view.pod_notes.get(&pod.key);
        figures.requests.add_assign(&pod.shape.requests);
        if let Some(notes) = notes {
            figures.limits.add_assign(&notes.limits);
        }
        if pod.is_daemon() {
            figures.daemon_requests.add_assign(&pod.shape.requests);
            if let Some(notes) = notes {
                figures.daemon_limits.add_assign(&notes.limits);
            }
        }
    }
    Some(figures)
}
