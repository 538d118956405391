//! Counts the pods that are there before the round begins.

use model::{Pod, PodKey, Snapshot, pod::PodShape};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Axis, Filter, GroupId, Topology};
use crate::{
    bits::Bits,
    machine::{Look, Machines},
};

/// Counts running pods, and makes the domains of machines known.
///
/// `carriers` are the running pods that keep others away, with the groups that count them. Pods of the round are about
/// to be placed anew and do not count.
pub(crate) fn take(
    topology: &mut Topology,
    snapshot: &Snapshot,
    machines: &Machines<'_>,
    round: &FxHashSet<&PodKey>,
    carriers: &[(&Pod, GroupId)],
) {
    if topology.is_empty() {
        return;
    }
    let mut census = Census {
        machines,
        admitted: FxHashMap::default(),
    };
    let present = census.domains(&topology.keys, None);
    for group in &mut topology.groups {
        let Axis::Key(key) = group.identity.axis else { continue };
        match group.identity.filter.as_ref().filter(|filter| !filter.admits_all()) {
            None => group.known.unite_with(&present[key]),
            Some(filter) => {
                let admitted = census.admitted(filter).clone();
                let domains = census.domains(&topology.keys, Some(&admitted));
                group.known.unite_with(&domains[key]);
            }
        }
    }
    let mut selecting: FxHashMap<(&str, *const PodShape), Vec<GroupId>> = FxHashMap::default();
    for pod in snapshot.pods.values() {
        let Some(machine) = counted_on(pod, machines, round) else {
            continue;
        };
        let groups = selecting
            .entry((&pod.key.namespace, std::sync::Arc::as_ptr(&pod.shape)))
            .or_insert_with(|| topology.ties(pod).counted);
        for group in groups.iter() {
            census.count(topology, *group, machine);
        }
    }
    for (pod, group) in carriers {
        if let Some(machine) = counted_on(pod, machines, round) {
            census.count(topology, *group, machine);
        }
    }
}

fn counted_on(pod: &Pod, machines: &Machines<'_>, round: &FxHashSet<&PodKey>) -> Option<usize> {
    let node = pod.node.as_ref()?;
    if !pod.is_active() || round.contains(&pod.key) {
        return None;
    }
    machines.by_node.get(node.as_str()).copied()
}

struct Census<'m> {
    machines: &'m Machines<'m>,
    /// Looks of machines that take part in a spread.
    admitted: FxHashMap<Filter, Bits>,
}

impl Census<'_> {
    fn admitted(&mut self, filter: &Filter) -> &Bits {
        if !self.admitted.contains_key(filter) {
            let looks = self.machines.looks.iter().enumerate();
            let takes_part = |look: &Look| filter.admits(&look.raw_taints, look.labels.requirements());
            let looks = looks.filter(|(_, look)| takes_part(look)).map(|(index, _)| index);
            self.admitted.insert(filter.clone(), looks.collect());
        }
        &self.admitted[filter]
    }

    /// For each label the domains of machines that are bought, of all or of certain looks.
    fn domains(&self, keys: &super::Keys, looks: Option<&Bits>) -> Vec<Bits> {
        let mut domains = vec![Bits::default(); keys.len()];
        let seen = self.machines.looks.iter().enumerate();
        for (_, look) in seen.filter(|(index, look)| look.bought && looks.is_none_or(|looks| looks.contains(*index))) {
            for (key, domain) in look.domains.iter().enumerate() {
                if let Some(domain) = domain {
                    domains[key].insert(*domain);
                }
            }
        }
        domains
    }

    fn count(&mut self, topology: &mut Topology, group: GroupId, machine: usize) {
        let look = self.machines.all[machine].look;
        let filter = topology.groups[group].identity.filter.as_ref();
        if let Some(filter) = filter.filter(|filter| !filter.admits_all())
            && !self.admitted(filter).contains(look)
        {
            return;
        }
        let counters = &mut topology.groups[group];
        match counters.identity.axis {
            Axis::Host => counters.count_host(machine),
            Axis::Key(key) => {
                if let Some(domain) = self.machines.looks[look].domains[key] {
                    counters.count(domain);
                }
            }
        }
    }
}
