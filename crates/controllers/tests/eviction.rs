//! The eviction queue against an API server: what it asks for, and what it makes of the answers.

use std::sync::Arc;

use api::v1::NodeClaim;
use clock::{Clock, VirtualClock};
use controllers::{
    Ctx, Knobs,
    catalog::Shelves,
    metrics::{Exposition, Metrics},
    node::eviction::{EvictionQueue, Evictions, Victim},
    node_pool::registration_health::Health,
    outbox::{Outbox, Postman},
    runtime::{Action, Reconcile},
    static_capacity::Slots,
    writer::Writer,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::{
    core::v1::{Event, Node, Pod},
    policy::v1::PodDisruptionBudget,
};
use kube::{
    Api,
    api::{DeleteParams, ListParams, PostParams},
};
use kube_mem::ApiServer;
use model::PodKey;
use provider_sim::{Catalog, SimCloud, SimProvider};
use serde_json::{Value, json};
use state::{Index, Served};
use tokio::sync::mpsc;

fn parse<K: serde::de::DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).expect("the literal is an object of its kind")
}

struct Bench {
    server: ApiServer,
    ctx: Ctx,
    queue: EvictionQueue,
    evictions: Arc<Evictions>,
    postman: Option<Postman>,
    _woken: mpsc::UnboundedReceiver<Victim>,
}

impl Bench {
    fn new() -> Self {
        let clock: Arc<dyn Clock> = Arc::new(VirtualClock::starting_at(VirtualClock::EPOCH));
        let server = ApiServer::builder()
            .clock(clock.clone())
            .seed(1)
            .without_managers()
            .build();
        let client = server.client();
        let served = Served::new([("karpenter.kwok.sh".to_owned(), "KWOKNodeClass".to_owned())]);
        let index = Arc::new(Index::new(Arc::default(), served));
        let writer = Writer::new(client.clone(), index.clone());
        let (outbox, postman) = Outbox::new(writer.clone(), clock.clone());
        let classes = Arc::new(Api::all(client));
        let cloud = SimProvider::new(SimCloud::new(1, clock.clone()), Arc::new(Catalog::generic()), classes);
        let ctx = Ctx {
            index,
            writer,
            cloud: Arc::new(cloud),
            clock,
            outbox,
            metrics: Arc::new(Metrics::default()),
            knobs: Arc::new(Knobs::default()),
            health: Arc::new(Health::default()),
            shelves: Arc::new(Shelves::default()),
            promises: Arc::default(),
            slots: Arc::new(Slots::default()),
            random: Ctx::seeded(1),
        };
        let (wake, woken) = mpsc::unbounded_channel();
        let evictions = Arc::new(Evictions::new(wake));
        Self {
            queue: EvictionQueue::new(&ctx, evictions.clone()),
            server,
            ctx,
            evictions,
            postman: Some(postman),
            _woken: woken,
        }
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.server.client(), "default")
    }

    /// A pod that runs on node `n`, in the server and in the index.
    async fn pod(&self, name: &str) -> Arc<model::Pod> {
        let container = json!({ "name": "main", "image": "x" });
        let pod: Pod = parse(json!({
            "metadata": { "name": name, "namespace": "default", "labels": { "app": "web" } },
            "spec": { "nodeName": "n", "containers": [container], "terminationGracePeriodSeconds": 30 },
        }));
        let created = self
            .pods()
            .create(&PostParams::default(), &pod)
            .await
            .expect("the pod is fine");
        let running = kube::api::Patch::Merge(json!({ "status": {
            "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }],
        } }));
        let params = kube::api::PatchParams::default();
        let running = self
            .pods()
            .patch_status(name, &params, &running)
            .await
            .expect("it runs");
        assert_eq!(created.metadata.uid, running.metadata.uid);
        self.ctx.index.apply(running);
        let view = self.ctx.index.view();
        view.snapshot
            .pods
            .get(&PodKey::new("default", name))
            .expect("it was just put in")
            .clone()
    }

    /// A budget that allows so many disruptions.
    async fn budget(&self, name: &str, allowed: i32) {
        let budgets: Api<PodDisruptionBudget> = Api::namespaced(self.server.client(), "default");
        let budget = parse(json!({
            "metadata": { "name": name, "namespace": "default" },
            "spec": { "minAvailable": 1, "selector": { "matchLabels": { "app": "web" } } },
        }));
        let stored = budgets
            .create(&PostParams::default(), &budget)
            .await
            .expect("the budget is fine");
        let status = json!({ "status": {
            "disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1,
            "observedGeneration": stored.metadata.generation,
        } });
        let patch = kube::api::Patch::Merge(status);
        let patched = budgets
            .patch_status(name, &kube::api::PatchParams::default(), &patch)
            .await;
        patched.expect("the status is fine");
    }

    /// A node `n` in the index, and its claim with a reason for going.
    fn node(&self, reason: Option<&str>) {
        let meta =
            json!({ "name": "n", "uid": "n", "resourceVersion": "1", "creationTimestamp": "2026-01-01T00:00:00Z" });
        self.ctx.index.apply(parse::<Node>(
            json!({ "metadata": meta, "spec": { "providerID": "kwok://n" } }),
        ));
        let conditions = reason.map(|reason| {
            json!([{
                "type": "DisruptionReason", "status": "True", "reason": reason, "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }])
        });
        let class = json!({ "group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default" });
        self.ctx.index.apply(parse::<NodeClaim>(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": meta,
            "spec": { "requirements": [], "nodeClassRef": class },
            "status": { "providerID": "kwok://n", "conditions": conditions },
        })));
    }

    async fn run(&self, pod: &model::Pod, deadline: Option<Timestamp>) -> Result<Action, String> {
        self.evictions.add(pod, deadline, "n");
        let outcome = self.queue.reconcile(&Victim::of(pod)).await;
        outcome.map_err(|error| error.to_string())
    }

    /// Reasons and messages of all events, once they are written.
    async fn told(&mut self) -> Vec<String> {
        let postman = self.postman.take().expect("the events are read once");
        let writing = tokio::time::timeout(std::time::Duration::from_secs(1), postman.run());
        assert!(writing.await.is_err(), "the postman waits for more");
        let events: Api<Event> = Api::all(self.server.client());
        let events = events.list(&ListParams::default()).await.expect("events can be listed");
        let text = |event: Event| {
            format!(
                "{}: {}",
                event.reason.unwrap_or_default(),
                event.message.unwrap_or_default()
            )
        };
        events.items.into_iter().map(text).collect()
    }

    fn counts(&self, line: &str) -> bool {
        let text = Exposition::of(&self.ctx.metrics).text(None, self.ctx.clock.now());
        text.lines().any(|found| found == line)
    }

    async fn is_leaving(&self, name: &str) -> bool {
        let pod = self.pods().get(name).await.expect("the pod is there");
        pod.metadata.deletion_timestamp.is_some()
    }
}

