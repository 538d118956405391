//! Services: addresses at which nothing listens.

use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::complaint;
use crate::meta::{self, set_default};
use crate::schema::FieldError;

pub(super) fn default(object: &mut Value) {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    set_default(spec, "type", "ClusterIP");
    set_default(spec, "sessionAffinity", "None");
    set_default(spec, "internalTrafficPolicy", "Cluster");
    if matches!(spec["type"].as_str(), Some("NodePort" | "LoadBalancer")) {
        set_default(spec, "externalTrafficPolicy", "Cluster");
    }
    for port in spec
        .get_mut("ports")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        let Some(port) = port.as_object_mut() else { continue };
        set_default(port, "protocol", "TCP");
        if let Some(number) = port.get("port").cloned() {
            if port.get("targetPort") == Some(&json!(0)) {
                port.remove("targetPort");
            }
            set_default(port, "targetPort", number);
        }
    }
}

/// Gives a new service an address. Addresses come in order; nothing listens there.
pub(super) fn prepare_create(cluster: &mut Cluster, object: &mut Value) {
    object["status"] = json!({ "loadBalancer": {} });
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    if spec.get("type") != Some(&"ExternalName".into()) {
        set_default(spec, "ipFamilies", json!(["IPv4"]));
        set_default(spec, "ipFamilyPolicy", "SingleStack");
    }
    let given = spec.get("clusterIP").and_then(Value::as_str).unwrap_or_default();
    if spec.get("type") == Some(&"ExternalName".into()) || !given.is_empty() {
        if !given.is_empty() {
            let given = given.to_owned();
            set_default(spec, "clusterIPs", json!([given]));
        }
        return;
    }
    // The revision only grows, so the services of a server get different addresses until it has gone round once.
    let number = cluster.store.revision() % (254 * 256) + 256;
    let address = format!("10.96.{}.{}", number / 256, number % 256);
    spec.insert("clusterIP".to_owned(), address.clone().into());
    spec.insert("clusterIPs".to_owned(), json!([address]));
}

/// A service keeps the address that it was given.
pub(super) fn prepare_update(new: &mut Value, old: &Value) {
    let Some(spec) = new.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        if let Some(address) = old["spec"].get(field) {
            set_default(spec, field, address.clone());
        }
    }
}

pub(super) fn validate(new: &Value, errors: &mut Vec<FieldError>) {
    let spec = &new["spec"];
    let without = spec["clusterIP"] == "None" || spec["type"] == "ExternalName";
    if meta::list(&spec["ports"]).is_empty() && !without {
        errors.push(complaint::required("spec.ports", ""));
    }
}
