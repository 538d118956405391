//! Rules between pods and nodes that both solver steps share, and rules that this solver does not know.

use std::collections::BTreeSet;

use model::{
    Pod, PodKey, Quantity, Requirements, Resources, Snapshot, Taint, Toleration,
    pod::{HostPort, PodShape, PodTerm, PodVolume},
    requirements::AllowUndefined,
    taint,
};

use crate::refusal::UnsupportedRule;

/// How many copies of a request fit into what is left of a room. A room that is overdrawn takes nothing.
pub(crate) fn copies(request: &Resources, used: &Resources, room: &Resources) -> usize {
    if room.is_overdrawn() {
        return 0;
    }
    let mut most = usize::MAX;
    for (resource, amount) in request.iter() {
        let free = room.get(resource.as_str()).saturating_sub(used.get(resource.as_str()));
        if free.is_negative() {
            return 0;
        }
        if amount > Quantity::ZERO {
            most = most.min(usize::try_from(free.nanos() / amount.nanos()).unwrap_or(usize::MAX));
        }
    }
    most
}

/// Whether a port that is wanted is taken already.
pub(crate) fn ports_clash(wanted: &[HostPort], taken: &[HostPort]) -> bool {
    wanted
        .iter()
        .any(|port| taken.iter().any(|other| port.conflicts_with(other)))
}

/// Whether a daemon will run on a node with these labels and taints. Preferences do not keep a daemon away.
pub(crate) fn daemon_runs_on(
    daemon: &PodShape,
    taints: &[Taint],
    labels: &Requirements,
    allow: AllowUndefined<'_>,
) -> bool {
    let mut tolerations = daemon.tolerations.clone();
    tolerations.push(Toleration::of_prefer_no_schedule());
    taint::untolerated(taints, &tolerations).is_none()
        && Requirements::alternatives_of_pod(daemon)
            .iter()
            .any(|way| labels.is_compatible(way, allow))
}

/// Finds the rules that this solver cannot follow.
pub(crate) struct Unsupported<'a> {
    snapshot: &'a Snapshot,
    repellers: Vec<&'a Pod>,
}

impl<'a> Unsupported<'a> {
    /// Pods of the round do not repel each other here: the ones that would are refused themselves.
    pub fn new(snapshot: &'a Snapshot, round: &BTreeSet<&PodKey>) -> Self {
        let repels = |pod: &&Pod| {
            !pod.is_terminal()
                && pod
                    .shape
                    .affinity
                    .required_anti
                    .iter()
                    .any(|term| term.selector.is_some())
                && pod
                    .node
                    .as_ref()
                    .is_some_and(|node| snapshot.node_named(node).is_some())
                && !round.contains(&pod.key)
        };
        Self {
            snapshot,
            repellers: snapshot.pods.values().map(AsRef::as_ref).filter(repels).collect(),
        }
    }

    /// The first rule of the pod, or of a running pod towards it, that would have to be followed and cannot be.
    pub fn rule_for(&self, pod: &Pod) -> Option<UnsupportedRule> {
        let shape = &pod.shape;
        if shape.claims_devices() {
            let name = shape.resource_claims.first().map(|claim| claim.name.clone());
            return Some(UnsupportedRule::ResourceClaim {
                name: name.unwrap_or_default(),
            });
        }
        if let Some(volume) = shape.volumes.first() {
            let (PodVolume::Claim(name) | PodVolume::Ephemeral { volume: name, .. }) = volume;
            return Some(UnsupportedRule::Volume { name: name.clone() });
        }
        // Without a selector no pod is meant: such a spread or anti-affinity forbids nothing.
        if let Some(spread) = shape
            .spreads
            .iter()
            .find(|spread| spread.required && spread.selector.is_some())
        {
            return Some(UnsupportedRule::TopologySpread {
                key: spread.topology_key.clone(),
            });
        }
        if let Some(term) = shape.affinity.required_pods.first() {
            return Some(UnsupportedRule::PodAffinity {
                key: term.topology_key.clone(),
            });
        }
        if let Some(term) = shape.affinity.required_anti.iter().find(|term| term.selector.is_some()) {
            return Some(UnsupportedRule::PodAntiAffinity {
                key: term.topology_key.clone(),
            });
        }
        self.repellers.iter().find_map(|repeller| {
            let terms = &repeller.shape.affinity.required_anti;
            let term = terms.iter().find(|term| self.selects(repeller, term, pod))?;
            Some(UnsupportedRule::RepelledBy {
                pod: repeller.key.clone(),
                key: term.topology_key.clone(),
            })
        })
    }

    fn selects(&self, owner: &Pod, term: &PodTerm, pod: &Pod) -> bool {
        let namespace = &pod.key.namespace;
        let by_label = term.namespace_selector.as_ref().is_some_and(|selector| {
            self.snapshot
                .namespaces
                .get(namespace)
                .is_some_and(|labels| selector.matches(labels))
        });
        let by_name = if term.namespaces.is_empty() && term.namespace_selector.is_none() {
            owner.key.namespace == *namespace
        } else {
            term.namespaces.contains(&**namespace)
        };
        (by_label || by_name)
            && term
                .selector
                .as_ref()
                .is_some_and(|selector| selector.matches(&pod.shape.labels))
    }
}
