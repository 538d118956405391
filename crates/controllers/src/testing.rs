//! Plain values for tests to vary.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use model::{
    Claim, ClaimPhase, Labels, Pod, PodKey, Pool, Requirements, Resources,
    node::NodeClassRef,
    pod::{Affinity, PodOwner, PodPhase, PodShape},
    pool::{ConsolidationPolicy, Disruption, Template},
};

fn class() -> NodeClassRef {
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
        shape: Arc::new(PodShape {
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
            termination_grace: SignedDuration::from_secs(30),
        }),
        owner: PodOwner::Other,
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
    }
}
