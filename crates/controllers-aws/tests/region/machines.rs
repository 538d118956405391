//! Claims and their instances, from the pending pod to the end.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use api::{
    aws::EC2NodeClass,
    v1::{NodeClaim, NodePool},
};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use provider_aws::{
    options::Options,
    ports::{EventInfo, InstanceInfo, InstanceStatusInfo, ReservationInfo, StatusDetail},
    tags,
    testing::samples,
};
use serde_json::json;

use crate::cluster::{Cluster, class, cluster, cluster_with, condition, minutes};

async fn claims(cluster: &Cluster) -> Vec<NodeClaim> {
    let api: Api<NodeClaim> = Api::all(cluster.client.clone());
    api.list(&Default::default()).await.expect("claims are listed").items
}

fn pool(name: &str, class: &str, weight: i32) -> serde_json::Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name},
        "spec": {"weight": weight, "template": {"spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": class},
            "requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}],
        }}},
    })
}

/// A pod that fits nowhere, and the claims that there are once one of them has an instance.
async fn pending_pod(cluster: &Cluster) -> Vec<NodeClaim> {
    let pods: Api<Pod> = Api::default_namespaced(cluster.client.clone());
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "web"},
        "spec": {"containers": [{"name": "web", "image": "web", "resources": {"requests": {"cpu": "1"}}}]},
    }))
    .expect("the literal is a pod");
    pods.create(&PostParams::default(), &pod).await.expect("it is admitted");
    let status = json!({"status": {"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"},
    ]}});
    let patched = pods
        .patch_status("web", &PatchParams::default(), &Patch::Merge(status))
        .await;
    patched.expect("it is admitted");
    cluster
        .until("an instance is launched", minutes(3), async || {
            let has_instance =
                |claim: &NodeClaim| claim.status.as_ref().is_some_and(|status| status.provider_id.is_some());
            claims(cluster).await.iter().any(has_instance)
        })
        .await;
    claims(cluster).await
}

/// AW24.10.1: the cheapest suitable type is bought.
#[tokio::test(start_paused = true)]
async fn a_pending_pod_gets_an_instance() {
    let cluster = cluster().await;
    cluster.ready_class().await;
    cluster.create::<NodePool>(pool("general", "default", 1)).await;
    let claims = pending_pod(&cluster).await;
    assert_eq!(claims.len(), 1);
    let info = cluster.instance_of(&claims[0]);
    assert_eq!(info.instance_type, "t3.large", "the cheapest that holds the pod");
    assert_eq!(info.tags[tags::NODE_POOL], "general");
    assert_eq!(claims[0].labels()["karpenter.sh/nodepool"], "general");
}

/// AW24.11.21
#[tokio::test(start_paused = true)]
async fn a_pool_whose_class_selects_nothing_leaves_its_pods_to_others() {
    let cluster = cluster().await;
    cluster.ready_class().await;
    let mut empty = class();
    empty["metadata"]["name"] = json!("empty");
    empty["spec"]["subnetSelectorTerms"] = json!([{"tags": {"team": "nobody"}}]);
    cluster.create::<EC2NodeClass>(empty).await;
    cluster.create::<NodePool>(pool("preferred", "empty", 100)).await;
    cluster.create::<NodePool>(pool("other", "default", 1)).await;
    let claims = pending_pod(&cluster).await;
    assert_eq!(claims.len(), 1);
    assert_eq!(claims[0].labels()["karpenter.sh/nodepool"], "other");
}

/// AW24.14.6
#[tokio::test(start_paused = true)]
async fn a_node_that_joined_names_its_instance() {
    let cluster = cluster().await;
    cluster.ready_class().await;
    let (claim, info) = cluster.launched("one", "m5.large", "on-demand").await;
    cluster.aws.change_instance(&info.id, |instance| {
        instance.tags.remove(tags::CLUSTER_NAME);
    });
    cluster.joins(&claim, "7Gi").await;
    let tagged = async || {
        cluster
            .get::<NodeClaim>("one")
            .await
            .annotations()
            .contains_key("karpenter.k8s.aws/tagged")
    };
    cluster.until("the claim is marked", minutes(1), tagged).await;
    let instance = cluster.aws.instance(&info.id).unwrap();
    assert_eq!(instance.tags[tags::NAME], "node-one");
    assert_eq!(instance.tags[tags::NODE_CLAIM], "one");
    assert_eq!(instance.tags[tags::CLUSTER_NAME], "demo");
    assert_eq!(cluster.aws.calls("CreateTags"), 1);
}

