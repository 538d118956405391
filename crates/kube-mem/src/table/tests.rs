//! Rows as a reader of `kubectl get` sees them.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{IncludeObject, TableOptions, accepts, render};
use crate::registry::builtin_types;

fn now() -> Timestamp {
    "2024-01-01T01:00:00Z".parse().expect("a timestamp")
}

fn options() -> TableOptions {
    TableOptions {
        include: IncludeObject::Metadata,
        headers: true,
        version: "v1",
        now: now(),
    }
}

#[track_caller]
fn cells(kind: &str, mut object: Value) -> Vec<Value> {
    let ty = builtin_types()
        .iter()
        .find(|ty| ty.kind == kind)
        .expect("the kind is built in");
    object["metadata"]["name"] = "x".into();
    object["metadata"]["creationTimestamp"] = "2024-01-01T00:55:00Z".into();
    let table = render(ty, &[&object], &json!({}), &options());
    let columns = table["columnDefinitions"].as_array().expect("there are columns").len();
    let cells = table["rows"][0]["cells"].as_array().cloned().expect("there are cells");
    assert_eq!(columns, cells.len(), "{kind}");
    cells
}

fn pod_state(spec: Value, status: Value) -> (Value, Value, Value) {
    let cells = cells("Pod", json!({"metadata": {}, "spec": spec, "status": status}));
    (cells[1].clone(), cells[2].clone(), cells[3].clone())
}

#[test]
fn every_built_in_kind_has_as_many_cells_as_columns() {
    for ty in builtin_types() {
        cells(&ty.kind, json!({"metadata": {}}));
    }
}

#[test]
fn a_pod_is_told_in_one_word() {
    let two = json!({"containers": [{"name": "a"}, {"name": "b"}]});
    let state = |a: Value, b: Value| json!({"phase": "Running", "containerStatuses": [a, b]});
    let running = json!({"ready": true, "restartCount": 0, "state": {"running": {}}});
    let rows = [
        (two.clone(), json!({"phase": "Pending"}), ("0/2", "Pending", "0")),
        (
            two.clone(),
            state(running.clone(), running.clone()),
            ("2/2", "Running", "0"),
        ),
        (
            two.clone(),
            state(
                json!({"restartCount": 2, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                "lastState": {"terminated": {"finishedAt": "2024-01-01T00:59:00Z"}}}),
                running.clone(),
            ),
            ("1/2", "CrashLoopBackOff", "2 (60s ago)"),
        ),
        (
            two.clone(),
            state(json!({"state": {"terminated": {"exitCode": 1}}}), running.clone()),
            ("1/2", "ExitCode:1", "0"),
        ),
        (
            json!({"containers": [{"name": "a"}], "initContainers": [{"name": "i"}, {"name": "j"}]}),
            json!({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"running": {}}}]}),
            ("0/1", "Init:0/2", "0"),
        ),
        (
            json!({"containers": [{"name": "a"}], "initContainers": [{"name": "i", "restartPolicy": "Always"}]}),
            json!({"phase": "Running", "containerStatuses": [running], "initContainerStatuses": [
                {"name": "i", "started": true, "ready": true, "restartCount": 1, "state": {"running": {}}}]}),
            ("2/2", "Running", "1"),
        ),
        (
            two,
            json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]}),
            ("0/2", "SchedulingGated", "0"),
        ),
    ];
    for (spec, status, (ready, word, restarts)) in rows {
        assert_eq!(
            pod_state(spec, status.clone()),
            (ready.into(), word.into(), restarts.into()),
            "{status}"
        );
    }
}

#[test]
fn a_node_shows_readiness_cordon_and_roles() {
    let node = json!({
        "metadata": {"labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "infra"}},
        "spec": {"unschedulable": true},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "nodeInfo": {"kubeletVersion": "v1.35.0"},
        },
    });
    let expected = [
        "x",
        "Ready,SchedulingDisabled",
        "infra,worker",
        "5m",
        "v1.35.0",
        "10.0.0.1",
        "<none>",
    ];
    assert_eq!(cells("Node", node)[..7], expected.map(Value::from));
}

#[test]
fn workloads_show_counts_and_selectors() {
    let template = json!({"spec": {"containers": [{"name": "m", "image": "i"}]}});
    let deployment = json!({
        "metadata": {},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "template": template},
        "status": {"readyReplicas": 1, "updatedReplicas": 2},
    });
    assert_eq!(
        cells("Deployment", deployment),
        [
            json!("x"),
            json!("1/3"),
            json!(2),
            json!(0),
            json!("5m"),
            json!("m"),
            json!("i"),
            json!("a=b"),
        ]
    );
    let budget = json!({"metadata": {}, "spec": {"minAvailable": "50%"}, "status": {"disruptionsAllowed": 1}});
    assert_eq!(
        cells("PodDisruptionBudget", budget)[1..4],
        [json!("50%"), json!("N/A"), json!(1)]
    );
}

#[test]
fn an_event_names_its_object_and_its_source() {
    let event = json!({
        "metadata": {}, "type": "Normal", "reason": "Launched", "message": " done ",
        "involvedObject": {"kind": "NodeClaim", "name": "c"},
        "eventTime": "2024-01-01T00:59:00.000000Z", "reportingComponent": "karpenter", "reportingInstance": "k-0",
    });
    let expected = [
        "60s",
        "Normal",
        "Launched",
        "nodeclaim/c",
        "",
        "karpenter, k-0",
        "done",
        "60s",
    ];
    assert_eq!(cells("Event", event)[..8], expected.map(Value::from));
}

#[test]
fn a_watch_repeats_no_headers_and_a_row_carries_what_was_asked_for() {
    let ty = &builtin_types()[0];
    let object = json!({"metadata": {"name": "x"}, "data": {"a": "b"}});
    let render = |include, headers| {
        render(
            ty,
            &[&object],
            &json!({}),
            &TableOptions {
                include,
                headers,
                ..options()
            },
        )
    };
    let first = render(IncludeObject::Metadata, true);
    assert_eq!(first["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(first["rows"][0]["object"].get("data"), None);
    assert_eq!(render(IncludeObject::None, false)["rows"][0]["object"], Value::Null);
    assert_eq!(render(IncludeObject::Object, false)["rows"][0]["object"], object);
    assert_eq!(render(IncludeObject::None, false)["columnDefinitions"], Value::Null);
}

#[test]
fn only_a_first_choice_makes_a_table() {
    let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
    assert_eq!(accepts(kubectl), Some("v1"));
    assert_eq!(accepts("application/json"), None);
}
