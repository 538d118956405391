//! `pod` and `daemon` lines.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::SignedDuration;
use model::{
    Pod, PodKey, Quantity, ResourceName, Toleration,
    pod::{
        Affinity, HostPort, LabelSelector, NodeTerm, PodClaim, PodClaimSource, PodOwner, PodPhase, PodShape, PodTerm,
        PodVolume, TopologySpread,
    },
};

use super::{Line, full_key, now, requirement};

pub(super) fn shape(line: &Line<'_>) -> PodShape {
    let mut requests = line.resources();
    requests.set(ResourceName::PODS, Quantity::from_int(1));
    let term = |text: &str| NodeTerm {
        weight: 0,
        requirements: text.split('&').map(requirement).collect(),
    };
    let everyone = || {
        Some(LabelSelector {
            requirements: Vec::new(),
        })
    };
    let pod_term = |key: &str| PodTerm {
        topology_key: full_key(key).to_owned(),
        selector: everyone(),
        namespaces: BTreeSet::new(),
        namespace_selector: None,
        match_label_keys: Vec::new(),
        mismatch_label_keys: Vec::new(),
        weight: 0,
    };
    let toleration = |text: &str| {
        let (key, effect) = text
            .split_once(':')
            .map_or((text, None), |(key, effect)| (key, effect.parse().ok()));
        Toleration {
            effect,
            ..Toleration::of_key(key)
        }
    };
    let port = |text: &str| HostPort {
        ip: "0.0.0.0".into(),
        port: text.parse().unwrap(),
        protocol: "TCP".into(),
    };
    PodShape {
        labels: line.labels(),
        requests,
        node_selector: line.all("select").map(requirement).collect(),
        affinity: Affinity {
            required_nodes: line.all("term").map(term).collect(),
            preferred_nodes: line.all("prefer").map(term).collect(),
            required_pods: line.all("near").map(pod_term).collect(),
            required_anti: line.all("apart").map(pod_term).collect(),
            ..Affinity::default()
        },
        spreads: line
            .all("spread")
            .map(|key| TopologySpread {
                topology_key: full_key(key).to_owned(),
                max_skew: 1,
                min_domains: None,
                required: !line.has("anyway"),
                selector: everyone(),
                match_label_keys: Vec::new(),
                honor_affinity: true,
                honor_taints: false,
            })
            .collect(),
        tolerations: line.list("tolerates").into_iter().map(toleration).collect(),
        host_ports: line.list("port").into_iter().map(port).collect(),
        volumes: line
            .all("volume")
            .map(|name| PodVolume::Claim(name.to_owned()))
            .collect(),
        priority: 0,
        priority_class: None,
        scheduler_name: "default-scheduler".into(),
        resource_claims: line.all("device").map(pod_claim).collect(),
        containers_claim: false,
        termination_grace: SignedDuration::from_secs(30),
    }
}

fn pod_claim(name: &str) -> PodClaim {
    PodClaim {
        name: name.to_owned(),
        source: PodClaimSource::Claim(name.to_owned()),
    }
}

pub(super) fn pods(line: &Line<'_>) -> Vec<Pod> {
    let shape = Arc::new(shape(line));
    let namespace = line.get("in").unwrap_or("default");
    let names: BTreeMap<usize, String> = match line.get("count").map(|count| count.parse::<usize>().unwrap()) {
        None => BTreeMap::from([(0, line.name.to_owned())]),
        Some(count) => (1..=count)
            .map(|number| (number, format!("{}-{number}", line.name)))
            .collect(),
    };
    let age = |number: usize| SignedDuration::from_secs(i64::try_from(number).unwrap());
    let pod = |(number, name): (usize, String)| Pod {
        key: PodKey::new(namespace, &name),
        uid: name.as_str().into(),
        shape: shape.clone(),
        owner: if line.has("daemon") {
            PodOwner::DaemonSet
        } else {
            PodOwner::Other
        },
        phase: if line.has("done") {
            PodPhase::Succeeded
        } else {
            PodPhase::Pending
        },
        ready: false,
        node: line.get("on").map(Into::into),
        nominated_node: None,
        created: now() + age(number),
        started: None,
        deletion: None,
        unschedulable: !line.has("on"),
        scheduling_gated: false,
        do_not_disrupt: None,
        deletion_cost: 0.0,
        generated_claims: BTreeMap::new(),
    };
    names.into_iter().map(pod).collect()
}