/// AW24.9.17
#[tokio::test(start_paused = true)]
async fn what_a_node_reports_counts_for_the_next_of_its_type() {
    let cluster = cluster().await;
    let class = cluster.ready_class().await;
    let memory = || {
        let types = cluster
            .services
            .types(&class, None, &BTreeMap::new())
            .expect("types are known");
        let shape = types.iter().find(|shape| shape.name == "m5.large").unwrap();
        shape.capacity.get("memory")
    };
    let computed = memory();
    let (claim, _) = cluster.launched("one", "m5.large", "on-demand").await;
    cluster.joins(&claim, "7Gi").await;
    cluster
        .until("the report counts", minutes(1), async || {
            memory() == model::Quantity::from_bytes(7 << 30)
        })
        .await;
    assert!(memory() < computed);
}

/// AW24.14.5: an instance that no claim accounts for goes, unless it is new.
#[tokio::test(start_paused = true)]
async fn an_instance_that_nobody_claims_is_ended() {
    let cluster = cluster().await;
    cluster.ready_class().await;
    let (_, owned) = cluster.launched("one", "m5.large", "on-demand").await;
    let orphan = |id: &str, cluster_name: &str| InstanceInfo {
        id: id.to_owned(),
        state: "running".to_owned(),
        zone: "us-west-2a".to_owned(),
        launched: Some(cluster.aws.now()),
        tags: [
            (tags::NODE_POOL.to_owned(), "general".to_owned()),
            (tags::NODE_CLASS.to_owned(), "default".to_owned()),
            (tags::CLUSTER_NAME.to_owned(), cluster_name.to_owned()),
        ]
        .into(),
        ..InstanceInfo::default()
    };
    for number in 0..20 {
        cluster.aws.add_instance(orphan(&format!("i-orphan-{number}"), "demo"));
    }
    cluster.aws.add_instance(orphan("i-foreign", "other"));
    let left = || {
        (0..20)
            .filter(|number| {
                let found = cluster.aws.instance(&format!("i-orphan-{number}"));
                found.is_some_and(|instance| instance.state == "running")
            })
            .count()
    };
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(left(), 20, "their claims may yet be written");
    cluster
        .until("orphans are ended", minutes(5), async || left() == 0)
        .await;
    assert_eq!(cluster.aws.instance(&owned.id).unwrap().state, "running");
    assert_eq!(cluster.aws.instance("i-foreign").unwrap().state, "running");
}

fn in_reservation(instance: &mut InstanceInfo) {
    instance.reservation = Some("cr-1".to_owned());
    instance.reservation_preference = "capacity-reservations-only".to_owned();
}

async fn reserved(cluster: &Cluster, kind: &str, ends_in: Option<i64>) -> (NodeClaim, InstanceInfo) {
    let ends = ends_in.map(|minutes| cluster.aws.now() + jiff::SignedDuration::from_mins(minutes));
    let reservation = ReservationInfo {
        id: "cr-1".to_owned(),
        zone: "us-west-2a".to_owned(),
        instance_type: "m5.large".to_owned(),
        owner: "123456789012".to_owned(),
        match_criteria: "targeted".to_owned(),
        reservation_type: kind.to_owned(),
        interruptible: false,
        ends,
        available: 3,
    };
    cluster.aws.add_reservation(reservation, &[]);
    cluster.ready_class().await;
    let terms = json!({"spec": {"capacityReservationSelectorTerms": [{"id": "cr-1"}]}});
    cluster.patch::<EC2NodeClass>("default", terms).await;
    cluster
        .until("the reservation is found", minutes(2), async || {
            let class: EC2NodeClass = cluster.get("default").await;
            class
                .status
                .is_some_and(|status| status.capacity_reservations.is_some())
                && condition(&cluster.get::<EC2NodeClass>("default").await, "Ready") == "True"
        })
        .await;
    let (claim, info) = cluster.launched("one", "m5.large", "reserved").await;
    cluster.aws.change_instance(&info.id, in_reservation);
    (claim, info)
}

/// AW24.11.17, AW24.14.7
#[tokio::test(start_paused = true)]
async fn an_instance_that_fell_out_of_its_reservation_is_on_demand() {
    let cluster = cluster().await;
    let (claim, info) = reserved(&cluster, "default", None).await;
    assert_eq!(claim.labels()["karpenter.k8s.aws/capacity-reservation-id"], "cr-1");
    let node = cluster.joins(&claim, "7Gi").await.name_any();
    tokio::time::sleep(minutes(3)).await;
    assert_eq!(
        cluster.get::<NodeClaim>("one").await.labels()["karpenter.sh/capacity-type"],
        "reserved"
    );
    cluster
        .aws
        .change_instance(&info.id, |instance| instance.reservation = None);
    let is_on_demand = |labels: &std::collections::BTreeMap<String, String>| {
        labels["karpenter.sh/capacity-type"] == "on-demand"
            && !labels.keys().any(|key| key.contains("capacity-reservation"))
    };
    cluster
        .until("claim and node say so", minutes(3), async || {
            is_on_demand(cluster.get::<NodeClaim>("one").await.labels())
                && is_on_demand(cluster.get::<Node>(&node).await.labels())
        })
        .await;
}

