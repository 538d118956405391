use api::convert;
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Pod as Written;
use model::Pod;
use model::pod::{DoNotDisrupt, PodOwner, PodPhase, PodVolume};
use serde_json::{Value, json};

use crate::{fields, object};

fn pod(value: Value) -> Pod {
    let parsed = convert::pod(&object::<Written>(value));
    assert_eq!(parsed.errors, []);
    parsed.value
}

fn pending(spec: Value) -> Value {
    json!({
        "metadata": { "name": "web-1", "namespace": "shop", "uid": "u-1", "labels": { "app": "web" } },
        "spec": spec,
        "status": {
            "phase": "Pending",
            "conditions": [{ "type": "PodScheduled", "status": "False", "reason": "Unschedulable" }],
        },
    })
}

#[test]
fn a_pending_pod_waits_for_a_node() {
    let pod = pod(pending(json!({ "containers": [] })));
    assert_eq!(pod.key.to_string(), "shop/web-1");
    assert_eq!(pod.phase, PodPhase::Pending);
    assert_eq!(pod.owner, PodOwner::Nobody);
    assert!(pod.is_provisionable());
    assert_eq!(&*pod.shape.scheduler_name, "default-scheduler");
    assert_eq!(pod.shape.termination_grace, SignedDuration::from_secs(30));
}

#[test]
fn gated_bound_nominated_and_owned_pods_do_not_wait_for_a_node() {
    let mut gated = pending(json!({ "containers": [] }));
    gated["status"]["conditions"][0]["reason"] = "SchedulingGated".into();
    assert!(pod(gated.clone()).scheduling_gated);
    assert!(!pod(gated).is_provisionable());

    let bound = pod(pending(json!({ "containers": [], "nodeName": "n" })));
    assert!(!bound.is_provisionable());

    let mut nominated = pending(json!({ "containers": [] }));
    nominated["status"]["nominatedNodeName"] = "n".into();
    assert!(!pod(nominated).is_provisionable());

    for (version, kind, owner) in [
        ("apps/v1", "DaemonSet", PodOwner::DaemonSet),
        ("v1", "Node", PodOwner::Node),
    ] {
        let mut owned = pending(json!({ "containers": [] }));
        owned["metadata"]["ownerReferences"] = json!([
            { "apiVersion": "example.com/v1", "kind": "Parent", "name": "a", "uid": "a" },
            { "apiVersion": version, "kind": kind, "name": "b", "uid": "b" },
        ]);
        let pod = pod(owned);
        assert_eq!(pod.owner, owner);
        assert!(!pod.is_provisionable());
    }
}

