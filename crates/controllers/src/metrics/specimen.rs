//! A page on which every family has a series: what the reference in the book is generated from, and what the tests hold
//! against upstream's list.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use api::{
    v1::{NodeClaim, NodePool},
    v1beta1::CapacityBuffer,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::core::v1::{Node, Pod},
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
};
use model::{
    CapacityType, InstanceType, PodKey, Requirements, Resources, Vocabulary, budget::DisruptionReason, samples,
};
use provider::{
    NodeClassKind, NoticeKind,
    metered::{Call, Method, Observer as _, Outcome as CallOutcome},
};
use scheduler::EffectiveZone;
use serde_json::{Value, json};
use state::{Index, Served};
use tokio::time::Instant;

use super::{
    ClaimDisrupted, Decision, DisruptedWhy, Exposition, Metrics, Outcome, Scene, TerminationMode,
    conditions::Watched,
    kinds::{self, Object},
};

/// The class that the objects of the specimen refer to.
const CLASS: NodeClassKind = NodeClassKind {
    group: "karpenter.kwok.sh",
    version: "v1alpha1",
    kind: "KWOKNodeClass",
    plural: "kwoknodeclasses",
};

/// The page of a process to which everything has happened once.
pub fn specimen() -> String {
    let metrics = Arc::new(Metrics::default());
    touch_lives(&metrics);
    touch_decisions(&metrics);
    touch_runtime(&metrics);
    touch_conditions(&metrics);
    let index = cluster();
    let pod = PodKey::new("default", "pending");
    let view = index.view();
    metrics
        .pods
        .saw(&pod, view.snapshot.pods.get(&pod).map(AsRef::as_ref), now());
    let undecided = samples::pod("undecided");
    let undecided = model::Pod {
        unschedulable: true,
        ..undecided
    };
    metrics.pods.saw(&undecided.key, Some(&undecided), now());
    metrics.pods.decided(&pod, true, now());
    // Held until the page is written: a round that is under way has families of its own.
    let _round = metrics.rounds.begin("provisioner", "1".to_owned(), 1);
    let scene = Scene {
        view: &view,
        now: now(),
        classes: &[CLASS],
        only_classes: false,
    };
    Exposition::of(&metrics).text(Some(&scene), now())
}

fn now() -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_hours(1)
}

fn touch_lives(metrics: &Metrics) {
    metrics.built_from("0", "0");
    let claims = &metrics.claims;
    claims.created("provisioned", "general", false);
    claims.terminated("general", "spot", "a", SignedDuration::from_secs(1));
    claims.instance_terminated("general", SignedDuration::from_secs(1));
    let labels = ClaimDisrupted {
        reason: DisruptedWhy::Empty,
        nodepool: "general".to_owned(),
        capacity_type: "spot".to_owned(),
        consolidation_policy: "when_empty".to_owned(),
        termination_mode: TerminationMode::Graceful,
    };
    claims.disrupted(&labels, 1);
    claims.unhealthy("Ready", "general", "spot", "image");
    claims.node_created("general", "a");
    claims.node_terminated("general", "a", Duration::from_secs(1));
    claims.node_termination_took("general", SignedDuration::from_secs(1), now());
    claims.node_drained("general");
    claims.eviction(200);
    claims.pod_drained("Empty");
    metrics
        .interruption
        .received(NoticeKind::SpotInterrupted, SignedDuration::ZERO);
    metrics.interruption.acknowledged();
    metrics.observe(Call {
        provider: "sim",
        controller: "nodeclaim.lifecycle",
        method: Method::Launch,
        took: Duration::ZERO,
        outcome: CallOutcome::NotFound,
    });
}

fn touch_decisions(metrics: &Metrics) {
    let decision = Decision {
        decision: "delete",
        reason: "empty".to_owned(),
        consolidation_type: "empty",
    };
    let disruption = &metrics.disruption;
    disruption.eligible(DisruptionReason::Empty, 1);
    disruption.evaluated(DisruptionReason::Empty, "empty", Duration::ZERO);
    disruption.weighed("general", "balanced", true, Some(1.0));
    disruption.staying(BTreeMap::from([(("general".to_owned(), "NotCheaper"), 1)]));
    disruption.decided(&decision, ["general"]);
    disruption.failed_validation("empty", 1);
    disruption.queue_failures(&decision, 1);
    disruption.budget("general", DisruptionReason::Empty, 1, 1);
    metrics.cost_errors("general", 1);
    metrics.cluster.synced(true, 1, Duration::ZERO);
    metrics.rounds.unschedulable("provisioner", 0);
    metrics.rounds.dropped("provisioner", 0);
    metrics.rounds.ignored(0);
    drop(metrics.rounds.begin("provisioner", "0".to_owned(), 1));
    metrics
        .rounds
        .zones("disruption", &BTreeMap::from([(EffectiveZone::Flexible, 1)]));
}

