//! From a machine that has booted to a node that takes pods.

use std::sync::Arc;

use api::labels;
use async_trait::async_trait;
use jiff::SignedDuration;
use kube::ResourceExt;
use operator::settings::Settings;
use parking_lot::Mutex;
use provider::{Admission, ProviderError, Registering, RegistrationHook};
use serde_json::{Value, json};
use world::{
    story::{LaunchesFail, minutes, nothing_runs, pods, pool, seconds, settled, that},
    world::{Setup, World, karpenter, karpenter_with},
};

use super::{a_claim_is, claim_path, is, node_path, only_claim, only_node, state, web};

/// Answers as it is told at the moment, and puts a label on the node.
struct Gatekeeper {
    name: &'static str,
    answer: Arc<Mutex<Answer>>,
}

#[derive(Clone, Copy)]
enum Answer {
    Wait,
    Fail,
    Pass,
}

#[async_trait]
impl RegistrationHook for Gatekeeper {
    fn name(&self) -> &str {
        self.name
    }

    async fn admit(&self, node: &Registering) -> Result<Admission, ProviderError> {
        assert_eq!(
            node.claim.as_str(),
            node.node.as_str(),
            "the cloud names nodes after their claims"
        );
        let answer = *self.answer.lock();
        let labels = [("example.com/rack".into(), "r1".into())].into_iter().collect();
        match answer {
            Answer::Wait => Ok(Admission::pending(SignedDuration::from_secs(3))),
            Answer::Fail => Err(ProviderError::Unavailable { cause: "no".into() }),
            Answer::Pass => Ok(Admission::Passed { labels }),
        }
    }
}

/// LC-G11, LC-G12, LC-G13, LC-G14, LC-G15: a node that hooks hold up stays closed, whatever they say, and opens when all
/// of them agree.
#[test]
fn a_node_opens_when_every_hook_agrees() {
    let (rack, row) = (Arc::new(Mutex::new(Answer::Wait)), Arc::new(Mutex::new(Answer::Wait)));
    let hook = |name, answer: &Arc<Mutex<Answer>>| -> Arc<dyn RegistrationHook> {
        Arc::new(Gatekeeper {
            name,
            answer: answer.clone(),
        })
    };
    let mut world = World::new(Setup {
        hooks: vec![hook("rack", &rack), hook("row", &row)],
        ..Setup::seeded(7, karpenter())
    })
    .pool(pool("general"))
    .workload(web(1));
    world.run_until(
        a_claim_is("Registered", "Unknown", "RegistrationHookPending"),
        minutes(2),
    );
    let message = |world: &World| {
        let claim = only_claim(world);
        let found = api::conditions::find(api::conditions::HasConditions::conditions(&*claim), "Registered").cloned();
        found.map(|condition| condition.message).unwrap_or_default()
    };
    assert_eq!(message(&world), "waiting for registration hooks: rack, row");

    for answer in [Answer::Fail, Answer::Wait] {
        *rack.lock() = Answer::Pass;
        *row.lock() = answer;
        world.run_for(seconds(20));
        assert_eq!(message(&world), "waiting for registration hooks: row");
        let node = only_node(&world);
        assert!(!node.labels().contains_key(labels::REGISTERED));
        let taints = node
            .spec
            .as_ref()
            .and_then(|spec| spec.taints.clone())
            .unwrap_or_default();
        assert!(taints.iter().any(|taint| taint.key == labels::taints::UNREGISTERED));
        assert_eq!(node.finalizers(), ["karpenter.sh/termination"], "the sync was made");
        world.expect(pods("web").none_on(&node.name_any()));
    }

    *row.lock() = Answer::Pass;
    world.run_until(pods("web").running(1), minutes(1));
    assert_eq!(only_node(&world).labels()["example.com/rack"], "r1");
    assert_eq!(only_claim(&world).labels()["example.com/rack"], "r1");
}

