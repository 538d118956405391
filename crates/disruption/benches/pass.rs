//! How long a look at the whole cluster takes: every node is a candidate, with about twenty diverse pods each.
//!
//! `cargo bench -p disruption [-- NODES…]`. One line for each size: how long it took until every candidate had been looked at
//! alone, the same for one of them, and how long the whole pass took, which decides everything: nodes alone, nodes in groups,
//! all commands.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::{collections::BTreeSet, sync::Arc, time::Instant};

use disruption::{Settings, decide_watched};
use jiff::Timestamp;
use model::{
    CapacityType, Claim, ClaimPhase, InstanceType, Labels, NodeFacts, NodeKey, Operator, Overhead, Pod, Quantity,
    Requirement, Requirements, Resources, Snapshot, StateNode,
    pod::{LabelSelector, PodPhase, PodShape, PodTerm, TopologySpread},
    samples, vocabulary,
};

const ZONES: [&str; 3] = ["a", "b", "c"];
const PODS_PER_NODE: usize = 20;

fn main() {
    let sizes: Vec<usize> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    let sizes = if sizes.is_empty() {
        vec![100, 300, 1_000, 3_000, 10_000]
    } else {
        sizes
    };
    println!(
        "{:>7} {:>8} {:>10} {:>13} {:>9} {:>9}",
        "nodes", "pods", "looked ms", "candidate µs", "pass ms", "commands"
    );
    for nodes in sizes {
        let snapshot = fleet(nodes);
        let settings = Settings::default();
        let runs = if nodes > 1_000 { 1 } else { 3 };
        let (mut looked, mut whole) = (f64::INFINITY, f64::INFINITY);
        let mut commands = 0;
        for _ in 0..runs {
            let begun = Instant::now();
            let pass = decide_watched(&snapshot, &settings, &BTreeSet::new(), now(), &mut || {
                looked = looked.min(begun.elapsed().as_secs_f64());
            });
            whole = whole.min(begun.elapsed().as_secs_f64());
            commands = pass.commands.len();
        }
        println!(
            "{nodes:>7} {:>8} {:>10.1} {:>13.1} {:>9.1} {commands:>9}",
            snapshot.pods.len(),
            looked * 1e3,
            looked * 1e6 / nodes as f64,
            whole * 1e3
        );
    }
}

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().expect("a moment")
}

fn resources(cpu_millis: i64, memory_mebi: i64) -> Resources {
    let mut all = Resources::default();
    all.set("cpu".into(), format!("{cpu_millis}m").parse().expect("a quantity"));
    all.set("memory".into(), format!("{memory_mebi}Mi").parse().expect("a quantity"));
    all.set("pods".into(), Quantity::from_int(1));
    all
}

/// Sixty shapes: five sizes of three families in four generations.
fn catalog() -> Vec<Arc<InstanceType>> {
    let mut all = Vec::new();
    for (family, memory) in [("c", 2), ("m", 4), ("r", 8)] {
        for generation in 4..8i64 {
            for size in [2i64, 4, 8, 16, 32] {
                let name = format!("{family}{generation}.{size}");
                let price = size as f64 * (0.02 + 0.005 * memory as f64) * (1.1 - 0.02 * generation as f64);
                let offerings = ZONES.iter().enumerate().flat_map(|(zone, name)| {
                    let spot = price * (0.35 + 0.02 * zone as f64);
                    [
                        samples::offering(CapacityType::OnDemand, name, price),
                        samples::offering(CapacityType::Spot, name, spot),
                    ]
                });
                let mut capacity = resources(size * 1_000, size * memory * 1_024);
                capacity.set("pods".into(), Quantity::from_int(110));
                let own = Requirement::one_of(vocabulary::INSTANCE_TYPE, [name.as_str()]);
                let requirements: Requirements = std::iter::once(own).collect();
                let kind = InstanceType::new(
                    name.as_str().into(),
                    requirements,
                    offerings.collect(),
                    capacity,
                    Overhead::default(),
                );
                all.push(Arc::new(kind));
            }
        }
    }
    all
}

