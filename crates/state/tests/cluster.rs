//! What the index knows of machines and pods, as decisions see it.

use std::{sync::Arc, thread};

use api::v1::NodeClaim;
use k8s_openapi::api::core::v1::{Node, PersistentVolumeClaim, Pod};
use model::{NodeKey, NodeName, PodKey, Quantity, StateNode, Taint};
use serde_json::{Value, json};
use state::{Index, Served};

fn index() -> Index {
    Index::new(Arc::default(), Served::new([("g".to_owned(), "K".to_owned())]))
}

fn parse<K: serde::de::DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).expect("the literal is an object of its kind")
}

fn meta(name: &str, version: u64) -> Value {
    json!({
        "name": name, "uid": name, "resourceVersion": version.to_string(),
        "creationTimestamp": "2026-01-01T00:00:00Z",
    })
}

fn claim(version: u64, instance: Option<&str>) -> NodeClaim {
    parse(json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": meta("c", version),
        "spec": {
            "requirements": [], "nodeClassRef": {"group": "g", "kind": "K", "name": "n"},
            "taints": [{"key": "team", "effect": "NoSchedule"}],
            "startupTaints": [{"key": "boot", "effect": "NoSchedule"}],
        },
        "status": {"providerID": instance, "capacity": {"cpu": "4", "memory": "8Gi"}},
    }))
}

/// A node with every taint that matters and with less than its claim promises.
fn node(version: u64, labels: Value) -> Node {
    let mut metadata = meta("n", version);
    metadata["labels"] = labels;
    let taint = |key: &str| json!({"key": key, "effect": "NoSchedule"});
    let taints = ["team", "boot", "node.kubernetes.io/not-ready"].map(taint);
    parse(json!({
        "metadata": metadata, "spec": {"providerID": "i-1", "taints": taints},
        "status": {"capacity": {"cpu": "3", "memory": "0"}},
    }))
}

fn pod(name: &str, version: u64, change: impl FnOnce(&mut Value)) -> Pod {
    let mut metadata = meta(name, version);
    metadata["namespace"] = "default".into();
    metadata["labels"] = json!({"app": name});
    let container = json!({"name": "c", "resources": {"requests": {"cpu": "1"}}});
    let mut pod = json!({
        "metadata": metadata, "spec": {"nodeName": "n", "containers": [container]}, "status": {"phase": "Running"},
    });
    change(&mut pod);
    parse(pod)
}

fn machine(index: &Index) -> Arc<StateNode> {
    let view = index.view();
    view.snapshot
        .node_named(&NodeName::from("n"))
        .expect("the node is there")
        .clone()
}

fn requested(index: &Index, daemons: bool) -> Quantity {
    let view = index.view();
    let machine = machine(index);
    let pods = view.snapshot.pods_of(&machine).filter(|pod| pod.is_daemon() == daemons);
    pods.map(|pod| pod.shape.requests.get("cpu"))
        .fold(Quantity::ZERO, Quantity::saturating_add)
}

/// LC-U3.
#[test]
fn daemon_pods_are_told_from_the_others() {
    let index = index();
    index.apply(node(1, json!({})));
    index.apply(pod("web", 2, |_| {}));
    index.apply(pod("agent", 3, |pod| {
        pod["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "a", "controller": true}]);
    }));
    assert_eq!(
        (requested(&index, true), requested(&index, false)),
        (Quantity::from_int(1), Quantity::from_int(1))
    );
    assert_eq!(
        index.view().snapshot.requested_on(&machine(&index)).get("cpu"),
        Quantity::from_int(2)
    );
}

/// LC-U9: required rules against neighbours bind others, preferred ones do not, and both go with their pod.
#[test]
fn rules_against_neighbours_go_with_their_pod() {
    let term = json!({"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}});
    let required = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}});
    let preferred = json!({"podAntiAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}]
    }});
    let index = index();
    index.apply(pod("hard", 1, |pod| pod["spec"]["affinity"] = required));
    index.apply(pod("soft", 2, |pod| pod["spec"]["affinity"] = preferred));
    let bound = |name: &str| {
        let view = index.view();
        let pod = view.snapshot.pods.get(&PodKey::new("default", name));
        pod.map(|pod| pod.shape.affinity.required_anti.len())
    };
    assert_eq!((bound("hard"), bound("soft")), (Some(1), Some(0)));
    index.delete(&pod("hard", 3, |_| {}));
    assert_eq!(bound("hard"), None);
}

/// LC-U10: what a pod takes of its node besides resources survives whatever happens to the machine, and counts once.
#[test]
fn volumes_and_ports_stay_with_the_node_whatever_half_of_it_changes() {
    let index = index();
    let greedy = |version| {
        pod("db", version, |pod| {
            pod["spec"]["containers"][0]["ports"] = json!([{"containerPort": 80, "hostPort": 80}]);
            pod["spec"]["volumes"] = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]);
        })
    };
    let taken = || {
        let view = index.view();
        let machine = machine(&index);
        let pods: Vec<_> = view.snapshot.pods_of(&machine).collect();
        let ports: usize = pods.iter().map(|pod| pod.shape.host_ports.len()).sum();
        let volumes: usize = pods.iter().map(|pod| pod.shape.volumes.len()).sum();
        (ports, volumes)
    };
    let mut stored = meta("data", 1);
    stored["namespace"] = "default".into();
    index.apply(parse::<PersistentVolumeClaim>(
        json!({"metadata": stored, "spec": {"volumeName": "pv"}}),
    ));
    // The pod is told of before its node.
    index.apply(greedy(2));
    index.apply(node(3, json!({})));
    assert_eq!(taken(), (1, 1));
    index.apply(claim(4, Some("i-1")));
    assert_eq!(taken(), (1, 1));
    index.apply(greedy(5));
    index.apply(node(6, json!({"x": "y"})));
    assert_eq!(taken(), (1, 1));
}

