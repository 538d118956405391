//! Machines that a round decides to launch, while pods are still being added to them.

use std::collections::BTreeSet;

use model::{
    LabelValue, PodKey, Requirements, Resources, Snapshot, pod::HostPort, requirements::AllowUndefined, taint,
};

use crate::{
    class::{Needs, Way},
    refusal::{Lacking, PoolRefusal, Unfit},
    round::MinValuesPolicy,
    rules::{copies, ports_clash},
    template::{Shape, Template},
};

/// A machine to launch: a superposition of the instance types that still have room for its pods.
pub(crate) struct Open {
    /// Which template it is launched from.
    pub template: usize,
    pub requirements: Requirements,
    /// Positions in the template's shapes.
    pub shapes: Vec<usize>,
    /// What the pods ask for, without daemons.
    pub requests: Resources,
    pub pods: Vec<PodKey>,
    pub ports: Vec<HostPort>,
    pub min_values_relaxed: bool,
    /// What it counts against its pool's limits.
    pub charge: Resources,
}

/// How an open machine would look with more pods on it.
pub(crate) struct Admission {
    /// How many pods of the class it takes.
    pub count: usize,
    requirements: Requirements,
    shapes: Vec<usize>,
    min_values_relaxed: bool,
}

impl Open {
    /// An empty machine of the template's pool, within the pool's limits.
    pub fn new(index: usize, template: &Template<'_>) -> Result<Self, PoolRefusal> {
        if let Some(reason) = &template.barred {
            return Err(reason.clone());
        }
        if !template.has_node_left() {
            return Err(PoolRefusal::NodeLimit {
                limit: template.pool.limits.get("nodes"),
            });
        }
        let affordable = |index: &usize| template.within_limits(&template.shapes[*index].kind.capacity);
        let shapes: Vec<usize> = (0..template.shapes.len()).filter(affordable).collect();
        if shapes.is_empty() {
            return Err(PoolRefusal::Limits {
                left: template.left.clone(),
            });
        }
        Ok(Self {
            template: index,
            requirements: template.requirements.clone(),
            shapes,
            requests: Resources::default(),
            pods: Vec::new(),
            ports: Vec::new(),
            min_values_relaxed: false,
            charge: Resources::default(),
        })
    }

    /// How many pods of a class it can take, up to `most`, and what it would be then. At least one, or the reason why
    /// not. A refusal is for good: an open machine only ever gets narrower and fuller.
    pub fn admit(
        &self,
        snapshot: &Snapshot,
        template: &Template<'_>,
        needs: &Needs,
        way: &Way,
        most: usize,
        policy: MinValuesPolicy,
    ) -> Result<Admission, PoolRefusal> {
        if let Some(taint) = taint::untolerated(&template.pool.template.taints, &way.tolerations) {
            return Err(PoolRefusal::Taint(taint.clone()));
        }
        let allow = AllowUndefined::WellKnown(&snapshot.vocabulary);
        self.requirements
            .compatible(&way.requirements, allow)
            .map_err(PoolRefusal::Requirements)?;
        let mut requirements = self.requirements.clone();
        requirements.merge(&way.requirements);

        let rooms = self.rooms(template, needs, &requirements);
        let largest = rooms.iter().map(|(_, copies)| *copies).max().unwrap_or(0);
        if largest == 0 || ports_clash(&needs.ports, &self.ports) {
            return Err(PoolRefusal::InstanceTypes(self.unfit(template, needs, &requirements)));
        }
        // Pods that take a port of the node exclude their own kind.
        let most = if needs.ports.is_empty() { most } else { 1 };
        self.varied(template, requirements, &rooms, most.min(largest), policy)
    }

    /// Takes the pods for which there is an admission.
    pub fn take(&mut self, template: &mut Template<'_>, needs: &Needs, admission: Admission, pods: &[PodKey]) {
        self.requirements = admission.requirements;
        self.shapes = admission.shapes;
        self.min_values_relaxed |= admission.min_values_relaxed;
        self.requests.add_assign(
            &needs
                .requests
                .clone()
                .times(i64::try_from(pods.len()).unwrap_or(i64::MAX)),
        );
        self.ports.extend(needs.ports.iter().cloned());
        self.pods.extend(pods.iter().cloned());
        // Fewer instance types may be a smaller worst case. Upstream keeps the first one charged until the round ends.
        let charge = template.charge(&self.shapes);
        template.left = std::mem::take(&mut template.left).plus(&self.charge).minus(&charge);
        self.charge = charge;
    }

