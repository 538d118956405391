//! What the index holds follows from the newest version of each object, in whatever order it was told.

use std::sync::Arc;

use api::v1::{NodeClaim, NodePool};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::{
    apps::v1::DaemonSet,
    core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod},
    storage::v1::{CSINode, StorageClass},
};
use model::{NodeKey, NodeName, Quantity};
use proptest::prelude::*;
use serde_json::{Value, json};
use state::{Event, Index, ObjectKey, Served, View};

fn index() -> Index {
    Index::new(Arc::default(), Served::new([("g".to_owned(), "K".to_owned())]))
}

fn parse<K: serde::de::DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).expect("the literal is an object of its kind")
}

fn meta(name: &str, uid: &str, version: u64) -> Value {
    json!({
        "name": name, "uid": uid, "resourceVersion": version.to_string(),
        "creationTimestamp": "2026-01-01T00:00:00Z",
    })
}

fn claim(name: &str, uid: &str, version: u64, instance: Option<&str>) -> NodeClaim {
    parse(json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": meta(name, uid, version),
        "spec": {"requirements": [], "nodeClassRef": {"group": "g", "kind": "K", "name": "n"}},
        "status": {"providerID": instance},
    }))
}

fn node(name: &str, uid: &str, version: u64, instance: Option<&str>, labels: Value) -> Node {
    let mut metadata = meta(name, uid, version);
    metadata["labels"] = labels;
    parse(json!({"metadata": metadata, "spec": {"providerID": instance}}))
}

fn pod(name: &str, uid: &str, version: u64, node: Option<&str>, cpu: &str) -> Pod {
    let mut metadata = meta(name, uid, version);
    metadata["namespace"] = "default".into();
    let container = json!({"name": "c", "resources": {"requests": {"cpu": cpu}}});
    parse(
        json!({"metadata": metadata, "spec": {"nodeName": node, "containers": [container]}, "status": {"phase": "Pending"}}),
    )
}

fn pool(name: &str, kind: &str) -> NodePool {
    parse(json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": meta(name, "p", 1),
        "spec": {"template": {"spec": {"requirements": [], "nodeClassRef": {"group": "g", "kind": kind, "name": "n"}}}},
    }))
}

fn cpu_on(view: &View, node: &str) -> Quantity {
    let machine = view
        .snapshot
        .node_named(&NodeName::from(node))
        .expect("the node is there");
    view.snapshot.requested_on(machine).get("cpu")
}

/// Keys of the machines, with the halves they are made of.
fn machines(view: &View) -> Vec<String> {
    let halves = |machine: &Arc<model::StateNode>| {
        let node = machine.node_name().map_or("-", |name| name.as_str()).to_owned();
        format!(
            "{} {} {node}",
            machine.key,
            if machine.is_managed() { "claim" } else { "-" }
        )
    };
    view.snapshot.nodes.values().map(halves).collect()
}

/// LC-U1.
#[test]
fn requests_follow_the_pods() {
    let index = index();
    index.apply(node("n", "n", 1, None, json!({})));
    index.apply(pod("a", "a", 2, None, "1"));
    assert_eq!(cpu_on(&index.view(), "n"), Quantity::ZERO);
    index.apply(pod("a", "a", 3, Some("n"), "1"));
    index.apply(pod("b", "b", 4, Some("n"), "2"));
    assert_eq!(cpu_on(&index.view(), "n"), Quantity::from_int(3));
    index.delete(&pod("a", "a", 5, Some("n"), "1"));
    assert_eq!(cpu_on(&index.view(), "n"), Quantity::from_int(2));
}

/// LC-U2: name reuse and late events.
#[test]
fn an_older_version_and_an_earlier_namesake_change_nothing() {
    let index = index();
    index.apply(node("n", "n", 1, None, json!({})));
    index.apply(pod("a", "second", 9, Some("n"), "4"));
    index.apply(pod("a", "first", 5, Some("n"), "1"));
    index.delete(&pod("a", "first", 6, Some("n"), "1"));
    index.apply(pod("a", "second", 8, None, "4"));
    assert_eq!(cpu_on(&index.view(), "n"), Quantity::from_int(4));
}

