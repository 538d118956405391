use api::convert::{self, Parsed};
use api::v1::NodePool;
use jiff::{SignedDuration, Timestamp};
use model::Pool;
use model::budget::{DisruptionReason, UNBOUNDED, allowed};
use model::pool::ConsolidationPolicy;
use serde_json::{Value, json};

use crate::{fields, object};

fn pool(template: Value, rest: Value) -> Parsed<Pool> {
    let mut written = json!({
        "metadata": { "name": "general", "uid": "u-1" },
        "spec": { "template": { "spec": {
            "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" },
            "requirements": [],
        } } },
        "status": { "conditions": [{
            "type": "Ready", "status": "True", "reason": "Ready", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }] },
    });
    merge(&mut written["spec"]["template"], template);
    merge(&mut written["spec"], rest);
    convert::pool(&object::<NodePool>(written))
}

fn merge(target: &mut Value, change: Value) {
    match change {
        Value::Object(fields) => fields
            .into_iter()
            .for_each(|(name, value)| merge(&mut target[name], value)),
        value => *target = value,
    }
}

#[test]
fn a_pool_that_says_nothing_gets_the_defaults() {
    let Parsed { value, errors } = pool(json!({}), json!({}));
    assert_eq!(errors, []);
    assert!(value.ready);
    assert_eq!(value.weight, 0);
    assert_eq!(value.disruption.policy, ConsolidationPolicy::WhenEmptyOrUnderutilized);
    assert_eq!(value.disruption.consolidate_after, Some(SignedDuration::ZERO));
    let budgets = value.disruption.budgets.expect("the default budget");
    assert_eq!(allowed(&budgets, DisruptionReason::Empty, Timestamp::UNIX_EPOCH, 50), 5);
}

#[test]
fn the_template_becomes_requirements_taints_and_times() {
    let Parsed { value, errors } = pool(
        json!({
            "metadata": { "labels": { "team": "a" } },
            "spec": {
                "requirements": [
                    { "key": "beta.kubernetes.io/arch", "operator": "In", "values": ["arm64"] },
                    { "key": "cpu", "operator": "Gt", "values": ["4"] },
                    { "key": "family", "operator": "Exists", "minValues": 3 },
                ],
                "taints": [{ "key": "gpu", "effect": "NoSchedule" }],
                "expireAfter": "Never",
                "terminationGracePeriod": "90m",
            },
        }),
        json!({ "limits": { "cpu": 1000, "memory": "1Ti", "nodes": "10" }, "weight": 7 }),
    );
    assert_eq!(errors, []);
    let template = &value.template;
    let requirements: Vec<String> = template.requirements.iter().map(ToString::to_string).collect();
    assert_eq!(
        requirements,
        [
            "cpu Exists >=5",
            "family Exists minValues 3",
            "kubernetes.io/arch In [arm64]",
            "team In [a]"
        ]
    );
    assert_eq!(template.taints[0].to_string(), "gpu:NoSchedule");
    assert_eq!(template.expire_after, None);
    assert_eq!(template.termination_grace, Some(SignedDuration::from_mins(90)));
    assert_eq!(value.limits.get("cpu").to_string(), "1k");
    assert_eq!(value.weight, 7);
}

#[test]
fn what_cannot_be_read_in_the_template_makes_the_pool_unready() {
    let Parsed { value, errors } = pool(
        json!({ "spec": {
            "requirements": [{ "key": "a", "operator": "Near", "values": ["b"] }],
            "taints": [{ "key": "a", "effect": "Sometimes" }],
            "expireAfter": "99999999999h",
        } }),
        json!({ "limits": { "cpu": "many" } }),
    );
    assert!(!value.ready);
    let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
    assert_eq!(
        fields,
        [
            "spec.template.spec.requirements[0].operator",
            "spec.template.spec.taints[0].effect",
            "spec.template.spec.expireAfter",
            "spec.limits.cpu",
        ]
    );
}

/// AP17.1.14, AP17.1.16: admitted by the schema, closed at run time.
#[test]
fn a_budget_that_cannot_be_read_closes_the_pool_for_disruption() {
    for schedule in ["@dailyfoo", "0 0 * * tue-mon"] {
        let budgets = json!([{ "nodes": "10", "schedule": schedule, "duration": "20m" }, { "nodes": "5" }]);
        let parsed = pool(json!({}), json!({ "disruption": { "budgets": budgets } }));
        assert_eq!(fields(&parsed), ["spec.disruption.budgets[0].schedule"]);
        assert!(parsed.value.disruption.budgets.is_err());
        assert!(parsed.value.ready, "such a pool still launches nodes");
    }
}

#[test]
fn no_budget_no_reason_and_never_are_kept_apart_from_absence() {
    let budgets = |budgets: Value| {
        let value = pool(
            json!({}),
            json!({ "disruption": { "consolidateAfter": "Never", "budgets": budgets } }),
        )
        .value;
        assert_eq!(value.disruption.consolidate_after, None);
        let budgets = value.disruption.budgets.expect("budgets");
        allowed(&budgets, DisruptionReason::Drifted, Timestamp::UNIX_EPOCH, 10)
    };
    assert_eq!(budgets(json!([])), UNBOUNDED);
    assert_eq!(budgets(json!([{ "nodes": "0", "reasons": [] }])), UNBOUNDED);
    assert_eq!(budgets(json!([{ "nodes": "0", "reasons": ["Empty"] }])), UNBOUNDED);
    assert_eq!(budgets(json!([{ "nodes": "0" }])), 0);
}

#[test]
fn an_unknown_policy_is_reported_and_read_as_the_most_careful_one() {
    let parsed = pool(
        json!({}),
        json!({ "disruption": { "consolidationPolicy": "WhenCheap" } }),
    );
    assert_eq!(fields(&parsed), ["spec.disruption.consolidationPolicy"]);
    assert_eq!(parsed.value.disruption.policy, ConsolidationPolicy::WhenEmpty);
}
