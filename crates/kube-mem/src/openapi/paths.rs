//! The operations on a resource, as far as clients look at them.

use serde_json::{Map, Value, json};

use crate::registry::{Gvk, ResourceType};

/// The paths of a resource and its subresources.
pub(super) fn of(ty: &ResourceType) -> Vec<(String, Value)> {
    let root = match ty.group.as_str() {
        "" => format!("/api/{}", ty.version),
        group => format!("/apis/{group}/{}", ty.version),
    };
    let place = if ty.namespaced { "/namespaces/{namespace}" } else { "" };
    let collection = format!("{root}{place}/{}", ty.plural);
    let item = format!("{collection}/{{name}}");
    let own = ty.gvk();
    let mut paths = vec![
        (
            collection,
            operations(
                ty,
                &own,
                &[("get", "list"), ("post", "create"), ("delete", "deletecollection")],
            ),
        ),
        (
            item.clone(),
            operations(
                ty,
                &own,
                &[
                    ("get", "get"),
                    ("put", "update"),
                    ("patch", "patch"),
                    ("delete", "delete"),
                ],
            ),
        ),
    ];
    if ty.namespaced && ty.has_verb("list") {
        paths.push((
            format!("{root}/{}", ty.plural),
            operations(ty, &own, &[("get", "list")]),
        ));
    }
    for sub in &ty.subresources {
        let verbs = [
            ("get", "get"),
            ("post", "create"),
            ("put", "update"),
            ("patch", "patch"),
        ];
        let served = verbs.into_iter().filter(|(_, verb)| sub.verbs.contains(verb));
        let operations = served
            .map(|(method, verb)| (method.to_owned(), operation(ty, &sub.gvk, verb)))
            .collect();
        paths.push((format!("{item}/{}", sub.name), Value::Object(operations)));
    }
    paths.retain(|(_, operations)| operations.as_object().is_some_and(|operations| !operations.is_empty()));
    paths
}

/// The verbs that the resource serves, by method.
fn operations(ty: &ResourceType, gvk: &Gvk, verbs: &[(&str, &str)]) -> Value {
    let served = verbs.iter().filter(|(_, verb)| ty.has_verb(verb));
    let operations: Map<String, Value> = served
        .map(|(method, verb)| ((*method).to_owned(), operation(ty, gvk, verb)))
        .collect();
    Value::Object(operations)
}

fn operation(ty: &ResourceType, gvk: &Gvk, verb: &str) -> Value {
    let action = match verb {
        "create" => "post",
        "update" => "put",
        verb => verb,
    };
    let mut operation = json!({
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": {"group": gvk.group, "version": gvk.version, "kind": gvk.kind},
        "responses": {"200": {"description": "OK"}},
    });
    if ["create", "update", "patch"].contains(&verb) {
        let parameters: Vec<Value> = ["dryRun", "fieldManager", "fieldValidation"]
            .map(query_parameter)
            .to_vec();
        operation["parameters"] = parameters.into();
    }
    if verb == "patch" {
        let mut kinds = vec![
            "application/apply-patch+yaml",
            "application/json-patch+json",
            "application/merge-patch+json",
        ];
        if ty.custom.is_none() {
            kinds.push("application/strategic-merge-patch+json");
        }
        let content: Map<String, Value> = kinds.into_iter().map(|kind| (kind.to_owned(), json!({}))).collect();
        operation["requestBody"] = json!({"content": content});
    }
    operation
}

fn query_parameter(name: &str) -> Value {
    json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}})
}
