//! Whatever is wrong with the input: one line that leads there, and exit code 2. Nothing is printed as a result.

use expect_test::{Expect, expect};

use crate::{
    Input, catalog,
    cluster::{CLASS, POOL, all, pod, pod_with},
};

#[track_caller]
fn check(input: &Input, expected: Expect) {
    let output = input.run();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(output.stdout.is_empty(), "a result was printed");
    expected.assert_eq(&told);
}

#[test]
fn a_field_that_cannot_be_read_is_named_with_file_document_and_object() {
    check(
        &Input::new(&all(&[CLASS, POOL, &pod("web-1", "1O0m")])),
        expect![[r#"
            karpenter: objects.yaml, document 3, Pod default/web-1: spec.containers[0].resources.requests.cpu: "1O0m" is not a quantity: expected a number with an optional suffix such as m, k, Mi or e6
        "#]],
    );
    check(
        &Input::new(&all(&[CLASS, POOL, &pod("web-1", "[1]")])),
        expect![[r#"
            karpenter: objects.yaml, document 3, Pod default/web-1: spec.containers[0].resources.requests.cpu: invalid type: sequence, expected Quantity
        "#]],
    );
    check(
        &Input::new(&all(&[CLASS, &POOL.replace("operator: In", "operator: Is")])),
        expect![[r#"
            karpenter: objects.yaml, document 2, NodePool general: spec.template.spec.requirements[0].operator: "Is" is not an operator: use In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte or Lte
        "#]],
    );
    let toleration = "  tolerations: [{key: a, operator: Maybe}]";
    check(
        &Input::new(&pod_with("web-1", "1", toleration)),
        expect![[r#"
            karpenter: objects.yaml, document 1, Pod default/web-1: spec.tolerations[0].operator: "Maybe" is not Equal, Exists, Lt or Gt
        "#]],
    );
    let list = r#"{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "a", "namespace": "shop"}, "spec": {"containers": "none"}}]}"#;
    check(
        &Input::new(list),
        expect![[r#"
            karpenter: objects.yaml, document 1, item 1, Pod shop/a: spec.containers: invalid type: string "none", expected a sequence
        "#]],
    );
}

#[test]
fn the_first_mistake_in_the_order_of_the_input_is_told() {
    let objects = all(&[&pod("z", "1x"), &pod("a", "1y")]);
    check(
        &Input::new(&objects),
        expect![[r#"
            karpenter: objects.yaml, document 1, Pod default/z: spec.containers[0].resources.requests.cpu: "1x" is not a quantity: unknown suffix "x"
        "#]],
    );
}

#[test]
fn what_is_no_object_is_told() {
    check(
        &Input::new("a: ["),
        expect![[r#"
            karpenter: objects.yaml, document 1: line 1 column 4: unclosed bracket '['
        "#]],
    );
    check(
        &Input::new("just words"),
        expect![[r#"
        karpenter: objects.yaml, document 1: is not an object
    "#]],
    );
    check(
        &Input::new("apiVersion: v1\nkind: Pod\n"),
        expect![[r#"
        karpenter: objects.yaml, document 1, Pod: metadata.name: is missing
    "#]],
    );
    let old = POOL.replace("karpenter.sh/v1", "karpenter.sh/v1beta1");
    check(
        &Input::new(&old),
        expect![[r#"
        karpenter: objects.yaml, document 1, NodePool general: apiVersion: "karpenter.sh/v1beta1" is not read, only karpenter.sh/v1 is
    "#]],
    );
}

#[test]
fn files_that_are_not_there_are_told() {
    check(
        &Input::new("").with(&["-f", "absent.yaml"]),
        expect![[r#"
        karpenter: absent.yaml: cannot be read: No such file or directory (os error 2)
    "#]],
    );
    check(
        &Input::new("").with(&["--instance-types", "absent.json"]),
        expect![[r#"
            karpenter: --instance-types: absent.json: cannot be read: No such file or directory (os error 2)
        "#]],
    );
    let input = Input::new("");
    input.write(
        "types.json",
        &catalog().to_string().replace("\"cpu\":\"2\"", "\"cpu\":\"two\""),
    );
    check(
        &input,
        expect![[r#"
            karpenter: --instance-types: types.json, entry 1 (m.large): resources.cpu: "two" is not a quantity: expected a number with an optional suffix such as m, k, Mi or e6
        "#]],
    );
}

#[test]
fn a_node_to_do_without_has_to_be_there() {
    check(
        &Input::new(POOL).with(&["--without", "n1"]),
        expect![[r#"
        karpenter: --without: there is no node or node claim n1
    "#]],
    );
}

#[test]
fn flags_that_make_no_sense_are_told() {
    for (arguments, part) in [
        (["--pods", "a in b"], "is not a selector"),
        (["--now", "yesterday"], "--now"),
        (["--preference-policy", "Both"], "Respect"),
        (["--min-values-policy", "Some"], "BestEffort"),
        (["--feature-gates", "NodeOverlay"], "is not of the form"),
        (["--output", "xml"], "table"),
    ] {
        let output = Input::new(POOL).with(&arguments).run();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains(part), "{part:?} is missing in: {told}");
    }
}

/// Odd, but not wrong: a plan comes out, and nothing breaks.
#[test]
fn absurd_demands_are_refused_and_not_a_failure() {
    let contradiction = "  nodeSelector: {topology.kubernetes.io/zone: a}\n  affinity: {nodeAffinity: {\
        requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [\
        {key: topology.kubernetes.io/zone, operator: In, values: [b]}]}]}}}";
    let objects = all(&[
        CLASS,
        POOL,
        &pod("greedy", "9000P"),
        &pod("negative", "-5"),
        &pod_with("torn", "1", contradiction),
    ]);
    let plan = Input::new(&objects).plan();
    let refused = plan["unschedulable"].as_array().expect("a list");
    assert!(refused.iter().any(|one| one["pod"] == "default/greedy"));
    assert!(refused.iter().any(|one| one["pod"] == "default/torn"));
    let empty = Input::new(&all(&[CLASS, POOL, &pod("web", "1")]));
    empty.write("types.json", "[]");
    assert_eq!(empty.plan()["unschedulable"].as_array().map(Vec::len), Some(1));
}