/// LC-U11, LC-U12, LC-U13: capacity that is on its way holds decisions up, and nothing else does.
#[test]
fn only_a_claim_without_an_instance_holds_decisions_up() {
    let index = index();
    let synced = || {
        let view = index.view();
        view.synced && view.unlaunched.is_empty()
    };
    assert!(synced(), "nothing is to be listed");
    index.apply(claim(1, Some("i-1")));
    index.apply(node(2, json!({})));
    let mut bare = node(3, json!({}));
    bare.metadata.name = Some("bare".to_owned());
    bare.spec.get_or_insert_default().provider_id = None;
    index.apply(bare);
    assert!(synced(), "a node without an instance is somebody else's");
    let mut waiting = claim(4, None);
    waiting.metadata.name = Some("waiting".to_owned());
    waiting.metadata.uid = Some("waiting".to_owned());
    index.apply(waiting.clone());
    assert!(!synced());
    waiting.metadata.resource_version = Some("5".to_owned());
    index.delete(&waiting);
    assert!(synced());
}

/// LC-U22: the answer to a creation that arrives after the word of the deletion brings nothing back.
#[test]
fn an_answer_that_comes_after_the_end_changes_nothing() {
    let index = index();
    index.apply(claim(1, None));
    index.delete(&claim(2, None));
    index.apply(claim(1, None));
    assert!(index.view().claims.is_empty() && index.view().unlaunched.is_empty());
    let mut another = claim(3, None);
    another.metadata.uid = Some("another".to_owned());
    index.apply(another);
    assert_eq!(index.view().unlaunched.len(), 1, "a namesake is another claim");
}

/// LC-U17: what every node sheds while it starts is hidden for as long as one of ours has not started.
#[test]
fn taints_of_the_start_are_hidden_until_a_managed_node_has_started() {
    let index = index();
    let keys = || {
        let taints = machine(&index).taints();
        taints.iter().map(|taint: &Taint| taint.key.clone()).collect::<Vec<_>>()
    };
    index.apply(node(1, json!({})));
    assert_eq!(keys(), ["team", "boot", "node.kubernetes.io/not-ready"], "nobody's");
    index.apply(claim(2, Some("i-1")));
    assert_eq!(keys(), ["team"], "not registered");
    index.apply(node(3, json!({"karpenter.sh/registered": "true"})));
    assert_eq!(keys(), ["team"], "not initialized");
    index.apply(node(
        4,
        json!({"karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"}),
    ));
    assert_eq!(keys(), ["team", "boot", "node.kubernetes.io/not-ready"]);
}

/// LC-U20: in every phase a machine counts as one node, and before it has started its claim fills what it lacks.
#[test]
fn a_machine_is_one_node_from_the_claim_on() {
    let index = index();
    let figures = |machine: &StateNode| ["nodes", "cpu", "memory"].map(|name| machine.capacity().get(name).to_string());
    index.apply(claim(1, None));
    let key = NodeKey::Claim("c".into());
    assert_eq!(figures(&index.view().snapshot.nodes[&key]), ["1", "4", "8Gi"]);
    index.apply(claim(2, Some("i-1")));
    index.apply(node(3, json!({"karpenter.sh/registered": "true"})));
    assert_eq!(figures(&machine(&index)), ["1", "3", "8Gi"]);
    index.apply(node(
        4,
        json!({"karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"}),
    ));
    assert_eq!(figures(&machine(&index)), ["1", "3", "0"]);
}

/// LC-U24.
#[test]
fn readers_and_writers_do_not_get_in_each_others_way() {
    let index = index();
    thread::scope(|scope| {
        for writer in 0..4_u64 {
            let index = &index;
            scope.spawn(move || {
                for step in 0..200 {
                    let mut one = claim(1 + step, (step % 2 == 1).then_some("i"));
                    let name = format!("c{writer}");
                    one.metadata.name = Some(name.clone());
                    one.metadata.uid = Some(name);
                    index.apply(one);
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..500 {
                    let view = index.view();
                    let unlaunched = view
                        .claims
                        .values()
                        .filter(|claim| claim.status.as_ref().is_none_or(|status| status.provider_id.is_none()));
                    assert_eq!(unlaunched.count(), view.unlaunched.len(), "a view is of one moment");
                }
            });
        }
    });
    assert!(index.view().unlaunched.is_empty());
    assert_eq!(index.view().claims.len(), 4);
}

/// LC-U21: the room of the last round is all the room there is, and a machine that it does not name has none.
#[test]
fn room_for_buffers_is_replaced_as_a_whole() {
    let index = index();
    let [first, second] = ["first", "second"].map(|name| NodeKey::Claim(name.into()));
    let holds = |key: &NodeKey| index.view().snapshot.holds_room(key);
    index.put_room([(first.clone(), 2_u32)].into_iter().collect());
    assert_eq!((holds(&first), holds(&second)), (true, false));
    index.put_room([(second.clone(), 1_u32)].into_iter().collect());
    assert_eq!((holds(&first), holds(&second)), (false, true));
    index.put_room(Default::default());
    assert_eq!((holds(&first), holds(&second)), (false, false));
}
