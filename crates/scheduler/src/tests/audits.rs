//! The audit notices plans that break a rule: each test has a plan that keeps it, and spoils it.

mod guards;
mod neighbours;

use std::sync::Arc;

use model::{CapacityType, NodeKey, PodKey, Requirement, vocabulary};

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
        plan.launches[0].instance_types = ["large", "small"].map(Into::into).into();
        Arc::make_mut(&mut plan.launches[0].requirements).remove("node.kubernetes.io/instance-type");
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
        plan.launches[0].instance_types = Arc::new([]);
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
        let more = plan.launches[0].clone();
        plan.launches.push(more);
        plan.launches[1].pods = std::mem::take(&mut plan.refusals).into_keys().collect();
    };
    check(
        &one_pool("pod extra cpu=5"),
        double,
        &["pool general may exceed its limit for cpu"],
    );
}

#[test]
fn labels_that_are_left_open_do_not_count() {
    let widen = |plan: &mut Plan| {
        Arc::make_mut(&mut plan.launches[0].requirements).remove("topology.kubernetes.io/zone");
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
        &[
            "launch 1 is from pool ghost, which is not known",
            "node ghost takes no pods",
        ],
    );
}

#[test]
fn variety_is_kept() {
    let narrow = |plan: &mut Plan| {
        let launch = &mut plan.launches[0];
        let least = Arc::make_mut(&mut launch.requirements)
            .remove(vocabulary::INSTANCE_TYPE)
            .and_then(|listed| listed.min_values);
        launch.instance_types = Arc::new(["small".into()]);
        Arc::make_mut(&mut launch.requirements)
            .add(Requirement::one_of(vocabulary::INSTANCE_TYPE, ["small"]).with_min_values(least));
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
fn a_claim_lists_what_was_planned_and_nothing_else() {
    let longer = |plan: &mut Plan| {
        let listed = Requirement::one_of(vocabulary::INSTANCE_TYPE, ["large", "small"]);
        Arc::make_mut(&mut plan.launches[0].requirements).replace(listed);
    };
    check(&one_pool(""), longer, &["launch 1 cannot buy large as it is described"]);
}

#[test]
fn a_launch_has_a_purpose_and_a_pool_that_launches() {
    let nobody = |plan: &mut Plan| plan.launches[0].pods.clear();
    check(&one_pool(""), nobody, &["launch 1 is for nobody"]);
    let other = |plan: &mut Plan| {
        plan.launches[0].pool = "fixed".into();
        Arc::make_mut(&mut plan.launches[0].requirements).replace(Requirement::one_of(vocabulary::NODEPOOL, ["fixed"]));
    };
    check(
        &one_pool("pool fixed static"),
        other,
        &["launch 1 is from pool fixed, which launches nothing"],
    );
}

#[test]
fn a_launch_stays_within_its_pool() {
    let situation = "type small cpu=2 memory=4Gi price=0.1
                     pool general where=tier:In:gold label:team=blue zones=a
                     pod web cpu=1";
    let outside = "launch 1 has to be what pool general does not admit";
    let wider = |plan: &mut Plan| {
        Arc::make_mut(&mut plan.launches[0].requirements).remove(vocabulary::ZONE);
    };
    check(situation, wider, &[outside]);
    let other = |plan: &mut Plan| {
        Arc::make_mut(&mut plan.launches[0].requirements).replace(Requirement::one_of("tier", ["silver"]));
    };
    check(situation, other, &[outside]);
    let unlabelled = |plan: &mut Plan| {
        Arc::make_mut(&mut plan.launches[0].labels).remove("team");
    };
    check(situation, unlabelled, &[outside]);
}

#[test]
fn a_cordoned_node_takes_no_pods() {
    let place = |plan: &mut Plan| {
        plan.launches.clear();
        let (node, pods) = (NodeKey::Node("n1".into()), vec![pod("web")]);
        plan.placements.push(Placement { node, pods });
    };
    check(
        "type small cpu=2 memory=4Gi price=0.1
         pool general
         node n1 cpu=2 memory=4Gi cordoned
         pod web cpu=1",
        place,
        &["pod default/web does not tolerate node.kubernetes.io/unschedulable:NoSchedule of node n1"],
    );
}

/// Moves everything onto the node n1.
fn onto_n1(plan: &mut Plan) {
    let pods: Vec<PodKey> = plan.placed().chain(plan.refusals.keys()).cloned().collect();
    *plan = Plan::default();
    let node = NodeKey::Node("n1".into());
    plan.placements.push(Placement { node, pods });
}

#[test]
fn ports_of_daemons_are_theirs_before_they_are_there() {
    let place = |plan: &mut Plan| onto_n1(plan);
    check(
        "type small cpu=2 memory=4Gi price=0.1
         pool general
         node n1 cpu=2 memory=4Gi
         daemon proxy cpu=100m port=8080
         pod server cpu=1 port=8080",
        place,
        &["pod default/server needs a port that is taken on node n1"],
    );
    let swap = |plan: &mut Plan| {
        plan.refusals.clear();
        plan.launches[0].pods.push(pod("server"));
    };
    check(
        "type small cpu=2 memory=4Gi price=0.1
         pool general
         daemon proxy cpu=100m port=8080
         pod web cpu=100m
         pod server cpu=100m port=8080",
        swap,
        &["pod default/server needs a port that is taken on launch 1"],
    );
}

#[test]
fn daemons_that_are_yet_to_come_keep_their_room() {
    check(
        "type small cpu=2 memory=4Gi price=0.1
         pool general
         node n1 cpu=2 memory=4Gi
         daemon logs cpu=500m
         pod web cpu=1800m",
        onto_n1,
        &["node n1: cpu 1800m needed, 1500m available"],
    );
}

const DISKS: &str = "
    type small cpu=2 memory=4Gi price=0.1
    pool general
    node n1 cpu=2 memory=4Gi zone=a attach:ebs=1
    class fast driver=ebs
    volume there driver=ebs at=zone:In:b
    pvc bound volume=there
    pvc one class=fast
    pvc two class=fast
";

#[test]
fn volumes_are_within_reach() {
    check(
        &format!("{DISKS}\npod db cpu=1 volume=bound"),
        onto_n1,
        &["pod default/db cannot reach the volume of claim default/bound from node n1"],
    );
    let elsewhere = |plan: &mut Plan| {
        Arc::make_mut(&mut plan.launches[0].requirements).replace(Requirement::one_of(vocabulary::ZONE, ["a"]));
        plan.launches[0].choice.zone = "a".into();
    };
    check(
        &format!("{DISKS}\npod db cpu=1 volume=bound"),
        elsewhere,
        &["pod default/db cannot reach the volume of claim default/bound from launch 1"],
    );
}

#[test]
fn volumes_can_be_used_at_all() {
    for claim in [
        "pvc missing-class class=ghost",
        "pvc gone class=fast gone",
        "pvc lost class=fast lost",
        "pvc open volume=there unconfirmed",
    ] {
        let name = claim.split_whitespace().nth(1).unwrap();
        check(
            &format!("{DISKS}\n{claim}\npod db cpu=1 volume={name}"),
            onto_n1,
            &[&format!(
                "pod default/db on node n1 uses volume claim default/{name}, which cannot be used"
            )],
        );
    }
}

#[test]
fn a_node_attaches_as_many_volumes_as_it_can() {
    check(
        &format!("{DISKS}\npod a cpu=100m volume=one\npod b cpu=100m volume=two"),
        onto_n1,
        &["node n1 attaches 1 volumes of ebs, not 2"],
    );
}

const RESERVED: &str = "
    type small cpu=2 memory=4Gi price=0.1 reserve=r1/a/1
    pool general
    pod web cpu=2 count=2
";

#[test]
fn a_reservation_is_promised_as_often_as_it_holds() {
    let again = |plan: &mut Plan| {
        let mut more = plan.launches[0].clone();
        more.pods = plan.refusals.keys().cloned().collect();
        plan.refusals.clear();
        plan.launches.push(more);
    };
    check(
        RESERVED,
        again,
        &["reservation r1 holds 1 machines and is promised to 2"],
    );
}

#[test]
fn a_reservation_is_used_by_those_who_have_a_place_in_it() {
    let open = |plan: &mut Plan| {
        let launch = &mut plan.launches[0];
        assert_eq!(launch.choice.capacity_type, CapacityType::Reserved);
        Arc::make_mut(&mut launch.requirements).remove(vocabulary::CAPACITY_TYPE);
    };
    check(RESERVED, open, &["launch 1 cannot buy small as it is described"]);
}
