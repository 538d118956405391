//! What a cloud makes of objects that were written for EC2.

use legacy::ROLE_PLACEHOLDER;
use provider::NodeClassKind;
use serde_json::{Value, json};

use crate::Place;

const EC2_GROUP: &str = "karpenter.k8s.aws";

fn is_ec2(class: &NodeClassKind) -> bool {
    class.group == EC2_GROUP
}

/// The name that selectors without content refer to. A cloud without such selectors takes any.
pub fn cluster_name(class: &NodeClassKind, place: &Place) -> Option<String> {
    let any = || (!is_ec2(class)).then(|| "any".to_owned());
    place.cluster_name.clone().or_else(any)
}

/// The object in the words of the cloud at hand. Another than EC2 has classes of its own kind: they get the name, and the
/// pools the reference; fields and defaults of EC2 are left out, as no admission of that cloud would have written them.
pub fn adapted(mut object: Value, class: &NodeClassKind) -> Value {
    if is_ec2(class) {
        return object;
    }
    match object["kind"].as_str() {
        Some("EC2NodeClass") => json!({
            "apiVersion": format!("{}/{}", class.group, class.version),
            "kind": class.kind,
            "metadata": object["metadata"],
        }),
        Some("NodePool") => {
            let spec = &mut object["spec"]["template"]["spec"];
            refer(&mut spec["nodeClassRef"], class);
            keep_known(&mut spec["requirements"]);
            object
        }
        Some("NodeClaim") => {
            refer(&mut object["spec"]["nodeClassRef"], class);
            keep_known(&mut object["spec"]["requirements"]);
            object
        }
        _ => object,
    }
}

fn refer(reference: &mut Value, class: &NodeClassKind) {
    reference["group"] = class.group.into();
    reference["kind"] = class.kind.into();
}

fn keep_known(requirements: &mut Value) {
    if let Some(list) = requirements.as_array_mut() {
        list.retain(|one| !one["key"].as_str().unwrap_or_default().starts_with(EC2_GROUP));
    }
}

/// What a manifest may leave to its user has to be known in a cluster.
pub fn check(object: &Value, class: &NodeClassKind) -> Result<(), &'static str> {
    let is_open = is_ec2(class) && object.pointer("/spec/role").and_then(Value::as_str) == Some(ROLE_PLACEHOLDER);
    if is_open {
        return Err(
            "spec.instanceProfile: is missing, and karpenter-global-settings names no aws.defaultInstanceProfile",
        );
    }
    Ok(())
}
