//! CapacityBuffer, `autoscaling.x-k8s.io/v1beta1`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::json;

use super::blocks;
use super::columns::{age, described, integer, text};
use super::schema::{Schema, cel, default, min_length, minimum, required};
use crate::v1beta1::CapacityBuffer;

pub fn crd() -> CustomResourceDefinition {
    let schema = Schema::of::<CapacityBuffer>()
        .columns([
            described(
                "How the buffer is provisioned.",
                text("Strategy", ".spec.provisioningStrategy"),
            ),
            described(
                "What the buffer is measured in.",
                text("PodTemplate", ".status.podTemplateRef.name"),
            ),
            described(
                "How many pods there is room for.",
                integer("Replicas", ".status.replicas"),
            ),
            described(
                "The types of the conditions.",
                text("ConditionsType", ".status.conditions[*].type"),
            ),
            described(
                "The statuses of the conditions.",
                text("ConditionsStatus", ".status.conditions[*].status"),
            ),
            described(
                "The reasons of the conditions.",
                text("ConditionsReason", ".status.conditions[*].reason"),
            ),
            described("How long the buffer has existed.", age()),
        ])
        .at("", [required(&["spec"])])
        .at(
            "spec",
            [
                cel(
                    "!has(self.podTemplateRef) || has(self.replicas) || has(self.limits)",
                    "If podTemplateRef is set, replicas or limits must also be set",
                ),
                cel(
                    "!(has(self.podTemplateRef) && has(self.scalableRef))",
                    "You must define either PodTemplateRef or ScalableRef, but not both",
                ),
            ],
        )
        .at(
            "spec.provisioningStrategy",
            [default(json!("buffer.x-k8s.io/active-capacity"))],
        )
        .at("spec.podTemplateRef.name", [min_length(1)])
        .at("spec.scalableRef.kind", [min_length(1)])
        .at("spec.scalableRef.name", [min_length(1)])
        .at("spec.replicas", [minimum(0)])
        .at("spec.percentage", [minimum(0)])
        .at("status.podTemplateRef.name", [min_length(1)]);
    blocks::strict_conditions(schema, "status.conditions").into_crd()
}
