//! Nodes, pods and disruption budgets of a situation.

use std::{collections::BTreeMap, sync::Arc};

use jiff::SignedDuration;
use model::{
    Claim, ClaimPhase, InstanceType, Labels, NodeFacts, NodeKey, Operator, Pod, PodKey, Requirement, Snapshot,
    StateNode, Toleration, Volume, VolumeClaim,
    pod::{DoNotDisrupt, LabelSelector, NodeTerm, PodOwner, PodPhase, PodShape, PodTerm, PodVolume, TopologySpread},
    samples,
    snapshot::DisruptionBudget,
    vocabulary,
};

use super::{Line, ago, now, shapes::duration};

pub(super) fn node(line: &Line<'_>, types: &BTreeMap<String, Arc<InstanceType>>) -> StateNode {
    let kind = line.get("type").unwrap_or(line.name);
    let mut labels: Labels = line.labels();
    for (word, key, value) in [
        ("type", vocabulary::INSTANCE_TYPE, kind),
        ("zone", vocabulary::ZONE, line.get("zone").unwrap_or("a")),
        (
            "sell",
            vocabulary::CAPACITY_TYPE,
            line.get("sell").unwrap_or("on-demand"),
        ),
    ] {
        if line.map("missing").all(|(missing, _)| missing != word) {
            labels.insert(key.into(), value.into());
        }
    }
    labels.insert(vocabulary::REGISTERED.into(), "true".into());
    labels.insert(vocabulary::HOSTNAME.into(), line.name.into());
    if let Some(pool) = line.get("pool") {
        labels.insert(vocabulary::NODEPOOL.into(), pool.into());
    }
    if !line.says("young") {
        labels.insert(vocabulary::INITIALIZED.into(), "true".into());
    }
    let protection = match (line.says("protected"), line.says("unprotected")) {
        (true, _) => Some("true"),
        (_, true) => Some("false"),
        _ => None,
    };
    let annotations: Labels = protection
        .map(|value| ("karpenter.sh/do-not-disrupt".into(), value.into()))
        .into_iter()
        .collect();
    let room = types
        .get(kind)
        .map(|kind| kind.allocatable().clone())
        .unwrap_or_default();
    let claim = Claim {
        pool: line.get("pool").map(Into::into),
        phase: ClaimPhase::Initialized,
        labels: labels.clone(),
        capacity: room.clone(),
        allocatable: room.clone(),
        deleting: line.says("leaving").then(now),
        instance_terminating: line.says("terminating"),
        termination_grace: line.says("grace").then_some(SignedDuration::from_mins(5)),
        consolidatable: !line.says("settling"),
        drifted: line.says("drifted").then(|| "NodePoolDrifted".to_owned()),
        drifted_at: line.get("drifted").map(ago),
        initialized_at: Some(ago("86400")),
        last_pod_event: line.get("event").map(ago),
        ..samples::claim(line.name)
    };
    let half = NodeFacts {
        labels,
        annotations,
        ready: !line.says("down"),
        capacity: room.clone(),
        allocatable: room,
        ..samples::node(line.name)
    };
    StateNode {
        key: if line.says("foreign") {
            NodeKey::Node(line.name.into())
        } else {
            NodeKey::Claim(line.name.into())
        },
        claim: (!line.says("foreign")).then_some(claim),
        node: (!line.says("unjoined")).then_some(half),
        nominated_until: line.says("nominated").then(|| now() + SignedDuration::from_secs(20)),
        marked_for_deletion: line.says("marked"),
    }
}

/// For how many pods of capacity buffers a node holds room.
pub(super) fn held(line: &Line<'_>) -> (NodeKey, u32) {
    let pods = line.get("held").expect("a number").parse().expect("a number");
    (NodeKey::Claim(line.name.into()), pods)
}

pub(super) fn pods(line: &Line<'_>) -> Vec<Pod> {
    match line.get("count") {
        None => vec![pod(line, line.name.to_owned())],
        Some(count) => {
            let count: usize = count.parse().expect("a number");
            (1..=count)
                .map(|number| pod(line, format!("{}-{number}", line.name)))
                .collect()
        }
    }
}

