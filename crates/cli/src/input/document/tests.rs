use expect_test::{Expect, expect};

use super::*;

#[track_caller]
fn check(text: &str, expected: Expect) {
    let file = File::new("f.yaml", text.to_owned());
    let told = match documents(&file) {
        Ok(documents) => documents
            .iter()
            .map(|document| format!("{}: {} {}\n", document.place, document.api_version, document.object()))
            .collect(),
        Err(bad) => format!("{bad}\n"),
    };
    expected.assert_eq(&told);
}

#[test]
fn documents_are_counted_and_lists_are_opened_up() {
    check(
        "# a comment\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: x}\n--- # another\n\
         {\"apiVersion\": \"v1\", \"kind\": \"Node\", \"metadata\": {\"name\": \"n\"}}\n---\n---\n\
         apiVersion: v1\nkind: List\nitems:\n- {apiVersion: apps/v1, kind: DaemonSet, metadata: {name: d}}\n---\n\
         {\"apiVersion\": \"v1\", \"kind\": \"PodList\", \"items\": [{\"metadata\": {\"name\": \"b\"}}]}\n",
        expect![[r#"
            f.yaml, document 2: v1 Pod x/a
            f.yaml, document 3: v1 Node n
            f.yaml, document 5, item 1: apps/v1 DaemonSet d
            f.yaml, document 6, item 1: v1 Pod b
        "#]],
    );
}

#[test]
fn dashes_inside_a_text_separate_nothing() {
    check(
        "---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  annotations:\n    x: |\n      ---\n",
        expect![[r#"
            f.yaml, document 1: v1 Pod a
        "#]],
    );
}

#[test]
fn what_is_no_object_is_named_by_its_place() {
    check(
        "- 1\n",
        expect![[r#"
        f.yaml, document 1: is not an object
    "#]],
    );
    check(
        "kind: Pod\nmetadata: {name: a}\n",
        expect![[r#"
        f.yaml, document 1: apiVersion: is missing
    "#]],
    );
    check(
        "apiVersion: v1\nmetadata: {name: a}\n",
        expect![[r#"
        f.yaml, document 1: kind: is missing
    "#]],
    );
    check(
        "apiVersion: v1\nkind: Pod\nmetadata: {generateName: a-}\n",
        expect![[r#"
        f.yaml, document 1, Pod: metadata.name: is missing
    "#]],
    );
    check(
        "{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [7]}",
        expect![[r#"
            f.yaml, document 1, item 1: invalid type: integer `7`, expected an object
        "#]],
    );
    check(
        "a: [",
        expect![[r#"
            f.yaml, document 1: line 1 column 4: unclosed bracket '['
        "#]],
    );
}

/// Go writes a time that was never set as null.
#[test]
fn a_condition_without_a_time_can_be_read() {
    for text in [
        r#"{"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "a"}, "spec": {"template": {"spec":
            {"requirements": [], "nodeClassRef": {"group": "g", "kind": "K", "name": "n"}}}},
            "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "R", "message": "", "lastTransitionTime": null}]}}"#,
        "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: a}\nspec: {template: {spec: {requirements: [], \
         nodeClassRef: {group: g, kind: K, name: default}}}}\nstatus: {conditions: [{type: Ready, status: 'True', reason: R, \
         message: '', lastTransitionTime: null}]}\n",
    ] {
        let file = File::new("f.yaml", text.to_owned());
        let documents = documents(&file).expect("documents");
        let pool: api::v1::NodePool = documents[0].decode().expect("a pool");
        let conditions = pool.status.and_then(|status| status.conditions).expect("conditions");
        assert_eq!(conditions[0].type_, "Ready");
    }
}