/// AW24.14.8
#[tokio::test(start_paused = true)]
async fn claims_leave_a_capacity_block_before_its_end() {
    let cluster = cluster().await;
    reserved(&cluster, "capacity-block", Some(60)).await;
    tokio::time::sleep(minutes(10)).await;
    let is_going = async || {
        let claim = cluster.find::<NodeClaim>("one").await;
        claim.is_none_or(|claim| claim.metadata.deletion_timestamp.is_some())
    };
    assert!(!is_going().await);
    cluster.until("the claim goes", minutes(15), is_going).await;
}

fn failing(id: &str, since: jiff::Timestamp) -> InstanceStatusInfo {
    InstanceStatusInfo {
        id: id.to_owned(),
        system: vec![StatusDetail {
            status: "failed".to_owned(),
            impaired_since: Some(since),
        }],
        ..InstanceStatusInfo::default()
    }
}

/// AW24.15.5, AW24.15.6
#[tokio::test(start_paused = true)]
async fn instances_that_ec2_finds_ill_are_let_go_at_once() {
    let cluster = cluster().await;
    cluster.ready_class().await;
    let (_, ill) = cluster.launched("ill", "m5.large", "on-demand").await;
    let (_, planned) = cluster.launched("planned", "m5.large", "on-demand").await;
    let event = InstanceStatusInfo {
        id: planned.id.clone(),
        events: vec![EventInfo {
            code: "instance-retirement".to_owned(),
        }],
        ..InstanceStatusInfo::default()
    };
    let since = cluster.aws.now() - jiff::SignedDuration::from_mins(3);
    // Held by somebody else's finalizer, so that both can be looked at while they go.
    for name in ["ill", "planned"] {
        let held = json!({"metadata": {"finalizers": ["karpenter.sh/termination", "example.com/hold"]}});
        cluster.patch::<NodeClaim>(name, held).await;
    }
    cluster
        .aws
        .set_statuses(vec![failing(&ill.id, since), event, failing("i-foreign", since)]);
    let is_going = async |name: &str| {
        cluster
            .get::<NodeClaim>(name)
            .await
            .metadata
            .deletion_timestamp
            .is_some()
    };
    cluster
        .until("both go", minutes(3), async || {
            is_going("ill").await && is_going("planned").await
        })
        .await;
    let due = "karpenter.sh/nodeclaim-termination-timestamp";
    let stamped = cluster.get::<NodeClaim>("ill").await.annotations()[due].clone();
    assert!(
        !cluster
            .get::<NodeClaim>("planned")
            .await
            .annotations()
            .contains_key(due)
    );
    assert!(cluster.told("ill").await.contains(&"InstanceUnhealthy".to_owned()));
    tokio::time::sleep(minutes(3)).await;
    assert_eq!(
        cluster.get::<NodeClaim>("ill").await.annotations()[due],
        stamped,
        "the first word counts"
    );
    let counted = |category: &str, count: u32| {
        let line = format!("karpenter_interruption_instance_status_unhealthy_total{{category=\"{category}\"}} {count}");
        assert!(cluster.services.metrics.encoded().contains(&line), "{line}");
    };
    counted("system_status", 1);
    counted("event_status", 1);
    cluster.aws.set_statuses(vec![]);
    tokio::time::sleep(minutes(2)).await;
    cluster.aws.set_statuses(vec![failing(&ill.id, since)]);
    tokio::time::sleep(minutes(2)).await;
    counted("system_status", 2);
}

/// AW24.15.1, AW24.15.4
#[tokio::test(start_paused = true)]
async fn an_announced_interruption_ends_the_claim() {
    let cluster = cluster_with(|foundation| {
        foundation.options = Arc::new(Options {
            interruption_queue: Some("demo".to_owned()),
            ..samples::options()
        });
    })
    .await;
    cluster.ready_class().await;
    let (_, info) = cluster.launched("one", "m5.large", "spot").await;
    let warning = json!({
        "version": "0", "source": "aws.ec2", "detail-type": "EC2 Spot Instance Interruption Warning",
        "detail": {"instance-id": info.id},
    });
    cluster.aws.announce("receipt", &warning.to_string());
    cluster
        .until("the message is handled", minutes(1), async || {
            cluster.aws.waiting_messages() == 0
        })
        .await;
    let claim = cluster.find::<NodeClaim>("one").await;
    assert!(claim.is_none_or(|claim| claim.metadata.deletion_timestamp.is_some()));
    assert!(cluster.told("one").await.contains(&"SpotInterrupted".to_owned()));
}
