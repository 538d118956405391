//! Spreads that the operator has set for pods without any.

use std::collections::BTreeMap;

use model::{pod::TopologySpread, vocabulary};

use super::planned;
use crate::{Options, Plan};

pub(super) fn spread(topology_key: &str) -> TopologySpread {
    TopologySpread {
        topology_key: topology_key.to_owned(),
        max_skew: 1,
        min_domains: None,
        required: true,
        selector: None,
        match_label_keys: Vec::new(),
        honor_affinity: true,
        honor_taints: false,
    }
}

#[track_caller]
fn plan_with(spread: TopologySpread, situation: &str) -> Plan {
    let options = Options {
        default_spreads: [spread].into(),
        ..Options::default()
    };
    planned(situation, options)
}

/// How many pods whose names begin like this are in each zone, sorted.
fn per_zone(plan: &Plan, prefix: &str) -> Vec<usize> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for launch in &plan.launches {
        let pods = launch.pods.iter().filter(|pod| pod.name.starts_with(prefix)).count();
        *counts.entry(launch.choice.zone.as_str()).or_default() += pods;
    }
    let mut counts: Vec<usize> = counts.into_values().filter(|count| *count > 0).collect();
    counts.sort_unstable();
    counts
}

const CLUSTER: &str = "type large cpu=8 memory=32Gi zones=a,b,c price=0.4
     pool general
     owner ReplicaSet/web label:app=web
     ";

/// SC15.16.1
#[test]
fn pods_of_a_controller_are_spread() {
    let pods = |count: usize| format!("{CLUSTER}pod web cpu=100m label:app=web owner=ReplicaSet/web count={count}");
    let zonal = plan_with(spread(vocabulary::ZONE), &pods(4));
    assert_eq!(per_zone(&zonal, "web"), [1, 1, 2], "{zonal}");
    let by_host = plan_with(spread(vocabulary::HOSTNAME), &pods(3));
    assert_eq!(by_host.launches.len(), 3, "{by_host}");
}

/// SC15.16.2
#[test]
fn who_has_a_spread_of_its_own_keeps_to_that() {
    let plan = plan_with(
        spread(vocabulary::HOSTNAME),
        &format!("{CLUSTER}pod web cpu=100m label:app=web spread=host:3:app=web owner=ReplicaSet/web count=3"),
    );
    assert_eq!(plan.launches.len(), 1, "{plan}");
}

/// SC15.16.3, SC15.16.4
#[test]
fn the_least_number_of_domains_counts() {
    let three = |required: bool| TopologySpread {
        min_domains: Some(3),
        required,
        ..spread(vocabulary::ZONE)
    };
    let zones = |zones: &str| {
        format!(
            "type large cpu=8 memory=32Gi zones=a,b,c price=0.4
             pool general zones={zones}
             owner ReplicaSet/web label:app=web
             pod web cpu=100m label:app=web owner=ReplicaSet/web count=3"
        )
    };
    let two = plan_with(three(true), &zones("a,b"));
    assert_eq!((per_zone(&two, "web"), two.refusals.len()), (vec![1, 1], 1), "{two}");
    let one = plan_with(three(true), &zones("a"));
    assert_eq!((per_zone(&one, "web"), one.refusals.len()), (vec![1], 2), "{one}");
    let anyway = plan_with(three(false), &zones("a"));
    assert_eq!(
        (per_zone(&anyway, "web"), anyway.refusals.len()),
        (vec![3], 0),
        "{anyway}"
    );
}

/// SC15.16.5
#[test]
fn nothing_is_spread_without_a_setting_or_without_a_group() {
    let owned = format!("{CLUSTER}pod web cpu=100m label:app=web owner=ReplicaSet/web count=3");
    let unset = planned(&owned, Options::default());
    assert_eq!(unset.launches.len(), 1, "{unset}");
    let alone = plan_with(
        spread(vocabulary::HOSTNAME),
        &format!("{CLUSTER}pod web cpu=100m label:app=web count=3"),
    );
    assert_eq!(alone.launches.len(), 1, "{alone}");
}

/// SC15.16.6
#[test]
fn pods_that_run_already_are_counted() {
    let plan = plan_with(
        spread(vocabulary::ZONE),
        "type large cpu=8 memory=32Gi zones=a,b price=0.4
         pool general
         owner ReplicaSet/web label:app=web
         node n1 cpu=1 memory=4Gi pool=general type=large zone=a
         pod old cpu=500m label:app=web owner=ReplicaSet/web on=n1 count=2
         pod web cpu=100m label:app=web owner=ReplicaSet/web count=2",
    );
    let zones: Vec<&str> = plan.launches.iter().map(|launch| launch.choice.zone.as_str()).collect();
    assert_eq!((zones, plan.refusals.len()), (vec!["b"], 0), "{plan}");
}

/// SC15.16.7
#[test]
fn every_controller_has_a_spread_of_its_own() {
    let plan = plan_with(
        spread(vocabulary::ZONE),
        &format!(
            "{CLUSTER}owner ReplicaSet/db label:app=db
             owner ReplicaSet/new label:app=web label:pod-template-hash=2
             pod web cpu=100m label:app=web label:pod-template-hash=1 owner=ReplicaSet/web count=3
             pod db cpu=100m label:app=db owner=ReplicaSet/db count=3
             pod new cpu=100m label:app=web label:pod-template-hash=2 owner=ReplicaSet/new count=3"
        ),
    );
    for prefix in ["db", "new"] {
        assert_eq!(per_zone(&plan, prefix), [1, 1, 1], "{prefix}: {plan}");
    }
}

/// SC15.16.8
#[test]
fn a_service_groups_pods_whose_owner_does_not() {
    let plan = plan_with(
        spread(vocabulary::ZONE),
        &format!("{CLUSTER}service web label:app=job\npod job cpu=100m label:app=job count=4"),
    );
    assert_eq!(per_zone(&plan, "job"), [1, 1, 2], "{plan}");
}
