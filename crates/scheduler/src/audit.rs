//! Whether a plan keeps the rules of the cluster.
//!
//! This module knows what Kubernetes and the pools promise, and nothing of how plans are made: it shares no code with
//! the solver on purpose. [`audit`] lists what a plan breaks; [`guard`] takes the broken parts out, so that the rest can
//! be acted upon.
//!
//! ```text
//! audit ─┬─ launches     one machine to buy: types, offerings, room, ports, variety
//!        ├─ machines     one machine that is there: labels, taints, room, ports, attached volumes
//!        ├─ ledger       limits of pools and reservations, over the whole plan
//!        └─ neighbours   spread, affinity and anti-affinity, over the whole cluster as it will be
//! ```
//!
//! What a machine may become counts as the worst case for room, ports, limits and anti-affinity. Spread and affinity
//! are judged where the launch would land at the present prices, and by existence: they are broken only if no order in
//! which the pods are bound could have kept them.

mod guard;
mod launches;
mod ledger;
mod machines;
mod neighbours;
mod storage;
mod violation;

use model::{
    Effect, Pod, PodKey, Requirement, Requirements, Resources, Snapshot, Taint,
    pod::{HostPort, PodShape},
};
use rustc_hash::FxHashSet;

use crate::plan::Plan;

pub use guard::guard;
pub use violation::{Place, Violation};

/// Checks every launch and placement of a plan.
///
/// # Cost
///
/// About linear in the pods of the cluster, its machines and the launches.
///
/// # Errors
///
/// All rules that the plan breaks, in the order of the plan; then those that concern several machines.
pub fn audit(snapshot: &Snapshot, plan: &Plan) -> Result<(), Vec<Violation>> {
    let mut audit = Audit {
        snapshot,
        broken: Vec::new(),
    };
    audit.pods_once(plan);
    launches::check(&mut audit, plan);
    for placement in &plan.placements {
        machines::check(&mut audit, placement);
    }
    audit.broken.extend(ledger::limits(snapshot, plan));
    audit.broken.extend(ledger::reservations(snapshot, plan));
    audit.broken.extend(neighbours::check(snapshot, plan));
    if audit.broken.is_empty() {
        Ok(())
    } else {
        Err(audit.broken)
    }
}

struct Audit<'a> {
    snapshot: &'a Snapshot,
    broken: Vec<Violation>,
}

impl<'a> Audit<'a> {
    fn pods_once(&mut self, plan: &Plan) {
        let mut seen = FxHashSet::default();
        for pod in plan.placed().chain(plan.refusals.keys()) {
            if !seen.insert(pod) {
                self.broken.push(Violation::PodTwice { pod: pod.clone() });
            }
        }
    }

    fn pods(&mut self, place: &Place, keys: &[PodKey]) -> Vec<&'a Pod> {
        let mut pods = Vec::with_capacity(keys.len());
        for key in keys {
            let Some(pod) = self.snapshot.pods.get(key) else {
                self.broken.push(Violation::UnknownPod {
                    place: place.clone(),
                    pod: key.clone(),
                });
                continue;
            };
            pods.push(pod.as_ref());
        }
        pods
    }

    fn tolerates(&mut self, place: &Place, pod: &Pod, taints: &[Taint]) {
        if let Some(taint) = hard(taints).find(|taint| !taint.is_tolerated_by(&pod.shape.tolerations)) {
            let (place, pod, taint) = (place.clone(), pod.key.clone(), taint.clone());
            self.broken.push(Violation::Untolerated { place, pod, taint });
        }
    }

    /// Whether the pods get along with each other and with ports that are taken already.
    fn ports(&mut self, place: &Place, pods: &[&Pod], taken: &[HostPort]) {
        let wanting = pods.iter().filter(|pod| !pod.shape.host_ports.is_empty());
        let mut taken = taken.to_vec();
        for pod in wanting {
            let ports = &pod.shape.host_ports;
            let clashes = ports
                .iter()
                .any(|port| taken.iter().any(|other| port.conflicts_with(other)));
            self.check(!clashes, || Violation::PortTaken {
                place: place.clone(),
                pod: pod.key.clone(),
            });
            taken.extend(ports.iter().cloned());
        }
    }

    fn check(&mut self, holds: bool, violation: impl FnOnce() -> Violation) {
        if !holds {
            self.broken.push(violation());
        }
    }
}

fn requests(pods: &[&Pod]) -> Resources {
    let mut sum = Resources::default();
    for pod in pods {
        sum.add_assign(&pod.shape.requests);
    }
    sum
}

/// Taints that keep pods away, and do not merely discourage them.
fn hard(taints: &[Taint]) -> impl Iterator<Item = &Taint> {
    taints.iter().filter(|taint| taint.effect != Effect::PreferNoSchedule)
}

/// Whether one of a pod's alternatives is met. Each demand is asked for by itself: merged, two that exclude each other
/// would read as a demand for absence.
fn is_content(pod: &Pod, mut met: impl FnMut(&Requirements) -> bool) -> bool {
    let shape = &pod.shape;
    let mut all = |demands: &[Requirement]| {
        demands
            .iter()
            .all(|demand| met(&std::iter::once(demand.clone()).collect()))
    };
    let terms = &shape.affinity.required_nodes;
    all(&shape.node_selector) && (terms.is_empty() || terms.iter().any(|term| all(&term.requirements)))
}

/// Pods of one workload ask the same questions: each different shape once, with the first pod that has it.
fn by_shape<'p>(pods: &[&'p Pod]) -> Vec<&'p Pod> {
    let mut seen: FxHashSet<*const PodShape> = FxHashSet::default();
    let shape = |pod: &&&Pod| seen.insert(std::sync::Arc::as_ptr(&pod.shape));
    pods.iter().filter(shape).copied().collect()
}
