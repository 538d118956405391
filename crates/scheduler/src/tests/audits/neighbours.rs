//! Rules between pods, kept and broken.

use std::sync::Arc;

use model::{PodKey, Requirement, vocabulary};

use super::{check, onto_n1, pod};
use crate::{Plan, audit, situation};

const TYPES: &str = "
    type small cpu=2 memory=4Gi price=0.1 zones=a,b,c
    pool general
";

fn with_types(text: &str) -> String {
    format!("{TYPES}\n{text}")
}

/// Puts all pods of the plan's launches onto the first one.
fn together(plan: &mut Plan) {
    let pods: Vec<PodKey> = plan.launches.iter().flat_map(|launch| launch.pods.clone()).collect();
    plan.launches.truncate(1);
    plan.launches[0].pods = pods;
}

/// Moves a launch to another zone.
fn move_to(plan: &mut Plan, launch: usize, zone: &str) {
    let launch = &mut plan.launches[launch];
    Arc::make_mut(&mut launch.requirements).replace(Requirement::one_of(vocabulary::ZONE, [zone]));
    launch.choice.zone = zone.into();
}

#[test]
fn a_spread_is_kept() {
    let pile = |plan: &mut Plan| move_to(plan, 1, "a");
    check(
        &with_types("pod web cpu=2 count=2 label:app=web spread=zone:app=web"),
        pile,
        &[
            "pod default/web-2 on launch 2 is spread over topology.kubernetes.io/zone: 2 where the least is 0 and the skew 1",
        ],
    );
    check(
        &with_types("pod web cpu=100m count=2 label:app=web spread=host:app=web\nnode n1 cpu=0 memory=1Gi"),
        together,
        &["pod default/web-2 on launch 1 is spread over kubernetes.io/hostname: 2 where the least is 0 and the skew 1"],
    );
}

/// Zones that a pool serves count although no node is there yet; hosts that do not exist do not.
#[test]
fn a_zone_within_reach_counts_for_a_spread() {
    let pile = |plan: &mut Plan| {
        move_to(plan, 2, "a");
    };
    check(
        &with_types("pod web cpu=2 count=3 label:app=web spread=zone:app=web"),
        pile,
        &[
            "pod default/web-3 on launch 3 is spread over topology.kubernetes.io/zone: 2 where the least is 0 and the skew 1",
        ],
    );
    check(
        &with_types("pod web cpu=100m count=2 label:app=web spread=host:app=web"),
        together,
        &[],
    );
}

#[test]
fn running_pods_count_for_a_spread() {
    let pile = |plan: &mut Plan| move_to(plan, 0, "a");
    check(
        &with_types(
            "node n1 cpu=0 memory=1Gi zone=a
             pod old cpu=0 label:app=web on=n1
             pod web cpu=1 label:app=web spread=zone:app=web",
        ),
        pile,
        &[
            "pod default/web on launch 1 is spread over topology.kubernetes.io/zone: 2 where the least is 0 and the skew 1",
        ],
    );
}

/// What a spread does not count cannot break it: other labels, other namespaces, pods that go or are gone.
#[test]
fn only_what_a_spread_selects_counts() {
    let pile = |plan: &mut Plan| move_to(plan, 0, "a");
    check(
        &with_types(
            "node n1 cpu=0 memory=1Gi zone=a
             pod other cpu=0 label:app=db on=n1
             pod foreign cpu=0 label:app=web on=n1 in=elsewhere
             pod going cpu=0 label:app=web on=n1 terminating
             pod done cpu=0 label:app=web on=n1 done
             pod web cpu=1 label:app=web spread=zone:app=web",
        ),
        pile,
        &[],
    );
}

#[test]
fn pods_with_other_values_of_a_match_label_are_spread_apart_from_each_other() {
    let situation = |keys: &str| {
        with_types(&format!(
            "node n1 cpu=0 memory=1Gi
             pod old cpu=100m count=2 label:app=web label:rev=1 spread=host:app=web:{keys}
             pod new cpu=100m count=2 label:app=web label:rev=2 spread=host:app=web:{keys}"
        ))
    };
    let pair = |plan: &mut Plan| {
        let mut pods: Vec<PodKey> = plan.launches.iter().flat_map(|launch| launch.pods.clone()).collect();
        pods.sort();
        plan.launches.truncate(2);
        plan.launches[0].pods = vec![pods[0].clone(), pods[2].clone()];
        plan.launches[1].pods = vec![pods[1].clone(), pods[3].clone()];
    };
    check(&situation("like-rev"), pair, &[]);
    let broken = |pod: &str, launch: usize| {
        format!(
            "pod default/{pod} on launch {launch} is spread over kubernetes.io/hostname: 2 where the least is 0 and the skew 1"
        )
    };
    let expected = [broken("old-1", 1), broken("old-2", 2)];
    check(
        &situation("like-unheard"),
        pair,
        &expected.each_ref().map(String::as_str),
    );
}

