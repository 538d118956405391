//! Pod affinity and anti-affinity.

use expect_test::expect;

use super::{check, plan_of, story::Story};

fn standard(text: &str) -> String {
    format!("catalog standard\npool default\n{text}")
}

fn wide(text: &str) -> String {
    format!("catalog fake-5\npool default\n{text}")
}

/// SC15.17.2
#[test]
fn a_pod_joins_the_one_it_asks_for_among_others() {
    let plan = plan_of(&wide(
        "pod spread cpu=100m label:app=spread spread=host:app=spread count=10
         pod target cpu=110m label:app=target
         pod follower cpu=120m near=host:app=target",
    ));
    assert!(plan.refusals.is_empty(), "{plan}");
    let together = plan.launches.iter().any(|launch| {
        let names: Vec<&str> = launch.pods.iter().map(|pod| &*pod.name).collect();
        names.contains(&"target") && names.contains(&"follower")
    });
    assert!(together, "{plan}");
}

/// SC15.17.1, SC15.17.3
#[test]
fn one_architecture_and_different_hosts() {
    let plan = plan_of(&standard(
        "pod target cpu=2 label:app=target select=arch:In:arm64
         pod follower cpu=1 near=arch:app=target label:tier=x spread=host:tier=x
         pod again cpu=1 near=arch:app=target label:tier=x spread=host:tier=x
         pod plain cpu=100m",
    ));
    assert!(plan.refusals.is_empty(), "{plan}");
    let kinds: Vec<&str> = plan
        .launches
        .iter()
        .map(|launch| launch.choice.instance_type.as_str())
        .collect();
    assert_eq!(kinds, ["arm-instance-type", "arm-instance-type"], "{plan}");
}

/// SC15.17.4
#[test]
fn a_group_that_shares_a_host_has_one_host() {
    let group = "cpu=10m label:app=web near=host:app=web";
    assert_eq!(
        plan_of(&standard(&format!("pod web {group} count=3"))).launches.len(),
        1
    );
    let mut story = Story::new(&standard(""));
    let plan = story.provision(&format!("pod web {group} count=10"));
    assert_eq!((plan.launches.len(), plan.refusals.len()), (1, 5), "{plan}");
    let plan = story.provision(&format!("pod late {group} count=10"));
    assert_eq!((plan.launches.len(), plan.refusals.len()), (0, 10), "{plan}");
}

/// SC15.17.5
#[test]
fn a_member_counts_although_the_others_cannot_be_where_it_is() {
    let mut story = Story::new(&standard(""));
    story.provision("pod first cpu=10m label:app=web near=host:app=web select=zone:In:test-zone-1");
    let plan = story
        .provision("pod web cpu=10m label:app=web near=host:app=web term=zone:In:test-zone-2|test-zone-3 count=10");
    assert_eq!((plan.launches.len(), plan.refusals.len()), (0, 10), "{plan}");
}