/// LC-Q3, LC-Q7.
#[tokio::test(start_paused = true)]
async fn a_pod_that_may_go_is_evicted_for_its_claims_reason() {
    let mut bench = Bench::new();
    bench.node(Some("Underutilized"));
    let pod = bench.pod("p").await;
    bench.run(&pod, None).await.expect("nothing is in the way");
    assert!(bench.is_leaving("p").await);
    // The drain asks once more before either has heard that the pod is going.
    bench.run(&pod, None).await.expect("nothing is in the way");
    assert!(bench.counts(r#"karpenter_pods_eviction_requests_total{code="200"} 1"#));
    let leaving = bench.pods().get("p").await.expect("it stops");
    bench.ctx.index.apply(leaving);
    bench
        .queue
        .reconcile(&Victim::of(&pod))
        .await
        .expect("there is nothing to do");
    assert!(!bench.evictions.holds(&pod));
    assert!(bench.counts(r#"karpenter_pods_drained_total{reason="Underutilized"} 1"#));
    assert_eq!(bench.told().await, ["Evicted: Evicted pod: Underutilized"]);
}

/// LC-Q1: neither an event nor an entry is left of a pod that is not there.
#[tokio::test(start_paused = true)]
async fn a_pod_that_is_gone_is_forgotten() {
    let mut bench = Bench::new();
    bench.node(None);
    // The index has not heard of it yet.
    let late = bench.pod("late").await;
    bench
        .pods()
        .delete("late", &DeleteParams::default().grace_period(0))
        .await
        .expect("it can be deleted");
    bench.run(&late, None).await.expect("that is no failure");
    assert!(bench.counts(r#"karpenter_pods_eviction_requests_total{code="404"} 1"#));
    // The index has.
    let gone = model::Pod {
        key: PodKey::new("default", "gone"),
        ..(*late).clone()
    };
    bench.run(&gone, None).await.expect("that is no failure");
    assert!(!bench.evictions.holds(&late) && !bench.evictions.holds(&gone));
    assert_eq!(bench.told().await, Vec::<String>::new());
}

/// LC-Q4: one budget says no. LC-Q5: two budgets are more than the eviction API can serve.
#[tokio::test(start_paused = true)]
async fn a_budget_that_says_no_is_told_and_asked_again() {
    for (budgets, code) in [(vec!["one"], "429"), (vec!["one", "two"], "500")] {
        let mut bench = Bench::new();
        bench.node(None);
        let pod = bench.pod("p").await;
        for name in &budgets {
            bench.budget(name, 0).await;
        }
        let refused = bench.run(&pod, None).await.expect_err("a budget is in the way");
        assert_eq!(refused, "a disruption budget does not let pod default/p go now");
        assert!(bench.evictions.holds(&pod) && !bench.is_leaving("p").await);
        assert!(bench.counts(&format!(r#"karpenter_pods_eviction_requests_total{{code="{code}"}} 1"#)));
        let told = bench.told().await;
        assert!(
            told[0].starts_with("FailedDraining: Failed to drain node, "),
            "{told:?}"
        );
    }
}

/// LC-Q8: past a budget when time is up. LC-Q12: and even then never without a moment to stop.
#[tokio::test(start_paused = true)]
async fn a_pod_whose_time_is_up_is_deleted_past_its_budget() {
    let mut bench = Bench::new();
    bench.node(None);
    bench.budget("one", 0).await;
    let pod = bench.pod("p").await;
    let deadline = bench.ctx.clock.now() - SignedDuration::from_secs(5);
    bench.run(&pod, Some(deadline)).await.expect("nothing is in the way");
    let leaving = bench.pods().get("p").await.expect("it stops");
    assert_eq!(leaving.metadata.deletion_grace_period_seconds, Some(1));
    assert!(!bench.evictions.holds(&pod));
    let told = bench.told().await;
    assert!(
        told[0].starts_with("Disrupted: ") && told[0].contains("1 of its 30 seconds"),
        "{told:?}"
    );
}

/// LC-Q11.
#[tokio::test(start_paused = true)]
async fn a_pod_that_is_gone_before_its_time_is_up_is_forgotten() {
    let mut bench = Bench::new();
    bench.node(None);
    let pod = bench.pod("p").await;
    bench
        .pods()
        .delete("p", &DeleteParams::default().grace_period(0))
        .await
        .expect("it can be deleted");
    let deadline = bench.ctx.clock.now();
    bench.run(&pod, Some(deadline)).await.expect("that is no failure");
    assert!(!bench.evictions.holds(&pod));
    assert_eq!(bench.told().await, Vec::<String>::new());
}

/// LC-N19: a pod that took the name of one in the queue is another pod, whether the index knows of it or not.
#[tokio::test(start_paused = true)]
async fn a_namesake_is_not_evicted() {
    let mut bench = Bench::new();
    bench.node(None);
    let old = bench.pod("p").await;
    bench
        .pods()
        .delete("p", &DeleteParams::default().grace_period(0))
        .await
        .expect("it can be deleted");
    let container = json!({ "name": "main", "image": "x" });
    let new: Pod = parse(json!({
        "metadata": { "name": "p", "namespace": "default" }, "spec": { "nodeName": "n", "containers": [container] },
    }));
    let new = bench
        .pods()
        .create(&PostParams::default(), &new)
        .await
        .expect("the name is free");
    for known in [false, true] {
        if known {
            bench.ctx.index.apply(new.clone());
        }
        bench.run(&old, None).await.expect("that is no failure");
        assert!(!bench.evictions.holds(&old) && !bench.is_leaving("p").await);
    }
    assert!(bench.counts(r#"karpenter_pods_eviction_requests_total{code="409"} 1"#));
    assert_eq!(bench.told().await, Vec::<String>::new());
}
