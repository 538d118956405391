//! Takes out of a plan what breaks a rule, so that the rest can be acted upon.

use std::collections::{BTreeMap, BTreeSet};

use model::{NodeKey, PodKey, Snapshot};

use super::{Place, Violation, audit, launches};
use crate::{plan::Plan, refusal::Refusal};

/// What is left may break rules that what was taken out had kept: a pod asks for a neighbour that is gone. Chains of
/// this kind are short, and a plan that is still broken after so many rounds is not to be trusted in any part.
const ROUNDS: usize = 16;

/// A plan that breaks no rule, and what the given one broke.
///
/// Launches are taken out as a whole, since their claims are sized for all of their pods; from machines that are there
/// only the pods at fault are kept away. All pods that lose their place are refused with the rule as the reason.
pub fn guard(snapshot: &Snapshot, mut plan: Plan) -> (Plan, Vec<Violation>) {
    let mut all = Vec::new();
    for _ in 0..ROUNDS {
        let Err(broken) = audit(snapshot, &plan) else {
            return (plan, all);
        };
        plan = without(snapshot, plan, &broken);
        all.extend(broken);
    }
    if let Err(broken) = audit(snapshot, &plan) {
        let why = &broken[0];
        let nothing = Plan {
            refusals: plan.refusals.clone(),
            ..Plan::default()
        };
        plan = refusing(nothing, plan.placed().map(|pod| (pod, why)));
        all.extend(broken);
    }
    (plan, all)
}

/// What has to go, with the first reason for each.
#[derive(Default)]
struct Condemned<'v> {
    launches: BTreeMap<usize, &'v Violation>,
    nodes: BTreeMap<&'v NodeKey, &'v Violation>,
    pods: BTreeMap<&'v PodKey, &'v Violation>,
}

impl<'v> Condemned<'v> {
    fn place(&mut self, place: &'v Place, violation: &'v Violation) {
        match place {
            Place::Launch(index) => {
                self.launches.entry(*index).or_insert(violation);
            }
            Place::Node(node) => {
                self.nodes.entry(node).or_insert(violation);
            }
        }
    }

    fn pod(&mut self, place: &'v Place, pod: &'v PodKey, violation: &'v Violation) {
        match place {
            Place::Launch(_) => self.place(place, violation),
            Place::Node(_) => {
                self.pods.entry(pod).or_insert(violation);
            }
        }
    }
}