#[test]
fn too_few_domains_count_as_empty_ones() {
    let situation = |least: u32| {
        format!(
            "type small cpu=2 memory=4Gi price=0.1 zones=a,b
             pool general
             node n1 cpu=0 memory=1Gi zone=a
             node n2 cpu=0 memory=1Gi zone=b
             pod old cpu=0 label:app=web on=n1
             pod older cpu=0 label:app=web on=n2
             pod web cpu=1 label:app=web spread=zone:app=web:min{least}"
        )
    };
    let none = |_: &mut Plan| {};
    check(&situation(2), none, &[]);
    let place = |plan: &mut Plan| {
        let (snapshot, round) = situation::parse(&situation(2));
        *plan = crate::solve(&snapshot, &round);
    };
    check(
        &situation(3),
        place,
        &[
            "pod default/web on launch 1 is spread over topology.kubernetes.io/zone: 2 where the least is 0 and the skew 1",
        ],
    );
}

#[test]
fn nodes_that_the_pod_cannot_use_count_only_where_the_policy_says_so() {
    let situation = |policy: &str| {
        with_types(&format!(
            "node n1 cpu=0 memory=1Gi zone=z taints=gpu:NoSchedule label:team=red
             pod web cpu=100m count=5 label:app=web select=team:NotIn:red spread=zone:app=web:5:{policy} select=zone:In:a"
        ))
    };
    let none = |_: &mut Plan| {};
    check(&situation("5"), none, &[]);
    // With a skew of one they would have to be where the pod cannot be.
    let tighten = |policy: &str| {
        let (snapshot, round) = situation::parse(&situation("5"));
        let plan = crate::solve(&snapshot, &round);
        let (tight, _) = situation::parse(&situation(policy).replace("app=web:5:", "app=web:1:"));
        audit(&tight, &plan).err().unwrap_or_default().len()
    };
    assert_eq!((tighten("heed-taints"), tighten("any-node")), (0, 4));
}

#[test]
fn a_spread_pod_is_in_a_domain() {
    check(
        &with_types("node n1 cpu=2 memory=4Gi\npod web cpu=1 label:app=web spread=zone:app=web"),
        onto_n1,
        &["pod default/web is spread over topology.kubernetes.io/zone, which node n1 does not have"],
    );
}

#[test]
fn pods_keep_away_from_whom_they_say() {
    check(
        &with_types("pod loner cpu=200m label:app=loner apart=host:app=loner count=2\npod web cpu=100m"),
        together,
        &[
            "pod default/loner-1 on launch 1 keeps away from pod default/loner-2 over kubernetes.io/hostname, and both may be in one domain",
            "pod default/loner-2 on launch 1 keeps away from pod default/loner-1 over kubernetes.io/hostname, and both may be in one domain",
        ],
    );
}

/// New ones from running ones, and the other way round.
#[test]
fn running_pods_and_new_ones_keep_away_from_each_other() {
    check(
        &with_types(
            "node n1 cpu=2 memory=4Gi
             pod loner cpu=100m apart=host:app=web on=n1
             pod web cpu=1 label:app=web",
        ),
        onto_n1,
        &[
            "pod default/web on node n1 keeps away from pod default/loner over kubernetes.io/hostname, and both may be in one domain",
        ],
    );
    check(
        &with_types(
            "node n1 cpu=2 memory=4Gi
             pod web cpu=100m label:app=web on=n1
             pod loner cpu=1 apart=host:app=web",
        ),
        onto_n1,
        &[
            "pod default/loner on node n1 keeps away from pod default/web over kubernetes.io/hostname, and both may be in one domain",
        ],
    );
}

/// Two running pods that are too near each other are not the plan's doing.
#[test]
fn what_is_broken_already_is_not_held_against_a_plan() {
    let none = |_: &mut Plan| {};
    check(
        &with_types(
            "node n1 cpu=2 memory=4Gi
             pod loner cpu=100m apart=host count=2 on=n1
             pod web cpu=1 in=elsewhere",
        ),
        none,
        &[],
    );
}

