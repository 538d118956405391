//! NodePool, `karpenter.sh/v1`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::json;

use super::Variant;
use super::blocks::{self, Holder};
use super::columns::{age, condition, integer, text, wide};
use super::patterns::{DURATION, DURATION_OR_NEVER, LABEL_VALUE};
use super::schema::{
    Schema, cel, default, list_type, map_type, max_items, max_length, max_properties, maximum, minimum, pattern,
    required,
};
use crate::v1::NodePool;

const BUDGET_NODES: &str = r"^((100|[0-9]{1,2})%|[0-9]+)$";

/// The alternation is not grouped: `@dailyfoo` passes, and so does any text with four separated
/// spaces. What passes and is no schedule closes the pool for disruption at run time.
const BUDGET_SCHEDULE: &str =
    r"^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))|((.+)\s(.+)\s(.+)\s(.+)\s(.+))$";

const BUDGET_DURATION: &str = r"^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$";

pub fn crd(variant: Variant) -> CustomResourceDefinition {
    let schema = Schema::of::<NodePool>()
        .columns([
            text("NodeClass", ".spec.template.spec.nodeClassRef.name"),
            text("Nodes", ".status.nodes"),
            condition("Ready"),
            age(),
            wide(integer("Weight", ".spec.weight")),
            wide(text("CPU", ".status.resources.cpu")),
            wide(text("Memory", ".status.resources.memory")),
        ])
        .at("", [required(&["spec"])])
        .at("spec", [
            cel(
                "has(self.replicas) == has(oldSelf.replicas)",
                "Cannot transition NodePool between static (replicas set) and dynamic (replicas unset) provisioning modes",
            ),
            cel(
                "!has(self.replicas) || (!has(self.limits) || size(self.limits) == 0 || (size(self.limits) == 1 && 'nodes' in self.limits))",
                "only 'limits.nodes' is supported on static NodePools",
            ),
            cel(
                "!has(self.replicas) || !has(self.weight)",
                "'weight' is not supported on static NodePools",
            ),
        ])
        .at("spec.weight", [minimum(1), maximum(100)])
        .at("spec.replicas", [minimum(0)])
        .at("spec.disruption", [default(json!({ "consolidateAfter": "0s" }))])
        .at("spec.disruption.consolidateAfter", [default(json!("0s")), pattern(DURATION_OR_NEVER)])
        .at("spec.disruption.consolidationPolicy", [default(json!("WhenEmptyOrUnderutilized"))])
        .at("spec.disruption.budgets", [
            default(json!([{ "nodes": "10%" }])),
            list_type("atomic"),
            max_items(50),
            cel(
                "self.all(x, has(x.schedule) == has(x.duration))",
                "'schedule' must be set with 'duration'",
            ),
        ])
        .at("spec.disruption.budgets[].nodes", [default(json!("10%")), pattern(BUDGET_NODES)])
        .at("spec.disruption.budgets[].reasons", [list_type("set"), max_items(50)])
        .at("spec.disruption.budgets[].schedule", [pattern(BUDGET_SCHEDULE)])
        .at("spec.disruption.budgets[].duration", [pattern(BUDGET_DURATION)])
        .at("spec.template.metadata.labels", [map_type("atomic"), max_properties(100)])
        .at("spec.template.metadata.labels", blocks::label_rules(variant))
        .at("spec.template.metadata.labels{}", [max_length(63), pattern(LABEL_VALUE)])
        .at("spec.template.metadata.annotations", [map_type("granular")])
        .at("spec.template.spec.terminationGracePeriod", [pattern(DURATION)])
        .at("spec.template.spec.expireAfter", [default(json!("720h")), pattern(DURATION_OR_NEVER)])
        .at("spec.template.spec.nodeClassRef", [
            cel("self.group == oldSelf.group", "nodeClassRef.group is immutable"),
            cel("self.kind == oldSelf.kind", "nodeClassRef.kind is immutable"),
        ])
        .at("status.nodes", [default(json!(0))]);
    let schema = blocks::taints(schema, "spec.template.spec.taints");
    let schema = blocks::taints(schema, "spec.template.spec.startupTaints");
    let schema = blocks::requirements(schema, "spec.template.spec.requirements", Holder::Pool, variant);
    let schema = blocks::node_class_ref(schema, "spec.template.spec.nodeClassRef");
    blocks::strict_conditions(schema, "status.conditions").into_crd()
}
