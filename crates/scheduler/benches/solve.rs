//! How long a round takes: 400 instance types, one pool, and the pods of upstream's own benchmark.

use std::{collections::BTreeSet, sync::Arc};

use divan::{Bencher, black_box, counter::ItemsCount};
use jiff::Timestamp;
use model::{
    CapacityType, InstanceType, Overhead, Pod, Quantity, Requirement, ResourceName, Resources, Snapshot,
    pod::{LabelSelector, NodeTerm, PodShape, PodTerm, TopologySpread},
    samples, vocabulary,
};
use scheduler::{PreferencePolicy, Round, audit, solve};

fn main() {
    divan::main();
}

#[divan::bench(args = [1, 50, 100, 500, 1000, 2000, 5000, 10_000, 20_000])]
fn diverse_pods(bencher: Bencher<'_, '_>, pods: usize) {
    run(bencher, &diverse(pods));
}

#[divan::bench(args = [1000, 20_000])]
fn equal_pods(bencher: Bencher<'_, '_>, pods: usize) {
    let shape = Arc::new(pod_shape(500, 512));
    run(bencher, &situation((0..pods).map(|_| shape.clone())));
}

/// What the guard costs on top of a round.
#[divan::bench(args = [1000, 20_000])]
fn audit_of_diverse_pods(bencher: Bencher<'_, '_>, pods: usize) {
    let (snapshot, round) = diverse(pods);
    let plan = solve(&snapshot, &round);
    bencher
        .counter(ItemsCount::new(pods))
        .bench(|| audit(black_box(&snapshot), black_box(&plan)).expect("a plan survives its audit"));
}

#[divan::bench(args = [PreferencePolicy::Respect, PreferencePolicy::Ignore])]
fn preferences(bencher: Bencher<'_, '_>, policy: &PreferencePolicy) {
    let (snapshot, mut round) = wishful(4000);
    round.options.preference_policy = *policy;
    run(bencher, &(snapshot, round));
}

fn run(bencher: Bencher<'_, '_>, (snapshot, round): &(Snapshot, Round)) {
    let plan = solve(snapshot, round);
    assert!(plan.refusals.is_empty(), "every pod of the benchmark has a place");
    bencher
        .counter(ItemsCount::new(round.pods.len()))
        .bench(|| solve(black_box(snapshot), black_box(round)));
}

/// What an index pays to publish a change while somebody holds the last snapshot.
#[divan::bench(args = [1000, 20_000])]
fn snapshot_update(bencher: Bencher<'_, '_>, pods: usize) {
    let (snapshot, round) = diverse(pods);
    let pod = snapshot.pods[&round.pods[pods / 2]].clone();
    bencher.bench(|| {
        let mut next = black_box(&snapshot).clone();
        next.put_pod(pod.clone());
        next
    });
}

/// Upstream's mix: a fifth each of plain pods, zonal spreads, host spreads, zonal self-affinity and host anti-affinity.
fn diverse(pods: usize) -> (Snapshot, Round) {
    let mut random = Random(42);
    let fifth = pods / 5;
    let shape = |random: &mut Random, number: usize| {
        let labels = |key: &str, value: &str| [(key.into(), value.into())].into();
        let mut shape = random.shape();
        match number / fifth.max(1) {
            1 | 2 if fifth > 0 => {
                shape.labels = labels("my-label", random.letter());
                let key = if number / fifth == 1 {
                    vocabulary::ZONE
                } else {
                    vocabulary::HOSTNAME
                };
                shape.spreads = vec![TopologySpread {
                    topology_key: key.to_owned(),
                    max_skew: 1,
                    min_domains: None,
                    required: true,
                    selector: Some(selector("my-label", random.letter())),
                    match_label_keys: Vec::new(),
                    honor_affinity: true,
                    honor_taints: false,
                }];
            }
            3 if fifth > 0 => {
                let letter = random.letter();
                shape.labels = labels("my-affininity", letter);
                shape.affinity.required_pods = vec![term(vocabulary::ZONE, "my-affininity", letter, 0)];
            }
            4 if fifth > 0 => {
                shape.labels = labels("app", "nginx");
                shape.affinity.required_anti = vec![term(vocabulary::HOSTNAME, "app", "nginx", 0)];
            }
            _ => shape.labels = labels("my-label", random.letter()),
        }
        shape
    };
    situation((0..pods).map(|number| Arc::new(shape(&mut random, number))))
}

