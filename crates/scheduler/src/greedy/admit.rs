//! Whether a planned machine takes a pod, and what it is then.

use std::sync::Arc;

use model::{CapacityType, LabelValue, Requirement, taint, vocabulary};

use super::{Greedy, choose};
use crate::{
    amounts,
    bits::Bits,
    dra::{Allocation, HostView, PodClaims},
    market::Market,
    open::{Admission, Open, Rejection},
    reservations::{Held, Reservations},
    round::MinValuesPolicy,
    rules::ports_clash,
    states::{Demand, State},
    topology::Answer,
};

/// What a machine is while one pod is tried on it.
struct Trial<'t> {
    open: &'t Open,
    core: usize,
    answer: &'t Answer,
    /// What its pods and the new one ask for together.
    need: amounts::Amounts,
    /// Claims for devices, if the pod has any.
    claims: Option<Arc<PodClaims>>,
    /// The types that have the devices.
    equipped: Option<Bits>,
}

impl Greedy<'_> {
    pub(super) fn admit(
        &mut self,
        open: &Open,
        core: usize,
        member: usize,
        answer: &Answer,
    ) -> Result<Admission, Rejection> {
        if !self.tolerates(core, open.template) {
            return Err(Rejection::Closed);
        }
        let needs = &self.problem.classes.cores[core].needs;
        if ports_clash(&needs.ports, &open.ports) {
            return Err(Rejection::Closed);
        }
        let mut need = open.used.clone();
        amounts::add(&mut need, &needs.amounts);
        let demand = needs.demand;
        let state = self
            .problem
            .states
            .narrow(open.state, demand)
            .ok_or(Rejection::Closed)?;
        let mut trial = Trial {
            open,
            core,
            answer,
            need,
            claims: self.problem.members[member].devices.clone(),
            equipped: None,
        };
        let rows = self.rows(&trial, state);
        if rows.is_empty() {
            return Err(Rejection::Closed);
        }
        let volumes = self.problem.classes.cores[core].needs.volumes.len();
        let mut rejection = Rejection::Closed;
        for volume in 0..volumes.max(1) {
            let place = self.problem.classes.cores[core].needs.volumes.get(volume);
            let place = place.copied().unwrap_or(Demand::NONE);
            let Some(stored) = self.problem.states.narrow(state, place) else {
                continue;
            };
            let (devices, equipped) = match self.equip(&mut trial, stored) {
                Ok(equipped) => equipped,
                Err(other) => {
                    rejection = other;
                    continue;
                }
            };
            match self.settle(&trial, equipped, 0) {
                Ok(admission) => {
                    return Ok(Admission {
                        volume,
                        devices,
                        ..admission
                    });
                }
                Err(Rejection::Closed) => {}
                Err(other) => rejection = other,
            }
        }
        Err(rejection)
    }

    /// Looks for the pod's devices on everything that the machine may still become.
    fn equip(&mut self, trial: &mut Trial<'_>, state: State) -> Result<(Option<Allocation>, State), Rejection> {
        let Some(claims) = trial.claims.clone() else {
            return Ok((None, state));
        };
        trial.equipped = None;
        let rows: Vec<usize> = self.rows(trial, state).iter().collect();
        let problem = &mut self.problem;
        let market = &problem.templates[trial.open.template].market;
        let kinds: Vec<_> = rows.iter().map(|row| market.rows[*row].kind).collect();
        let devices = problem.devices.as_ref().ok_or(Rejection::Closed)?;
        let host = HostView::Claim {
            id: trial.open.id,
            kinds: &kinds,
            requirements: problem.states.of_state(state),
        };
        let allocation = devices.try_allocate(&claims, host).map_err(|_| Rejection::NotNow)?;
        trial.equipped = Some(allocation.kinds.iter().map(|place| rows[*place]).collect());
        let demand = problem.states.demand(allocation.requirements.clone());
        let state = problem.states.narrow(state, demand).ok_or(Rejection::NotNow)?;
        Ok((Some(allocation), state))
    }

    fn tolerates(&mut self, core: usize, template: usize) -> bool {
        let core = &mut self.problem.classes.cores[core];
        if core.tolerant.is_empty() {
            core.tolerant = vec![None; self.problem.templates.len()];
        }
        *core.tolerant[template].get_or_insert_with(|| {
            let taints = &self.problem.templates[template].pool.template.taints;
            taint::untolerated(taints, &core.needs.tolerations).is_none()
        })
    }

    /// What the machine can still become in a state with the new pod on it.
    fn rows(&mut self, trial: &Trial<'_>, state: State) -> Bits {
        let market = &mut self.problem.templates[trial.open.template].market;
        let mut rows = trial.open.rows.clone();
        if state != trial.open.state || trial.open.pods.is_empty() {
            rows.intersect_with(&market.view(&self.problem.states, state).rows);
        }
        market.keep_roomy(&trial.need, &mut rows);
        market.keep_free_ports(&self.problem.classes.cores[trial.core].needs.ports, &mut rows);
        if let Some(equipped) = &trial.equipped {
            rows.intersect_with(equipped);
        }
        rows
    }

    /// Settles the machine on a domain of each label that rules count along, one label after the other.
    fn settle(&mut self, trial: &Trial<'_>, state: State, label: usize) -> Result<Admission, Rejection> {
        let Some(allowed) = trial.answer.keys.get(label) else {
            return self.finish(trial, state);
        };
        let problem = &self.problem;
        let template = &problem.templates[trial.open.template];
        let candidates = choose::candidates(
            &problem.topology,
            template,
            &problem.states,
            &mut self.domains,
            state,
            allowed,
        );
        let Some(candidates) = candidates else {
            return self.settle(trial, state, label + 1);
        };
        let mut rejection = Rejection::NotNow;
        for domain in candidates {
            let demand = self.domains.demand(allowed.key, domain);
            let Some(settled) = self.problem.states.narrow(state, demand) else {
                continue;
            };
            match self.settle(trial, settled, label + 1) {
                Err(Rejection::Reserved) => rejection = Rejection::Reserved,
                Err(_) => {}
                admitted => return admitted,
            }
        }
        if !allowed.binding {
            return self.settle(trial, state, label + 1);
        }
        Err(rejection)
    }

    fn finish(&mut self, trial: &Trial<'_>, state: State) -> Result<Admission, Rejection> {
        let rows = self.rows(trial, state);
        let narrowed = !trial.answer.keys.is_empty() || trial.claims.is_some();
        let rejected = if narrowed { Rejection::NotNow } else { Rejection::Closed };
        if rows.is_empty() {
            return Err(rejected);
        }
        let Some(reserves) = self.reserve(trial, state, &rows)? else {
            return self.unreserved(trial, state);
        };
        let varied = if reserves.is_empty() {
            self.variety(trial, &rows)
        } else {
            // A place in a reservation leaves the cloud nothing but what is reserved.
            let reserved = self.reserved_rows(trial, state, &reserves).and(&rows);
            let varied = self.variety(trial, &reserved);
            if varied.is_none() && trial.open.held.is_empty() {
                return self.unreserved(trial, state);
            }
            varied
        };
        let lowered = varied.ok_or(rejected)?;
        Ok(Admission {
            state,
            rows,
            volume: 0,
            reserves,
            lowered,
            devices: None,
        })
    }

    /// A machine for which no reservation has a place is bought otherwise, and priced accordingly.
    fn unreserved(&mut self, trial: &Trial<'_>, state: State) -> Result<Admission, Rejection> {
        let otherwise = Requirement::none_of(vocabulary::CAPACITY_TYPE, [CapacityType::Reserved.as_str()]);
        let demand = self.problem.states.demand(std::iter::once(otherwise).collect());
        let state = self.problem.states.narrow(state, demand).ok_or(Rejection::NotNow)?;
        let rows = self.rows(trial, state);
        if rows.is_empty() {
            return Err(Rejection::NotNow);
        }
        let lowered = self.variety(trial, &rows).ok_or(Rejection::NotNow)?;
        Ok(Admission {
            state,
            rows,
            volume: 0,
            reserves: Held::new(),
            lowered,
            devices: None,
        })
    }

    /// Nothing when there is too little variety; the lowered demand where it was lowered.
    fn variety(&self, trial: &Trial<'_>, rows: &Bits) -> Option<Option<crate::variety::Variety>> {
        let template = &self.problem.templates[trial.open.template];
        let demanded = trial.open.lowered.as_ref().unwrap_or(&template.variety);
        if !demanded.is_demanded() || demanded.suffices(rows) {
            return Some(None);
        }
        let best_effort = self.problem.round.options.min_values_policy == MinValuesPolicy::BestEffort;
        (best_effort && trial.open.pods.is_empty()).then(|| Some(demanded.lowered(rows)))
    }

    /// The reservations that the machine takes a place in. Nothing when it could have used one and has to do without.
    fn reserve(&mut self, trial: &Trial<'_>, state: State, rows: &Bits) -> Result<Option<Held>, Rejection> {
        let template = &mut self.problem.templates[trial.open.template];
        if !template.has_reservations {
            return Ok(Some(Held::new()));
        }
        template.market.view(&self.problem.states, state);
        let reservations = &self.problem.reservations;
        let reserved = reserved_deals(&template.market, state, reservations);
        let ids: Held = reserved
            .filter(|(row, _)| rows.contains(*row))
            .map(|(_, id)| id)
            .collect();
        let wanted: Held = ids
            .iter()
            .filter(|id| reservations.has_place(id, &trial.open.held))
            .cloned()
            .collect();
        let gone = wanted.is_empty() && (!ids.is_empty() || !trial.open.held.is_empty());
        if gone && !self.problem.round.options.reserved_fallback {
            return Err(Rejection::Reserved);
        }
        Ok((!gone).then_some(wanted))
    }

    /// What can be bought from these reservations.
    fn reserved_rows(&self, trial: &Trial<'_>, state: State, ids: &Held) -> Bits {
        let market = &self.problem.templates[trial.open.template].market;
        let reserved = reserved_deals(market, state, &self.problem.reservations);
        reserved
            .filter(|(_, id)| ids.contains(id))
            .map(|(row, _)| row)
            .collect()
    }
}

/// Rows that reservations hold, each with the reservation. The state has been looked at before.
fn reserved_deals<'m>(
    market: &'m Market<'_>,
    state: State,
    reservations: &'m Reservations<'_>,
) -> impl Iterator<Item = (usize, LabelValue)> {
    let suiting = market.seen(state).deals.iter().map(|deal| &market.deals[deal]);
    suiting.filter_map(|deal| Some((deal.row, reservations.id_of(deal.offering)?)))
}
