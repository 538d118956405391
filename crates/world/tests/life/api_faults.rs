//! An API server that misbehaves: nothing is lost, nothing is asked in a tight loop, and all is well within seconds after
//! it is well itself.

use std::time::Duration;

use world::{
    faults::ApiFaults,
    story::{ApiServerTrouble, minutes, pods, pool, seconds, settled},
    world::World,
};

use super::{claim_path, gone, web};

/// How long the trouble lasts in each story.
const TROUBLE: Duration = minutes(2);

/// Pods come while the server is in trouble. They run soon after it is over, as if they had come then.
#[track_caller]
fn check_a_launch(trouble: ApiFaults, most_requests: u64) {
    let mut world = World::seeded(7).pool(pool("general").consolidate_after("Never"));
    world.run_for(seconds(30));
    world.inject(ApiServerTrouble(trouble));
    world.create(web(3));
    let before = world.controller().requests();
    world.run_for(TROUBLE);
    let asked = world.controller().requests() - before;
    assert!(asked <= most_requests, "{asked} requests in {TROUBLE:?}");
    world.inject(ApiServerTrouble(ApiFaults::default()));
    // Ten seconds until the last wait is over, ten for a batch, twenty for the machine, ten for node and pods.
    world.run_until(pods("web").running(3), seconds(50));
    world.run_until(settled(), minutes(2));
}

/// A claim is deleted while the server is in trouble. It ends soon after that is over.
#[track_caller]
fn check_an_end(trouble: ApiFaults, most_requests: u64) {
    let mut world = World::seeded(7)
        .pool(pool("general").consolidate_after("Never"))
        .workload(web(3).max_unavailable(2));
    world.run_until(pods("web").running(3), minutes(5));
    world.run_for(seconds(30));
    let claim = world.scene().node_claims.all()[0].clone();
    let name = claim.metadata.name.clone().unwrap_or_default();
    world.inject(ApiServerTrouble(trouble));
    world.delete_at(&claim_path(&claim));
    let before = world.controller().requests();
    world.run_for(TROUBLE);
    let asked = world.controller().requests() - before;
    assert!(asked <= most_requests, "{asked} requests in {TROUBLE:?}");
    world.inject(ApiServerTrouble(ApiFaults::default()));
    // The pods leave in two waves of ten seconds each, the second after replacements run on a new node.
    world.run_until(gone(&name), seconds(110));
    world.run_until(settled(), minutes(2));
}

#[track_caller]
fn check(trouble: ApiFaults, most_requests: u64) {
    check_a_launch(trouble, most_requests);
    check_an_end(trouble, most_requests);
}

#[test]
fn a_server_that_fails_is_asked_less_and_less() {
    let trouble = ApiFaults {
        server_error: 100,
        ..ApiFaults::default()
    };
    check(trouble, 400);
}

/// 429 with `Retry-After: 1`: nobody comes back before the time.
#[test]
fn a_busy_server_is_asked_when_it_wants_to_be() {
    let trouble = ApiFaults {
        throttle: 100,
        ..ApiFaults::default()
    };
    check(trouble, 700);
}

/// Every watch is refused with 410: the lists that follow say what the watches did not.
#[test]
fn a_server_that_forgets_versions_is_listed_again() {
    let trouble = ApiFaults {
        watch_drop: 100,
        ..ApiFaults::default()
    };
    check(trouble, 1_500);
}

#[test]
fn a_slow_server_is_waited_for() {
    let trouble = ApiFaults {
        latency: Duration::from_secs(8),
        watch_delay: Duration::from_secs(8),
        ..ApiFaults::default()
    };
    check(trouble, 400);
}

#[test]
fn a_server_that_never_answers_is_asked_again() {
    let trouble = ApiFaults {
        timeout: 100,
        ..ApiFaults::default()
    };
    check(trouble, 300);
}

#[test]
fn a_line_that_loses_every_answer_is_survived() {
    let trouble = ApiFaults {
        lost_answer: 100,
        ..ApiFaults::default()
    };
    check(trouble, 400);
}

#[test]
fn conflicts_without_end_are_met_with_patience() {
    let trouble = ApiFaults {
        conflict: 100,
        ..ApiFaults::default()
    };
    check(trouble, 400);
}
