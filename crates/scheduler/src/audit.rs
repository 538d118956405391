//! Whether a plan keeps the rules of the cluster.
//!
//! This file knows what Kubernetes and the pools promise, and nothing of how plans are made: it shares no code with the
//! solver on purpose. Where a machine is still open, the worst case counts.

mod ledger;
mod violation;

use std::collections::BTreeSet;

use model::{
    CapacityType, Effect, InstanceType, LabelValue, Pod, PodKey, Requirements, Resources, Snapshot, StateNode, Taint,
    Toleration,
    pod::{HostPort, PodShape},
    requirements::AllowUndefined,
    vocabulary,
};

use crate::plan::{Launch, Placement, Plan};

pub use violation::{Place, Violation};

/// Checks every launch and placement of a plan.
///
/// # Errors
///
/// All rules that the plan breaks, in the order of the plan.
pub fn audit(snapshot: &Snapshot, plan: &Plan) -> Result<(), Vec<Violation>> {
    let mut audit = Audit {
        snapshot,
        broken: Vec::new(),
    };
    audit.pods_once(plan);
    for (index, launch) in plan.launches.iter().enumerate() {
        audit.launch(index, launch);
    }
    for placement in &plan.placements {
        audit.placement(placement);
    }
    audit.broken.extend(ledger::limits(snapshot, plan));
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
        let mut seen = BTreeSet::new();
        for pod in plan.placed().chain(plan.refusals.keys()) {
            if !seen.insert(pod) {
                self.broken.push(Violation::PodTwice { pod: pod.clone() });
            }
        }
    }

    fn launch(&mut self, index: usize, launch: &Launch) {
        let place = Place::Launch(index);
        let Some(pool) = self.snapshot.pools.get(&launch.pool) else {
            self.broken.push(Violation::UnknownPool {
                pool: launch.pool.clone(),
            });
            return;
        };
        if !pool.ready || pool.is_static() || pool.deleting.is_some() {
            self.broken.push(Violation::ClosedPool {
                pool: launch.pool.clone(),
            });
        }
        let pods = self.pods(&place, &launch.pods);
        for pod in &pods {
            self.tolerates(&place, pod, &pool.template.taints);
            let content = Requirements::alternatives_of_pod(&pod.shape)
                .iter()
                .any(|way| launch.requirements.guarantee(way, &self.snapshot.vocabulary));
            self.check(content, || Violation::WrongLabels {
                place: place.clone(),
                pod: pod.key.clone(),
            });
        }
        self.ports(&place, &pods, &[]);
        self.check(!launch.instance_types.is_empty(), || Violation::NothingToBuy {
            launch: index,
        });
        for name in launch.instance_types.iter() {
            match self.snapshot.instance_type(&launch.pool, name) {
                Some(kind) => self.kind(index, launch, kind, &pods, &pool.template.taints),
                None => self.broken.push(Violation::NotForSale {
                    launch: index,
                    instance_type: name.clone(),
                }),
            }
        }
        self.choice(index, launch);
        self.variety(index, launch);
    }

    /// One of the types that the launch may become: it can be bought, and everything has room and ports on it.
    fn kind(&mut self, index: usize, launch: &Launch, kind: &InstanceType, pods: &[&Pod], taints: &[Taint]) {
        let place = Place::Launch(index);
        let mut labels = Requirements::clone(&launch.requirements);
        labels.extend(
            [vocabulary::REGISTERED, vocabulary::INITIALIZED].map(|key| model::Requirement::one_of(key, ["true"])),
        );
        let allow = AllowUndefined::WellKnown(&self.snapshot.vocabulary);
        let daemons: Vec<&PodShape> = self
            .snapshot
            .daemons
            .values()
            .map(|daemon| daemon.shape.as_ref())
            .filter(|daemon| !daemon.claims_devices() && hard(taints).all(|taint| daemon.tolerates(taint)))
            .filter(|daemon| {
                let ways = Requirements::alternatives_of_pod(daemon);
                ways.iter()
                    .any(|way| labels.is_compatible(way, allow) && kind.requirements.overlaps(way))
            })
            .collect();
        let ports: Vec<HostPort> = daemons
            .iter()
            .flat_map(|daemon| daemon.host_ports.iter().cloned())
            .collect();
        self.ports(&place, pods, &ports);

        let asked: Resources = daemons
            .iter()
            .map(|daemon| &daemon.requests)
            .chain(requests(pods))
            .sum();
        let mut offerings = kind
            .offerings
            .iter()
            .filter(|offering| offering.available && offering.admitted_by(&launch.requirements))
            .peekable();
        let sold = kind.requirements.overlaps(&launch.requirements) && offerings.peek().is_some();
        self.check(sold, || Violation::NotForSale {
            launch: index,
            instance_type: kind.name.clone(),
        });
        let roomy = offerings.any(|offering| asked.fits(&kind.allocatable_under(offering)));
        self.check(!sold || roomy, || Violation::Overfull {
            place,
            instance_type: Some(kind.name.clone()),
            short: asked.shortfall(kind.allocatable()),
        });
    }

    fn choice(&mut self, index: usize, launch: &Launch) {
        let choice = &launch.choice;
        let listed = launch.instance_types.contains(&choice.instance_type);
        let offered = self
            .snapshot
            .instance_type(&launch.pool, &choice.instance_type)
            .is_some_and(|kind| {
                kind.offerings.iter().any(|offering| {
                    offering.available
                        && offering.zone == choice.zone
                        && offering.capacity_type == choice.capacity_type
                        && offering.price == choice.price
                        && offering.admitted_by(&launch.requirements)
                })
            });
        let reserved = choice.capacity_type == CapacityType::Reserved;
        self.check(listed && offered && !reserved, || Violation::NotForSale {
            launch: index,
            instance_type: choice.instance_type.clone(),
        });
    }

    fn variety(&mut self, index: usize, launch: &Launch) {
        for requirement in launch.requirements.iter() {
            let Some(least) = requirement.min_values else { continue };
            let kinds = launch
                .instance_types
                .iter()
                .filter_map(|name| self.snapshot.instance_type(&launch.pool, name));
            let values: BTreeSet<&LabelValue> = kinds
                .filter_map(|kind| kind.requirements.get(requirement.key.as_str()).listed())
                .flatten()
                .collect();
            let enough = values.len() >= least as usize;
            self.check(enough, || Violation::TooAlike {
                launch: index,
                key: requirement.key.clone(),
            });
        }
    }

    fn placement(&mut self, placement: &Placement) {
        let place = Place::Node(placement.node.clone());
        let Some(machine) = self
            .snapshot
            .nodes
            .get(&placement.node)
            .filter(|machine| !machine.is_leaving())
        else {
            self.broken.push(Violation::NodeGone {
                node: placement.node.clone(),
            });
            return;
        };
        let pods = self.pods(&place, &placement.pods);
        for pod in &pods {
            self.tolerates(&place, pod, &machine.taints());
            let content = Requirements::alternatives_of_pod(&pod.shape)
                .iter()
                .any(|way| self.has_labels(machine, way));
            self.check(content, || Violation::WrongLabels {
                place: place.clone(),
                pod: pod.key.clone(),
            });
        }
        let bound = self.snapshot.pods_of(machine).filter(|pod| !pod.is_terminal());
        let ports: Vec<HostPort> = bound.flat_map(|pod| pod.shape.host_ports.iter().cloned()).collect();
        self.ports(&place, &pods, &ports);

        let asked: Resources = requests(&pods)
            .sum::<Resources>()
            .plus(&self.snapshot.requested_on(machine));
        for (instance_type, room) in ledger::rooms(self.snapshot, machine) {
            self.check(asked.fits(&room), || Violation::Overfull {
                place: place.clone(),
                instance_type,
                short: asked.shortfall(&room),
            });
        }
    }

    /// As kube-scheduler reads labels, once there are labels; before that, whatever the machine turns out to be.
    fn has_labels(&self, machine: &StateNode, way: &Requirements) -> bool {
        if let Some(claim) = machine.claim.as_ref().filter(|_| ledger::is_unlaunched(machine)) {
            return claim.requirements.guarantee(way, &self.snapshot.vocabulary);
        }
        let labels = Requirements::from_labels(machine.labels());
        way.iter()
            .all(|requirement| match labels.get(requirement.key.as_str()).single() {
                Some(value) => requirement.has(value.as_str()),
                None if requirement.key == vocabulary::HOSTNAME => {
                    machine.node_name().is_some_and(|name| requirement.has(name.as_str()))
                }
                None => requirement.operator().accepts_absence(),
            })
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
        let tolerations: &[Toleration] = &pod.shape.tolerations;
        if let Some(taint) = hard(taints).find(|taint| !taint.is_tolerated_by(tolerations)) {
            let (place, pod, taint) = (place.clone(), pod.key.clone(), taint.clone());
            self.broken.push(Violation::Untolerated { place, pod, taint });
        }
    }

    fn ports(&mut self, place: &Place, pods: &[&Pod], taken: &[HostPort]) {
        let mut taken = taken.to_vec();
        for pod in pods {
            if pod
                .shape
                .host_ports
                .iter()
                .any(|port| taken.iter().any(|other| port.conflicts_with(other)))
            {
                self.broken.push(Violation::PortTaken {
                    place: place.clone(),
                    pod: pod.key.clone(),
                });
            }
            taken.extend(pod.shape.host_ports.iter().cloned());
        }
    }

    fn check(&mut self, holds: bool, violation: impl FnOnce() -> Violation) {
        if !holds {
            self.broken.push(violation());
        }
    }
}

fn requests<'p>(pods: &'p [&'p Pod]) -> impl Iterator<Item = &'p Resources> {
    pods.iter().map(|pod| &pod.shape.requests)
}

fn hard(taints: &[Taint]) -> impl Iterator<Item = &Taint> {
    taints.iter().filter(|taint| taint.effect != Effect::PreferNoSchedule)
}
