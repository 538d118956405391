//! The kinds of the time of Provisioners.
//!
//! What their own definitions admitted is admitted here: a bound that those did not have would keep an object out that the
//! cluster had before. What is wrong with an object is said by the conversion, as a condition.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::json;

use super::columns::{age, condition, integer, label, text, wide};
use super::patterns::QUANTITY;
use super::schema::{Fact, Schema, description, maximum, minimum, open, required, without};
use crate::aws::AwsNodeTemplate;
use crate::labels;
use crate::v1alpha5::{Machine, Provisioner};

pub fn provisioner() -> CustomResourceDefinition {
    let schema = Schema::of::<Provisioner>()
        .columns([
            text("Template", ".spec.providerRef.name"),
            wide(integer("Weight", ".spec.weight")),
        ])
        .without_anywhere(&["enum"])
        .at("", [without("required")])
        .at("spec.provider", [open(), without("additionalProperties")])
        .at("spec.providerRef", [without("required")])
        .at("spec.weight", [minimum(1), maximum(100)]);
    let schema = kubelet(schema, "spec.kubeletConfiguration");
    let schema = taints(schema, "spec.taints");
    taints(schema, "spec.startupTaints").into_crd()
}

pub fn node_template() -> CustomResourceDefinition {
    let volume = "spec.blockDeviceMappings[].ebs.volumeSize";
    let size = [description("The size of the volume.")];
    Schema::of::<AwsNodeTemplate>()
        .without_anywhere(&["enum"])
        .at("", [without("required")])
        .at(volume, quantity())
        .at(volume, size)
        .into_crd()
}

pub fn machine() -> CustomResourceDefinition {
    let schema = Schema::of::<Machine>()
        .columns([
            label("Type", labels::INSTANCE_TYPE),
            label("Zone", labels::ZONE),
            text("Node", ".status.nodeName"),
            condition("Ready"),
            age(),
            wide(label("Capacity", labels::CAPACITY_TYPE)),
            wide(label("Provisioner", labels::PROVISIONER_NAME)),
            wide(text("Template", ".spec.machineTemplateRef.name")),
        ])
        .without_anywhere(&["enum"])
        .at("", [without("required")])
        .at("spec.machineTemplateRef", [without("required")]);
    let schema = kubelet(schema, "spec.kubelet");
    let schema = taints(schema, "spec.taints");
    taints(schema, "spec.startupTaints").into_crd()
}

/// A quantity could be written as a number.
fn quantity() -> [Fact; 4] {
    [
        without("type"),
        Fact::Keyword("x-kubernetes-int-or-string", json!(true)),
        Fact::Keyword("anyOf", json!([{ "type": "integer" }, { "type": "string" }])),
        Fact::Keyword("pattern", json!(QUANTITY)),
    ]
}

fn kubelet(schema: Schema, path: &str) -> Schema {
    let mut schema = schema.at(
        &format!("{path}.maxPods"),
        [
            description("The largest number of pods on a node."),
            without("x-kubernetes-int-or-string"),
            without("anyOf"),
            without("pattern"),
            Fact::Keyword("type", json!("integer")),
            Fact::Keyword("format", json!("int32")),
        ],
    );
    for field in ["systemReserved", "kubeReserved"] {
        schema = schema.at(&format!("{path}.{field}{{}}"), quantity());
    }
    schema
}

fn taints(schema: Schema, path: &str) -> Schema {
    let field = |name: &str| format!("{path}[].{name}");
    schema
        .at(
            &format!("{path}[]"),
            [
                description("Keeps pods away that do not tolerate it."),
                required(&["effect", "key"]),
            ],
        )
        .at(&field("key"), [description("The key of the taint.")])
        .at(&field("value"), [description("The value of the taint.")])
        .at(&field("timeAdded"), [description("When the taint was added.")])
        .at(
            &field("effect"),
            [description("What happens to pods that do not tolerate the taint.")],
        )
}
