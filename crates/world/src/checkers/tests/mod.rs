//! Every rule is shown to notice when it is broken, and to stay quiet when it is not.

mod disruption;

use std::sync::Arc;

use api::v1::{NodeClaim, NodePool};
use bytes::Bytes;
use clock::{Clock, VirtualClock};
use http::Method;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Node, Pod},
    policy::v1::PodDisruptionBudget,
};
use serde_json::{Value, json};

use super::*;
use crate::mirror::{Mirrored, News};

/// A cluster to judge, built object by object.
struct Court {
    scene: Mirror,
    cloud: SimCloud,
    catalog: Catalog,
    clock: Arc<dyn Clock>,
    jury: Jury,
    version: u64,
}

impl Court {
    /// Needs a tokio runtime, whose time the clock follows.
    fn new() -> Self {
        let clock: Arc<dyn Clock> = Arc::new(VirtualClock::starting_at(VirtualClock::EPOCH));
        Self {
            scene: Mirror::new(Vec::new(), None),
            cloud: SimCloud::new(1, Arc::clone(&clock)),
            catalog: Catalog::generic(),
            clock,
            jury: Jury::default(),
            version: 0,
        }
    }

    fn put<K: Mirrored>(&mut self, mut object: Value) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        let object: K = serde_json::from_value(object).expect("an object");
        self.learn(News::Put(Arc::new(object)));
    }

    fn remove<K: Mirrored>(&mut self, mut object: Value) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        let object: K = serde_json::from_value(object).expect("an object");
        self.learn(News::Gone(Arc::new(object)));
    }

    fn learn<K: Mirrored>(&mut self, news: News<K>) {
        for seen in self.scene.learn(news) {
            let moment = Moment {
                scene: &self.scene,
                cloud: &self.cloud,
                catalog: &self.catalog,
                now: self.clock.now(),
            };
            self.jury.saw(&seen, &moment);
        }
    }

    fn deed(&mut self, deed: &Deed) {
        let moment = Moment {
            scene: &self.scene,
            cloud: &self.cloud,
            catalog: &self.catalog,
            now: self.clock.now(),
        };
        self.jury.called(deed, &moment);
    }

    fn rest(&mut self) {
        let moment = Moment {
            scene: &self.scene,
            cloud: &self.cloud,
            catalog: &self.catalog,
            now: self.clock.now(),
        };
        self.jury.at_rest(&moment);
    }

    /// What was found wrong since the last time.
    fn complaints(&mut self) -> Vec<String> {
        let violations = std::mem::take(&mut self.jury.violations);
        violations.into_iter().map(|violation| violation.what).collect()
    }
}

fn class() -> Value {
    json!({ "group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default" })
}

fn pool(limits: Value) -> Value {
    json!({
        "metadata": { "name": "general", "uid": "p1" },
        "spec": { "template": { "spec": { "requirements": [], "nodeClassRef": class() } }, "limits": limits },
    })
}

fn claim(name: &str) -> Value {
    json!({
        "metadata": {
            "name": name,
            "uid": format!("uid-{name}"),
            "labels": { "karpenter.sh/nodepool": "general" },
            "finalizers": ["karpenter.sh/termination"],
            "ownerReferences": [{ "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": "general", "uid": "p1" }],
        },
        "spec": { "requirements": [], "nodeClassRef": class() },
    })
}

fn pod(name: &str, spec: Value) -> Value {
    let mut whole = json!({ "containers": [{ "name": "main", "resources": { "requests": { "cpu": "1" } } }] });
    whole
        .as_object_mut()
        .expect("an object")
        .extend(spec.as_object().expect("an object").clone());
    json!({
        "metadata": { "name": name, "namespace": "default", "uid": format!("uid-{name}"), "labels": { "app": "web" } },
        "spec": whole,
        "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] },
    })
}

fn node(name: &str, cpu: &str) -> Value {
    json!({
        "metadata": { "name": name, "uid": format!("uid-{name}") },
        "spec": { "providerID": format!("kwok://{name}") },
        "status": { "allocatable": { "cpu": cpu, "pods": "10" } },
    })
}

fn request(method: Method, path: &str, body: Value) -> Deed {
    Deed::Request {
        method,
        path: path.to_owned(),
        query: String::new(),
        body: Bytes::from(body.to_string()),
        code: 201,
    }
}

