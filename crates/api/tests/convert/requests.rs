//! SC15.7: what pods ask for.

use api::convert;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use crate::object;

fn app(cpu: &str, memory: &str) -> Value {
    json!({ "name": "app", "resources": { "requests": { "cpu": cpu, "memory": memory } } })
}

fn init(cpu: &str, memory: &str) -> Value {
    json!({ "name": "init", "resources": { "requests": { "cpu": cpu, "memory": memory } } })
}

fn sidecar(cpu: &str, memory: &str) -> Value {
    let mut container = init(cpu, memory);
    container["restartPolicy"] = "Always".into();
    container
}

#[track_caller]
fn check(spec: Value, expected: (&str, &str)) {
    check_with_status(spec, json!({}), expected);
}

#[track_caller]
fn check_with_status(spec: Value, status: Value, expected: (&str, &str)) {
    let pod: Pod = object(json!({ "metadata": { "name": "p" }, "spec": spec, "status": status }));
    let parsed = convert::pod(&pod);
    assert_eq!(parsed.errors, [], "{spec}");
    let requests = &parsed.value.shape.requests;
    let found = (requests.get("cpu").to_string(), requests.get("memory").to_string());
    assert_eq!((found.0.as_str(), found.1.as_str()), expected, "{spec}");
    assert_eq!(requests.get("pods").to_string(), "1");
}

fn pod(containers: Value, inits: Value) -> Value {
    json!({ "containers": containers, "initContainers": inits })
}

/// SC15.7.1, SC15.7.2, SC15.7.3
#[test]
fn sidecars_add_to_the_sum_and_to_what_follows_them() {
    check(
        pod(json!([app("2", "1Gi")]), json!([sidecar("1", "2Gi")])),
        ("3", "3Gi"),
    );
    let mut spec = pod(json!([app("2", "1Gi")]), json!([init("4", "2Gi"), sidecar("3", "3Gi")]));
    spec["overhead"] = json!({ "cpu": "5", "memory": "1Gi" });
    check(spec, ("10", "5Gi"));
    check(
        pod(
            json!([app("2", "1Gi")]),
            json!([sidecar("4", "2Gi"), init("10", "2Gi")]),
        ),
        ("14", "4Gi"),
    );
    check(
        pod(json!([app("2", "2Gi")]), json!([sidecar("4", "2Gi"), init("1", "1Gi")])),
        ("6", "4Gi"),
    );
}

/// SC15.7.4, SC15.7.5, SC15.7.6
#[test]
fn the_largest_moment_of_initialisation_counts_if_it_is_more() {
    let sidecars = |last: Value| {
        let mut inits: Vec<Value> = ["2", "1", "3", "5"].iter().map(|cpu| sidecar(cpu, "1Gi")).collect();
        inits.push(last);
        inits
    };
    check(
        pod(json!([app("3", "1Gi")]), json!(sidecars(init("20", "1Gi")))),
        ("31", "5Gi"),
    );
    check(
        pod(json!([app("3", "1Gi")]), json!(sidecars(init("1", "1Gi")))),
        ("14", "5Gi"),
    );
    check(
        pod(
            json!([app("3", "1Gi")]),
            json!([
                init("25", "1Gi"),
                sidecar("1", "1Gi"),
                init("2", "1Gi"),
                sidecar("1", "1Gi")
            ]),
        ),
        ("25", "3Gi"),
    );
    check(
        pod(
            json!([app("2", "1Gi")]),
            json!([init("25", "1Gi"), sidecar("3", "3Gi"), sidecar("4", "5Gi")]),
        ),
        ("25", "9Gi"),
    );
    check(
        pod(
            json!([app("2", "1Gi")]),
            json!([init("1", "25Gi"), sidecar("3", "3Gi"), sidecar("4", "5Gi")]),
        ),
        ("9", "25Gi"),
    );
}

/// SC15.7.7
#[test]
fn requests_of_the_pod_override_the_sum() {
    let mut spec = pod(json!([app("1", "1Gi"), app("4", "4Gi")]), json!([sidecar("1", "1Gi")]));
    spec["resources"] = json!({ "requests": { "cpu": "2", "memory": "2Gi" } });
    check(spec.clone(), ("2", "2Gi"));
    spec["resources"] = json!({ "limits": { "cpu": "10", "memory": "10Gi" } });
    check(spec, ("10", "10Gi"));
}

/// SC15.7.8
#[test]
fn a_pod_that_is_resized_weighs_the_larger_of_what_it_asks_for_and_holds() {
    let status = |cpu: &str| {
        json!({ "containerStatuses": [{
            "name": "app", "image": "", "imageID": "", "ready": true, "restartCount": 0,
            "allocatedResources": { "cpu": cpu, "memory": "1Gi" },
        }] })
    };
    let spec = json!({ "containers": [app("2", "1Gi")] });
    check_with_status(spec.clone(), status("4"), ("4", "1Gi"));
    check_with_status(spec.clone(), status("1"), ("2", "1Gi"));
    check(spec, ("2", "1Gi"));
}
