//! Rules that this solver does not know are named, and the pod is not placed.

use expect_test::expect;

use super::check;

#[test]
fn a_pod_that_insists_on_an_unknown_rule_is_refused() {
    check(
        "type small cpu=2 memory=4Gi
         pool general
         node n1 cpu=8 memory=8Gi
         pod spread cpu=1 spread=zone
         pod near cpu=1 near=host
         pod apart cpu=1 apart=host
         pod disk cpu=1 volume=data
         pod device cpu=1 device=gpu",
        expect![[r#"
            refuse apart: required pod anti-affinity over kubernetes.io/hostname is not supported
            refuse device: resource claim gpu needs dynamic resource allocation: not supported
            refuse disk: volume claim default/data is not there
            refuse near: required pod affinity over kubernetes.io/hostname is not supported
            refuse spread: required topology spread over topology.kubernetes.io/zone is not supported
        "#]],
    );
}

#[test]
fn a_pod_that_a_running_pod_keeps_away_is_refused_in_its_namespace_only() {
    check(
        "type small cpu=2 memory=4Gi
         pool general
         node n1 cpu=8 memory=8Gi
         pod loner cpu=1 apart=host on=n1
         pod ghost cpu=1 apart=host on=n2 in=elsewhere
         pod neighbour cpu=1
         pod stranger cpu=1 in=elsewhere",
        expect![[r#"
            place n1  <- elsewhere/stranger
            refuse neighbour: required anti-affinity of pod default/loner over kubernetes.io/hostname covers the pod and is not supported
        "#]],
    );
}
