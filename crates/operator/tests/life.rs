//! The production controllers in a simulated world: a node's whole life, on virtual time.

use std::time::Duration;

use world::{
    story::{Condition, deployment, pods, pool, that},
    world::{Setup, World, karpenter},
};

fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(60 * minutes)
}

/// No claim, no node, no machine.
fn nothing_left() -> Condition {
    that("nothing is left", |moment| {
        let scene = moment.scene;
        scene.nodes.all().is_empty() && moment.cloud.live().is_empty()
    })
}

/// Pods come, nodes come; pods go, nodes go; nothing is left behind.
#[test]
fn pods_bring_nodes_and_take_them_along_again() {
    let count: u32 = std::env::var("PODS").ok().and_then(|n| n.parse().ok()).unwrap_or(20);
    let mut world = World::new(Setup::seeded(7, karpenter()))
        .pool(pool("general"))
        .workload(deployment("web").replicas(0).asks("1 cpu, 1Gi"));
    world.run_for(Duration::from_secs(5));
    world.scale("Deployment", "web", count);
    world.run_until(pods("web").running(count as usize), minutes(5));
    world.scale("Deployment", "web", 0);
    world.run_until(pods("web").none(), minutes(5));
    world.run_until(nothing_left(), minutes(10));
    if std::env::var_os("SHOW").is_some() {
        println!("{}", world.timeline());
    }
}

#[test]
fn storms() {
    use world::{faults::ApiFaults, world::CrashPlan};
    let from: u64 = std::env::var("SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let many: u64 = std::env::var("SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let mut failed = 0;
    for seed in from..from + many {
        let setup = Setup {
            api: ApiFaults::rough(),
            crashes: CrashPlan {
                steps: 20..400,
                ..CrashPlan::default()
            },
            ..Setup::seeded(seed, karpenter())
        };
        let mut world = World::new(setup)
            .pool(pool("general"))
            .workload(deployment("web").replicas(0).asks("1 cpu, 1Gi"));
        let mut story = || {
            world.try_run_for(Duration::from_secs(5))?;
            world.scale("Deployment", "web", 20);
            world.try_run_for(minutes(4))?;
            world.scale("Deployment", "web", 5);
            world.try_run_for(minutes(4))?;
            world.scale("Deployment", "web", 0);
            world.try_run_for(minutes(2))?;
            world.calm();
            world.try_run_until(&nothing_left(), minutes(30))
        };
        if let Err(failure) = story() {
            failed += 1;
            println!("{failure}");
        }
    }
    assert_eq!(failed, 0);
}
