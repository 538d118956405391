//! Labels, selectors and affinity against pools.

use expect_test::expect;

use super::{check, check_claims, plan_of};

const TYPES: &str = "
    type small cpu=2 memory=4Gi zones=a,b,c price=0.1
    type arm   cpu=16 memory=64Gi zones=a,b,c arch=arm64 price=0.9
";

fn with_types(text: &str) -> String {
    format!("{TYPES}\n{text}")
}

/// SC15.3.1, SC15.3.5: the node gets the pool's label. SC15.19.5, SC15.9.14: what the claim says.
#[test]
fn a_claim_says_what_pool_and_pods_ask_for() {
    check_claims(
        &with_types(
            "pool general label:team=blue where=tier:In:gold|silver where=rank:Gt:3
             pod web cpu=1 memory=1Gi select=zone:In:b",
        ),
        expect![[r#"
            types small arm
            requests cpu=1 memory=1Gi pods=1
            labels karpenter.sh/nodepool=general karpenter.test/testnodeclass=default rank=4 team=blue tier=gold
            karpenter.sh/capacity-type In [on-demand spot]
            karpenter.sh/nodepool In [general]
            karpenter.test/testnodeclass In [default]
            node.kubernetes.io/instance-type In [arm small]
            rank Exists >=4
            team In [blue]
            tier In [gold silver]
            topology.kubernetes.io/zone In [b]
        "#]],
    );
}

/// SC15.3.2, SC15.3.3, SC15.3.6, SC15.3.7
#[test]
fn pods_ask_for_labels_of_the_pool() {
    check(
        &with_types(
            "pool general label:team=blue
             pod in cpu=100m select=team:In:blue|red
             pod not-other cpu=110m select=team:NotIn:red
             pod exists cpu=120m select=team:Exists
             pod other cpu=130m select=team:In:red
             pod not cpu=140m select=team:NotIn:blue
             pod absent cpu=150m select=team:DoesNotExist
             pod unknown cpu=160m select=unheard:In:x
             pod unknown-exists cpu=170m select=unheard:Exists
             pod unknown-not cpu=180m select=unheard:NotIn:x
             pod unknown-absent cpu=190m select=unheard:DoesNotExist",
        ),
        expect![[r#"
            launch general#1  small/a/spot  <- unknown-absent unknown-not exists not-other in
            refuse absent: pool general: team DoesNotExist is asked for, team In [blue] is there
            refuse not: pool general: team NotIn [blue] is asked for, team In [blue] is there
            refuse other: pool general: team In [red] is asked for, team In [blue] is there
            refuse unknown: pool general: label "unheard" is not defined, unheard In [x] is asked for
            refuse unknown-exists: pool general: label "unheard" is not defined, unheard Exists is asked for
        "#]],
    );
}

/// SC15.3.8
#[test]
fn compatible_pods_share_a_node_and_others_do_not() {
    check(
        &with_types(
            "pool general where=tier:In:gold|silver
             pod gold cpu=400m select=tier:In:gold
             pod not-silver cpu=300m select=tier:NotIn:silver
             pod silver cpu=200m select=tier:In:silver",
        ),
        expect![[r#"
            launch general#1  small/a/spot  <- gold not-silver
            launch general#2  small/a/spot  <- silver
        "#]],
    );
}

/// SC15.3.10, SC15.3.12
#[test]
fn zones_of_pool_and_pod_are_intersected() {
    check(
        "type small cpu=2 memory=4Gi zones=a,b,c
         pool general zones=a,b
         pod anywhere cpu=2
         pod in-b cpu=2 select=zone:In:b
         pod not-a cpu=2 select=zone:NotIn:a
         pod in-c cpu=2 select=zone:In:c
         pod nowhere cpu=2 select=zone:NotIn:a|b",
        expect![[r#"
            launch general#1  small/a/spot  <- anywhere
            launch general#2  small/b/spot  <- in-b
            launch general#3  small/b/spot  <- not-a
            refuse in-c: pool general: topology.kubernetes.io/zone In [c] is asked for, topology.kubernetes.io/zone In [a b] is there
            refuse nowhere: pool general: topology.kubernetes.io/zone NotIn [a b] is asked for, topology.kubernetes.io/zone In [a b] is there
        "#]],
    );
}

/// SC15.3.9
#[test]
fn asking_for_existence_does_not_undo_asking_for_a_value() {
    check(
        &with_types(
            "pool general
             pod web cpu=1 term=zone:In:nowhere&zone:Exists",
        ),
        expect![[r#"
            refuse web: pool general: no instance type met the scheduling requirements or had a required offering (2 with other labels)
        "#]],
    );
}

/// SC15.3.11, SC15.3.17: such pods are not looked at any further, and neither are those that ask for devices while
/// nobody sees to them.
#[test]
fn what_pods_may_not_ask_for_is_refused_at_once() {
    check(
        &with_types(
            "pool general
             node n1 cpu=8 memory=16Gi
             pod pinned cpu=1 select=host:In:n1
             pod not-there cpu=1 select=host:NotIn:n1
             pod restricted cpu=1 term=karpenter.sh/x:Exists
             pod opts-out cpu=1 term=pool:DoesNotExist
             pod unheard cpu=1 select=capacity:In:cheap
             pod device cpu=1 device=gpu
             pod fine cpu=1",
        ),
        expect![[r#"
            place n1  <- fine
            refuse device: pod has Dynamic Resource Allocation requirements that are not yet supported by Karpenter, unless it runs with --ignore-dra-requests=false
            refuse not-there: label "kubernetes.io/hostname" is restricted: pods cannot choose nodes by it
            refuse opts-out: the pod asks for a node that is in no node pool
            refuse pinned: label "kubernetes.io/hostname" is restricted: pods cannot choose nodes by it
            refuse restricted: label "karpenter.sh/x" is restricted: pods cannot choose nodes by it
            refuse unheard: karpenter.sh/capacity-type In [cheap] is asked for, known values are on-demand, reserved, spot
        "#]],
    );
}

/// SC15.3.15, SC15.3.16, SC15.3.22: the same as selector and as affinity, and with an old key.
#[test]
fn well_known_labels_can_be_asked_for_although_the_pool_does_not_mention_them() {
    check(
        &with_types(
            "pool general
             pod arm cpu=1 select=arch:In:arm64
             pod arm-affinity cpu=900m term=arch:In:arm64
             pod arm-beta cpu=800m select=beta.kubernetes.io/instance-type:In:arm
             pod windows cpu=700m select=os:In:windows
             pod spot cpu=600m select=capacity:In:spot select=type:In:small
             pod foreign cpu=500m select=pool:In:other",
        ),
        expect![[r#"
            launch general#1  arm/a/spot  <- arm arm-affinity arm-beta
            launch general#2  small/a/spot  <- spot
            refuse foreign: pool general: karpenter.sh/nodepool In [other] is asked for, karpenter.sh/nodepool In [general] is there
            refuse windows: pool general: no instance type met the scheduling requirements or had a required offering (2 with other labels)
        "#]],
    );
}

/// SC15.4.1, SC15.4.2
#[test]
fn required_terms_are_alternatives_in_their_order() {
    check(
        &with_types(
            "pool general
             pod last cpu=1 term=zone:In:x term=unheard:In:x term=zone:In:b term=zone:In:a
             pod none cpu=1 term=zone:In:x",
        ),
        expect![[r#"
            launch general#1  small/b/spot  <- last
            refuse none: pool general: no instance type met the scheduling requirements or had a required offering (2 with other labels)
        "#]],
    );
}

/// SC15.4.3, SC15.4.6
#[test]
fn preferences_do_not_keep_a_pod_from_its_place() {
    check(
        &with_types(
            "pool general
             pod web cpu=1 prefer=zone:In:nowhere prefer=team:In:x&team:NotIn:x
             pod wide cpu=1 spread=zone:anyway",
        ),
        expect![[r#"
            launch general#1  small/a/spot  <- web
            launch general#2  small/b/spot  <- wide
        "#]],
    );
}

/// SC15.19.1, SC15.19.2, SC15.19.6
#[test]
fn pools_are_asked_by_weight_and_then_from_the_end_of_the_alphabet() {
    check(
        "type small cpu=2 memory=4Gi
         pool alpha weight=20
         pool beta weight=100 zones=a
         pool gamma weight=20
         pool delta
         pod heavy cpu=2
         pod second cpu=2 select=zone:In:b
         pod chosen cpu=2 select=pool:In:delta",
        expect![[r#"
            launch beta#1  small/a/spot  <- heavy
            launch gamma#2  small/b/spot  <- second
            launch delta#3  small/a/spot  <- chosen
        "#]],
    );
}

/// SC15.1.7, SC15.1.8, SC15.19.3
#[test]
fn pools_that_take_no_part_say_why() {
    check(
        &with_types(
            "pool broken notready
             pool fixed static
             pool going deleting
             pool young nocatalog
             pod web cpu=1",
        ),
        expect![[r#"
            refuse web: pool young: the provider names no instance types for it; pool going: it is being deleted; pool fixed: it is static; pool broken: it is not ready
        "#]],
    );
    check(
        &with_types(
            "pool fixed static weight=10
             pool general
             pod web cpu=1",
        ),
        expect![[r#"
            launch general#1  small/a/spot  <- web
        "#]],
    );
    check(
        "pod web cpu=1",
        expect![[r#"
        refuse web: there is no node pool
    "#]],
    );
}

/// SC15.2.15
#[test]
fn a_mistyped_label_gets_a_hint() {
    check(
        &with_types(
            "pool general
             pod web cpu=1 select=instance-type:In:small",
        ),
        expect![[r#"
            refuse web: pool general: label "instance-type" is not defined, instance-type In [small] is asked for (typo of "node.kubernetes.io/instance-type"?)
        "#]],
    );
}

/// SC15.1.6, SC15.1.14: those who can be placed are, whatever the others ask for.
#[test]
fn pods_that_ask_for_the_impossible_do_not_keep_others_out() {
    let plan = plan_of(
        "type small cpu=2 memory=4Gi price=0.1
         pool general
         pod lost cpu=100m select=type:In:unknown count=10
         pod fine cpu=100m count=100",
    );
    assert_eq!((plan.refusals.len(), plan.placed().count()), (10, 100), "{plan}");
}