/// A fleet in which each node carries about twenty pods of many workloads and is about two thirds full.
fn fleet(nodes: usize) -> Snapshot {
    let catalog = catalog();
    let mut snapshot = Snapshot::default();
    snapshot
        .pools
        .insert("general".into(), Arc::new(samples::pool("general")));
    snapshot.catalogs.insert("general".into(), catalog.clone().into());
    let shapes: Vec<Arc<PodShape>> = (0..nodes.max(30)).map(|app| Arc::new(shape(app))).collect();
    let mut dice = 0x9e37_79b9_7f4a_7c15u64;
    let mut roll = |sides: usize| {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        usize::try_from(dice % sides as u64).unwrap_or_default()
    };
    for number in 0..nodes {
        let zone = ZONES[number % ZONES.len()];
        let name = format!("n{number:05}");
        let mut asked = Resources::default();
        for slot in 0..PODS_PER_NODE {
            // The number of the workload is the number of the node and a step, so that no node has two replicas.
            let shape = &shapes[(number + slot * 37 + roll(7) * 5) % shapes.len()];
            asked.add_assign(&shape.requests);
            snapshot.put_pod(Arc::new(Pod {
                shape: shape.clone(),
                phase: PodPhase::Running,
                ready: true,
                node: Some(name.as_str().into()),
                started: Some(Timestamp::UNIX_EPOCH),
                ..samples::pod(&format!("p{number:05}-{slot:02}"))
            }));
        }
        let needed = asked.get("cpu").nanos() * 3 / 2;
        let kind = catalog
            .iter()
            .filter(|kind| kind.allocatable().get("cpu").nanos() >= needed)
            .filter(|kind| kind.allocatable().get("memory") >= asked.get("memory"))
            .min_by(|a, b| a.offerings[0].price.total_cmp(&b.offerings[0].price));
        let kind = kind.or(catalog.last()).expect("a catalog has types");
        snapshot.put_node(Arc::new(machine(&name, zone, kind)));
    }
    snapshot
}

fn selector(app: &str) -> LabelSelector {
    LabelSelector {
        requirements: vec![Requirement::new("app", Operator::In, [app.into()]).expect("a selector")],
    }
}

/// A third plain, the others with a spread over zones, a spread over hosts, an affinity to zones, or keeping apart.
fn shape(app: usize) -> PodShape {
    let name = format!("app-{app}");
    let cpu = [100, 250, 500, 1_000][app % 4];
    let memory = [256, 512, 1_024, 2_048][app / 4 % 4];
    let mut shape = PodShape {
        labels: std::iter::once(("app".into(), name.as_str().into())).collect::<Labels>(),
        requests: resources(cpu, memory),
        ..samples::pod_shape()
    };
    let spread = |key: &str, skew: u32| TopologySpread {
        topology_key: key.to_owned(),
        max_skew: skew,
        min_domains: None,
        required: true,
        selector: Some(selector(&name)),
        match_label_keys: Vec::new(),
        honor_affinity: true,
        honor_taints: false,
    };
    let term = |key: &str| PodTerm {
        topology_key: key.to_owned(),
        selector: Some(selector(&name)),
        namespaces: BTreeSet::new(),
        namespace_selector: None,
        match_label_keys: Vec::new(),
        mismatch_label_keys: Vec::new(),
        weight: 0,
    };
    match app % 6 {
        0 => shape.spreads.push(spread(vocabulary::ZONE, 5)),
        1 => shape.spreads.push(spread(vocabulary::HOSTNAME, 2)),
        2 => shape.affinity.required_pods.push(term(vocabulary::ZONE)),
        3 => shape.affinity.required_anti.push(term(vocabulary::HOSTNAME)),
        _ => {}
    }
    shape
}

fn machine(name: &str, zone: &str, kind: &InstanceType) -> StateNode {
    let labels: Labels = [
        (vocabulary::NODEPOOL, "general"),
        (vocabulary::INSTANCE_TYPE, kind.name.as_str()),
        (vocabulary::ZONE, zone),
        (vocabulary::CAPACITY_TYPE, "on-demand"),
        (vocabulary::HOSTNAME, name),
        (vocabulary::REGISTERED, "true"),
        (vocabulary::INITIALIZED, "true"),
    ]
    .into_iter()
    .map(|(key, value)| (key.into(), value.into()))
    .collect();
    StateNode {
        key: NodeKey::Claim(name.into()),
        claim: Some(Claim {
            pool: Some("general".into()),
            phase: ClaimPhase::Initialized,
            labels: labels.clone(),
            capacity: kind.capacity.clone(),
            allocatable: kind.allocatable().clone(),
            consolidatable: true,
            initialized_at: Some(Timestamp::UNIX_EPOCH),
            ..samples::claim(name)
        }),
        node: Some(NodeFacts {
            labels,
            capacity: kind.capacity.clone(),
            allocatable: kind.allocatable().clone(),
            ..samples::node(name)
        }),
        nominated_until: None,
        marked_for_deletion: false,
    }
}