/// Equal pods that would like a zone, and a zone and a host of their own.
fn wishful(pods: usize) -> (Snapshot, Round) {
    let mut shape = Random(42).shape();
    shape.labels = [("app".into(), "nginx".into())].into();
    shape.affinity.preferred_nodes = vec![NodeTerm {
        weight: 1,
        requirements: vec![Requirement::one_of(vocabulary::ZONE, ["test-zone-1"])],
    }];
    shape.affinity.preferred_anti = vec![
        term(vocabulary::ZONE, "app", "nginx", 10),
        term(vocabulary::HOSTNAME, "app", "nginx", 1),
    ];
    let shape = Arc::new(shape);
    situation((0..pods).map(|_| shape.clone()))
}

fn selector(key: &str, value: &str) -> LabelSelector {
    LabelSelector {
        requirements: vec![Requirement::one_of(key, [value])],
    }
}

fn term(topology_key: &str, key: &str, value: &str, weight: i32) -> PodTerm {
    PodTerm {
        topology_key: topology_key.to_owned(),
        selector: Some(selector(key, value)),
        namespaces: BTreeSet::new(),
        namespace_selector: None,
        match_label_keys: Vec::new(),
        mismatch_label_keys: Vec::new(),
        weight,
    }
}

/// Draws that are the same every time.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % bound
    }

    fn letter(&mut self) -> &'static str {
        ["a", "b", "c", "d", "e", "f", "g"][self.below(7)]
    }

    fn shape(&mut self) -> PodShape {
        const CPU_MILLIS: [i64; 5] = [100, 250, 500, 1000, 1500];
        const MEMORY_MIB: [i64; 6] = [100, 256, 512, 1024, 2048, 4096];
        pod_shape(CPU_MILLIS[self.below(5)], MEMORY_MIB[self.below(6)])
    }
}

fn situation(shapes: impl Iterator<Item = Arc<PodShape>>) -> (Snapshot, Round) {
    let mut snapshot = Snapshot::default();
    for (number, shape) in shapes.enumerate() {
        snapshot.put_pod(Arc::new(pod(number, shape)));
    }
    let mut pool = samples::pool("default");
    pool.limits = resources(Quantity::from_int(10_000_000), mebibytes(10_000_000 << 10), 0);
    pool.limits.remove("pods");
    let types: Vec<Arc<InstanceType>> = (1..=400).map(|cpu| Arc::new(instance_type(cpu))).collect();
    snapshot.catalogs.insert(pool.name.clone(), types.into());
    snapshot.pools.insert(pool.name.clone(), Arc::new(pool));
    let keys = snapshot.pods.keys().cloned().collect();
    (snapshot, Round::new(keys, Timestamp::UNIX_EPOCH))
}

fn resources(cpu: Quantity, memory: Quantity, pods: i64) -> Resources {
    Resources::default()
        .with(ResourceName::CPU, cpu)
        .with(ResourceName::MEMORY, memory)
        .with(ResourceName::PODS, Quantity::from_int(pods))
}

fn mebibytes(count: i64) -> Quantity {
    Quantity::from_bytes(count << 20)
}

fn instance_type(cpu: i64) -> InstanceType {
    let memory = 2 * cpu * 1024;
    let price = 0.1 * cpu as f64 + 0.1 * (memory << 20) as f64 / 1e9;
    let sold = [
        (CapacityType::Spot, "test-zone-1"),
        (CapacityType::Spot, "test-zone-2"),
        (CapacityType::OnDemand, "test-zone-1"),
        (CapacityType::OnDemand, "test-zone-2"),
        (CapacityType::OnDemand, "test-zone-3"),
    ];
    let name = format!("fake-it-{}", cpu - 1);
    let requirements = [
        Requirement::one_of(vocabulary::INSTANCE_TYPE, [name.as_str()]),
        Requirement::one_of(vocabulary::ARCH, ["amd64"]),
        Requirement::one_of(vocabulary::OS, ["linux", "windows", "darwin"]),
        Requirement::one_of(vocabulary::ZONE, ["test-zone-1", "test-zone-2", "test-zone-3"]),
        Requirement::one_of(vocabulary::CAPACITY_TYPE, ["spot", "on-demand"]),
    ];
    let overhead = Overhead {
        kube_reserved: resources(Quantity::from_millis(100), mebibytes(10), 0),
        ..Overhead::default()
    };
    InstanceType::new(
        name.into(),
        requirements.into_iter().collect(),
        sold.map(|(kind, zone)| samples::offering(kind, zone, price)).into(),
        resources(Quantity::from_int(cpu), mebibytes(memory), 10 * cpu),
        overhead,
    )
}

fn pod_shape(cpu_millis: i64, memory_mib: i64) -> PodShape {
    PodShape {
        requests: resources(Quantity::from_millis(cpu_millis), mebibytes(memory_mib), 1),
        ..samples::pod_shape()
    }
}

fn pod(number: usize, shape: Arc<PodShape>) -> Pod {
    Pod {
        shape,
        unschedulable: true,
        ..samples::pod(&format!("pod-{number:05}"))
    }
}
