//! Nodes, services, events and the small kinds.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::show::{age, few, flag, int, is_deleting, labels, list, name, selector_or_none, since, text, text_or};

pub(super) fn name_and_age(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), age(object, now)]
}

pub(super) fn node(object: &Value, now: Timestamp) -> Vec<Value> {
    let status = &object["status"];
    let ready = list(&status["conditions"])
        .iter()
        .find(|condition| condition["type"] == "Ready");
    let mut state = match ready {
        Some(ready) if ready["status"] == "True" => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if flag(&object["spec"]["unschedulable"]) {
        state += ",SchedulingDisabled";
    }
    let address = |kind: &str| -> Value {
        let found = list(&status["addresses"])
            .iter()
            .find(|address| address["type"] == kind);
        found.map_or_else(|| "<none>".into(), |address| address["address"].clone())
    };
    let info = &status["nodeInfo"];
    vec![
        name(object),
        state.into(),
        roles(object).into(),
        age(object, now),
        text(&info["kubeletVersion"]).into(),
        address("InternalIP"),
        address("ExternalIP"),
        text_or(&info["osImage"], "<unknown>").into(),
        text_or(&info["kernelVersion"], "<unknown>").into(),
        text_or(&info["containerRuntimeVersion"], "<unknown>").into(),
    ]
}

fn roles(node: &Value) -> String {
    let mut roles: Vec<&str> = Vec::new();
    for (label, value) in node["metadata"]["labels"].as_object().into_iter().flat_map(Map::iter) {
        match label.strip_prefix("node-role.kubernetes.io/") {
            Some(role) if !role.is_empty() => roles.push(role),
            _ if label == "kubernetes.io/role" && *value != "" => roles.push(text(value)),
            _ => {}
        }
    }
    roles.sort_unstable();
    roles.dedup();
    if roles.is_empty() {
        "<none>".into()
    } else {
        roles.join(",")
    }
}

pub(super) fn namespace(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), text(&object["status"]["phase"]).into(), age(object, now)]
}

fn size(map: &Value) -> usize {
    map.as_object().map_or(0, Map::len)
}

pub(super) fn secret(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(object),
        text(&object["type"]).into(),
        size(&object["data"]).into(),
        age(object, now),
    ]
}

pub(super) fn config_map(object: &Value, now: Timestamp) -> Vec<Value> {
    let count = size(&object["data"]) + size(&object["binaryData"]);
    vec![name(object), count.into(), age(object, now)]
}

pub(super) fn resource_quota(object: &Value, now: Timestamp) -> Vec<Value> {
    let status = &object["status"];
    let mut columns = [Vec::new(), Vec::new()];
    for (resource, hard) in status["hard"].as_object().into_iter().flat_map(Map::iter) {
        let used = text_or(&status["used"][resource], "0");
        let column = usize::from(resource.starts_with("limits."));
        columns[column].push(format!("{resource}: {used}/{}", text(hard)));
    }
    let [requests, limits] = columns.map(|column| column.join(", "));
    vec![name(object), requests.into(), limits.into(), age(object, now)]
}

pub(super) fn service(object: &Value, now: Timestamp) -> Vec<Value> {
    let spec = &object["spec"];
    let ports: Vec<String> = list(&spec["ports"])
        .iter()
        .map(|port| {
            let protocol = text_or(&port["protocol"], "TCP");
            match int(&port["nodePort"]) {
                0 => format!("{}/{protocol}", int(&port["port"])),
                node_port => format!("{}:{node_port}/{protocol}", int(&port["port"])),
            }
        })
        .collect();
    let ports = if ports.is_empty() {
        "<none>".to_owned()
    } else {
        ports.join(",")
    };
    vec![
        name(object),
        text(&spec["type"]).into(),
        text_or(&spec["clusterIPs"][0], "<none>").into(),
        external_address(object).into(),
        ports.into(),
        age(object, now),
        labels(&spec["selector"]).into(),
    ]
}