#[tokio::test]
async fn a_claim_has_a_pool_that_exists() {
    let mut court = Court::new();
    court.put::<NodeClaim>(claim("a"));
    assert_eq!(
        court.complaints(),
        ["claim a is owned by a pool that does not exist: general"]
    );
    court.put::<NodePool>(pool(json!({})));
    court.put::<NodeClaim>(claim("b"));
    assert!(court.complaints().is_empty());
    let mut orphan = claim("c");
    orphan["metadata"]["ownerReferences"] = json!([]);
    court.put::<NodeClaim>(orphan);
    assert_eq!(court.complaints(), ["claim c has 0 owner pools"]);
}

#[tokio::test]
async fn a_launch_needs_the_finalizer() {
    let mut court = Court::new();
    court.put::<NodePool>(pool(json!({})));
    let launch = Deed::Launch {
        claim: "a".into(),
        token: "uid-a".into(),
    };
    court.deed(&launch);
    assert_eq!(court.complaints(), ["launch for claim a, which does not exist"]);
    let mut bare = claim("a");
    bare["metadata"]["finalizers"] = json!([]);
    court.put::<NodeClaim>(bare);
    court.deed(&launch);
    assert_eq!(court.complaints(), ["launch for claim a, which has no finalizer"]);
    court.put::<NodeClaim>(claim("a"));
    court.deed(&launch);
    assert!(court.complaints().is_empty());
}

#[tokio::test]
async fn limits_count_what_the_cloud_delivered() {
    let mut court = Court::new();
    court.put::<NodePool>(pool(json!({ "cpu": "6", "nodes": "2" })));
    for name in ["a", "b"] {
        court.put::<NodeClaim>(claim(name));
        let mut launched = claim(name);
        launched["status"] = json!({ "capacity": { "cpu": "4" } });
        court.put::<NodeClaim>(launched);
    }
    assert_eq!(court.complaints(), ["pool general has 8 of cpu, its limit is 6"]);
    let mut leaving = claim("a");
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    court.put::<NodeClaim>(leaving);
    court.put::<NodeClaim>(claim("c"));
    assert!(court.complaints().is_empty(), "claims on their way out do not count");
    court.put::<NodeClaim>(claim("d"));
    assert_eq!(court.complaints(), ["pool general has 3 of nodes, its limit is 2"]);
}

#[tokio::test]
async fn pods_are_never_deleted_roughly() {
    let mut court = Court::new();
    court.put::<Node>(node("n1", "8"));
    court.put::<Pod>(pod("w", json!({ "nodeName": "n1" })));
    let path = "/api/v1/namespaces/default/pods/w";
    let uid = json!({ "uid": "uid-w" });
    court.deed(&request(
        Method::DELETE,
        path,
        json!({ "gracePeriodSeconds": 0, "preconditions": uid }),
    ));
    court.deed(&request(Method::DELETE, path, json!({ "gracePeriodSeconds": 5 })));
    court.deed(&request(
        Method::DELETE,
        path,
        json!({ "gracePeriodSeconds": 5, "preconditions": uid }),
    ));
    court.deed(&request(
        Method::POST,
        &format!("{path}/eviction"),
        json!({ "deleteOptions": {} }),
    ));
    assert_eq!(
        court.complaints(),
        [
            "pod default/w deleted with zero grace",
            "pod default/w deleted without its UID",
            "pod default/w deleted though its node has no deadline",
            "eviction of default/w without its UID",
        ]
    );
    court.deed(&request(
        Method::POST,
        &format!("{path}/eviction"),
        json!({ "deleteOptions": { "preconditions": uid } }),
    ));
    assert!(court.complaints().is_empty());
}

