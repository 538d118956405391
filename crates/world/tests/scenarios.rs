//! Stories told in a seeded world with the production controllers.

use world::{
    story::{deployment, minutes, nothing_runs, pods, pool},
    world::World,
};

#[test]
fn pods_bring_nodes_and_take_them_along_again() {
    let mut world = World::seeded(7)
        .pool(pool("general"))
        .workload(deployment("web").replicas(6).asks("1 cpu, 2Gi").max_unavailable(1));
    world.run_until(pods("web").running(6), minutes(5));
    world.scale("Deployment", "web", 0);
    world.run_until(pods("web").none(), minutes(5));
    world.run_until(nothing_runs(), minutes(10));
    println!("{}", world.timeline());
}
