//! Preferences: kept where it can be, given up where not.

use expect_test::expect;

use super::{check, planned, story::Story};
use crate::{Options, PreferencePolicy};

fn standard(text: &str) -> String {
    format!("catalog standard\npool default\n{text}")
}

fn ignoring() -> Options {
    Options {
        preference_policy: PreferencePolicy::Ignore,
        ..Options::default()
    }
}

/// SC15.4.4, SC15.4.5, SC15.4.7
#[test]
fn the_heaviest_preference_that_can_be_met_is() {
    check(
        &standard(
            "pod second cpu=3 prefer=100*zone:In:nowhere prefer=50*zone:In:test-zone-2 prefer=1*zone:In:test-zone-1
             pod conflict cpu=3 term=zone:In:test-zone-3 prefer=1*zone:NotIn:test-zone-3
             pod agrees cpu=3 term=zone:In:test-zone-1|test-zone-2|test-zone-3 prefer=1*zone:In:test-zone-2
             pod contradicts cpu=3 term=zone:In:test-zone-3 prefer=1*zone:In:test-zone-2",
        ),
        expect![[r#"
            launch default#1  default-instance-type/test-zone-2/spot  <- agrees
            launch default#2  default-instance-type/test-zone-3/on-demand  <- conflict
            launch default#3  default-instance-type/test-zone-3/on-demand  <- contradicts
            launch default#4  default-instance-type/test-zone-2/spot  <- second
        "#]],
    );
}

/// SC15.4.8: preferences are given up before a taint that merely discourages is put up with.
#[test]
fn an_impossible_preference_does_not_keep_a_pod_from_a_discouraging_taint() {
    check(
        "catalog standard
         pool default taints=slow:PreferNoSchedule
         pod web cpu=1 prefer=10*zone:In:nowhere prefer=5*zone:In:test-zone-2",
        expect![[r#"
            launch default#1  small-instance-type/test-zone-1/spot  <- web
        "#]],
    );
}

/// SC15.4.10
#[test]
fn a_preference_that_cannot_be_met_opens_no_node_of_its_own() {
    for preference in ["prefer=10*zone:In:nowhere", "prefer=10*host:In:nowhere"] {
        let plan = planned(
            &standard(&format!("pod first cpu=1\npod web cpu=100m {preference}")),
            Options::default(),
        );
        assert_eq!((plan.launches.len(), plan.refusals.len()), (1, 0), "{plan}");
    }
}

/// SC15.4.11
#[test]
fn a_volume_keeps_its_zone_whichever_term_holds() {
    check(
        &standard(
            "volume there at=zone:In:test-zone-3
             pvc data volume=there
             pod db cpu=1 volume=data term=unheard:In:x term=capacity:In:on-demand",
        ),
        expect![[r#"
            launch default#1  small-instance-type/test-zone-3/on-demand  <- db
        "#]],
    );
}

/// SC15.4.12
#[test]
fn preferences_can_be_ignored_altogether() {
    for preference in [
        "prefer=1*zone:In:test-zone-2",
        "spread=zone:app=web:anyway",
        "spread=host:app=web:anyway",
        "wish-apart=1*zone:app=web",
        "wish-apart=1*host:app=web",
        "wish-near=1*host:app=other",
    ] {
        let pods = standard(&format!("pod web cpu=100m label:app=web {preference} count=5"));
        let plan = planned(&pods, ignoring());
        assert_eq!(
            (plan.launches.len(), plan.refusals.len()),
            (1, 0),
            "{preference}: {plan}"
        );
        assert!(
            plan.launches[0]
                .requirements
                .get("topology.kubernetes.io/zone")
                .single()
                .is_none()
        );
    }
    let plan = planned(
        "type large cpu=8 memory=16Gi
         pool general
         pod left cpu=5 select=zone:In:a
         pod left-too cpu=1 select=zone:In:a
         pod right cpu=5 select=zone:In:b
         pod web cpu=100m prefer=1*zone:In:a",
        ignoring(),
    );
    expect![[r#"
        launch general#1  large/a/spot  <- left left-too
        launch general#2  large/b/spot  <- right web
    "#]]
    .assert_eq(&plan.to_string());
}

/// A preference holds as long as nothing else is lost by it.
#[test]
fn what_is_there_is_left_for_what_is_preferred() {
    let mut story = Story::new(&standard("pod first cpu=100m select=zone:In:test-zone-1"));
    let plan = story.provision("pod web cpu=100m prefer=1*zone:In:test-zone-2");
    expect![[r#"
        launch default#1  small-instance-type/test-zone-2/spot  <- web
    "#]]
    .assert_eq(&plan.to_string());
}

/// Preferred pod terms go heaviest first, before node terms and spreads.
#[test]
fn preferences_are_given_up_in_a_fixed_order() {
    check(
        "type small cpu=2 memory=4Gi zones=a,b,c
         pool general
         pod db cpu=2 label:app=db select=zone:In:a
         pod web cpu=1900m wish-near=9*zone:app=nobody-has-it wish-near=5*zone:app=db prefer=1*zone:In:b
         pod loner cpu=1800m wish-near=1*zone:app=nobody-has-it wish-apart=9*zone:app=db prefer=1*zone:In:b",
        expect![[r#"
            launch general#1  small/a/spot  <- db
            launch general#2  small/b/spot  <- web
            launch general#3  small/b/spot  <- loner
        "#]],
    );
}
