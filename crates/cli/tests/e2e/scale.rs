//! Fifty pods come and go, and so do the nodes under them, also when the controller is killed on the way.

use std::time::Duration;

use rand::{Rng, SeedableRng, rngs::SmallRng};

use crate::{cluster::Cluster, controller::Controller};

#[tokio::test]
async fn a_deployment_scales_up_and_down_and_nothing_is_left_behind() {
    let cluster = Cluster::start().await;
    let mut controller = Controller::for_cluster(cluster.plane.kubeconfig());
    controller.start();
    cluster.apply_pool("general").await;
    cluster.create_deployment("inflate", "1").await;

    cluster.scale("inflate", 50).await;
    cluster.until_running(50).await;
    cluster.scale("inflate", 0).await;
    cluster.until_empty().await;
}

/// Kills come at moments that a seed chooses, from right after the scale to the end of the launches. Whatever was under
/// way, every pod gets a place, no claim gets two nodes, and nothing is left behind.
#[tokio::test]
async fn kills_at_random_moments_change_nothing() {
    const SEED: u64 = 11;
    let mut dice = SmallRng::seed_from_u64(SEED);
    let cluster = Cluster::start().await;
    let mut controller = Controller::for_cluster(cluster.plane.kubeconfig());
    controller.start();
    cluster.apply_pool("general").await;
    cluster.create_deployment("inflate", "1").await;

    for replicas in [50, 0] {
        cluster.scale("inflate", replicas).await;
        for _ in 0..4 {
            tokio::time::sleep(Duration::from_millis(dice.random_range(200..2500))).await;
            controller.kill();
            controller.start();
        }
        if replicas > 0 {
            cluster.until_running(50).await;
            let (nodes, claims) = (cluster.nodes().await.len(), cluster.claims().await.len());
            assert_eq!(nodes, claims, "every claim has one node (seed {SEED})");
        }
    }
    cluster.until_empty().await;
}