fn external_address(service: &Value) -> String {
    let spec = &service["spec"];
    let external = list(&spec["externalIPs"]).iter().map(|ip| text(ip).to_owned());
    let joined = |addresses: Vec<String>, none: &str| {
        if addresses.is_empty() {
            none.to_owned()
        } else {
            addresses.join(",")
        }
    };
    match text(&spec["type"]) {
        "ClusterIP" | "NodePort" => joined(external.collect(), "<none>"),
        "LoadBalancer" => joined(
            load_balancer(&service["status"]["loadBalancer"])
                .into_iter()
                .chain(external)
                .collect(),
            "<pending>",
        ),
        "ExternalName" => text(&spec["externalName"]).to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

fn load_balancer(status: &Value) -> Vec<String> {
    let address = |ingress: &Value| text_or(&ingress["ip"], text(&ingress["hostname"])).to_owned();
    let mut addresses: Vec<String> = list(&status["ingress"])
        .iter()
        .map(address)
        .filter(|a| !a.is_empty())
        .collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

pub(super) fn endpoints(object: &Value, now: Timestamp) -> Vec<Value> {
    let subsets = list(&object["subsets"]);
    let mut found: Vec<String> = Vec::new();
    for subset in subsets {
        let addresses = list(&subset["addresses"])
            .iter()
            .map(|address| text(&address["ip"]).to_owned());
        let ports = list(&subset["ports"]);
        if ports.is_empty() {
            found.extend(addresses.clone());
        }
        for port in ports {
            let port = int(&port["port"]);
            found.extend(addresses.clone().map(|ip| {
                if ip.contains(':') {
                    format!("[{ip}]:{port}")
                } else {
                    format!("{ip}:{port}")
                }
            }));
        }
    }
    let shown = if subsets.is_empty() {
        "<none>".to_owned()
    } else {
        few(&found, 3)
    };
    vec![name(object), shown.into(), age(object, now)]
}

pub(super) fn endpoint_slice(object: &Value, now: Timestamp) -> Vec<Value> {
    let or_unset = |words: Vec<String>| {
        if words.is_empty() {
            "<unset>".to_owned()
        } else {
            few(&words, 3)
        }
    };
    let port = |port: &Value| match port["port"].as_i64() {
        Some(number) => number.to_string(),
        None => text_or(&port["name"], "*").to_owned(),
    };
    let ports = list(&object["ports"]).iter().map(port).collect();
    let addresses = list(&object["endpoints"])
        .iter()
        .flat_map(|endpoint| list(&endpoint["addresses"]))
        .map(|address| text(address).to_owned())
        .collect();
    vec![
        name(object),
        text(&object["addressType"]).into(),
        or_unset(ports).into(),
        or_unset(addresses).into(),
        age(object, now),
    ]
}

pub(super) fn event(object: &Value, now: Timestamp) -> Vec<Value> {
    // Both groups serve the same events under different names for the same fields.
    let either = |old: &str, new: &str| -> Value {
        let old = &object[old];
        if old.is_null() {
            object[new].clone()
        } else {
            old.clone()
        }
    };
    let (first, last) = (
        either("firstTimestamp", "deprecatedFirstTimestamp"),
        either("lastTimestamp", "deprecatedLastTimestamp"),
    );
    let first_seen = if first.is_string() {
        since(&first, now)
    } else {
        since(&object["eventTime"], now)
    };
    let series = &object["series"];
    let last_seen = match () {
        () if series.is_object() => since(&series["lastObservedTime"], now),
        () if last.is_string() => since(&last, now),
        () => first_seen.clone(),
    };
    let count = match (series["count"].as_i64(), int(&either("count", "deprecatedCount"))) {
        (Some(count), _) => count,
        (None, count) => count.max(1),
    };
    let involved = either("involvedObject", "regarding");
    let kind = text(&involved["kind"]).to_lowercase();
    let target = match text(&involved["name"]) {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    let source = either("source", "deprecatedSource");
    let controller = text(&either("reportingComponent", "reportingController")).to_owned();
    let component = text_or(&source["component"], &controller).to_owned();
    let source = match text_or(&source["host"], text(&object["reportingInstance"])) {
        "" => component,
        instance => format!("{component}, {instance}"),
    };
    vec![
        last_seen.into(),
        text(&object["type"]).into(),
        text(&object["reason"]).into(),
        target.into(),
        text(&involved["fieldPath"]).into(),
        source.into(),
        text(&either("message", "note")).trim().into(),
        first_seen.into(),
        count.into(),
        name(object),
    ]
}

pub(super) fn ingress(object: &Value, now: Timestamp) -> Vec<Value> {
    let spec = &object["spec"];
    let rules = list(&spec["rules"]);
    let hosts: Vec<String> = rules
        .iter()
        .map(|rule| text(&rule["host"]).to_owned())
        .filter(|host| !host.is_empty())
        .collect();
    vec![
        name(object),
        text_or(&spec["ingressClassName"], "<none>").into(),
        if hosts.is_empty() {
            "*".into()
        } else {
            few(&hosts, 3).into()
        },
        load_balancer(&object["status"]["loadBalancer"]).join(",").into(),
        if list(&spec["tls"]).is_empty() { "80" } else { "80, 443" }.into(),
        age(object, now),
    ]
}

pub(super) fn network_policy(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(object),
        selector_or_none(&object["spec"]["podSelector"]).into(),
        age(object, now),
    ]
}

pub(super) fn role_binding(object: &Value, now: Timestamp) -> Vec<Value> {
    let role = &object["roleRef"];
    let subjects = |kind: &str| -> Value {
        let names: Vec<String> = list(&object["subjects"])
            .iter()
            .filter(|subject| subject["kind"] == kind)
            .map(|subject| match text(&subject["namespace"]) {
                namespace if kind == "ServiceAccount" && !namespace.is_empty() => {
                    format!("{namespace}/{}", text(&subject["name"]))
                }
                _ => text(&subject["name"]).to_owned(),
            })
            .collect();
        names.join(", ").into()
    };
    vec![
        name(object),
        format!("{}/{}", text(&role["kind"]), text(&role["name"])).into(),
        age(object, now),
        subjects("User"),
        subjects("Group"),
        subjects("ServiceAccount"),
    ]
}

pub(super) fn lease(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(object),
        text(&object["spec"]["holderIdentity"]).into(),
        age(object, now),
    ]
}

pub(super) fn priority_class(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(object),
        int(&object["value"]).into(),
        flag(&object["globalDefault"]).into(),
        age(object, now),
        text(&object["preemptionPolicy"]).into(),
    ]
}

pub(super) fn runtime_class(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), text(&object["handler"]).into(), age(object, now)]
}

pub(super) fn resource_claim(object: &Value, now: Timestamp) -> Vec<Value> {
    let status = &object["status"];
    let is_allocated = status["allocation"].is_object();
    let states = [
        ("deleted", is_deleting(object)),
        ("pending", !is_allocated && !is_deleting(object)),
        ("allocated", is_allocated),
        ("reserved", is_allocated && !list(&status["reservedFor"]).is_empty()),
    ];
    let states: Vec<&str> = states
        .into_iter()
        .filter(|(_, holds)| *holds)
        .map(|(state, _)| state)
        .collect();
    vec![name(object), states.join(",").into(), age(object, now)]
}

pub(super) fn resource_slice(object: &Value, now: Timestamp) -> Vec<Value> {
    let spec = &object["spec"];
    vec![
        name(object),
        text(&spec["nodeName"]).into(),
        text(&spec["driver"]).into(),
        text(&spec["pool"]["name"]).into(),
        age(object, now),
    ]
}