fn touch_runtime(metrics: &Metrics) {
    let runtime = &metrics.runtime;
    let begun = Instant::now();
    runtime.announce("provisioner", 1);
    runtime.added("provisioner");
    runtime.retried("provisioner");
    runtime.started("provisioner", Duration::ZERO, begun);
    runtime.reconciled("provisioner", Outcome::TerminalError, begun, Duration::ZERO);
}

fn touch_conditions(metrics: &Metrics) {
    let condition = |status: &str| Condition {
        type_: "Ready".to_owned(),
        status: status.to_owned(),
        reason: "Ready".to_owned(),
        message: String::new(),
        last_transition_time: Time(now()),
        observed_generation: None,
    };
    let labels = BTreeMap::new();
    let object = Object {
        namespace: "",
        name: "a",
        labels: &labels,
        deleting: None,
        is_held: true,
        conditions: &[],
    };
    let classes = [CLASS];
    let kinds: [Watched; 5] = [
        kinds::claims_of(&classes),
        kinds::pools_of(),
        kinds::nodes_of(&classes),
        kinds::buffers_of(),
        kinds::class_of(&CLASS),
    ];
    for kind in &kinds {
        metrics
            .conditions
            .transitioned(kind, &object, &condition("False"), &condition("True"));
        metrics.conditions.terminated(kind, &object, 1.0);
    }
}

/// One object of every kind, each with a condition and on its way out.
fn cluster() -> Index {
    let served = Served::new([(CLASS.group.to_owned(), CLASS.kind.to_owned())]);
    let index = Index::new(Arc::new(Vocabulary::core()), served);
    index.apply::<NodePool>(object(
        "karpenter.sh/v1",
        "NodePool",
        "general",
        json!({
            "limits": {"cpu": "10"}, "template": {"spec": {"requirements": [], "nodeClassRef": class()}},
        }),
    ));
    index.apply::<NodeClaim>(object(
        "karpenter.sh/v1",
        "NodeClaim",
        "a",
        json!({
            "requirements": [], "nodeClassRef": class(),
        }),
    ));
    index.apply::<CapacityBuffer>(object("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer", "a", json!({})));
    index.apply::<Node>(object("v1", "Node", "a", json!({"providerID": "kwok://a"})));
    for (name, node) in [("daemon", Value::from("a")), ("pending", Value::Null)] {
        let mut pod: Value = object(
            "v1",
            "Pod",
            name,
            json!({"nodeName": node, "containers": [{
                "name": "main", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
            }]}),
        );
        pod["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": true}]);
        if node.is_null() {
            pod["metadata"]["ownerReferences"] = json!([]);
            pod["status"]["conditions"] =
                json!([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]);
            pod["metadata"]["deletionTimestamp"] = Value::Null;
        }
        let pod: Pod = serde_json::from_value(pod).expect("the literal is a pod");
        index.apply(pod);
    }
    let offerings = vec![samples::offering(CapacityType::Spot, "a", 1.0)];
    let (requirements, capacity) = (Requirements::default(), Resources::default());
    let shape = InstanceType::new("m".into(), requirements, offerings, capacity, Default::default());
    index.put_catalog(&"general".into(), Some([Arc::new(shape)].into()));
    index
}

fn class() -> Value {
    json!({"group": CLASS.group, "kind": CLASS.kind, "name": "default"})
}

fn object<K: serde::de::DeserializeOwned>(api_version: &str, kind: &str, name: &str, spec: Value) -> K {
    let labels = json!({
        "karpenter.sh/nodepool": "general", "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true",
        "karpenter.sh/capacity-type": "spot", "topology.kubernetes.io/zone": "a", "node.kubernetes.io/instance-type": "m",
    });
    let resources = json!({"cpu": "4"});
    let namespace = matches!(kind, "Pod" | "CapacityBuffer").then_some("default");
    let object = json!({
        "apiVersion": api_version, "kind": kind, "spec": spec,
        "metadata": {
            "name": name, "namespace": namespace, "uid": name, "resourceVersion": "1", "labels": labels,
            "creationTimestamp": "1970-01-01T00:00:00Z", "deletionTimestamp": "1970-01-01T00:10:00Z",
        },
        "status": {
            "providerID": "kwok://a", "capacity": resources, "allocatable": resources,
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "Ready", "message": "",
                "lastTransitionTime": "1970-01-01T00:00:00Z",
            }],
        },
    });
    serde_json::from_value(object).expect("the literal is an object of its kind")
}
