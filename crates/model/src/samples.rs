//! Plain values for tests to vary: each is as ordinary as can be, and a test changes the field that it is about.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    CapacityType, Claim, ClaimPhase, Labels, NodeFacts, Offering, Pod, PodKey, Pool, Requirement, Requirements,
    Resources,
    node::NodeClassRef,
    pod::{Affinity, PodOwner, PodPhase, PodShape},
    pool::{ConsolidationPolicy, Disruption, Template},
    vocabulary,
};
use jiff::{SignedDuration, Timestamp};

/// The class that all samples refer to.
pub fn class() -> NodeClassRef {
    NodeClassRef {
        group: "karpenter.kwok.sh".to_owned(),
        kind: "KWOKNodeClass".to_owned(),
        name: "default".to_owned(),
    }
}

/// A claim that has just been created.
pub fn claim(name: &str) -> Claim {
    Claim {
        name: name.into(),
        uid: name.to_owned(),
        pool: Some("p".into()),
        class: class(),
        phase: ClaimPhase::Pending,
        labels: Labels::default(),
        annotations: Labels::default(),
        requirements: Requirements::default(),
        requests: Resources::default(),
        taints: Vec::new(),
        startup_taints: Vec::new(),
        provider_id: None,
        node: None,
        capacity: Resources::default(),
        allocatable: Resources::default(),
        created: Timestamp::UNIX_EPOCH,
        deleting: None,
        expire_after: None,
        termination_grace: None,
        instance_terminating: false,
        consolidatable: false,
        drifted: None,
        drifted_at: None,
        initialized_at: None,
        last_pod_event: None,
    }
}

/// A pool that may be used and consolidates at once.
pub fn pool(name: &str) -> Pool {
    Pool {
        name: name.into(),
        uid: name.to_owned(),
        hash: String::new(),
        template: Template {
            labels: Labels::default(),
            annotations: Labels::default(),
            requirements: Requirements::default(),
            taints: Vec::new(),
            startup_taints: Vec::new(),
            class: class(),
            expire_after: None,
            termination_grace: None,
        },
        disruption: Disruption {
            policy: ConsolidationPolicy::WhenEmptyOrUnderutilized,
            consolidate_after: Some(SignedDuration::ZERO),
            budgets: Ok(Vec::new()),
        },
        limits: Resources::default(),
        weight: 0,
        replicas: None,
        ready: true,
        deleting: None,
    }
}

/// A pod of a workload, not bound, with thirty seconds of grace.
pub fn pod(name: &str) -> Pod {
    Pod {
        key: PodKey::new("default", name),
        uid: name.into(),
        shape: Arc::new(pod_shape()),
        owner: PodOwner::Other,
        controller: None,
        phase: PodPhase::Pending,
        ready: false,
        node: None,
        nominated_node: None,
        created: Timestamp::UNIX_EPOCH,
        started: None,
        deletion: None,
        unschedulable: false,
        scheduling_gated: false,
        do_not_disrupt: None,
        deletion_cost: 0.0,
        generated_claims: BTreeMap::new(),
    }
}

/// A pod that asks for nothing and says nothing about where it wants to be.
pub fn pod_shape() -> PodShape {
    PodShape {
        labels: Labels::default(),
        requests: Resources::default(),
        node_selector: Vec::new(),
        affinity: Affinity::default(),
        spreads: Vec::new(),
        tolerations: Vec::new(),
        host_ports: Vec::new(),
        volumes: Vec::new(),
        priority: 0,
        priority_class: None,
        scheduler_name: "default-scheduler".into(),
        resource_claims: Vec::new(),
        containers_claim: false,
        termination_grace: SignedDuration::from_secs(30),
    }
}

/// A node that is ready and has nothing on it.
pub fn node(name: &str) -> NodeFacts {
    NodeFacts {
        name: name.into(),
        provider_id: Some(format!("kwok://{name}").into()),
        labels: Labels::default(),
        annotations: Labels::default(),
        taints: Vec::new(),
        unschedulable: false,
        capacity: Resources::default(),
        allocatable: Resources::default(),
        ready: true,
        created: Timestamp::UNIX_EPOCH,
        deleting: None,
    }
}

/// An offering that can be had.
pub fn offering(capacity_type: CapacityType, zone: &str, price: f64) -> Offering {
    let labels = [
        Requirement::one_of(vocabulary::ZONE, [zone]),
        Requirement::one_of(vocabulary::CAPACITY_TYPE, [capacity_type.as_str()]),
    ];
    Offering {
        capacity_type,
        zone: zone.into(),
        price,
        available: true,
        requirements: labels.into_iter().collect(),
        reservation_capacity: None,
        capacity_override: None,
        overhead_override: None,
    }
}
