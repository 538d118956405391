//! How long a round takes: 400 instance types, one pool, pods of thirty sizes, as in upstream's own benchmark.
//!
//! The pods have no rules about their neighbours, which the solver does not take yet.

use std::sync::Arc;

use divan::{Bencher, black_box, counter::ItemsCount};
use jiff::Timestamp;
use model::{
    CapacityType, InstanceType, Overhead, Pod, Quantity, Requirement, ResourceName, Resources, Snapshot, pod::PodShape,
    samples, vocabulary,
};
use scheduler::{Round, solve};

fn main() {
    divan::main();
}

#[divan::bench(args = [1, 50, 100, 500, 1000, 2000, 5000, 10_000, 20_000])]
fn diverse_sizes(bencher: Bencher<'_, '_>, pods: usize) {
    let (snapshot, round) = situation(pods, 30);
    bencher
        .counter(ItemsCount::new(pods))
        .bench(|| solve(black_box(&snapshot), black_box(&round)));
}

#[divan::bench(args = [1000, 20_000])]
fn identical(bencher: Bencher<'_, '_>, pods: usize) {
    let (snapshot, round) = situation(pods, 1);
    bencher
        .counter(ItemsCount::new(pods))
        .bench(|| solve(black_box(&snapshot), black_box(&round)));
}

/// What an index pays to publish a change while somebody holds the last snapshot.
#[divan::bench(args = [1000, 20_000])]
fn snapshot_update(bencher: Bencher<'_, '_>, pods: usize) {
    let (snapshot, round) = situation(pods, 30);
    let pod = snapshot.pods[&round.pods[pods / 2]].clone();
    bencher.bench(|| {
        let mut next = black_box(&snapshot).clone();
        next.put_pod(pod.clone());
        next
    });
}

fn situation(pods: usize, sizes: usize) -> (Snapshot, Round) {
    const CPU_MILLIS: [i64; 5] = [100, 250, 500, 1000, 1500];
    const MEMORY_MIB: [i64; 6] = [100, 256, 512, 1024, 2048, 4096];
    let shapes: Vec<Arc<PodShape>> = (0..sizes)
        .map(|size| Arc::new(pod_shape(CPU_MILLIS[size % 5], MEMORY_MIB[size % 6])))
        .collect();
    let mut snapshot = Snapshot::default();
    for number in 0..pods {
        snapshot.put_pod(Arc::new(pod(number, shapes[number % sizes].clone())));
    }
    let pool = samples::pool("default");
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
