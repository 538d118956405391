//! Amazon Linux 2023: a NodeConfig for nodeadm, which merges several and lets the last win.

use std::fmt::Write as _;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};

use super::{Bootstrap, UserDataError, kubelet_flags, mime};

pub(super) fn text(bootstrap: &Bootstrap) -> Result<String, UserDataError> {
    let mut parts = match bootstrap.custom_text() {
        None => Vec::new(),
        Some(custom) if mime::is_archive(custom) => mime::read(custom).map_err(UserDataError::Archive)?,
        Some(custom) if is_yaml_mapping(custom) => vec![mime::Part::new(mime::NODE_CONFIG, custom)],
        Some(script) => vec![mime::Part::new(mime::SHELL_SCRIPT, script)],
    };
    parts.push(mime::Part::new(mime::NODE_CONFIG, &node_config(bootstrap)?));
    Ok(mime::write(&parts))
}

fn is_yaml_mapping(text: &str) -> bool {
    serde_saphyr::from_str::<Value>(text).is_ok_and(|value| value.is_object() || value.is_null())
}

fn node_config(bootstrap: &Bootstrap) -> Result<String, UserDataError> {
    let cidr = bootstrap.service_cidr.as_ref().ok_or(UserDataError::NoServiceCidr)?;
    let mut cluster = json!({
        "apiServerEndpoint": bootstrap.cluster_endpoint,
        "cidr": cidr,
        "name": bootstrap.cluster_name,
    });
    if let Some(ca) = bootstrap.ca_bundle.as_ref().filter(|ca| !ca.is_empty()) {
        STANDARD.decode(ca).map_err(|_| UserDataError::CaBundle)?;
        cluster["certificateAuthority"] = json!(ca);
    }
    let storage = if bootstrap.uses_raid0() {
        json!({"strategy": "RAID0"})
    } else {
        json!({})
    };
    let mut kubelet = json!({"config": kubelet_config(bootstrap)?});
    if let Some(labels) = kubelet_flags::node_labels(&bootstrap.labels) {
        kubelet["flags"] = json!([labels]);
    }
    let config = json!({
        "apiVersion": "node.eks.aws/v1alpha1",
        "kind": "NodeConfig",
        "metadata": {},
        "spec": {
            "cluster": cluster,
            "containerd": {},
            "instance": {"localStorage": storage},
            "kubelet": kubelet,
        },
    });
    let mut text = "# Karpenter Generated NodeConfig\n".to_owned();
    write_mapping(&mut text, config.as_object().expect("it was made as one"), 0);
    Ok(text)
}

/// The class's settings under the kubelet's own names, and the taints to register with.
fn kubelet_config(bootstrap: &Bootstrap) -> Result<Value, UserDataError> {
    let mut config = serde_json::to_value(&bootstrap.kubelet).unwrap_or_else(|_| json!({}));
    let taint = |taint: &model::Taint| {
        let mut entry = json!({"effect": taint.effect.as_str(), "key": taint.key});
        if !taint.value.is_empty() {
            entry["value"] = json!(taint.value);
        }
        entry
    };
    config["registerWithTaints"] = bootstrap.taints.iter().map(taint).collect();
    if let Some(periods) = bootstrap.grace_periods()? {
        config["evictionSoftGracePeriod"] = json!(periods);
    }
    Ok(config)
}

/// Block style with sorted keys, lists flush with their key: what Go's YAML writer makes of the same value.
fn write_mapping(text: &mut String, mapping: &Map<String, Value>, depth: usize) {
    let mut entries: Vec<(&String, &Value)> = mapping.iter().collect();
    entries.sort_by_key(|(key, _)| *key);
    for (index, (key, value)) in entries.into_iter().enumerate() {
        // The first entry of a mapping inside a list follows the dash.
        if index > 0 || !text.ends_with("- ") {
            text.push_str(&"  ".repeat(depth));
        }
        text.push_str(&scalar_text(key));
        text.push(':');
        write_value(text, value, depth);
    }
}

fn write_value(text: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Object(mapping) if mapping.is_empty() => text.push_str(" {}\n"),
        Value::Array(items) if items.is_empty() => text.push_str(" []\n"),
        Value::Object(mapping) => {
            text.push('\n');
            write_mapping(text, mapping, depth + 1);
        }
        Value::Array(items) => {
            text.push('\n');
            for item in items {
                text.push_str(&"  ".repeat(depth));
                text.push_str("- ");
                match item {
                    Value::Object(mapping) if !mapping.is_empty() => write_mapping(text, mapping, depth + 1),
                    other => {
                        text.push_str(&plain(other));
                        text.push('\n');
                    }
                }
            }
        }
        other => {
            let _ = writeln!(text, " {}", plain(other));
        }
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => scalar_text(text),
        other => other.to_string(),
    }
}

/// A string without quotes where a reader would take it for the same string, with quotes otherwise.
fn scalar_text(text: &str) -> String {
    let reads_as_itself =
        serde_saphyr::from_str::<Value>(text).is_ok_and(|read| read == Value::String(text.to_owned()));
    // YAML 1.1 readers take these for booleans.
    let is_old_boolean = matches!(
        text.to_lowercase().as_str(),
        "y" | "n" | "yes" | "no" | "on" | "off" | "true" | "false" | "null" | "~"
    );
    if reads_as_itself && !is_old_boolean && !text.contains('\n') {
        text.to_owned()
    } else {
        Value::String(text.to_owned()).to_string()
    }
}
