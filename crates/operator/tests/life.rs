//! The production controllers in a simulated world: a node's whole life, on virtual time.

use std::{sync::Arc, time::Duration};

use operator::{Engine, settings::Settings};
use tokio_util::sync::CancellationToken;
use world::{
    story::{deployment, pods, pool, settled},
    world::{Brain, Parts, Setup, World},
};

fn brain() -> Brain {
    Arc::new(|parts: Parts| {
        Box::pin(async move {
            let engine = Engine {
                client: parts.client,
                cloud: parts.cloud,
                clock: parts.clock,
                settings: Arc::new(Settings::default()),
                seed: parts.seed,
            };
            // A controller that breaks down is a finding; the world would only start the next one.
            engine.run(&CancellationToken::new()).await.expect("controllers run until they are dropped");
        })
    })
}

fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(60 * minutes)
}

/// Pods come, nodes come; pods go, nodes go; nothing is left behind.
#[test]
fn twenty_pods_bring_nodes_and_take_them_along_again() {
    let mut world = World::new(Setup::seeded(7, brain()))
        .pool(pool("general"))
        .workload(deployment("web").replicas(0).asks("1 cpu, 1Gi"));
    world.run_for(Duration::from_secs(5));
    world.scale("Deployment", "web", 20);
    world.run_until(pods("web").running(20), minutes(5));
    world.scale("Deployment", "web", 0);
    world.run_until(pods("web").none(), minutes(5));
    world.run_until(settled(), minutes(10));
    if std::env::var_os("SHOW").is_some() {
        println!("{}", world.timeline());
    }
    assert!(world.cloud().live().is_empty());
}
