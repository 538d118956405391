//! Which machine that is there takes a pod.

use model::{Requirements, taint};

use super::{Greedy, Spot, Step, journal};
use crate::{
    bits::{Bits, members},
    class::Full,
    dra::{Allocation, DraRefusal, HostView},
    rules::ports_clash,
    states::Demand,
    topology::{Answer, Axis},
};

impl Greedy<'_> {
    /// The first machine that takes the pod.
    pub(super) fn find_machine(
        &mut self,
        core: usize,
        member: usize,
        answer: &Answer,
    ) -> Option<(usize, Option<Allocation>)> {
        if self.problem.machines.all.is_empty() {
            return None;
        }
        let mut alive = match self.problem.classes.cores[core].machines.take() {
            Some(known) => known,
            None => self.suiting_machines(core),
        };
        let mut full = self.problem.classes.cores[core].full;
        if full.since != self.ebbs {
            full = Full {
                words: 0,
                since: self.ebbs,
            };
        }
        let found = self.first_machine(core, member, answer, &mut alive, &mut full.words);
        self.problem.classes.cores[core].machines = Some(alive);
        self.problem.classes.cores[core].full = full;
        found
    }

    /// Machines whose labels and taints suit.
    pub(super) fn suiting_machines(&mut self, core: usize) -> Bits {
        let demand = self.problem.classes.cores[core].needs.demand;
        let mut looks = self.looks_meeting(demand);
        let needs = &self.problem.classes.cores[core].needs;
        let machines = &self.problem.machines;
        for (number, look) in machines.looks.iter().enumerate() {
            if taint::untolerated(&look.taints, &needs.tolerations).is_some() {
                looks.remove(number);
            }
        }
        let mut suiting = machines.looking(&looks);
        if needs.moving {
            let unsettled = machines.all.iter().enumerate().filter(|(_, machine)| machine.unsettled);
            suiting.subtract(&unsettled.map(|(index, _)| index).collect());
        }
        suiting
    }

    fn looks_meeting(&mut self, demand: Demand) -> Bits {
        if self.looks.len() <= demand.index() {
            self.looks.resize(demand.index() + 1, None);
        }
        if self.looks[demand.index()].is_none() {
            let wanted = self.problem.states.of_demand(demand);
            let looks = self.problem.machines.looks.iter().enumerate();
            let meeting = looks.filter(|(_, look)| look.labels.meet(self.problem.snapshot, wanted));
            self.looks[demand.index()] = Some(meeting.map(|(number, _)| number).collect());
        }
        self.looks[demand.index()].clone().unwrap_or_default()
    }

    fn first_machine(
        &mut self,
        core: usize,
        member: usize,
        answer: &Answer,
        alive: &mut Bits,
        full: &mut usize,
    ) -> Option<(usize, Option<Allocation>)> {
        let stores = self.stores(core);
        let needs = &self.problem.classes.cores[core].needs;
        let machines = &self.problem.machines;
        for word in *full..alive.words().len() {
            let candidates = alive.word(word) & !self.gone.word(word);
            let roomy = match candidates {
                0 => 0,
                _ => candidates & machines.free.roomy(word, &needs.amounts),
            };
            // What fills a machine for the time being does not close it for good.
            let for_now = self.journal.as_ref().map_or(0, |_| machines.visited.word(word));
            alive.subtract_word(word, candidates & !roomy & !for_now);
            if roomy == 0 {
                *full += usize::from(word == *full);
                continue;
            }
            let allowed = answer.hosts.word(&self.problem.topology, word);
            for index in members(word, roomy & allowed) {
                let machine = &machines.all[index];
                if ports_clash(&needs.ports, &machine.ports) {
                    if self.journal.is_none() || machine.pods.is_empty() {
                        alive.remove(index);
                    }
                    continue;
                }
                if let Some(devices) = self.settled_on(index, member, answer, &stores) {
                    return Some((index, devices));
                }
            }
        }
        None
    }

    /// The looks of machines from where the pod's volumes can be reached, place by place; none for a pod without volumes.
    pub(super) fn stores(&mut self, core: usize) -> Vec<Bits> {
        let volumes = self.problem.classes.cores[core].needs.volumes.clone();
        volumes.into_iter().map(|volume| self.looks_meeting(volume)).collect()
    }

    /// Whether a machine with room is where neighbours and volumes want the pod, with its devices there.
    pub(super) fn settled_on(
        &self,
        index: usize,
        member: usize,
        answer: &Answer,
        stores: &[Bits],
    ) -> Option<Option<Allocation>> {
        let machines = &self.problem.machines;
        let machine = &machines.all[index];
        let look = &machines.looks[machine.look];
        let there = answer.keys.iter().all(|allowed| match look.domains[allowed.key] {
            Some(domain) => !allowed.binding || allowed.domains.contains(domain),
            None => !allowed.binding,
        });
        let stored = stores.is_empty() || stores.iter().any(|looks| looks.contains(machine.look));
        let claims = &self.problem.members[member].attached;
        let attachable = machine.volumes.as_ref().is_none_or(|volumes| volumes.take(claims));
        if there && stored && attachable {
            self.devices_on(member, index).ok()
        } else {
            None
        }
    }

    /// The pod's devices on a machine that is there; nothing for a pod that claims none.
    fn devices_on(&self, member: usize, index: usize) -> Result<Option<Allocation>, DraRefusal> {
        let (Some(claims), Some(devices)) = (&self.problem.members[member].devices, &self.problem.devices) else {
            return Ok(None);
        };
        let labels = Requirements::from_labels(self.problem.machines.all[index].state.labels());
        devices.try_allocate(claims, self.host_view(index, &labels)).map(Some)
    }

    fn host_view<'h>(&'h self, index: usize, labels: &'h Requirements) -> HostView<'h> {
        let state = self.problem.machines.all[index].state;
        let snapshot = self.problem.snapshot;
        let kind = state.pool().zip(state.instance_type());
        HostView::Node {
            key: &state.key,
            name: state.node_name(),
            initialized: state.is_initialized(),
            kind: kind
                .and_then(|(pool, kind)| snapshot.instance_type(&pool, &kind))
                .map(AsRef::as_ref),
            labels,
        }
    }

    /// Puts a pod onto a machine that is there.
    pub(super) fn put(&mut self, index: usize, member: usize, variant: usize, devices: Option<Allocation>) {
        if let Some(allocation) = devices
            && let Some(mut all) = self.problem.devices.take()
        {
            let labels = Requirements::from_labels(self.problem.machines.all[index].state.labels());
            all.commit(self.host_view(index, &labels), allocation);
            self.problem.devices = Some(all);
        }
        let class = &self.problem.classes.all[self.problem.members[member].class];
        let chosen = &class.variants[variant];
        let needs = &self.problem.classes.cores[chosen.core].needs;
        if let Some(journal) = &mut self.journal {
            journal.push(Step::filling(index, chosen.core, &self.problem.machines));
        }
        self.problem.machines.free.take(index, &needs.amounts);
        self.problem.machines.visited.insert(index);
        let machine = &mut self.problem.machines.all[index];
        machine.ports.extend(needs.ports.iter().cloned());
        if let Some(volumes) = &mut machine.volumes {
            volumes.put(&self.problem.members[member].attached);
        }
        machine.pods.push(member);
        let look = &self.problem.machines.looks[machine.look];
        for number in class.ties.counted.iter().chain(&chosen.carried.repels) {
            let group = &mut self.problem.topology.groups[*number];
            let filter = group.identity.filter.as_ref();
            if filter.is_some_and(|filter| !filter.admits_look(self.problem.snapshot, look)) {
                continue;
            }
            let spot = match group.identity.axis {
                Axis::Host => Some(Spot::Host(index)),
                Axis::Key(key) => look.domains[key].map(Spot::Domain),
            };
            if let Some(spot) = spot {
                journal::count(&mut self.journal, group, *number, spot);
            }
        }
    }
}
