//! NodeClaim, `karpenter.sh/v1`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::json;

use super::Variant;
use super::blocks::{self, Holder};
use super::columns::{age, condition, label, text, wide};
use super::patterns::{DURATION, DURATION_OR_NEVER};
use super::schema::{Schema, cel, default, pattern, required};
use crate::labels;
use crate::v1::NodeClaim;

pub fn crd(variant: Variant) -> CustomResourceDefinition {
    let schema = Schema::of::<NodeClaim>()
        .columns([
            label("Type", labels::INSTANCE_TYPE),
            label("Capacity", labels::CAPACITY_TYPE),
            label("Zone", labels::ZONE),
            text("Node", ".status.nodeName"),
            condition("Ready"),
            age(),
            wide(text("ImageID", ".status.imageID")),
            wide(text("ID", ".status.providerID")),
            wide(label("NodePool", labels::NODE_POOL)),
            wide(text("NodeClass", ".spec.nodeClassRef.name")),
            wide(condition("Drifted")),
        ])
        .at("", [required(&["spec"])])
        .at("spec", [cel("self == oldSelf", "spec is immutable")])
        .at("spec.terminationGracePeriod", [pattern(DURATION)])
        .at("spec.expireAfter", [default(json!("720h")), pattern(DURATION_OR_NEVER)]);
    let schema = blocks::taints(schema, "spec.taints");
    let schema = blocks::taints(schema, "spec.startupTaints");
    let schema = blocks::requirements(schema, "spec.requirements", Holder::Claim, variant);
    let schema = blocks::node_class_ref(schema, "spec.nodeClassRef");
    blocks::lenient_conditions(schema, "status.conditions").into_crd()
}