/// SC15.17.6, SC15.17.7
#[test]
fn a_group_that_shares_a_zone_starts_where_it_may() {
    let group = "cpu=10m label:app=web near=zone:app=web";
    check(
        &standard(&format!("pod web {group} count=3")),
        expect![[r#"
            launch default#1  small-instance-type/test-zone-1/spot  <- web-1 web-2 web-3
        "#]],
    );
    check(
        &standard(&format!("pod web {group} term=zone:In:test-zone-3 count=3")),
        expect![[r#"
            launch default#1  small-instance-type/test-zone-3/on-demand  <- web-1 web-2 web-3
        "#]],
    );
    check(
        &standard(&format!(
            "pod two {group} term=zone:In:test-zone-2
             pod three {group} term=zone:In:test-zone-3"
        )),
        expect![[r#"
            launch default#1  small-instance-type/test-zone-3/on-demand  <- three
            launch default#2  small-instance-type/test-zone-2/spot  <- two
        "#]],
    );
}

/// A group larger than a node stays in its zone and spreads over its hosts.
#[test]
fn a_group_that_shares_a_zone_is_not_split() {
    let mut story = Story::new(&standard(""));
    let plan = story.provision("pod web cpu=10m label:app=web near=zone:app=web count=12");
    assert!(plan.refusals.is_empty(), "{plan}");
    assert_eq!(story.skew("zone", ("app", "web")), [12]);
}

/// SC15.17.8, SC15.17.9
#[test]
fn wishes_about_neighbours_give_way() {
    let mut story = Story::new(&standard(
        "pod one cpu=1900m label:app=web select=zone:In:test-zone-1
         pod two cpu=1900m label:app=web select=zone:In:test-zone-2
         pod three cpu=1900m label:app=web select=zone:In:test-zone-3",
    ));
    let plan = story.provision(
        "pod near cpu=10m wish-near=50*host:app=nowhere
         pod apart cpu=10m wish-apart=50*zone:app=web count=10",
    );
    assert!(plan.refusals.is_empty(), "{plan}");

    let mut story = Story::new(&standard(
        "pod target cpu=10m label:app=target
         pod web cpu=10m label:app=web wish-near=50*host:app=target spread=host:app=web count=3",
    ));
    assert_eq!(story.skew("host", ("app", "web")), [1, 1, 1]);
    assert!(story.provision("").refusals.is_empty());
}

/// SC15.17.10: whichever is placed first.
#[test]
fn pods_that_keep_apart_get_a_node_each() {
    for (target, loner) in [("2", "1"), ("1", "2")] {
        let plan = plan_of(&standard(&format!(
            "pod target cpu={target} label:app=target
             pod loner cpu={loner} apart=host:app=target"
        )));
        assert_eq!((plan.launches.len(), plan.refusals.len()), (2, 0), "{plan}");
    }
}

/// SC15.17.11: where upstream leaves the zone of the first pod open and lets the other one wait, ours settles it.
#[test]
fn zones_that_are_taken_are_avoided_as_long_as_there_is_another() {
    let taken = |zones: u32| {
        let pods =
            (1..=zones).map(|zone| format!("pod z{zone} cpu=2 label:app=target select=zone:In:test-zone-{zone}\n"));
        plan_of(&standard(&format!(
            "{}pod loner cpu=1 apart=zone:app=target",
            pods.collect::<String>()
        )))
    };
    assert_eq!(taken(2).refusals.len(), 0);
    assert_eq!(taken(3).refusals.len(), 1);
    let open = plan_of(&standard(
        "pod target cpu=2 label:app=target\npod loner cpu=1 apart=zone:app=target",
    ));
    assert_eq!((open.launches.len(), open.refusals.len()), (2, 0), "{open}");
    assert_ne!(open.launches[0].choice.zone, open.launches[1].choice.zone, "{open}");
}

/// SC15.17.12
#[test]
fn architectures_can_be_kept_apart() {
    let plan = plan_of(&standard(
        "pod target cpu=2 label:app=target term=arch:In:arm64
         pod loner cpu=1 apart=arch:app=target",
    ));
    let kinds: Vec<&str> = plan
        .launches
        .iter()
        .map(|launch| launch.choice.instance_type.as_str())
        .collect();
    assert_eq!(kinds, ["arm-instance-type", "small-instance-type"], "{plan}");
}

/// SC15.17.13: in one round, and with the loners running already.
#[test]
fn whom_others_keep_away_from_stays_away_from_them() {
    let loners = |word: &str| {
        let pods =
            (1..=3).map(|zone| format!("pod z{zone} cpu=2 {word}zone:app=web select=zone:In:test-zone-{zone}\n"));
        pods.collect::<String>()
    };
    let web = "pod web cpu=1 label:app=web";
    for (word, refused) in [("apart=", 1), ("wish-apart=10*", 0)] {
        let plan = plan_of(&standard(&format!("{}{web}", loners(word))));
        assert_eq!(plan.refusals.len(), refused, "{plan}");
        let plan = Story::new(&standard(&loners(word))).provision(web);
        assert_eq!(plan.refusals.len(), refused, "{plan}");
    }
}

/// SC15.17.14, SC15.17.15: upstream needs a round for each; ours settles zones and is done in one.
#[test]
fn mutual_loners_take_a_zone_each_in_one_round() {
    let mut story = Story::new(&standard(""));
    let loner = "cpu=2 label:app=loner apart=zone:app=loner";
    let plan = story.provision(&format!("pod loner {loner} count=3"));
    assert!(plan.refusals.is_empty(), "{plan}");
    assert_eq!(story.skew("zone", ("app", "loner")), [1, 1, 1]);
    let plan = story.provision(&format!("pod more {loner} count=3"));
    assert_eq!(plan.refusals.len(), 3, "{plan}");

    let plan = plan_of(&standard(
        "pod loner cpu=2 apart=zone:app=web\npod web cpu=1 label:app=web",
    ));
    assert_eq!((plan.launches.len(), plan.refusals.len()), (2, 0), "{plan}");
    assert_ne!(plan.launches[0].choice.zone, plan.launches[1].choice.zone, "{plan}");
}

/// SC15.17.16: in any order of size, and without end where it cannot be.
#[test]
fn chains_of_affinity_are_followed() {
    let sizes = [[400, 300, 200, 100], [100, 200, 300, 400], [200, 400, 100, 300]];
    for [db, web, cache, ui] in sizes {
        let plan = plan_of(&wide(&format!(
            "pod db cpu={db}m label:app=db
             pod web cpu={web}m label:app=web near=host:app=db
             pod cache cpu={cache}m label:app=cache near=host:app=web
             pod ui cpu={ui}m label:app=ui near=host:app=cache"
        )));
        assert_eq!((plan.launches.len(), plan.refusals.len()), (1, 0), "{plan}");
    }
    check(
        &wide(
            "pod web cpu=300m label:app=web near=host:app=db
             pod cache cpu=200m label:app=cache near=host:app=web
             pod ui cpu=100m label:app=ui near=host:app=cache",
        ),
        expect![[r#"
            refuse cache: pool default: pod affinity over kubernetes.io/hostname finds no domain at all
            refuse ui: pool default: pod affinity over kubernetes.io/hostname finds no domain at all
            refuse web: pool default: pod affinity over kubernetes.io/hostname finds no domain at all
        "#]],
    );
}

/// Two that each wait for the other are refused, and nobody waits for them.
#[test]
fn circles_of_affinity_are_refused() {
    check(
        &wide(
            "pod hen cpu=300m label:app=hen near=zone:app=egg
             pod egg cpu=200m label:app=egg near=zone:app=hen
             pod other cpu=100m",
        ),
        expect![[r#"
            launch default#1  fake-it-0/test-zone-1/spot  <- other
            refuse egg: pool default: pod affinity over topology.kubernetes.io/zone is met by none of test-zone-1 (0), test-zone-2 (0), test-zone-3 (0)
            refuse hen: pool default: pod affinity over topology.kubernetes.io/zone is met by none of test-zone-1 (0), test-zone-2 (0), test-zone-3 (0)
        "#]],
    );
}

/// SC15.17.17: also with a target whose zone nobody asked for.
#[test]
fn followers_go_to_the_zone_of_their_target() {
    for target in ["", "select=zone:In:test-zone-2"] {
        let mut story = Story::new(&standard(""));
        let plan = story.provision(&format!(
            "pod target cpu=1 label:app=target label:all=yes {target}
             pod follower cpu=100m label:all=yes near=zone:app=target count=10"
        ));
        assert!(plan.refusals.is_empty(), "{plan}");
        assert_eq!(story.skew("zone", ("all", "yes")), [11]);
    }
}

/// SC15.17.18
#[test]
fn namespaces_are_crossed_where_the_term_says_so() {
    let follows = |namespaces: &str| {
        let plan = plan_of(&standard(&format!(
            "namespace other label:team=blue
             pod target cpu=1 label:app=target in=other
             pod follower cpu=100m near=host:app=target{namespaces}"
        )));
        plan.refusals.is_empty() && plan.launches.len() == 1
    };
    assert!(!follows(""));
    assert!(!follows(":in-third"));
    assert!(!follows(":in-team~red"));
    assert!(follows(":in-other"));
    assert!(follows(":in-any"));
    assert!(follows(":in-team~blue"));
}

/// SC15.11.9
#[test]
fn a_group_grows_on_the_node_where_it_began() {
    let mut story = Story::new(&standard(""));
    let group = "cpu=10m label:app=web near=zone:app=web";
    story.provision(&format!("pod first {group}"));
    let plan = story.provision(&format!("pod second {group}"));
    assert!(plan.fits_existing(), "{plan}");
}
