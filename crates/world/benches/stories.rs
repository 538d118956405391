//! How long simulated stories take in real time.

use world::{
    storm::Trouble,
    story::{deployment, minutes, nothing_runs, pods, pool, settled},
    world::World,
};

/// The one that the tests of this crate run with, too.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    divan::main();
}

/// Pods come and go, and their nodes with them.
#[divan::bench(args = [10, 100, 1000], sample_count = 3, sample_size = 1)]
fn up_and_down(replicas: u32) {
    let mut world = World::seeded(1)
        .pool(pool("general"))
        .workload(deployment("inflate").replicas(replicas).asks("1 cpu, 1Gi"));
    let count = usize::try_from(replicas).expect("a few pods");
    world.run_until(pods("inflate").running(count), minutes(10));
    world.scale("Deployment", "inflate", 0);
    world.run_until(nothing_runs(), minutes(15));
    world.run_until(settled(), minutes(5));
}

/// About twenty pods, with faults.
#[divan::bench(args = [1, 2, 3], sample_count = 5, sample_size = 1)]
fn storm(seed: u64) -> bool {
    Trouble::seeded(seed).run().verdict.is_ok()
}