fn pod(line: &Line<'_>, name: String) -> Pod {
    let mut labels = line.labels();
    labels.entry("app".into()).or_insert_with(|| line.name.into());
    let mut requests = line.resources();
    requests.set("pods".into(), model::Quantity::from_int(1));
    let mut shape = PodShape {
        labels,
        requests,
        priority: match line.get("priority") {
            Some(priority) => priority.parse().expect("a number"),
            None if line.says("worthless") => i32::MIN,
            None => 0,
        },
        tolerations: line
            .says("tolerant")
            .then(|| Toleration::of_key(""))
            .into_iter()
            .collect(),
        ..samples::pod_shape()
    };
    for (key, value) in line.map("select") {
        let key = if key == "zone" { vocabulary::ZONE } else { key };
        shape.node_selector.push(Requirement::one_of(key, [value]));
    }
    let app = line.map("label").find(|(key, _)| *key == "app");
    let app = app.map_or(line.name, |(_, app)| app);
    if line.says("apart") {
        shape.affinity.required_anti.push(not_on_a_node_with(app, 0));
    }
    if line.says("aloof") {
        shape.affinity.preferred_anti.push(not_on_a_node_with(app, 1));
    }
    for (key, value) in line.map("likes") {
        let key = if key == "type" { vocabulary::INSTANCE_TYPE } else { key };
        shape.affinity.preferred_nodes.push(NodeTerm {
            requirements: vec![Requirement::one_of(key, [value])],
            weight: 1,
        });
    }
    if line.says("spread") {
        shape.spreads.push(TopologySpread {
            topology_key: vocabulary::ZONE.to_owned(),
            max_skew: 1,
            min_domains: None,
            required: true,
            selector: Some(selecting(app)),
            match_label_keys: Vec::new(),
            honor_affinity: true,
            honor_taints: false,
        });
    }
    let owner = if line.says("daemon") {
        PodOwner::DaemonSet
    } else if line.says("mirror") {
        PodOwner::Node
    } else if line.says("stateful") {
        PodOwner::StatefulSet
    } else if line.get("owner") == Some("none") {
        PodOwner::Nobody
    } else {
        PodOwner::Other
    };
    let keep = line.get("keep").map(|text| match text {
        "bad" => DoNotDisrupt::Invalid("soon".to_owned()),
        text => DoNotDisrupt::For(duration(text)),
    });
    Pod {
        shape: Arc::new(shape),
        owner,
        phase: if line.says("finished") {
            PodPhase::Succeeded
        } else if line.says("pending") {
            PodPhase::Pending
        } else {
            PodPhase::Running
        },
        ready: !line.says("unready"),
        node: line.get("on").map(Into::into),
        unschedulable: line.says("pending"),
        started: line.get("started").map(ago),
        deletion: line.says("ending").then(now),
        do_not_disrupt: line.says("protected").then_some(DoNotDisrupt::Always).or(keep),
        deletion_cost: line
            .get("deletion-cost")
            .map_or(0.0, |cost| cost.parse().expect("a number")),
        ..samples::pod(&name)
    }
}

/// `local`: a volume that lies on the pod's node.
pub(super) fn fasten(line: &Line<'_>, pod: &mut Pod, snapshot: &mut Snapshot) {
    let (true, Some(node)) = (line.says("local"), &pod.node) else {
        return;
    };
    let volume = Volume {
        name: line.name.into(),
        deleting: false,
        driver: None,
        machine_bound: true,
        node_terms: vec![vec![Requirement::one_of(vocabulary::HOSTNAME, [node.as_str()])]],
    };
    let claim = VolumeClaim {
        key: PodKey::new("default", line.name),
        volume: Some(line.name.into()),
        storage_class: None,
        bind_completed: true,
        deleting: false,
        lost: false,
    };
    snapshot.volumes.insert(volume.name.clone(), Arc::new(volume));
    snapshot.volume_claims.insert(claim.key.clone(), Arc::new(claim));
    let volumes = &mut Arc::make_mut(&mut pod.shape).volumes;
    volumes.push(PodVolume::Claim(line.name.to_owned()));
}

fn not_on_a_node_with(app: &str, weight: i32) -> PodTerm {
    PodTerm {
        topology_key: vocabulary::HOSTNAME.to_owned(),
        selector: Some(selecting(app)),
        namespaces: Default::default(),
        namespace_selector: None,
        match_label_keys: Vec::new(),
        mismatch_label_keys: Vec::new(),
        weight,
    }
}

fn selecting(app: &str) -> LabelSelector {
    LabelSelector {
        requirements: vec![Requirement::new("app", Operator::In, [app.into()]).expect("a selector")],
    }
}

pub(super) fn disruption_budget(line: &Line<'_>) -> DisruptionBudget {
    DisruptionBudget {
        key: PodKey::new(line.get("in").unwrap_or("default"), line.name),
        selector: Some(selecting(line.get("covers").expect("a pod to cover"))),
        disruptions_allowed: line.get("allows").map_or(0, |count| count.parse().expect("a number")),
        fully_blocking: line.says("never"),
        unhealthy_always_allowed: line.says("lenient"),
    }
}
