//! The hash of a NodePool: its template without the requirements.

use k8s_openapi::api::core::v1::Taint;

use super::{Struct, go_duration, int64, list, plain_text, text_map};
use crate::field_error::FieldError;
use crate::v1::{NodeClaimTemplate, NodeClaimTemplateSpec, NodeClassReference, NodePool};

/// The version that is published beside the hash.
pub const NODE_POOL_VERSION: &str = "v3";

/// The hash of everything in the template whose change makes nodes drift.
///
/// # Errors
///
/// If a duration cannot be read: then there is no hash to compare, and the pool is not valid either.
pub fn node_pool(pool: &NodePool) -> Result<String, FieldError> {
    template(&pool.spec.template).map(|hash| hash.to_string())
}

fn template(template: &NodeClaimTemplate) -> Result<u64, FieldError> {
    let spec = spec(&template.spec)?;
    Ok(Struct::named("NodeClaimTemplate")
        .field("ObjectMeta", metadata(template))
        .field("Spec", Some(spec))
        .hash())
}

/// A struct all of whose fields are absent is Go's zero value.
fn metadata(template: &NodeClaimTemplate) -> Option<u64> {
    let metadata = template.metadata.as_ref()?;
    if metadata.labels.is_none() && metadata.annotations.is_none() {
        return None;
    }
    Some(
        Struct::named("ObjectMeta")
            .field("Labels", metadata.labels.as_ref().map(text_map))
            .field("Annotations", metadata.annotations.as_ref().map(text_map))
            .hash(),
    )
}

fn spec(spec: &NodeClaimTemplateSpec) -> Result<u64, FieldError> {
    let taints = |taints: &Option<Vec<Taint>>| taints.as_ref().map(|taints| list(taints.iter().map(taint)));
    let grace = spec
        .termination_grace_period
        .as_ref()
        .map(|text| nanos("terminationGracePeriod", text.parse()))
        .transpose()?;
    let expire = spec
        .expire_after
        .as_ref()
        .map(|text| text.parse().transpose())
        .and_then(|parsed| parsed.map(|parsed| nanos("expireAfter", parsed)))
        .transpose()?;
    Ok(Struct::named("NodeClaimTemplateSpec")
        .field("Taints", taints(&spec.taints))
        .field("StartupTaints", taints(&spec.startup_taints))
        .field("NodeClassRef", Some(node_class_ref(&spec.node_class_ref)))
        .field("TerminationGracePeriod", grace.map(go_duration))
        .field("ExpireAfter", expire.map(nillable_duration))
        .hash())
}

fn nanos(field: &str, parsed: Result<jiff::SignedDuration, crate::duration::DurationError>) -> Result<i64, FieldError> {
    let path = format!("spec.template.spec.{field}");
    let duration = parsed.map_err(|error| FieldError::new(path.clone(), error))?;
    i64::try_from(duration.as_nanos()).map_err(|_| FieldError::new(path, "does not fit 64 bits of nanoseconds"))
}

/// Unlike [`go_duration`], the inner field is a pointer: zero seconds count, and only `Never` does not.
fn nillable_duration(nanos: i64) -> u64 {
    Struct::named("NillableDuration")
        .field("Duration", Some(int64(nanos)))
        .hash()
}

/// The time a taint was added is left out: upstream hashes it with its time zone, and templates do not carry it.
fn taint(taint: &Taint) -> u64 {
    Struct::named("Taint")
        .field("Key", plain_text(&taint.key))
        .field("Value", taint.value.as_deref().and_then(plain_text))
        .field("Effect", plain_text(&taint.effect))
        .hash()
}

fn node_class_ref(reference: &NodeClassReference) -> u64 {
    Struct::named("NodeClassReference")
        .field("Kind", plain_text(&reference.kind))
        .field("Name", plain_text(&reference.name))
        .field("Group", plain_text(&reference.group))
        .hash()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The vectors of AP13.4: the first is printed in upstream's documentation.
    #[track_caller]
    fn check(metadata: Value, group: &str, spec: Value, expected: &str) {
        let mut template = json!({ "metadata": metadata, "spec": spec });
        template["spec"]["requirements"] = json!([]);
        template["spec"]["nodeClassRef"] = json!({ "group": group, "kind": "EC2NodeClass", "name": "default" });
        let pool: NodePool =
            serde_json::from_value(json!({ "metadata": {}, "spec": { "template": template } })).expect("a pool");
        assert_eq!(node_pool(&pool).as_deref(), Ok(expected));
    }

    const AWS: &str = "karpenter.k8s.aws";

    #[test]
    fn pools_hash_as_upstream_hashes_them() {
        check(
            json!({}),
            "",
            json!({ "terminationGracePeriod": "1h", "expireAfter": "720h" }),
            "377058807571762610",
        );
        check(json!({}), AWS, json!({ "expireAfter": "720h" }), "6821555240594823858");
        check(
            json!({}),
            AWS,
            json!({ "expireAfter": "Never" }),
            "17369979337536258260",
        );
        check(json!({}), AWS, json!({ "expireAfter": "0s" }), "15640125381500602090");
        check(
            json!({ "labels": { "team": "a" } }),
            AWS,
            json!({ "expireAfter": "720h" }),
            "1617844334411263980",
        );
        let taint = json!([{ "key": "dedicated", "value": "gpu", "effect": "NoSchedule" }]);
        check(
            json!({}),
            AWS,
            json!({ "expireAfter": "720h", "taints": taint }),
            "13579916569126205748",
        );
        check(
            json!({}),
            AWS,
            json!({ "expireAfter": "720h", "terminationGracePeriod": "24h" }),
            "16144107721237908861",
        );
    }

    #[test]
    fn the_text_of_a_duration_does_not_count() {
        check(
            json!({}),
            AWS,
            json!({ "expireAfter": "43200m" }),
            "6821555240594823858",
        );
    }

    #[test]
    fn an_unreadable_duration_is_reported_with_its_field() {
        let mut pool = NodePool::default();
        pool.spec.template.spec.expire_after = Some("99999999999h".into());
        let error = node_pool(&pool).expect_err("292 years at most");
        assert_eq!(error.field, "spec.template.spec.expireAfter");
    }
}
