//! NodeClaim, `karpenter.sh/v1`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::json;

use super::Variant;
use super::blocks::{self, Holder};
use super::patterns::{DURATION, DURATION_OR_NEVER};
use super::schema::{Schema, cel, default, pattern, required};
use crate::v1::NodeClaim;

pub fn crd(variant: Variant) -> CustomResourceDefinition {
    let schema = Schema::of::<NodeClaim>()
        .at("", [required(&["spec"])])
        .at("spec", [cel("self == oldSelf", "spec is immutable")])
        .at("spec.terminationGracePeriod", [pattern(DURATION)])
        .at("spec.expireAfter", [default(json!("720h")), pattern(DURATION_OR_NEVER)]);
    let schema = blocks::taints(schema, "spec.taints");
    let schema = blocks::taints(schema, "spec.startupTaints");
    let schema = blocks::requirements(schema, "spec.requirements", Holder::NodeClaim, variant);
    let schema = blocks::node_class_ref(schema, "spec.nodeClassRef");
    blocks::lenient_conditions(schema, "status.conditions").into_crd()
}