/// LC-U4, LC-U5, LC-U8: halves find each other by instance, in any order, and part again.
#[test]
fn a_claim_and_its_node_are_one_machine() {
    let index = index();
    index.apply(claim("same", "c", 1, None));
    assert_eq!(machines(&index.view()), ["same claim -"]);
    assert_eq!(index.view().unlaunched.len(), 1);
    index.apply(node("same", "n", 2, Some("i-1"), json!({})));
    assert_eq!(machines(&index.view()), ["same claim -", "same - same"]);
    index.apply(claim("same", "c", 3, Some("i-1")));
    assert_eq!(machines(&index.view()), ["same claim same"]);
    assert_eq!(index.view().unlaunched.len(), 0);
    index.delete(&claim("same", "c", 4, Some("i-1")));
    assert_eq!(machines(&index.view()), ["same - same"]);
    index.delete(&node("same", "n", 5, Some("i-1"), json!({})));
    assert_eq!(machines(&index.view()), Vec::<String>::new());
}

/// A node of ours that has not been matched yet would count its machine twice.
#[test]
fn an_unregistered_node_waits_for_its_claim() {
    let index = index();
    let mut joining = node("n", "n", 2, Some("i-1"), json!({"g/k": "n"}));
    joining.spec.get_or_insert_default().taints =
        parse(json!([{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}]));
    index.apply(joining);
    assert_eq!(machines(&index.view()), Vec::<String>::new());
    index.apply(claim("c", "c", 3, Some("i-1")));
    assert_eq!(machines(&index.view()), ["c claim n"]);
}

/// LC-L2, LC-P6: another provider's objects are not ours to know.
#[test]
fn objects_of_other_providers_stay_out() {
    let index = index();
    index.apply(pool("ours", "K"));
    index.apply(pool("theirs", "Other"));
    assert_eq!(index.view().pools.len(), 1);
    let mut foreign = claim("c", "c", 1, Some("i-1"));
    foreign.spec.node_class_ref.kind = "Other".to_owned();
    index.apply(foreign);
    assert!(index.view().claims.is_empty());
}

/// LC-U7, LC-U6.
#[test]
fn marks_stay_with_the_machine_until_it_goes() {
    let index = index();
    let key = NodeKey::Claim("c".into());
    let until = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(20);
    index.apply(claim("c", "c", 1, Some("i-1")));
    index.nominate([&key], until);
    index.mark_for_deletion([&key]);
    index.apply(node("n", "n", 2, Some("i-1"), json!({})));
    let machine = index.view().snapshot.nodes[&key].clone();
    assert_eq!((machine.nominated_until, machine.is_leaving()), (Some(until), true));
    index.unmark_for_deletion([&key]);
    assert!(!index.view().snapshot.nodes[&key].is_leaving());
    index.nominate([&key], Timestamp::UNIX_EPOCH);
    assert_eq!(
        index.view().snapshot.nodes[&key].nominated_until,
        Some(until),
        "a nomination is never shortened"
    );
    index.delete(&claim("c", "c", 3, Some("i-1")));
    index.apply(claim("c", "d", 4, None));
    assert_eq!(index.view().snapshot.nodes[&key].nominated_until, None);
}

#[test]
fn a_list_removes_what_it_lacks_but_not_what_is_newer() {
    let index = index();
    index.apply(claim("old", "a", 3, None));
    index.apply(claim("own", "b", 8, None));
    index.reset(vec![claim("listed", "c", 4, None)], 7, &());
    let names = |view: &View| {
        view.claims
            .values()
            .filter_map(|claim| claim.metadata.name.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&index.view()), ["listed", "own"]);
    // A write that was answered before the list was taken and arrives after it.
    index.apply(claim("old", "a", 5, None));
    assert_eq!(names(&index.view()), ["listed", "own"]);
}

/// The answer to the write that took the last finalizer off is the last that is heard of an object.
#[test]
fn the_write_that_ends_an_object_removes_it() {
    let index = index();
    index.apply(claim("c", "c", 1, None));
    let mut last = claim("c", "c", 2, None);
    last.metadata.deletion_timestamp = parse(json!("2026-01-01T00:00:01Z"));
    index.absorb(last.clone());
    assert!(index.view().claims.is_empty());
    index.apply(last);
    assert!(index.view().claims.is_empty(), "the watch tells of it once more");
}

#[test]
fn a_subscriber_hears_what_is_there_and_then_what_changes() {
    let index = index();
    index.apply(claim("c", "c", 1, None));
    let mut changes = index.subscribe();
    index.apply(claim("c", "c", 2, Some("i-1")));
    index.delete(&claim("c", "c", 3, Some("i-1")));
    let mut told = Vec::new();
    while let Ok(event) = changes.try_recv() {
        told.push(match event {
            Event::Claim(change) => format!("{}{}", u8::from(change.old.is_some()), u8::from(change.new.is_some())),
            other => format!("{other:?}"),
        });
    }
    assert_eq!(told, ["01", "Synced", "11", "10"]);
}