/// LC-G6: who removes a startup taint means it.
#[test]
fn a_startup_taint_that_was_removed_stays_away() {
    let mut world = World::seeded(7).pool(pool("general")).workload(web(1));
    let startup = json!([{ "key": "example.com/boot", "effect": "NoSchedule" }]);
    world.patch_pool(
        "general",
        json!({ "spec": { "template": { "spec": { "startupTaints": startup } } } }),
    );
    world.run_until(a_claim_is("Initialized", "Unknown", "StartupTaintsExist"), minutes(2));
    let node = only_node(&world);
    world.patch_at(&node_path(&node), &json!({ "spec": { "taints": null } }));
    world.run_until(pods("web").running(1), minutes(1));
    // Another change of the node makes another pass over it.
    world.patch_at(
        &node_path(&node),
        &json!({ "metadata": { "labels": { "touched": "true" } } }),
    );
    world.run_for(seconds(30));
    assert_eq!(
        only_node(&world).spec.as_ref().and_then(|spec| spec.taints.clone()),
        None
    );
}

/// A slice of the only node, by the driver `gpu.example.com`.
fn slice(name: &str, node: &str, generation: i64, count: i64) -> Value {
    let pool = json!({ "name": "devices", "generation": generation, "resourceSliceCount": count });
    let device = json!({ "name": "gpu-0" });
    json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": { "name": name },
        "spec": { "driver": "gpu.example.com", "nodeName": node, "pool": pool, "devices": [device] },
    })
}

/// A claim that a user wrote, for devices of a driver.
fn claim_with_devices() -> Value {
    standalone(
        json!({ "karpenter.sh/requested-dra-drivers": "gpu.example.com" }),
        json!({}),
    )
}

fn standalone(annotations: Value, more: Value) -> Value {
    let mut spec = json!({
        "requirements": [{ "key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"] }],
        "resources": { "requests": { "cpu": "1000m", "memory": "1048576Ki" } },
        "nodeClassRef": { "group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default" },
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": { "name": "alone", "annotations": annotations }, "spec": spec,
    })
}

/// LC-I8: a node takes pods once the devices that it was launched for have been published completely.
#[test]
fn a_node_waits_for_the_devices_that_it_was_launched_for() {
    let settings = Settings {
        ignore_dra_requests: false,
        ..Settings::default()
    };
    let mut world = World::new(Setup::seeded(7, karpenter_with(settings)));
    world.create(claim_with_devices());
    world.run_until(
        a_claim_is("Initialized", "Unknown", "DRADriverPoolsNotPublished"),
        minutes(2),
    );
    let node = only_node(&world).name_any();
    world.create(slice("first", &node, 1, 2));
    world.run_for(seconds(30));
    world.expect(a_claim_is("Initialized", "Unknown", "DRADriverPoolsNotPublished"));
    world.create(slice("second", &node, 1, 2));
    world.run_until(a_claim_is("Initialized", "True", "Initialized"), seconds(5));
}

/// LC-I9: where devices are not looked at, nobody waits for them.
#[test]
fn nobody_waits_for_devices_that_are_not_looked_at() {
    let mut world = World::seeded(7);
    world.create(claim_with_devices());
    world.run_until(a_claim_is("Initialized", "True", "Initialized"), minutes(2));
}

/// Lifecycle.md 21: a claim of no pool lives like the others, is never consolidated, expires, and goes.
#[test]
fn a_claim_of_no_pool_lives_and_expires_like_the_others() {
    let mut world = World::seeded(7).pool(pool("general").consolidate_after("0s"));
    world.create(standalone(json!({}), json!({ "expireAfter": "30m" })));
    world.run_until(a_claim_is("Initialized", "True", "Initialized"), minutes(2));
    let claim = only_claim(&world);
    assert_eq!(
        claim.labels()["karpenter.kwok.sh/kwoknodeclass"],
        "default",
        "it was hydrated"
    );
    assert_eq!(only_node(&world).labels()["karpenter.kwok.sh/kwoknodeclass"], "default");
    assert_eq!(
        state(&claim, "ConsistentStateFound"),
        is("True", "ConsistentStateFound")
    );

    world.run_for(minutes(20));
    assert_eq!(
        state(&only_claim(&world), "Consolidatable"),
        None,
        "an empty node of no pool is nobody's to judge"
    );
    world.run_until(nothing_runs(), minutes(12));
    world.run_until(settled(), minutes(1));
}