#[tokio::test]
async fn an_eviction_that_overdraws_a_budget_is_noticed() {
    let mut court = Court::new();
    court.put::<Node>(node("n1", "8"));
    court.put::<PodDisruptionBudget>(json!({
        "metadata": { "name": "web", "namespace": "default" },
        "spec": { "selector": { "matchLabels": { "app": "web" } } },
        "status": { "desiredHealthy": 1 },
    }));
    let leaving = |name: &str| {
        let mut leaving = pod(name, json!({ "nodeName": "n1" }));
        leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        leaving
    };
    let evict = |name: &str| {
        let body = json!({ "deleteOptions": { "preconditions": { "uid": format!("uid-{name}") } } });
        request(
            Method::POST,
            &format!("/api/v1/namespaces/default/pods/{name}/eviction"),
            body,
        )
    };
    court.put::<Pod>(pod("a", json!({ "nodeName": "n1" })));
    court.put::<Pod>(leaving("b"));
    court.deed(&evict("b"));
    assert!(court.complaints().is_empty());
    court.put::<Pod>(leaving("a"));
    court.deed(&evict("a"));
    assert_eq!(
        court.complaints(),
        ["eviction of default/a left 0 healthy pods where budget default/web asks for 1"]
    );
}

#[tokio::test]
async fn critical_pods_leave_last() {
    let mut court = Court::new();
    court.put::<Node>(node("n1", "8"));
    court.put::<Pod>(pod("w", json!({ "nodeName": "n1" })));
    let critical = json!({ "nodeName": "n1", "priorityClassName": "system-cluster-critical" });
    court.put::<Pod>(pod("dns", critical));
    let body = json!({ "deleteOptions": { "preconditions": { "uid": "uid-dns" } } });
    court.deed(&request(
        Method::POST,
        "/api/v1/namespaces/default/pods/dns/eviction",
        body,
    ));
    assert_eq!(
        court.complaints(),
        ["pod default/dns (tier 3) was evicted from n1 before default/w (tier 1)"]
    );
}

#[tokio::test]
async fn pods_are_bound_only_where_they_fit() {
    let mut court = Court::new();
    let mut tainted = node("n1", "1");
    tainted["spec"]["taints"] = json!([{ "key": "team", "effect": "NoSchedule" }]);
    court.put::<Node>(tainted);
    court.put::<Node>(node("n2", "1"));
    court.put::<Pod>(pod("a", json!({ "nodeName": "n1" })));
    court.put::<Pod>(pod("b", json!({ "nodeName": "n2" })));
    court.put::<Pod>(pod("c", json!({ "nodeName": "n2" })));
    court.put::<Pod>(pod("d", json!({ "nodeName": "n3" })));
    assert_eq!(
        court.complaints(),
        [
            "pod default/a is bound to n1 against taint team",
            "pods on n2 ask for 2 of cpu, it has 1",
            "pod default/d is bound to n3, which does not exist",
        ]
    );
}

#[tokio::test]
async fn a_deadline_never_moves_back_and_a_launch_has_an_id() {
    let mut court = Court::new();
    court.put::<NodePool>(pool(json!({})));
    let until = |time: &str| {
        let mut claim = claim("a");
        claim["metadata"]["annotations"] = json!({ "karpenter.sh/nodeclaim-termination-timestamp": time });
        claim
    };
    court.put::<NodeClaim>(until("2026-01-01T01:00:00Z"));
    court.put::<NodeClaim>(until("2026-01-01T00:30:00Z"));
    assert!(court.complaints().is_empty());
    court.put::<NodeClaim>(until("2026-01-01T02:00:00Z"));
    assert_eq!(
        court.complaints(),
        ["the deadline of claim a moved back from 2026-01-01T00:30:00Z to 2026-01-01T02:00:00Z"]
    );
    let mut launched = claim("b");
    launched["status"] = json!({ "conditions": [{
        "type": "Launched", "status": "True", "reason": "Launched", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }] });
    court.put::<NodeClaim>(launched.clone());
    assert_eq!(court.complaints(), ["claim b is launched and has no provider id"]);
    court.remove::<NodeClaim>(launched);
    assert!(court.complaints().is_empty(), "a claim without a machine may go");
}

#[tokio::test]
async fn a_workload_that_misses_pods_is_not_at_rest() {
    let mut court = Court::new();
    court.put::<Deployment>(json!({
        "metadata": { "name": "web", "namespace": "default" },
        "spec": { "replicas": 3, "selector": {}, "template": {} },
        "status": { "availableReplicas": 2 },
    }));
    court.rest();
    assert_eq!(court.complaints(), ["default/web has 2 available pods of 3"]);
}