/// A launch whose zone is open may end up beside anybody.
#[test]
fn an_open_zone_is_not_away_from_anybody() {
    let open = |plan: &mut Plan| {
        Arc::make_mut(&mut plan.launches[0].requirements).remove(vocabulary::ZONE);
    };
    let near = |pod: &str, launch: usize, other: &str| {
        format!(
            "pod default/{pod} on launch {launch} keeps away from pod default/{other} over topology.kubernetes.io/zone, and both may be in one domain"
        )
    };
    let expected = [near("loner-1", 1, "loner-2"), near("loner-2", 2, "loner-1")];
    check(
        &with_types("pod loner cpu=2 label:app=loner apart=zone:app=loner count=2"),
        open,
        &expected.each_ref().map(String::as_str),
    );
}

#[test]
fn namespaces_decide_whom_a_rule_is_about() {
    let situation = |namespaces: &str| {
        with_types(&format!(
            "namespace blue label:team=blue
             node n1 cpu=2 memory=4Gi
             pod web cpu=100m label:app=web on=n1 in=blue
             pod loner cpu=1 apart=host:app=web{namespaces}"
        ))
    };
    check(&situation(""), onto_n1, &[]);
    check(&situation(":in-green"), onto_n1, &[]);
    check(&situation(":in-team~green"), onto_n1, &[]);
    let near = "pod default/loner on node n1 keeps away from pod blue/web over kubernetes.io/hostname, and both may be in one domain";
    check(&situation(":in-blue|green"), onto_n1, &[near]);
    check(&situation(":in-any"), onto_n1, &[near]);
    check(&situation(":in-team~blue"), onto_n1, &[near]);
}

#[test]
fn pods_are_near_whom_they_ask_for() {
    let apart = |plan: &mut Plan| {
        let mut other = plan.launches[0].clone();
        other.pods = vec![pod("web")];
        plan.launches[0].pods = vec![pod("db")];
        plan.launches.push(other);
    };
    let far = "pod default/web on launch 2 finds none of the pods there that it asks for over";
    check(
        &with_types("pod db cpu=1 label:app=db\npod web cpu=500m near=host:app=db"),
        apart,
        &[&format!("{far} kubernetes.io/hostname")],
    );
    let elsewhere = |plan: &mut Plan| {
        apart(plan);
        move_to(plan, 1, "b");
    };
    check(
        &with_types("pod db cpu=1 label:app=db\npod web cpu=500m near=zone:app=db"),
        elsewhere,
        &[&format!("{far} topology.kubernetes.io/zone")],
    );
}

/// One domain may be started by a pod of the group, and only if nobody was anywhere before.
#[test]
fn a_group_that_keeps_together_starts_once() {
    let split = |plan: &mut Plan| {
        let mut other = plan.launches[0].clone();
        other.pods = plan.launches[0].pods.split_off(2);
        plan.launches.push(other);
        move_to(plan, 1, "b");
    };
    check(
        &with_types("pod web cpu=100m count=3 label:app=web near=zone:app=web"),
        split,
        &[
            "pod default/web-3 on launch 2 finds none of the pods there that it asks for over topology.kubernetes.io/zone",
        ],
    );
    let elsewhere = |plan: &mut Plan| {
        move_to(plan, 0, "b");
    };
    check(
        &with_types(
            "node n1 cpu=0 memory=1Gi zone=a
             pod old cpu=0 label:app=web on=n1
             pod web cpu=100m label:app=web near=zone:app=web",
        ),
        elsewhere,
        &["pod default/web on launch 1 finds none of the pods there that it asks for over topology.kubernetes.io/zone"],
    );
}

/// SC15.17.7: those who cannot be where the others are start for themselves.
#[test]
fn a_group_may_start_where_its_others_cannot_be_followed() {
    let none = |_: &mut Plan| {};
    check(
        &with_types(
            "pod left cpu=100m label:app=web near=zone:app=web select=zone:In:a
             pod right cpu=100m label:app=web near=zone:app=web select=zone:In:b",
        ),
        none,
        &[],
    );
}

/// Pods that the plan moves count where they go and not where they were.
#[test]
fn pods_that_move_leave_their_old_neighbours() {
    let none = |_: &mut Plan| {};
    check(
        &with_types(
            "node n1 pool=general cpu=2 memory=4Gi zone=a leaving
             pod loner cpu=1 count=2 label:app=loner apart=zone:app=loner on=n1 again",
        ),
        none,
        &[],
    );
}
