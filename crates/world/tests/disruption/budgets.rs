//! Pools that let their nodes go at some hours, or some of them, or none. Worlds begin at midnight.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use world::{
    story::{minutes, nothing_runs, settled},
    world::World,
};

use super::{marked, moments, nodes, running, thrifty, web};

const MARK: &str = "tainted karpenter.sh/disrupted:NoSchedule";

/// Three empty nodes, one minute after midnight.
fn three_empty_nodes(budgets: Value) -> World {
    let mut world = running(
        60,
        thrifty().consolidate_after("15s").budgets(budgets),
        web(3).apart(),
        3,
    );
    world.scale("Deployment", "web", 0);
    world
}

/// When nodes were marked, in seconds after midnight.
fn marks(world: &World) -> Vec<f64> {
    let timeline = world.timeline();
    let unmarked = moments(&timeline, &format!("no longer {MARK}"));
    assert!(unmarked.is_empty(), "marks are not taken back: {unmarked:?}");
    moments(&timeline, MARK)
}

/// DI-B29: a window that began yesterday is open until ten past midnight. Nothing goes before, and everything goes as soon as
/// it closes: after the next look at the cluster and the second look that follows fifteen seconds later.
#[test]
fn nodes_go_when_a_window_over_midnight_has_closed() {
    let mut world = three_empty_nodes(json!([
        { "nodes": "100%" },
        { "nodes": "0", "schedule": "50 23 * * *", "duration": "20m" },
    ]));
    world.run_until(nothing_runs(), minutes(20));
    let marks = marks(&world);
    assert_eq!(marks.len(), 3);
    assert!(marks.iter().all(|mark| (600.0..630.0).contains(mark)), "{marks:?}");
    let told = world.told_that(
        "DisruptionBlocked",
        "No allowed disruptions for disruption reason Empty",
    );
    assert_eq!(told, BTreeSet::from(["general".to_owned()]));
}

/// Windows overlap, and the strictest of those that are open and that are about this reason counts: none until five past
/// midnight, one at a time until a quarter past, then all.
#[test]
fn of_windows_that_overlap_the_strictest_counts() {
    let mut world = three_empty_nodes(json!([
        { "nodes": "100%" },
        { "nodes": "0", "schedule": "@daily", "duration": "5m" },
        { "nodes": "1", "schedule": "59 23 * * *", "duration": "16m", "reasons": ["Empty"] },
        { "nodes": "0", "schedule": "0 0 1 * *", "duration": "24h", "reasons": ["Drifted"] },
        { "nodes": "0", "schedule": "0 12 * * *", "duration": "1h" },
    ]));
    world.run_until(nothing_runs(), minutes(20));
    let marks = marks(&world);
    assert_eq!(marks.len(), 3);
    assert!((300.0..330.0).contains(&marks[0]), "{marks:?}");
    let apart = marks.windows(2).map(|pair| pair[1] - pair[0]);
    assert!(
        apart.into_iter().all(|wait| wait > 2.0),
        "one after the other: {marks:?}"
    );
}

/// A budget that cannot be read closes its pool, also for reasons that it is not about, and says which words are at fault.
/// Once it is corrected the nodes go.
#[test]
fn a_budget_that_cannot_be_read_keeps_every_node() {
    let mut world = three_empty_nodes(json!([
        { "nodes": "100%" },
        { "nodes": "1", "schedule": "0 9 * * tue-mon", "duration": "1h", "reasons": ["Drifted"] },
    ]));
    let before = nodes(&world);
    world.run_for(minutes(10));
    assert_eq!(nodes(&world), before);
    world.expect(marked(0));
    for reason in ["Empty", "Underutilized", "Drifted"] {
        let text =
            format!("for disruption reason {reason} due to blocking budget: spec.disruption.budgets[1].schedule");
        let told = world.told_that("DisruptionBlocked", &text);
        assert_eq!(told, BTreeSet::from(["general".to_owned()]), "{reason}");
    }
    let budgets = json!([{ "nodes": "100%" }]);
    world.patch_pool("general", json!({"spec": {"disruption": {"budgets": budgets}}}));
    world.run_until(nothing_runs(), minutes(5));
    world.run_until(settled(), minutes(5));
}