    /// The shapes that suit the requirements, each with the number of pods that it has room for.
    fn rooms(&self, template: &Template<'_>, needs: &Needs, requirements: &Requirements) -> Vec<(usize, usize)> {
        // Most pods bring no requirement that was not there already; then every shape is known to suit.
        let narrowed = *requirements != self.requirements;
        let room = |shape: &Shape<'_>| {
            if narrowed && !shape.kind.requirements.overlaps(requirements) {
                return None;
            }
            if ports_clash(&needs.ports, &shape.daemon_ports) {
                return None;
            }
            shape.most(requirements, |room| copies(&needs.requests, &self.requests, room))
        };
        self.shapes
            .iter()
            .filter_map(|index| Some((*index, room(&template.shapes[*index])?)))
            .collect()
    }

    /// Takes as many pods as leave enough variety among the shapes.
    fn varied(
        &self,
        template: &Template<'_>,
        requirements: Requirements,
        rooms: &[(usize, usize)],
        most: usize,
        policy: MinValuesPolicy,
    ) -> Result<Admission, PoolRefusal> {
        let with_room = |count: usize| {
            rooms
                .iter()
                .filter(move |(_, room)| *room >= count)
                .map(|(index, _)| *index)
        };
        let admission = |count: usize, requirements: &Requirements, relaxed: bool| Admission {
            count,
            requirements: requirements.clone(),
            shapes: with_room(count).collect(),
            min_values_relaxed: relaxed,
        };
        if !requirements.has_min_values() {
            return Ok(admission(most, &requirements, false));
        }
        // Only where a shape runs out of room does the variety change.
        let mut counts: Vec<usize> = rooms
            .iter()
            .map(|(_, room)| (*room).min(most))
            .filter(|count| *count > 0)
            .collect();
        counts.sort_unstable();
        counts.dedup();
        let varied = |requirements: &Requirements| {
            let enough = |count: &&usize| lacking(template, requirements, with_room(**count)).is_empty();
            counts.iter().rev().find(enough).copied()
        };
        if let Some(count) = varied(&requirements) {
            return Ok(admission(count, &requirements, false));
        }
        let short = lacking(template, &requirements, with_room(1));
        if policy == MinValuesPolicy::Strict || !self.pods.is_empty() {
            return Err(PoolRefusal::MinValues(short));
        }
        let mut relaxed = requirements;
        for one in short {
            let requirement = relaxed.remove(one.key.as_str());
            relaxed.extend(requirement.map(|requirement| requirement.with_min_values(Some(one.available))));
        }
        let count = varied(&relaxed).unwrap_or(1);
        Ok(admission(count, &relaxed, true))
    }

    /// Why no shape takes a single pod of a machine that has no pods yet.
    fn unfit(&self, template: &Template<'_>, needs: &Needs, requirements: &Requirements) -> Unfit {
        let mut unfit = Unfit {
            requests: needs.requests.clone(),
            over_limits: template.shapes.len() - self.shapes.len(),
            ..Unfit::default()
        };
        for shape in self.shapes.iter().map(|index| &template.shapes[*index]) {
            if !shape.kind.requirements.overlaps(requirements) {
                unfit.incompatible += 1;
            } else if shape.most(requirements, |_| 1).is_none() {
                unfit.no_offering += 1;
            } else if ports_clash(&needs.ports, &shape.daemon_ports) || ports_clash(&needs.ports, &self.ports) {
                unfit.ports += 1;
            } else {
                unfit.too_small += 1;
                unfit.largest.max_with(shape.room());
            }
        }
        unfit
    }
}

/// The labels of which these shapes offer fewer values than are demanded.
pub(crate) fn lacking(
    template: &Template<'_>,
    requirements: &Requirements,
    shapes: impl Iterator<Item = usize> + Clone,
) -> Vec<Lacking> {
    let demands = requirements
        .iter()
        .filter_map(|requirement| Some((requirement, requirement.min_values?)));
    let count = |key: &str| {
        let listed = shapes
            .clone()
            .filter_map(|index| template.shapes[index].kind.requirements.get(key).listed());
        listed.flatten().collect::<BTreeSet<&LabelValue>>().len()
    };
    demands
        .filter_map(|(requirement, wanted)| {
            let available = u32::try_from(count(requirement.key.as_str())).unwrap_or(u32::MAX);
            (available < wanted).then(|| Lacking {
                key: requirement.key.clone(),
                wanted,
                available,
            })
        })
        .collect()
}
