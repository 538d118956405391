//! Rules between one pod and one node: selector, required affinity, taints.

use k8s_openapi::api::core::v1::{Node, NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Taint, Toleration};

/// Whether the node has the labels that the pod asks for.
pub fn admits(spec: &PodSpec, node: &Node) -> bool {
    let labels = node.metadata.labels.as_ref();
    let label = |key: &str| labels.and_then(|labels| labels.get(key)).map(String::as_str);
    let selected = spec
        .node_selector
        .iter()
        .flatten()
        .all(|(key, value)| label(key) == Some(value));
    let required = spec.affinity.as_ref().and_then(|affinity| {
        affinity
            .node_affinity
            .as_ref()?
            .required_during_scheduling_ignored_during_execution
            .as_ref()
    });
    selected && required.is_none_or(|required| required.node_selector_terms.iter().any(|term| term_holds(term, node)))
}

/// An empty term holds for no node.
fn term_holds(term: &NodeSelectorTerm, node: &Node) -> bool {
    let labels = node.metadata.labels.as_ref();
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    let label = |key: &str| labels.and_then(|labels| labels.get(key)).map(String::as_str);
    let field = |key: &str| node.metadata.name.as_deref().filter(|_| key == "metadata.name");
    !(expressions.is_empty() && fields.is_empty())
        && expressions
            .iter()
            .all(|expression| requirement_holds(expression, label(&expression.key)))
        && fields
            .iter()
            .all(|expression| requirement_holds(expression, field(&expression.key)))
}

fn requirement_holds(requirement: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let values = requirement.values.as_deref().unwrap_or_default();
    let listed = |value: &str| values.iter().any(|other| other == value);
    let numbers = || Some((value?.parse::<i64>().ok()?, values.first()?.parse::<i64>().ok()?));
    match requirement.operator.as_str() {
        "In" => value.is_some_and(listed),
        "NotIn" => !value.is_some_and(listed),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => numbers().is_some_and(|(value, bound)| value > bound),
        "Lt" => numbers().is_some_and(|(value, bound)| value < bound),
        _ => false,
    }
}

pub fn tolerates(spec: &PodSpec, taint: &Taint) -> bool {
    spec.tolerations
        .iter()
        .flatten()
        .any(|toleration| toleration_covers(toleration, taint))
}

pub fn toleration_covers(toleration: &Toleration, taint: &Taint) -> bool {
    let effect = toleration.effect.as_deref().unwrap_or_default();
    let key = toleration.key.as_deref().unwrap_or_default();
    let (ours, theirs) = (
        toleration.value.as_deref().unwrap_or_default(),
        taint.value.as_deref().unwrap_or_default(),
    );
    let numbers = || Some((theirs.parse::<i64>().ok()?, ours.parse::<i64>().ok()?));
    (effect.is_empty() || effect == taint.effect)
        && (key.is_empty() || key == taint.key)
        && match toleration.operator.as_deref().unwrap_or("Equal") {
            "Exists" => true,
            "Equal" => !key.is_empty() && ours == theirs,
            "Lt" => numbers().is_some_and(|(theirs, ours)| theirs < ours),
            "Gt" => numbers().is_some_and(|(theirs, ours)| theirs > ours),
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check(spec: Value, expected: bool) {
        let node: Node = serde_json::from_value(json!({ "metadata": {
            "name": "n1", "labels": { "zone": "a", "cores": "8" },
        } }))
        .expect("a node");
        let mut full = json!({ "containers": [] });
        full.as_object_mut()
            .expect("an object")
            .extend(spec.as_object().expect("an object").clone());
        let spec: PodSpec = serde_json::from_value(full).expect("a pod spec");
        assert_eq!(admits(&spec, &node), expected, "{spec:?}");
    }

    fn terms(terms: Value) -> Value {
        json!({ "affinity": { "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": terms },
        } } })
    }

    #[test]
    fn a_selector_asks_for_all_its_labels() {
        check(json!({}), true);
        check(json!({ "nodeSelector": { "zone": "a" } }), true);
        check(json!({ "nodeSelector": { "zone": "b" } }), false);
        check(json!({ "nodeSelector": { "zone": "a", "rack": "1" } }), false);
    }

    #[test]
    fn one_term_of_the_affinity_has_to_hold_as_a_whole() {
        let expression =
            |key: &str, operator: &str, values: &[&str]| json!({ "key": key, "operator": operator, "values": values });
        check(
            terms(json!([{ "matchExpressions": [expression("zone", "In", &["a", "b"])] }])),
            true,
        );
        check(
            terms(json!([{ "matchExpressions": [expression("zone", "NotIn", &["a"])] }])),
            false,
        );
        check(
            terms(json!([{ "matchExpressions": [expression("rack", "NotIn", &["a"])] }])),
            true,
        );
        check(
            terms(json!([{ "matchExpressions": [expression("cores", "Gt", &["7"])] }])),
            true,
        );
        check(
            terms(json!([{ "matchExpressions": [expression("cores", "Lt", &["8"])] }])),
            false,
        );
        check(
            terms(json!([{ "matchFields": [expression("metadata.name", "In", &["n1"])] }])),
            true,
        );
        check(
            terms(json!([{ "matchFields": [expression("metadata.name", "In", &["n2"])] }])),
            false,
        );
        check(terms(json!([{}])), false);
        check(
            terms(json!([
                { "matchExpressions": [expression("zone", "In", &["b"])] },
                { "matchExpressions": [expression("rack", "DoesNotExist", &[])] },
            ])),
            true,
        );
    }
}
