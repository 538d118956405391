//! Why a pod has no place: worked out only for those that have none, after everything else was placed.

use model::{PoolName, taint, vocabulary};

use crate::{
    bits::Bits,
    dra::HostView,
    greedy::Greedy,
    limits::Limits,
    refusal::{PoolRefusal, Refusal, RuleKind, RuleRefusal, Unfit},
    states::Demand,
    template::{Template, named},
    topology::{Axis, GroupId, Rule},
};

impl Greedy<'_> {
    /// For each pool the first rule that fails, in the order in which the pools were asked. The pod is taken at its least
    /// particular.
    pub fn refusal(&mut self, member: usize) -> Refusal {
        let class = &self.problem.classes.all[self.problem.members[member].class];
        let variant = class.variants.last().expect("a class has a variant").clone();
        let own = |key: usize| {
            let own = variant.own.iter().find(|(number, _)| *number == key);
            own.map(|(_, domains)| domains.clone())
        };
        let unmet = self.problem.topology.ask(&class.ties, &variant.carried, own).err();
        // A rule over hosts is met by a new host, except that an affinity wants an old one.
        let rules = variant.carried.rules.iter().map(|(group, _)| *group);
        let rules: Vec<GroupId> = rules.chain(class.ties.repelled.iter().copied()).collect();
        let pools = 0..self.problem.templates.len();
        let refusals = pools.map(|index| {
            let refusal = self.pool_refusal(index, variant.core, member, unmet, &rules);
            (self.problem.templates[index].pool.name.clone(), refusal)
        });
        Refusal::Pools(refusals.collect::<Vec<(PoolName, PoolRefusal)>>())
    }

    fn pool_refusal(
        &mut self,
        index: usize,
        core: usize,
        member: usize,
        unmet: Option<GroupId>,
        rules: &[GroupId],
    ) -> PoolRefusal {
        let problem = &mut self.problem;
        let template = &mut problem.templates[index];
        if let Some(barred) = &template.barred {
            return barred.clone();
        }
        let needs = &problem.classes.cores[core].needs;
        if let Some(taint) = taint::untolerated(&template.pool.template.taints, &needs.tolerations) {
            return PoolRefusal::Taint(taint.clone());
        }
        let Some(state) = problem.states.narrow(template.base, needs.demand) else {
            let conflict = problem.states.conflict(template.base, needs.demand);
            return conflict.map_or(PoolRefusal::NoInstanceTypes, PoolRefusal::Requirements);
        };
        let places: Vec<Demand> = needs.volumes.clone();
        let stored: Vec<_> = places
            .iter()
            .filter_map(|place| problem.states.narrow(state, *place))
            .collect();
        if let (Some(place), true) = (places.first(), stored.is_empty()) {
            let conflict = problem.states.conflict(state, *place);
            return conflict.map_or(PoolRefusal::NoInstanceTypes, PoolRefusal::Volumes);
        }
        if let Some(limit) = template.limits.as_ref().and_then(Limits::nodes_exhausted) {
            return PoolRefusal::NodeLimit { limit };
        }
        let all = template.market.seen(template.base).rows.clone();
        let mut within = all.clone();
        if let Some(limits) = &template.limits {
            limits.keep_within(&mut within);
            if within.is_empty() {
                return PoolRefusal::Limits { left: limits.left() };
            }
        }
        let state = stored.first().copied().unwrap_or(state);
        let suiting = template.market.view(&problem.states, state).rows.clone();
        let mut fitting = within.and(&suiting);
        template.market.keep_roomy(&needs.amounts, &mut fitting);
        template.market.keep_free_ports(&needs.ports, &mut fitting);
        if fitting.is_empty() {
            return PoolRefusal::InstanceTypes(self.unfit(index, core, state, &all, &within));
        }
        let short = template.variety.lacking(&fitting);
        if !short.is_empty() {
            return PoolRefusal::MinValues(named(short));
        }
        if let (Some(devices), Some(claims)) = (&problem.devices, &problem.members[member].devices) {
            let kinds: Vec<_> = fitting.iter().map(|row| template.market.rows[row].kind).collect();
            let host = HostView::Claim {
                id: usize::MAX,
                kinds: &kinds,
                requirements: problem.states.of_state(state),
            };
            if let Err(refusal) = devices.try_allocate(claims, host) {
                return PoolRefusal::Devices(refusal);
            }
        }
        // Everything but the neighbours is content.
        match unmet.or_else(|| rules.first().copied()) {
            Some(group) => PoolRefusal::Rule(self.rule(group)),
            None => PoolRefusal::InstanceTypes(self.unfit(index, core, state, &all, &within)),
        }
    }

    fn rule(&self, number: GroupId) -> RuleRefusal {
        let group = &self.problem.topology.groups[number];
        let rule = match group.identity.rule {
            _ if group.identity.inverse => RuleKind::Repelled,
            Rule::Spread { .. } => RuleKind::Spread,
            Rule::Affinity => RuleKind::Affinity,
            Rule::AntiAffinity => RuleKind::AntiAffinity,
        };
        match group.identity.axis {
            Axis::Host => RuleRefusal {
                rule,
                key: vocabulary::HOSTNAME.into(),
                domains: Vec::new(),
            },
            Axis::Key(key) => {
                let key = &self.problem.topology.keys[key];
                let domains = group
                    .known
                    .iter()
                    .map(|domain| (key.values[domain].clone(), group.counts[domain]));
                RuleRefusal {
                    rule,
                    key: key.label.clone(),
                    domains: domains.collect(),
                }
            }
        }
    }

    /// How many instance types fail for which reason.
    fn unfit(&mut self, index: usize, core: usize, state: crate::states::State, all: &Bits, within: &Bits) -> Unfit {
        let problem = &mut self.problem;
        let needs = &problem.classes.cores[core].needs;
        let requirements = problem.states.of_state(state).clone();
        let template: &mut Template<'_> = &mut problem.templates[index];
        let on_sale = template.market.view(&problem.states, state).rows.clone();
        let mut without_ports = all.clone();
        template.market.keep_free_ports(&needs.ports, &mut without_ports);
        let requests = problem.dims.names().iter().enumerate();
        let mut unfit = Unfit {
            over_limits: all.len() - within.len(),
            requests: requests
                .map(|(dim, name)| (name.clone(), problem.dims.quantity(dim, needs.amounts[dim])))
                .filter(|(_, amount)| !amount.is_zero())
                .collect(),
            ..Unfit::default()
        };
        let mut counted = Bits::default();
        for row in within.iter() {
            let kind = template.market.rows[row].kind;
            // A type that is several rows is one type to the reader.
            let position = template.market.rows[row].position;
            if counted.contains(position) {
                continue;
            }
            counted.insert(position);
            if !kind.requirements.overlaps(&requirements) {
                unfit.incompatible += 1;
            } else if !on_sale.contains(row) {
                unfit.no_offering += 1;
            } else if !without_ports.contains(row) {
                unfit.ports += 1;
            } else {
                unfit.too_small += 1;
                unfit.largest.max_with(&template.market.rows[row].left);
            }
        }
        unfit
    }
}