/// LC-T3: what a user wrote in other units than we would is left as it is, and does not keep the claim from going.
#[test]
fn quantities_in_other_units_do_not_keep_a_claim_from_going() {
    let mut world = World::seeded(7);
    world.create(standalone(json!({}), json!({ "terminationGracePeriod": "1h0m0s" })));
    world.run_until(a_claim_is("Initialized", "True", "Initialized"), minutes(2));
    let claim = only_claim(&world);
    let requests = claim
        .spec
        .resources
        .as_ref()
        .and_then(|resources| resources.requests.clone());
    assert_eq!(
        requests.map(|requests| requests["cpu"].0.clone()).as_deref(),
        Some("1000m")
    );
    world.delete_at(&claim_path(&claim));
    world.run_until(nothing_runs(), minutes(2));
}

/// LC-Y3: half of the memory that was paid for is told, and changes nothing else.
#[test]
fn a_node_that_is_smaller_than_promised_is_told_of() {
    let mut world = World::seeded(7).pool(pool("general")).workload(web(1));
    world.run_until(pods("web").running(1), minutes(5));
    assert_eq!(
        state(&only_claim(&world), "ConsistentStateFound"),
        is("True", "ConsistentStateFound")
    );
    let node = only_node(&world);
    world.patch_at(
        &format!("{}/status", node_path(&node)),
        &json!({ "status": { "capacity": { "memory": "1Gi" } } }),
    );
    world.run_for(minutes(11));
    assert_eq!(
        state(&only_claim(&world), "ConsistentStateFound"),
        is("False", "ConsistencyCheckFailed")
    );
    let told = world.events("FailedConsistencyCheck");
    assert!(
        told[0].starts_with("expected ") && told[0].ends_with("of resource memory, but found 1Gi"),
        "{told:?}"
    );
    world.expect(pods("web").running(1));
    world.expect(that("the claim is ready all the same", |moment| {
        let claims = moment.scene.node_claims.all();
        claims.iter().all(|claim| state(claim, "Ready") == is("True", "Ready"))
    }));
}

/// LC-U14: a claim that is not launched keeps decisions waiting, and for how long is told.
#[test]
fn the_time_without_a_full_picture_is_told() {
    let mut world = World::seeded(7).pool(pool("general"));
    world.run_for(seconds(30));
    let unsynced = |world: &World| world.counted("karpenter_cluster_state_unsynced_time_seconds", "");
    assert_eq!(unsynced(&world), 0.0);
    world.inject(LaunchesFail(1.0));
    world.create(web(1));
    world.run_for(seconds(140));
    assert!(unsynced(&world) >= 120.0, "{}", unsynced(&world));
    world.calm();
    world.run_until(pods("web").running(1), minutes(3));
    world.run_for(seconds(10));
    assert_eq!(unsynced(&world), 0.0);
}

/// LC-Y5: pods that come to and leave a node of no claim are nobody's news, and no error.
#[test]
fn pods_on_a_node_of_no_claim_are_no_news() {
    let mut world = World::seeded(7).pool(pool("general"));
    world.create(json!({
        "apiVersion": "v1", "kind": "Node", "metadata": { "name": "foreign" },
        "status": { "capacity": { "pods": "9" }, "allocatable": { "pods": "9" } },
    }));
    for name in ["while-there", "when-gone"] {
        world.create(json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "namespace": "default" },
            "spec": { "nodeName": "foreign", "containers": [{ "name": "main", "image": "x" }] },
        }));
    }
    world.run_for(seconds(5));
    world.delete_at("/api/v1/namespaces/default/pods/while-there?gracePeriodSeconds=0");
    world.run_for(seconds(5));
    // The cluster collects the other pod some time after its node.
    world.delete_at("/api/v1/nodes/foreign");
    world.run_for(minutes(3));
    let errors = world.counted("controller_runtime_reconcile_errors_total", "nodeclaim.podevents");
    assert_eq!(errors, 0.0);
    assert_eq!(
        world
            .writes()
            .iter()
            .filter(|(what, _)| what.contains("nodeclaims"))
            .count(),
        0
    );
}
