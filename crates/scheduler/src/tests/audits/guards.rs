//! The guard takes out what is broken and leaves the rest.

use std::sync::Arc;

use expect_test::{Expect, expect};
use model::{NodeKey, Requirement, vocabulary};

use super::pod;
use crate::{Placement, Plan, audit, guard, situation, solve};

/// Makes a plan, spoils it, and shows what the guard leaves of it.
#[track_caller]
fn check(situation: &str, spoil: impl FnOnce(&mut Plan), expected: Expect) {
    let (snapshot, round) = situation::parse(situation);
    let mut plan = solve(&snapshot, &round);
    spoil(&mut plan);
    let mut before: Vec<_> = plan.placed().chain(plan.refusals.keys()).cloned().collect();
    before.sort();
    before.dedup();
    let (kept, broken) = guard(&snapshot, plan.clone());
    assert_eq!(audit(&snapshot, &kept), Ok(()), "{kept}");
    assert_eq!(broken.is_empty(), kept == plan, "{kept}");
    let mut after: Vec<_> = kept.placed().chain(kept.refusals.keys()).cloned().collect();
    after.sort();
    assert_eq!(after, before, "{kept}");
    expected.assert_eq(&kept.to_string());
}

const TYPES: &str = "
    type small cpu=2 memory=4Gi price=0.1 zones=a,b reserve=r1/a/1
    pool general limit:cpu=6 sell=spot,on-demand
    pool reserved weight=10 sell=reserved
";

fn with_types(text: &str) -> String {
    format!("{TYPES}\n{text}")
}

#[test]
fn a_plan_that_keeps_every_rule_is_left_alone() {
    let none = |_: &mut Plan| {};
    check(
        "type small cpu=2 memory=4Gi price=0.1
         pool general
         pod web cpu=1",
        none,
        expect![[r#"
            launch general#1  small/a/spot  <- web
        "#]],
    );
}

#[test]
fn launches_go_as_a_whole_and_single_pods_from_nodes() {
    let spoil = |plan: &mut Plan| {
        plan.launches[0].choice.zone = "nowhere".into();
        plan.placements.clear();
        plan.placements.push(Placement {
            node: NodeKey::Node("n1".into()),
            pods: vec![pod("picky"), pod("easy")],
        });
        plan.launches.retain(|launch| !launch.pods.contains(&pod("picky")));
    };
    check(
        "type small cpu=2 memory=4Gi price=0.1
         pool general
         node n1 cpu=2 memory=4Gi taints=gpu:NoSchedule
         pod web cpu=2
         pod other cpu=1900m
         pod picky cpu=1800m
         pod easy cpu=100m tolerates=gpu",
        spoil,
        expect![[r#"
            launch general#1  small/a/spot  <- other
            place n1  <- easy
            refuse picky: the plan breaks a rule: pod default/picky does not tolerate gpu:NoSchedule of node n1
            refuse web: the plan breaks a rule: launch 1 cannot buy small as it is described
        "#]],
    );
}

#[test]
fn of_two_that_keep_apart_one_stays() {
    let together = |plan: &mut Plan| {
        for launch in &mut plan.launches {
            Arc::make_mut(&mut launch.requirements).replace(Requirement::one_of(vocabulary::ZONE, ["a"]));
            launch.choice.zone = "a".into();
        }
    };
    check(
        "type small cpu=2 memory=4Gi price=0.1
         pool general
         pod loner cpu=2 count=2 label:app=loner apart=zone:app=loner",
        together,
        expect![[r#"
            launch general#1  small/a/spot  <- loner-2
            refuse loner-1: the plan breaks a rule: pod default/loner-1 on launch 1 keeps away from pod default/loner-2 over topology.kubernetes.io/zone, and both may be in one domain
        "#]],
    );
}

#[test]
fn who_follows_a_pod_that_goes_goes_too() {
    let spoil = |plan: &mut Plan| {
        let mut other = plan.launches[0].clone();
        other.pods = vec![pod("web")];
        plan.launches[0].pods = vec![pod("db")];
        plan.launches[0].instance_types = Arc::new([]);
        plan.launches.push(other);
    };
    check(
        "type small cpu=2 memory=4Gi price=0.1
         pool general
         pod db cpu=1 label:app=db
         pod web cpu=500m near=zone:app=db",
        spoil,
        expect![[r#"
            refuse db: the plan breaks a rule: launch 1 lists no instance type
            refuse web: the plan breaks a rule: pod default/web on launch 1 finds none of the pods there that it asks for over topology.kubernetes.io/zone
        "#]],
    );
}

#[test]
fn limits_and_reservations_cost_the_last_ones() {
    let more = |plan: &mut Plan| {
        for pod in std::mem::take(&mut plan.refusals).into_keys() {
            let like = plan
                .launches
                .iter()
                .find(|launch| launch.pods[0].name[..3] == pod.name[..3]);
            let mut launch = like.expect("one of its kind is launched").clone();
            launch.pods = vec![pod];
            plan.launches.push(launch);
        }
    };
    check(
        &with_types(
            "pod first cpu=2 select=pool:In:reserved count=3
             pod web cpu=1900m select=pool:In:general count=5",
        ),
        more,
        expect![[r#"
            launch reserved#1  small/a/reserved  <- first-1
            launch general#2  small/a/spot  <- web-1
            launch general#3  small/a/spot  <- web-2
            launch general#4  small/a/spot  <- web-3
            refuse first-2: the plan breaks a rule: reservation r1 holds 1 machines and is promised to 3
            refuse first-3: the plan breaks a rule: reservation r1 holds 1 machines and is promised to 3
            refuse web-4: the plan breaks a rule: pool general may exceed its limit for cpu
            refuse web-5: the plan breaks a rule: pool general may exceed its limit for cpu
        "#]],
    );
}

#[test]
fn a_pod_keeps_its_first_place() {
    let twice = |plan: &mut Plan| {
        plan.placements.push(Placement {
            node: NodeKey::Node("n1".into()),
            pods: vec![pod("web")],
        });
    };
    check(
        "type small cpu=2 memory=4Gi price=0.1
         pool general
         node n1 cpu=100m memory=4Gi
         pod web cpu=1",
        twice,
        expect![[r#"
            launch general#1  small/a/spot  <- web
        "#]],
    );
}
