//! NodeConfigs, as nodeadm of Amazon Linux 2023 reads them: of several the later ones win.

use serde_json::{Map, Value};

use super::{Bootstrap, Taint, UserDataError, kubelet, mime::Part};

const KIND: &str = "application/node.eks.aws";

pub fn bootstrap(parts: &[Part]) -> Result<Bootstrap, UserDataError> {
    let mut merged = Value::Null;
    for part in parts {
        let bare = part.kind.is_empty() && part.body.contains("node.eks.aws/");
        if part.kind == KIND || bare {
            let bad = |error: String| UserDataError::NodeConfig(error);
            let config: Value = serde_saphyr::from_str(&part.body).map_err(|error| bad(error.to_string()))?;
            if config["kind"] != "NodeConfig" {
                return Err(bad(format!("its kind is {}", config["kind"])));
            }
            merge(&mut merged, config);
        }
    }
    if merged.is_null() {
        return Err(UserDataError::NoNodeConfig);
    }
    let spec = &merged["spec"];
    let cluster = |name: &'static str, shown: &'static str| match spec["cluster"][name].as_str() {
        Some(text) if !text.is_empty() => Ok(text.to_owned()),
        _ => Err(UserDataError::Missing(shown)),
    };
    let mut found = Bootstrap {
        cluster: cluster("name", "cluster")?,
        endpoint: cluster("apiServerEndpoint", "API server")?,
        ..Bootstrap::default()
    };
    cluster("certificateAuthority", "certificate authority")?;
    cluster("cidr", "service CIDR")?;
    let config = &spec["kubelet"]["config"];
    found.max_pods = config["maxPods"].as_u64().and_then(|pods| u32::try_from(pods).ok());
    found.kube_reserved = texts(&config["kubeReserved"]);
    found.system_reserved = texts(&config["systemReserved"]);
    for taint in config["registerWithTaints"].as_array().into_iter().flatten() {
        let text = |name: &str| taint[name].as_str().unwrap_or_default().to_owned();
        found.taints.push(kubelet::checked(Taint {
            key: text("key"),
            value: text("value"),
            effect: text("effect"),
        })?);
    }
    for flag in spec["kubelet"]["flags"].as_array().into_iter().flatten() {
        kubelet::apply(flag.as_str().unwrap_or_default(), &mut found)?;
    }
    Ok(found)
}

fn texts(value: &Value) -> std::collections::BTreeMap<String, String> {
    let entries = value.as_object().into_iter().flatten();
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    entries.map(|(key, value)| (key.clone(), text(value))).collect()
}

/// Maps are merged, everything else is replaced.
fn merge(old: &mut Value, new: Value) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => merge_maps(old, new),
        (old, new) => *old = new,
    }
}

fn merge_maps(old: &mut Map<String, Value>, new: Map<String, Value>) {
    for (key, value) in new {
        merge(old.entry(key).or_insert(Value::Null), value);
    }
}
