//! KWOKNodeClass, `karpenter.kwok.sh/v1alpha1`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::json;

use super::blocks;
use super::patterns::DURATION;
use super::schema::{Schema, default, pattern, without};
use crate::kwok::KwokNodeClass;

pub fn crd() -> CustomResourceDefinition {
    // No controller judges the class, so it is born ready.
    let born_ready = json!({ "conditions": [{
        "type": "Ready",
        "status": "True",
        "reason": "Ready",
        "message": "",
        "lastTransitionTime": "2024-01-01T01:01:01Z",
    }] });
    let schema = Schema::of::<KwokNodeClass>()
        .at("", [without("required")])
        .at("spec.nodeRegistrationDelay", [pattern(DURATION)])
        .at("status", [default(born_ready)]);
    blocks::unkeyed_conditions(schema, "status.conditions").into_crd()
}