#[test]
fn rules_about_nodes_and_neighbours_are_read() {
    let pod = pod(pending(json!({
        "containers": [{ "name": "a", "ports": [
            { "containerPort": 80, "hostPort": 8080 },
            { "containerPort": 81 },
        ] }],
        "nodeSelector": { "beta.kubernetes.io/arch": "arm64" },
        "priorityClassName": "system-node-critical",
        "tolerations": [{ "key": "gpu", "operator": "Exists", "effect": "NoSchedule" }],
        "volumes": [
            { "name": "data", "persistentVolumeClaim": { "claimName": "data-0" } },
            { "name": "tmp", "ephemeral": { "volumeClaimTemplate": { "spec": { "storageClassName": "fast" } } } },
            { "name": "none", "emptyDir": {} },
        ],
        "affinity": {
            "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [
                { "matchExpressions": [{ "key": "zone", "operator": "In", "values": ["a", "b"] }] },
                { "matchExpressions": [{ "key": "cpu", "operator": "Gt", "values": ["4"] }] },
            ] } },
            "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [
                { "topologyKey": "kubernetes.io/hostname", "labelSelector": { "matchLabels": { "app": "web" } } },
                { "topologyKey": "zone", "labelSelector": {}, "namespaceSelector": {} },
            ] },
        },
        "topologySpreadConstraints": [
            { "topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway" },
        ],
    })));
    let shape = &pod.shape;
    assert_eq!(shape.node_selector[0].to_string(), "kubernetes.io/arch In [arm64]");
    assert!(shape.is_critical());
    assert_eq!(shape.host_ports.len(), 1);
    assert_eq!(
        (shape.host_ports[0].ip.as_str(), shape.host_ports[0].protocol.as_str()),
        ("0.0.0.0", "TCP")
    );
    assert_eq!(
        shape.volumes,
        [
            PodVolume::Claim("data-0".into()),
            PodVolume::Ephemeral {
                volume: "tmp".into(),
                storage_class: Some("fast".into())
            },
        ]
    );
    let terms: Vec<String> = shape
        .affinity
        .required_nodes
        .iter()
        .map(|term| term.requirements[0].to_string())
        .collect();
    assert_eq!(terms, ["zone In [a b]", "cpu Exists >=5"]);
    let [near, anywhere] = &shape.affinity.required_anti[..] else {
        panic!("two terms")
    };
    assert!(near.namespaces.contains("shop"));
    assert!(
        near.selector
            .as_ref()
            .is_some_and(|selector| selector.matches(&shape.labels))
    );
    assert!(anywhere.namespaces.is_empty() && anywhere.namespace_selector.is_some());
    assert!(!shape.spreads[0].required);
    assert_eq!(shape.spreads[0].selector, None);
    assert!(shape.spreads[0].honor_affinity && !shape.spreads[0].honor_taints);
}

#[test]
fn a_demand_that_cannot_be_read_keeps_the_pod_waiting_and_is_named() {
    let written = pending(json!({ "containers": [], "affinity": {
        "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [
            { "matchExpressions": [{ "key": "cpu", "operator": "Gt", "values": ["many"] }] },
        ] } },
    } }));
    let parsed = convert::pod(&object::<Written>(written));
    let path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]";
    assert_eq!(fields(&parsed), [format!("{path}.matchExpressions[0]")]);
    assert!(!parsed.value.is_provisionable());
}

#[test]
fn a_placed_daemon_pod_is_read_although_it_is_pinned_by_field() {
    let mut written = pending(json!({ "containers": [], "nodeName": "n", "affinity": {
        "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [
            { "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["n"] }] },
        ] } },
    } }));
    assert_eq!(convert::pod(&object::<Written>(written.clone())).errors.len(), 1);
    written["metadata"]["ownerReferences"] =
        json!([{ "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d" }]);
    assert!(pod(written).is_daemon());
}

/// The annotation of AP11.1.
#[test]
fn protection_is_always_or_for_a_positive_time() {
    let protected = |text: &str| {
        let mut written = pending(json!({ "containers": [] }));
        written["metadata"]["annotations"] = json!({ "karpenter.sh/do-not-disrupt": text });
        pod(written).do_not_disrupt
    };
    assert_eq!(protected("true"), Some(DoNotDisrupt::Always));
    assert_eq!(
        protected("1h30m"),
        Some(DoNotDisrupt::For(SignedDuration::from_mins(90)))
    );
    for text in ["false", "0s", "-1m", "soon"] {
        assert_eq!(protected(text), Some(DoNotDisrupt::Invalid(text.into())));
    }
    assert_eq!(pod(pending(json!({ "containers": [] }))).do_not_disrupt, None);
}

#[test]
fn an_unreadable_deletion_cost_is_reported_and_holds_nothing_up() {
    let mut written = pending(json!({ "containers": [] }));
    written["metadata"]["annotations"] = json!({ "controller.kubernetes.io/pod-deletion-cost": "cheap" });
    let parsed = convert::pod(&object::<Written>(written));
    assert_eq!(
        fields(&parsed),
        ["metadata.annotations[controller.kubernetes.io/pod-deletion-cost]"]
    );
    assert!(parsed.value.is_provisionable());
}
