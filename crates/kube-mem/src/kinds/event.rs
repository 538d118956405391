//! Events: where they lie, and what the newer group asks for.

use serde_json::{Value, json};

use crate::complaint;
use crate::meta;
use crate::registry::ResourceType;
use crate::schema::FieldError;

/// Events lie where the object is that they are about; those about the cluster lie in the default namespace.
pub(super) fn validate(ty: &ResourceType, new: &Value, errors: &mut Vec<FieldError>) {
    let about = new["involvedObject"]["namespace"].as_str().unwrap_or_default();
    let namespace = meta::namespace(new);
    let expected = if about.is_empty() { "default" } else { about };
    if namespace != expected {
        let detail = "does not match event.namespace";
        errors.push(complaint::invalid("involvedObject.namespace", &json!(about), detail));
    }
    if ty.group.is_empty() {
        return;
    }
    let dated = !new["eventTime"].is_null();
    if !dated {
        errors.push(complaint::required("eventTime", ""));
    }
    for (field, shown) in [
        ("reportingComponent", "reportingController"),
        ("reportingInstance", "reportingInstance"),
        ("action", "action"),
        ("reason", "reason"),
    ] {
        if dated && new[field].as_str().unwrap_or_default().is_empty() {
            errors.push(complaint::required(shown, ""));
        }
    }
    let kind = new["type"].as_str().unwrap_or_default();
    if !["Normal", "Warning"].contains(&kind) {
        let detail = format!("has invalid value: {kind}");
        errors.push(complaint::invalid("type", &json!(kind), &detail));
    }
}
