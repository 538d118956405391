//! The audit notices plans that break a rule.

use model::{NodeKey, PodKey};

use crate::{Placement, Plan, audit, situation, solve};

/// Makes a plan, spoils it, and lists what the audit has to say.
#[track_caller]
fn check(situation: &str, spoil: impl FnOnce(&mut Plan), expected: &[&str]) {
    let (snapshot, round) = situation::parse(situation);
    let mut plan = solve(&snapshot, &round);
    assert_eq!(audit(&snapshot, &plan), Ok(()), "{plan}");
    spoil(&mut plan);
    let broken = audit(&snapshot, &plan).err().unwrap_or_default();
    let broken: Vec<String> = broken.iter().map(ToString::to_string).collect();
    assert_eq!(broken, expected, "{plan}");
}

fn pod(name: &str) -> PodKey {
    PodKey::new("default", name)
}

const ONE_POOL: &str = "
    type small cpu=2 memory=4Gi price=0.1
    type large cpu=8 memory=16Gi price=0.4
    pool general limit:cpu=8
    node n1 cpu=1 memory=1Gi taints=gpu:NoSchedule
    pod bound cpu=500m port=8080 on=n1
    pod web cpu=4
";

fn one_pool(pods: &str) -> String {
    format!("{ONE_POOL}\n{pods}")
}

#[test]
fn a_pod_has_one_place() {
    let twice = |plan: &mut Plan| plan.launches[0].pods.push(pod("web"));
    check(&one_pool(""), twice, &["pod default/web is in the plan more than once"]);
}

#[test]
fn pods_have_room_on_every_type_that_is_listed() {
    let cheaper = |plan: &mut Plan| {
        plan.launches[0].instance_types.push("small".into());
        plan.launches[0].requirements.remove("node.kubernetes.io/instance-type");
    };
    check(
        &one_pool(""),
        cheaper,
        &["launch 1 as small: cpu 4 needed, 2 available"],
    );
}

#[test]
fn what_is_listed_is_on_sale() {
    let other = |plan: &mut Plan| plan.launches[0].choice.zone = "c".into();
    check(&one_pool(""), other, &["launch 1 cannot buy large as it is described"]);
    let nothing = |plan: &mut Plan| {
        plan.launches[0].instance_types.clear();
    };
    check(
        &one_pool(""),
        nothing,
        &[
            "launch 1 lists no instance type",
            "launch 1 cannot buy large as it is described",
        ],
    );
}

#[test]
fn limits_hold_for_the_worst_case() {
    let double = |plan: &mut Plan| {
        let mut more = plan.launches[0].clone();
        more.pods.clear();
        plan.launches.push(more);
    };
    check(&one_pool(""), double, &["pool general may exceed its limit for cpu"]);
}

#[test]
fn labels_that_are_left_open_do_not_count() {
    let widen = |plan: &mut Plan| {
        plan.launches[0].requirements.remove("topology.kubernetes.io/zone");
    };
    check(
        &one_pool("pod picky cpu=1 select=zone:In:a"),
        widen,
        &["pod default/picky asks for labels that launch 1 need not have"],
    );
}

#[test]
fn nodes_keep_their_rules() {
    let place = |plan: &mut Plan| {
        plan.launches.clear();
        let (node, pods) = (NodeKey::Node("n1".into()), vec![pod("web"), pod("server")]);
        plan.placements.push(Placement { node, pods });
    };
    check(
        &one_pool("pod server cpu=100m port=8080 select=zone:In:a"),
        place,
        &[
            "pod default/web does not tolerate gpu:NoSchedule of node n1",
            "pod default/server does not tolerate gpu:NoSchedule of node n1",
            "pod default/server asks for labels that node n1 need not have",
            "pod default/server needs a port that is taken on node n1",
            "node n1: cpu 4600m needed, 1 available",
        ],
    );
}

#[test]
fn only_what_is_there_can_be_used() {
    let ghosts = |plan: &mut Plan| {
        plan.launches[0].pool = "ghost".into();
        plan.placements.push(Placement {
            node: NodeKey::Node("ghost".into()),
            pods: Vec::new(),
        });
    };
    check(
        &one_pool(""),
        ghosts,
        &["pool ghost is not known", "node ghost takes no pods"],
    );
}

#[test]
fn variety_is_kept() {
    let narrow = |plan: &mut Plan| {
        plan.launches[0].instance_types.pop();
    };
    check(
        "type small cpu=2 memory=4Gi price=0.1
         type large cpu=8 memory=16Gi price=0.4
         pool general where=type:Exists::2
         pod web cpu=1",
        narrow,
        &["launch 1 offers too few values of node.kubernetes.io/instance-type"],
    );
}

#[test]
fn rules_that_cannot_be_checked_are_not_taken_on_trust() {
    let place = |plan: &mut Plan| {
        plan.refusals.clear();
        plan.launches[0].pods.push(pod("apart"));
    };
    check(
        &one_pool("pod apart cpu=1 apart=host"),
        place,
        &["pod default/apart on launch 1 has rules about pod anti-affinity, which nobody has checked"],
    );
}