fn without(snapshot: &Snapshot, plan: Plan, broken: &[Violation]) -> Plan {
    let mut condemned = Condemned::default();
    let places = places(&plan);
    for violation in broken {
        match violation {
            // Its first place is as good as any. A place and a refusal are no two places.
            Violation::PodTwice { pod } => {
                for place in places.get(pod).into_iter().flatten().skip(1) {
                    condemned.pod(place, pod, violation);
                }
            }
            Violation::NodeGone { node } | Violation::TooManyVolumes { node, .. } => {
                condemned.nodes.entry(node).or_insert(violation);
            }
            Violation::UnknownPool { launch, .. }
            | Violation::ClosedPool { launch, .. }
            | Violation::Purposeless { launch }
            | Violation::NothingToBuy { launch }
            | Violation::NotForSale { launch, .. }
            | Violation::OutsidePool { launch, .. }
            | Violation::TooAlike { launch, .. } => {
                condemned.launches.entry(*launch).or_insert(violation);
            }
            Violation::Overfull { place, .. } => condemned.place(place, violation),
            Violation::UnknownPod { place, pod }
            | Violation::Untolerated { place, pod, .. }
            | Violation::WrongLabels { place, pod }
            | Violation::PortTaken { place, pod }
            | Violation::VolumeUnusable { place, pod, .. }
            | Violation::VolumeElsewhere { place, pod, .. }
            | Violation::TooFar { place, pod, .. }
            | Violation::Uneven { place, pod, .. }
            | Violation::NoDomain { place, pod, .. } => condemned.pod(place, pod, violation),
            // One of two has to go, and the other may be on its way out already.
            Violation::TooNear { place, pod, other, .. } => {
                let gone = |place: &Place| match place {
                    Place::Launch(index) => condemned.launches.contains_key(index),
                    Place::Node(node) => condemned.nodes.contains_key(node),
                };
                let other_goes = condemned.pods.contains_key(other)
                    || places.get(other).is_some_and(|places| places.iter().all(gone));
                if !other_goes {
                    condemned.pod(place, pod, violation);
                }
            }
            // The last ones to come are the first to go.
            Violation::OverLimit { pool, excess, .. } => {
                let ours = plan
                    .launches
                    .iter()
                    .enumerate()
                    .rev()
                    .filter(|(_, launch)| launch.pool == *pool);
                condemned
                    .launches
                    .extend(ours.take(*excess).map(|(index, _)| (index, violation)));
            }
            Violation::Overbooked { id, promised, most } => {
                let key = snapshot.vocabulary.reservation_id.as_ref();
                let holders = plan.launches.iter().enumerate().rev().filter(|(_, launch)| {
                    let ids = key.map(|key| launch.requirements.get(key.as_str()));
                    launches::is_reserved(launch) && ids.is_some_and(|ids| ids.has(id.as_str()))
                });
                let excess = promised.saturating_sub(*most as usize);
                condemned
                    .launches
                    .extend(holders.take(excess).map(|(index, _)| (index, violation)));
            }
        }
    }
    carry_out(plan, &condemned)
}

/// Where each pod is, more than one place where the plan is confused.
fn places(plan: &Plan) -> BTreeMap<PodKey, Vec<Place>> {
    let mut places: BTreeMap<PodKey, Vec<Place>> = BTreeMap::new();
    let launched = plan
        .launches
        .iter()
        .enumerate()
        .map(|(index, launch)| (Place::Launch(index), &launch.pods));
    let placed = plan
        .placements
        .iter()
        .map(|placement| (Place::Node(placement.node.clone()), &placement.pods));
    for (place, pods) in launched.chain(placed) {
        for pod in pods {
            places.entry(pod.clone()).or_default().push(place.clone());
        }
    }
    places
}

fn carry_out(plan: Plan, condemned: &Condemned<'_>) -> Plan {
    let mut kept = Plan {
        refusals: plan.refusals,
        ..Plan::default()
    };
    let mut homeless: Vec<(PodKey, &Violation)> = Vec::new();
    for (index, launch) in plan.launches.into_iter().enumerate() {
        match condemned.launches.get(&index) {
            Some(violation) => homeless.extend(launch.pods.into_iter().map(|pod| (pod, *violation))),
            None => kept.launches.push(launch),
        }
    }
    for mut placement in plan.placements {
        let whole = condemned.nodes.get(&placement.node).copied();
        placement
            .pods
            .retain(|pod| match whole.or_else(|| condemned.pods.get(pod).copied()) {
                Some(violation) => {
                    homeless.push((pod.clone(), violation));
                    false
                }
                None => true,
            });
        if !placement.pods.is_empty() {
            kept.placements.push(placement);
        }
    }
    let placed: BTreeSet<PodKey> = kept.placed().cloned().collect();
    // A pod that has a place is not refused, whatever the plan said.
    kept.refusals.retain(|pod, _| !placed.contains(pod));
    let homeless = homeless.iter().filter(|(pod, _)| !placed.contains(pod));
    refusing(kept, homeless.map(|(pod, violation)| (pod, *violation)))
}

fn refusing<'v>(mut plan: Plan, pods: impl Iterator<Item = (&'v PodKey, &'v Violation)>) -> Plan {
    for (pod, violation) in pods {
        let refusal = || Refusal::Audited(violation.clone());
        plan.refusals.entry(pod.clone()).or_insert_with(refusal);
    }
    plan
}