fn daemon_pod(name: &str, version: u64, created: &str, set: &str, cpu: &str) -> Pod {
    let mut pod = pod(name, name, version, Some("n"), cpu);
    pod.metadata.creation_timestamp = parse(json!(created));
    pod.metadata.owner_references = parse(json!([
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": set, "uid": set, "controller": true}
    ]));
    pod.spec.get_or_insert_default().affinity = parse(json!({"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n"]}]}
        ]}
    }}));
    pod
}

/// LC-U15: none, created, newer, deleted, foreign.
#[test]
fn the_newest_pod_of_a_daemon_stands_for_the_next() {
    let index = index();
    let key = model::PodKey::new("default", "agent");
    let asks = || {
        let daemon = index.view().snapshot.daemons[&key].clone();
        assert!(daemon.shape.affinity.required_nodes.is_empty(), "it is pinned nowhere");
        daemon.shape.requests.get("cpu").to_string()
    };
    let mut meta = meta("agent", "agent", 1);
    meta["namespace"] = "default".into();
    let container = json!({"name": "c", "resources": {"requests": {"cpu": "1"}}});
    let set: DaemonSet = parse(json!({"metadata": meta, "spec": {
        "selector": {}, "template": {"metadata": {}, "spec": {"containers": [container]}},
    }}));
    index.apply(set.clone());
    assert_eq!(asks(), "1");
    index.apply(daemon_pod("a", 2, "2026-01-01T00:00:01Z", "agent", "2"));
    assert_eq!(asks(), "2");
    index.apply(daemon_pod("c", 3, "2026-01-01T00:00:03Z", "agent", "3"));
    index.apply(daemon_pod("b", 4, "2026-01-01T00:00:02Z", "agent", "4"));
    index.apply(daemon_pod("z", 5, "2026-01-01T00:00:09Z", "other", "9"));
    assert_eq!(asks(), "3");
    index.delete(&daemon_pod("c", 6, "2026-01-01T00:00:03Z", "agent", "3"));
    assert_eq!(asks(), "4");
    index.delete(&daemon_pod("a", 7, "2026-01-01T00:00:01Z", "agent", "2"));
    index.delete(&daemon_pod("b", 8, "2026-01-01T00:00:02Z", "agent", "4"));
    assert_eq!(asks(), "1");
    index.delete(&set);
    assert!(index.view().snapshot.daemons.is_empty());
}

#[derive(Clone, Debug)]
enum Told {
    Claim(NodeClaim),
    ClaimGone(NodeClaim),
    Node(Node),
    NodeGone(Node),
    Pod(Pod),
    PodGone(Pod),
}

fn tell(index: &Index, event: Told) {
    match event {
        Told::Claim(object) => index.apply(object),
        Told::ClaimGone(object) => index.delete(&object),
        Told::Node(object) => index.apply(object),
        Told::NodeGone(object) => index.delete(&object),
        Told::Pod(object) => index.apply(object),
        Told::PodGone(object) => index.delete(&object),
    }
}

/// One write: a kind, a name, whether it is a deletion, and two details.
type Write = (u8, u8, bool, u8, u8);

/// What an API server would tell of such writes: versions grow, a name that is written after its deletion gets a new
/// UID, and what is not there is not deleted.
fn history(writes: &[Write]) -> Vec<Told> {
    let mut alive = std::collections::BTreeMap::<(u8, u8), String>::new();
    let mut events = Vec::new();
    for (at, (kind, name, delete, detail, cpu)) in writes.iter().enumerate() {
        let version = at as u64 + 1;
        if *delete && !alive.contains_key(&(*kind, *name)) {
            continue;
        }
        let uid = alive
            .entry((*kind, *name))
            .or_insert_with(|| format!("{kind}-{name}-{version}"))
            .clone();
        let instance = (*detail > 0).then(|| format!("i-{detail}"));
        let event = match kind {
            0 => {
                let object = claim(&format!("c{name}"), &uid, version, instance.as_deref());
                if *delete {
                    Told::ClaimGone(object)
                } else {
                    Told::Claim(object)
                }
            }
            1 => {
                let object = node(&format!("n{name}"), &uid, version, instance.as_deref(), json!({}));
                if *delete {
                    Told::NodeGone(object)
                } else {
                    Told::Node(object)
                }
            }
            _ => {
                let host = (*detail > 0).then(|| format!("n{detail}"));
                let object = pod(&format!("p{name}"), &uid, version, host.as_deref(), &cpu.to_string());
                if *delete {
                    Told::PodGone(object)
                } else {
                    Told::Pod(object)
                }
            }
        };
        events.push(event);
        if *delete {
            alive.remove(&(*kind, *name));
        }
    }
    events
}

