//! `node` and `claim` lines.

use model::{
    Claim, ClaimPhase, LabelKey, LabelValue, Labels, NodeFacts, NodeKey, Quantity, Requirements, ResourceName,
    Resources, Snapshot, StateNode, vocabulary,
};

use super::{Line, class, now, requirements, taints};

/// A `node` has joined; with a pool it is managed. A `claim` has not: without resources it is not even launched.
pub(super) fn machine(line: &Line<'_>, snapshot: &Snapshot) -> StateNode {
    let mut labels = line.labels();
    for (word, key) in [
        ("pool", vocabulary::NODEPOOL),
        ("zone", vocabulary::ZONE),
        ("type", vocabulary::INSTANCE_TYPE),
    ] {
        labels.extend(
            line.get(word)
                .map(|value| (LabelKey::from(key), LabelValue::from(value))),
        );
    }
    let mut resources = line.resources();
    if !resources.is_empty() && !resources.lists("pods") {
        resources.set(ResourceName::PODS, Quantity::from_int(110));
    }
    let joined = line.kind == "node";
    let pool = line.get("pool").map(|name| {
        snapshot
            .pools
            .get(name)
            .unwrap_or_else(|| panic!("there is no pool {name}"))
    });
    let startup = taints(line, "startup");
    let claim = pool.map(|pool| {
        let mut requirements = requirements(line);
        requirements.merge(&pool.template.requirements);
        requirements.merge(&Requirements::from_labels(&labels));
        Claim {
            name: line.name.into(),
            uid: line.name.to_owned(),
            pool: Some(pool.name.clone()),
            class: class(),
            phase: if joined {
                ClaimPhase::Initialized
            } else {
                ClaimPhase::Pending
            },
            labels: labels.clone(),
            annotations: Labels::new(),
            requirements,
            requests: Resources::default(),
            taints: pool.template.taints.clone(),
            startup_taints: startup,
            provider_id: None,
            node: joined.then(|| line.name.into()),
            capacity: resources.clone(),
            allocatable: resources.clone(),
            created: now(),
            deleting: line.has("leaving").then(now),
            expire_after: None,
            termination_grace: None,
            instance_terminating: false,
            consolidatable: false,
            drifted: None,
            drifted_at: None,
            initialized_at: None,
            last_pod_event: None,
        }
    });
    let node = joined.then(|| {
        if !line.has("booting") {
            labels.extend([vocabulary::REGISTERED, vocabulary::INITIALIZED].map(|key| (key.into(), "true".into())));
        }
        NodeFacts {
            name: line.name.into(),
            provider_id: None,
            labels,
            annotations: Labels::new(),
            taints: taints(line, "taints"),
            unschedulable: line.has("cordoned"),
            capacity: resources.clone(),
            allocatable: resources,
            ready: true,
            created: now(),
            deleting: line.has("leaving").then(now),
        }
    });
    let key = if claim.is_some() {
        NodeKey::Claim(line.name.into())
    } else {
        NodeKey::Node(line.name.into())
    };
    StateNode {
        key,
        claim,
        node,
        nominated_until: None,
        marked_for_deletion: line.has("marked"),
    }
}

/// The claim that acting on a launch would create, before the provider has answered.
pub(crate) fn claim_of(snapshot: &Snapshot, launch: &crate::Launch) -> StateNode {
    let pool = &snapshot.pools[&launch.pool];
    let line = format!("claim planned pool={}", launch.pool);
    let mut machine = machine(&Line::new(&line), snapshot);
    let claim = machine.claim.as_mut().expect("a machine of a pool has a claim");
    claim.labels = (*launch.labels).clone();
    claim.requirements = (*launch.requirements).clone();
    claim.requests = launch.requests.clone();
    claim.taints = pool.template.taints.clone();
    machine
}
