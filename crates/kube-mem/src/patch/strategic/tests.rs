//! One row per behaviour: a pod spec before, a patch of it, the pod spec after.

use serde_json::{Value, json};

use super::strategic;
use crate::patch::PatchError;
use crate::registry::Gvk;

fn patched(spec: Value, patch: Value) -> Result<Value, PatchError> {
    let pod = Gvk::new("", "v1", "Pod");
    strategic(&pod, &json!({"spec": spec}), &json!({"spec": patch})).map(|mut pod| pod["spec"].take())
}

#[track_caller]
fn check(spec: Value, patch: Value, expected: Value) {
    assert_eq!(patched(spec, patch), Ok(expected));
}

fn named(names: &[&str]) -> Value {
    names.iter().map(|name| json!({"name": name})).collect()
}

#[test]
fn maps_merge_and_null_removes() {
    check(
        json!({"nodeName": "a", "nodeSelector": {"x": "1", "y": "1"}}),
        json!({"nodeName": null, "nodeSelector": {"y": null, "z": "1"}, "hostname": null}),
        json!({"nodeSelector": {"x": "1", "z": "1"}}),
    );
}

#[test]
fn items_merge_by_key_and_new_items_come_first() {
    check(
        json!({"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]}),
        json!({"containers": [{"name": "b", "image": "2"}, {"name": "c", "image": "2"}]}),
        json!({"containers": [
            {"name": "a", "image": "1"}, {"name": "b", "image": "2"}, {"name": "c", "image": "2"},
        ]}),
    );
    check(
        json!({"containers": named(&["a", "b"])}),
        json!({"containers": named(&["c"])}),
        json!({"containers": named(&["c", "a", "b"])}),
    );
}

#[test]
fn an_item_is_deleted_by_its_key() {
    check(
        json!({"containers": named(&["a", "b"])}),
        json!({"containers": [{"$patch": "delete", "name": "a"}]}),
        json!({"containers": named(&["b"])}),
    );
}

#[test]
fn a_list_is_replaced_by_a_directive_among_its_items() {
    check(
        json!({"containers": named(&["a", "b"])}),
        json!({"containers": [{"$patch": "replace"}, {"name": "c"}]}),
        json!({"containers": named(&["c"])}),
    );
}

#[test]
fn a_map_is_replaced_or_emptied_by_a_directive() {
    check(
        json!({"nodeSelector": {"x": "1"}}),
        json!({"nodeSelector": {"$patch": "replace", "y": "1"}}),
        json!({"nodeSelector": {"y": "1"}}),
    );
    check(
        json!({"nodeSelector": {"x": "1"}}),
        json!({"nodeSelector": {"$patch": "delete"}}),
        json!({"nodeSelector": {}}),
    );
    check(
        json!({}),
        json!({"nodeSelector": {"$patch": "delete", "y": "1"}}),
        json!({}),
    );
}

#[test]
fn lists_without_a_merge_strategy_are_replaced() {
    check(
        json!({"tolerations": [{"key": "a"}]}),
        json!({"tolerations": [{"key": "b"}]}),
        json!({"tolerations": [{"key": "b"}]}),
    );
}

#[test]
fn the_order_of_a_list_can_be_stated() {
    check(
        json!({"containers": named(&["a", "b", "c"])}),
        json!({"$setElementOrder/containers": named(&["c", "b"])}),
        json!({"containers": named(&["a", "c", "b"])}),
    );
    check(
        json!({"containers": named(&["a", "b"])}),
        json!({"$setElementOrder/containers": named(&["d", "b", "a"]), "containers": named(&["d"])}),
        json!({"containers": named(&["d", "b", "a"])}),
    );
    let refused = patched(
        json!({"containers": named(&["a"])}),
        json!({"$setElementOrder/containers": named(&["a"]), "containers": named(&["d"])}),
    );
    assert!(matches!(refused, Err(PatchError::Internal(_))), "{refused:?}");
}

#[test]
fn retained_keys_clear_the_others() {
    let volume = |source: Value| json!({"volumes": [source]});
    check(
        volume(json!({"name": "v", "emptyDir": {}})),
        volume(json!({"name": "v", "hostPath": {"path": "/x"}, "$retainKeys": ["name", "hostPath"]})),
        volume(json!({"name": "v", "hostPath": {"path": "/x"}})),
    );
    let refused = patched(
        volume(json!({"name": "v"})),
        volume(json!({"name": "v", "emptyDir": {}, "$retainKeys": ["name"]})),
    );
    assert_eq!(
        refused,
        Err(PatchError::Malformed("invalid patch format of retainKeys".into()))
    );
}

#[test]
fn scalars_are_added_to_and_deleted_from_sets() {
    let meta = |finalizers: Value| json!({"metadata": finalizers});
    let pod = Gvk::new("", "v1", "Pod");
    let check = |before: Value, patch: Value, after: Value| {
        assert_eq!(strategic(&pod, &meta(before), &meta(patch)), Ok(meta(after)));
    };
    check(
        json!({"finalizers": ["a", "b"]}),
        json!({"$deleteFromPrimitiveList/finalizers": ["a"]}),
        json!({"finalizers": ["b"]}),
    );
    check(
        json!({"finalizers": ["a", "b"]}),
        json!({"finalizers": ["c"]}),
        json!({"finalizers": ["c", "a", "b"]}),
    );
    check(
        json!({"finalizers": ["a", "b"]}),
        json!({"$deleteFromPrimitiveList/finalizers": ["a"], "$setElementOrder/finalizers": ["b"]}),
        json!({"finalizers": ["b"]}),
    );
}

#[test]
fn an_item_without_its_key_cannot_be_merged() {
    let refused = patched(
        json!({"containers": named(&["a"])}),
        json!({"containers": [{"image": "x"}]}),
    );
    let Err(PatchError::Internal(text)) = refused else {
        panic!("{refused:?}")
    };
    assert!(text.contains("does not contain declared merge key: name"), "{text}");
}