proptest! {
    /// LC-U2, LC-U18: told in order or in any other, the cluster looks the same.
    #[test]
    fn the_order_of_events_does_not_matter(
        (told, shuffled) in prop::collection::vec((0..3u8, 0..3u8, prop::bool::weighted(0.3), 0..3u8, 1..4u8), 1..40)
            .prop_map(|writes| history(&writes))
            .prop_flat_map(|events| (Just(events.clone()), Just(events).prop_shuffle()))
    ) {
        let (straight, mixed) = (index(), index());
        for event in told {
            tell(&straight, event);
        }
        for event in shuffled {
            tell(&mixed, event);
        }
        let (a, b) = (straight.view(), mixed.view());
        prop_assert_eq!(&a.snapshot.nodes, &b.snapshot.nodes);
        prop_assert_eq!(&a.snapshot.pods, &b.snapshot.pods);
        prop_assert_eq!(&a.unlaunched, &b.unlaunched);
        for machine in a.snapshot.nodes.values() {
            prop_assert_eq!(a.snapshot.requested_on(machine), b.snapshot.requested_on(machine));
        }
    }
}

#[test]
fn storage_goes_into_the_snapshot_and_out_again() {
    let index = index();
    let mut claim = meta("data", "c", 1);
    claim["namespace"] = "default".into();
    let claim: PersistentVolumeClaim = parse(json!({"metadata": claim, "spec": {"volumeName": "v1"}}));
    let volume: PersistentVolume =
        parse(json!({"metadata": meta("v1", "v", 1), "spec": {"csi": {"driver": "csi.a", "volumeHandle": "x"}}}));
    let class: StorageClass = parse(json!({"metadata": meta("fast", "s", 1), "provisioner": "csi.a"}));
    let drivers = json!([{"name": "csi.a", "nodeID": "n", "allocatable": {"count": 3}}]);
    let limits: CSINode = parse(json!({"metadata": meta("n1", "n", 1), "spec": {"drivers": drivers}}));
    index.apply(claim.clone());
    index.apply(volume.clone());
    index.apply(class.clone());
    index.apply(limits.clone());

    let snapshot = &index.view().snapshot;
    assert_eq!(
        snapshot.volume_claims[&ObjectKey::new("default", "data")]
            .volume
            .as_deref(),
        Some("v1")
    );
    assert_eq!(snapshot.volumes["v1"].driver.as_deref(), Some("csi.a"));
    assert_eq!(&*snapshot.storage_classes["fast"].driver, "csi.a");
    assert_eq!(snapshot.attach_limits["n1"]["csi.a"], 3);

    index.delete(&claim);
    index.delete(&volume);
    index.delete(&class);
    index.delete(&limits);
    let snapshot = &index.view().snapshot;
    assert!(snapshot.volume_claims.is_empty() && snapshot.volumes.is_empty());
    assert!(snapshot.storage_classes.is_empty() && snapshot.attach_limits.is_empty());
}

#[test]
fn what_cannot_be_read_is_told_until_it_can() {
    let index = index();
    let unread = || {
        let view = index.view();
        let lines = view
            .unread
            .iter()
            .map(|((kind, key), errors)| format!("{kind:?} {key}: {}", errors[0]));
        lines.collect::<Vec<_>>()
    };
    index.apply(pod("a", "a", 1, None, "1O0m"));
    let mut tainted = node("n", "n", 1, None, json!({}));
    tainted.spec.get_or_insert_default().taints = Some(parse(json!([{"key": "k", "effect": "Never"}])));
    index.apply(tainted);
    assert_eq!(
        unread(),
        [
            "Node /n: spec.taints[0].effect: \"Never\" is not a taint effect: use NoSchedule, PreferNoSchedule or NoExecute",
            "Pod default/a: spec.containers[0].resources.requests.cpu: \"1O0m\" is not a quantity: expected a number with an optional suffix such as m, k, Mi or e6",
        ]
    );
    index.apply(pod("a", "a", 2, None, "100m"));
    index.delete(&node("n", "n", 2, None, json!({})));
    assert!(unread().is_empty());
}
