//! Topology spread. Unless a test says otherwise: zones, a skew of one, a demand, and a selector on the pods' own label.

use expect_test::expect;

use super::{check, story::Story};

const APP: (&str, &str) = ("app", "web");
/// Sixteen pods with this fill no more than a part of any node.
const WEB: &str = "cpu=100m label:app=web spread=zone:app=web";

fn standard(pool: &str) -> Story {
    Story::new(&format!("catalog fake-5\npool default {pool}"))
}

#[track_caller]
fn expect_skew(story: &Story, key: &str, expected: &[usize]) {
    assert_eq!(story.skew(key, APP), expected, "{:?}", story.spread(key, APP));
}

/// SC15.15.1
#[test]
fn a_spread_that_means_nothing_hurts_only_its_own_pod() {
    check(
        "catalog fake-5
         pool default
         pod unknown cpu=100m label:app=web spread=unheard:app=web
         pod fine cpu=100m label:app=web count=2
         pod nobody cpu=110m label:app=web spread=zone:nobody count=2",
        expect![[r#"
            launch default#1  fake-it-0/test-zone-1/spot  <- nobody-1 nobody-2 fine-1 fine-2
            refuse unknown: pool default: topology spread over unheard finds no domain at all
        "#]],
    );
}

/// SC15.15.2
#[test]
fn pods_are_spread_over_the_zones_that_there_are() {
    for pool in ["", "zones=test-zone-1,test-zone-2,test-zone-3"] {
        let mut story = standard(pool);
        story.provision(&format!("pod web {WEB} count=4"));
        expect_skew(&story, "zone", &[1, 1, 2]);
    }
    let mut story = standard("");
    story.provision("pod web cpu=100m label:app=web spread=zone:app=web|api count=4");
    expect_skew(&story, "zone", &[1, 1, 2]);
}

/// SC15.15.3
#[test]
fn only_zones_of_the_pools_count() {
    let mut story = standard("zones=test-zone-1,test-zone-2");
    story.provision(&format!("pod web {WEB} count=4"));
    expect_skew(&story, "zone", &[2, 2]);
    for pool in [
        "label:topology.kubernetes.io/zone=test-zone-1",
        "label:topology.kubernetes.io/zone=test-zone-1 zones=test-zone-1,test-zone-2",
    ] {
        let mut story = standard(pool);
        story.provision(&format!("pod web {WEB} count=4"));
        expect_skew(&story, "zone", &[4]);
    }
    let mut story = Story::new(
        "catalog fake-5
         pool one label:topology.kubernetes.io/zone=test-zone-1
         pool two label:topology.kubernetes.io/zone=test-zone-2",
    );
    story.provision(&format!("pod web {WEB} count=4"));
    expect_skew(&story, "zone", &[2, 2]);
}

/// SC15.15.4, SC15.15.7: a zone that only a running pod is in counts, and cannot be added to.
#[test]
fn zones_of_running_pods_count_although_no_pool_serves_them() {
    for labels in ["label:app=web spread=zone:app=web", "label:app=web"] {
        let mut story = standard("");
        story.provision(&format!("pod first cpu=1900m {labels} select=zone:In:test-zone-3"));
        let plan = story.provision(&format!(
            "pool default zones=test-zone-1,test-zone-2\npod web {WEB} count=6"
        ));
        expect_skew(&story, "zone", &[1, 2, 2]);
        assert_eq!(plan.refusals.len(), 2);
    }
}

/// SC15.15.5
#[test]
fn a_wider_skew_lets_one_zone_run_ahead() {
    let mut story = standard("");
    let spread = "label:app=web spread=zone:app=web:5";
    story.provision(&format!("pod a cpu=900m {spread} select=zone:In:test-zone-1"));
    story.provision(&format!("pod b cpu=900m {spread} select=zone:In:test-zone-2"));
    story.provision(&format!(
        "pool default zones=test-zone-3\npod web cpu=100m {spread} count=10"
    ));
    expect_skew(&story, "zone", &[1, 1, 6]);
}

/// SC15.15.6
#[test]
fn the_emptiest_zones_are_filled_first() {
    let mut story = standard("");
    story.provision(&format!("pod web {WEB} count=9"));
    expect_skew(&story, "zone", &[3, 3, 3]);
    story.delete_outside("zone", "test-zone-1");
    story.provision(&format!("pod more {WEB} count=3"));
    expect_skew(&story, "zone", &[1, 2, 3]);
}

/// SC15.15.8
#[test]
fn only_pods_that_run_and_are_selected_count() {
    let mut story = standard("");
    story.provision("pod first cpu=1500m label:app=web select=zone:In:test-zone-1 count=1");
    story.provision("pod second cpu=1500m label:app=web select=zone:In:test-zone-2 count=1");
    story.provision(
        "node nowhere cpu=2 memory=2Gi
         pod other cpu=0 on=node-1 count=9 label:app=db
         pod waiting cpu=0 label:app=web idle
         pod lost cpu=0 on=nowhere label:app=web count=3
         pod foreign cpu=0 on=node-1 label:app=web in=elsewhere count=3
         pod going cpu=0 on=node-1 label:app=web terminating count=3
         pod failed cpu=0 on=node-1 label:app=web failed count=3
         pod done cpu=0 on=node-1 label:app=web done count=3
         pod one-more cpu=0 on=node-1 label:app=web",
    );
    let plan = story.provision(&format!("pod web {WEB} count=2"));
    assert!(plan.refusals.is_empty(), "{plan}");
    let mut counts = story.spread("zone", APP);
    // Three belong to the pods on the node without a zone, which no zone has, and three are foreign.
    *counts.get_mut("test-zone-1").unwrap() -= 3;
    assert_eq!(counts.into_values().collect::<Vec<_>>(), [2, 2, 1]);
}

/// SC15.15.9
#[test]
fn a_spread_that_does_not_select_its_own_pods_keeps_them_together() {
    check(
        "catalog fake-5
         pool default
         pod web cpu=100m label:app=web spread=zone:app=other count=5",
        expect![[r#"
            launch default#1  fake-it-0/test-zone-1/spot  <- web-1 web-2 web-3 web-4 web-5
        "#]],
    );
}

/// SC15.15.10
#[test]
fn too_few_domains_count_as_empty_ones() {
    let two = "zones=test-zone-1,test-zone-2";
    for (pool, least, count, expected) in [
        (two, 3, 3, &[1, 1][..]),
        ("", 3, 11, &[3, 4, 4]),
        ("", 2, 11, &[3, 4, 4]),
    ] {
        let mut story = standard(pool);
        story.provision(&format!("pod web {WEB}:min{least} count={count}"));
        expect_skew(&story, "zone", expected);
    }
}

/// SC15.15.11
#[test]
fn hosts_are_domains_of_their_own() {
    let mut story = standard("");
    story.provision("pod web cpu=100m label:app=web spread=host:app=web count=4");
    expect_skew(&story, "host", &[1, 1, 1, 1]);
    let mut story = standard("");
    story.provision("pod web cpu=100m label:app=web spread=host:app=web:4 count=4");
    expect_skew(&story, "host", &[4]);

    let apps = |extra: [&str; 2]| {
        let mut story = Story::new("catalog standard\npool default");
        let plan = story.provision(&format!(
            "pod web cpu=100m label:app=web spread=host:app=web {} count=2
             pod api cpu=100m label:app=api spread=host:app=api {} count=2",
            extra[0], extra[1],
        ));
        plan.launches.len()
    };
    assert_eq!(apps(["", ""]), 2);
    assert_eq!(apps(["select=arch:In:amd64", "select=arch:In:arm64"]), 4);
}

/// SC15.15.12
#[test]
fn nodes_that_are_there_are_filled_before_new_ones() {
    let mut story = standard("");
    story.provision(&format!("pod web {WEB} count=4"));
    expect_skew(&story, "zone", &[1, 1, 2]);
    let plan = story.provision(&format!("pod more {WEB} count=5"));
    expect_skew(&story, "zone", &[3, 3, 3]);
    assert!(plan.launches.is_empty(), "{plan}");

    let mut story = standard("");
    let web = "cpu=100m label:app=web spread=host:app=web";
    story.provision(&format!("pod web {web} count=4"));
    story.provision(&format!("pod more {web} count=5"));
    expect_skew(&story, "host", &[1; 9]);
}

/// SC15.15.13, SC15.15.15
#[test]
fn capacity_types_and_architectures_are_domains_too() {
    let web = "cpu=100m label:app=web spread=capacity:app=web";
    let mut story = standard("");
    story.provision(&format!("pod web {web} count=4"));
    expect_skew(&story, "capacity", &[2, 2]);

    let mut story = standard("");
    story.provision("pod first cpu=1900m label:app=web select=capacity:In:spot");
    story.provision(&format!("pool default sell=on-demand\npod web {web} count=5"));
    expect_skew(&story, "capacity", &[1, 2]);

    let mut story = standard("");
    story.provision("pod first cpu=1900m label:app=web select=capacity:In:spot");
    story.provision(&format!("pool default sell=on-demand\npod web {web}:anyway count=5"));
    expect_skew(&story, "capacity", &[1, 5]);

    let mut story = standard("");
    story.provision("pod first cpu=1900m label:app=web select=capacity:In:on-demand");
    story.provision(&format!("pool default sell=spot\npod web {web} count=5"));
    expect_skew(&story, "capacity", &[1, 2]);

    let mut story = Story::new("catalog standard\npool default");
    story.provision("pod first cpu=1900m label:app=web select=arch:In:amd64");
    story.provision(
        "pool default where=arch:In:arm64
         pod web cpu=100m label:app=web spread=arch:app=web count=5",
    );
    expect_skew(&story, "arch", &[1, 2]);
}

/// SC15.15.13: what counts along capacity types is what counts along zones.
#[test]
fn pods_that_do_not_run_do_not_count_along_capacity_types() {
    let mut story = standard("");
    story.provision("pod first cpu=1500m label:app=web select=capacity:In:spot");
    story.provision(
        "pod going cpu=0 on=node-1 label:app=web terminating count=3
         pod done cpu=0 on=node-1 label:app=web done count=3
         pod one-more cpu=0 on=node-1 label:app=web",
    );
    story.provision("pod web cpu=100m label:app=web spread=capacity:app=web count=3");
    expect_skew(&story, "capacity", &[2, 3]);
}

/// SC15.15.14
#[test]
fn domains_where_the_pod_cannot_be_do_not_count() {
    let mut story = standard("");
    story.provision("pod first cpu=1900m label:app=web select=capacity:In:on-demand select=zone:In:test-zone-1");
    story.provision(
        "pod web cpu=100m label:app=web spread=capacity:app=web term=zone:In:test-zone-2&capacity:In:spot count=5",
    );
    assert_eq!(story.spread("capacity", APP)["spot"], 5);
}

/// SC15.15.16
#[test]
fn zones_and_hosts_are_kept_even_at_once() {
    let web = "cpu=100m label:app=web spread=zone:app=web spread=host:3:app=web";
    let mut story = standard("");
    for (batch, count, expected) in [
        (1, 2, &[1, 1][..]),
        (2, 3, &[1, 2, 2]),
        (3, 5, &[3, 3, 4]),
        (4, 11, &[7, 7, 7]),
    ] {
        story.provision(&format!("pod web{batch} {web} count={count}"));
        expect_skew(&story, "zone", expected);
        assert!(story.skew("host", APP).iter().all(|count| *count <= 3));
    }
}

/// SC15.15.17
#[test]
fn capacity_types_and_hosts_are_kept_even_at_once() {
    let web = "cpu=100m label:app=web spread=capacity:app=web spread=host:3:app=web";
    let mut story = standard("");
    for (batch, count, expected) in [(1, 2, [1, 1]), (2, 3, [2, 3]), (3, 5, [5, 5]), (4, 11, [10, 11])] {
        story.provision(&format!("pod web{batch} {web} count={count}"));
        expect_skew(&story, "capacity", &expected);
        assert!(story.skew("host", APP).iter().all(|count| *count <= 3));
    }
}

/// SC15.15.18: a zone that a pool could serve counts, although its limits let nothing be launched there.
#[test]
fn a_zone_that_is_out_of_reach_by_limits_stays_empty_and_counts() {
    let mut story = Story::new(
        "catalog fake-5
         pool default zones=test-zone-1,test-zone-2
         pool full zones=test-zone-3 limit:cpu=0",
    );
    story.provision("pod web cpu=100m label:app=web spread=zone:app=web spread=host:app=web:anyway count=10");
    expect_skew(&story, "zone", &[1, 1]);
    expect_skew(&story, "host", &[1, 1]);
}

/// SC15.15.19
#[test]
fn custom_labels_of_pools_are_domains() {
    let mut story = Story::new(
        "catalog fake-5
         pool spot sell=spot where=capacity.spread:In:2|3|4|5
         pool on-demand sell=on-demand where=capacity.spread:In:1",
    );
    story.provision("pod web cpu=100m label:app=web spread=capacity.spread:app=web count=20");
    expect_skew(&story, "capacity.spread", &[4, 4, 4, 4, 4]);
    expect_skew(&story, "capacity", &[4, 16]);
}

/// SC15.15.20: never above the figures, batch by batch.
#[test]
fn zones_and_capacity_types_are_kept_even_at_once() {
    let web = "cpu=100m label:app=web spread=capacity:app=web spread=zone:app=web";
    let mut story = standard("");
    let batches = [(1, 2, 1, 1), (2, 3, 3, 2), (3, 3, 5, 4), (4, 11, 11, 7)];
    for (batch, count, per_capacity, per_zone) in batches {
        story.provision(&format!("pod web{batch} {web} count={count}"));
        assert!(story.skew("capacity", APP).iter().all(|count| *count <= per_capacity));
        assert!(story.skew("zone", APP).iter().all(|count| *count <= per_zone));
    }
}

/// SC15.15.21
#[test]
fn three_spreads_at_once_leave_nobody_out() {
    for count in 1..15 {
        let mut story = Story::new("catalog assorted\npool default");
        let plan = story.provision(&format!(
            "pod web cpu=100m label:app=web spread=zone:2:app=web spread=capacity:1:app=web spread=host:3:app=web count={count}"
        ));
        assert!(plan.refusals.is_empty(), "{plan}");
        for (key, domains, skew) in [("zone", 3, 2), ("capacity", 2, 1)] {
            let counts = story.skew(key, APP);
            let least = if counts.len() < domains { 0 } else { counts[0] };
            assert!(counts.last().unwrap() - least <= skew, "{key}: {counts:?} of {count}");
        }
        assert!(story.skew("host", APP).iter().all(|count| *count <= 3));
    }
}

/// SC15.15.22
#[test]
fn match_label_keys_spread_each_revision_by_itself() {
    let hosts = |keys: &str| {
        let mut story = standard("");
        let spread = format!("label:app=web spread=host:app=web:{keys} count=2");
        story.provision(&format!(
            "pod old cpu=100m label:rev=1 {spread}\npod new cpu=100m label:rev=2 {spread}"
        ));
        story.skew("host", APP)
    };
    assert_eq!(hosts("like-rev"), [2, 2]);
    assert_eq!(hosts("like-unheard"), [1, 1, 1, 1]);
}

/// SC15.15.23, SC15.15.26: domains of machines that the pod cannot use count or do not, as the policy says.
#[test]
fn machines_that_the_pod_cannot_use_take_part_as_the_policy_says() {
    let placed = |machines: &str, policy: &str| {
        let mut story = Story::new(&format!(
            "catalog fake-5
             pool default label:rack=c
             node n1 cpu=4 memory=8Gi label:rack=a {machines}
             node n2 cpu=4 memory=8Gi label:rack=b {machines}"
        ));
        story.provision(&format!(
            "pod web cpu=100m label:app=web select=team:NotIn:red spread=rack:app=web:{policy} count=5"
        ));
        story.skew("rack", APP)
    };
    let tainted = "taints=gpu:NoSchedule";
    assert_eq!(placed(tainted, "1"), [1]);
    assert_eq!(placed(tainted, "heed-taints"), [5]);
    let mismatched = "label:team=red";
    assert_eq!(placed(mismatched, "any-node"), [1]);
    assert_eq!(placed(mismatched, "1"), [5]);
}

/// SC15.15.24
#[test]
fn domains_of_a_pool_with_taints_take_part_as_the_policy_says() {
    let placed = |policy: &str| {
        let mut story = Story::new(
            "catalog fake-5
             pool default where=rack:In:a
             pool tainted where=rack:In:b taints=gpu:NoSchedule",
        );
        story.provision(&format!(
            "pod web cpu=100m label:app=web spread=rack:app=web:{policy} count=2"
        ));
        story.skew("rack", APP)
    };
    assert_eq!(placed("1"), [1]);
    assert_eq!(placed("heed-taints"), [2]);
}

#[test]
fn a_taint_that_merely_discourages_does_not_keep_a_domain_out() {
    let mut story = Story::new(
        "catalog fake-5
         pool default where=rack:In:a
         pool discouraged where=rack:In:b taints=slow:PreferNoSchedule",
    );
    story.provision("pod web cpu=100m label:app=web spread=rack:app=web:heed-taints count=4");
    assert_eq!(story.skew("rack", APP), [2, 2]);
}

/// SC15.15.25
#[test]
fn pools_that_exclude_each_other_may_share_a_domain() {
    let mut story = Story::new(
        "catalog fake-5
         pool one where=rack:In:a|b taints=one:NoSchedule
         pool two where=rack:In:b|c taints=two:NoSchedule",
    );
    let web = "cpu=100m label:app=web spread=rack:app=web:heed-taints";
    story.provision(&format!("pod first {web} tolerates=one count=2"));
    story.provision(&format!("pod second {web} tolerates=two count=4"));
    expect_skew(&story, "rack", &[1, 2, 3]);
}

/// SC15.15.27, SC15.15.28
#[test]
fn what_a_pod_insists_on_limits_the_domains() {
    let mut story = standard("");
    story.provision(&format!(
        "pod one {WEB} select=zone:In:test-zone-1 count=5
         pod two {WEB} select=zone:In:test-zone-2 count=10"
    ));
    expect_skew(&story, "zone", &[5, 10]);

    let mut story = standard("");
    story.provision(&format!("pod web {WEB} term=zone:In:test-zone-1|test-zone-2 count=10"));
    expect_skew(&story, "zone", &[5, 5]);

    let mut story = standard("");
    story.provision(&format!("pod web {WEB} term=zone:In:test-zone-1|test-zone-2 count=6"));
    expect_skew(&story, "zone", &[3, 3]);
    story.provision(&format!("pod next {WEB} term=zone:In:test-zone-2|test-zone-3"));
    expect_skew(&story, "zone", &[1, 3, 3]);
    story.provision(&format!("pod free {WEB} count=5"));
    expect_skew(&story, "zone", &[4, 4, 4]);
}

/// SC15.15.29
#[test]
fn a_preference_does_not_limit_the_domains() {
    let mut story = standard("");
    story.provision(&format!(
        "pod web {WEB} prefer=1*zone:In:test-zone-1|test-zone-2 count=6"
    ));
    expect_skew(&story, "zone", &[2, 2, 2]);
}

/// SC15.15.30
#[test]
fn a_spread_that_may_be_given_up_gives_way_to_demands() {
    let web = "cpu=100m label:app=web spread=capacity:app=web:anyway";
    let mut story = standard("");
    story.provision(&format!(
        "pod spot {web} select=capacity:In:spot count=5
         pod on-demand {web} select=capacity:In:on-demand count=5"
    ));
    expect_skew(&story, "capacity", &[5, 5]);

    let mut story = standard("");
    story.provision(&format!("pod spot {web} term=capacity:In:spot count=3"));
    expect_skew(&story, "capacity", &[3]);
    story.provision(&format!("pod either {web} term=capacity:In:spot|on-demand"));
    expect_skew(&story, "capacity", &[1, 3]);
    story.provision(&format!("pod free {web} count=5"));
    expect_skew(&story, "capacity", &[4, 5]);
}

/// SC15.15.31 as far as it shows in where pods go: neighbours and volumes leave one zone, or none.
#[test]
fn the_zone_that_rules_leave_is_taken() {
    let running = "
        pod one cpu=1900m label:app=web select=zone:In:test-zone-1
        pod two cpu=1900m label:app=web select=zone:In:test-zone-2";
    for (rule, zone) in [
        ("near=zone:app=db", None),
        ("apart=zone:app=web", Some("test-zone-3")),
        ("spread=zone:app=web label:app=web", Some("test-zone-3")),
        (
            "spread=zone:app=web:min4 label:app=web select=zone:In:test-zone-1",
            None,
        ),
        ("select=zone:In:test-zone-2 volume=data", None),
        ("volume=data", Some("test-zone-1")),
    ] {
        let mut story = standard("");
        story.provision(running);
        let plan = story.provision(&format!(
            "volume there at=zone:In:test-zone-1
             pvc data volume=there
             pod asked cpu=3 {rule}"
        ));
        let found = plan.launches.first().map(|launch| launch.choice.zone.as_str());
        assert_eq!(found, zone, "{rule}: {plan}");
    }
}
