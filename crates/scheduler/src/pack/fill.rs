//! Fills machines by price.

use model::pod::HostPort;
use rustc_hash::FxHashMap;

use super::{
    duals,
    filling::Filling,
    items::{Item, Items},
    shelves::{Shelf, Shelves},
    worth,
};
use crate::{
    amounts::Amounts,
    bits::Bits,
    greedy::Greedy,
    open::Seat,
    states::{Demand, State},
};

/// A machine that was filled.
#[derive(Clone, Debug)]
pub(super) struct Bin {
    /// What it was filled as.
    pub row: usize,
    pub state: State,
    /// Everything that it can be instead.
    pub rows: Bits,
    pub used: Amounts,
    pub ports: Vec<HostPort>,
    pub seats: Vec<Seat>,
    /// With what every node costs beside its price.
    pub price: f64,
}

/// How many steps may be spent, and how many for each pod of a large round. A step looks at one size or one kind of pods
/// for one instance type. When the steps are used up, what is left is packed onto the first type that will do.
const STEPS: usize = 250_000;
const STEPS_PER_POD: usize = 250;

/// How often everything is packed anew with what was learned about the worth of pods: first in a hurry, then with care.
const HASTY_ROUNDS: usize = 4;
const CAREFUL_ROUNDS: usize = 6;

/// A packing that is dearer than the best by more than this is not worth another look.
const PROMISING: f64 = 1.05;

/// How much better than last time a row may turn out to be.
const OPTIMISM: f64 = 0.9;

/// In a hurry, the row that was best last time is good enough if it is not dearer by more than this.
const HASTE: f64 = 1.005;

/// Packs the pods of one pool.
pub(super) struct Packer {
    pub(super) template: usize,
    pub(super) items: Vec<Item>,
    /// What one unit of each item is worth.
    pub(super) values: Vec<f64>,
    shelves: Shelves,
    /// How many units of each item wait.
    waiting: Vec<usize>,
    /// How much money a unit of worth can be expected to cost on each row at the pool's best prices.
    expected: Vec<f64>,
    /// What is known of each state that machines begin in.
    starts: FxHashMap<State, Start>,
    least_price: f64,
    pub(super) steps: usize,
    pub(super) most_steps: usize,
}

/// What there is to choose from for machines that begin in one state.
struct Start {
    rows: Bits,
    prices: Vec<f64>,
    /// How much money a unit of worth has cost on each row, when it was tried last.
    ratios: Vec<f64>,
    /// The row that was chosen last, and what a unit of worth cost there.
    favourite: Option<(usize, f64)>,
}

/// One filling, and how many machines get it.
struct Packed {
    filling: Filling,
    copies: usize,
}

impl Packer {
    /// Nothing when the market has nothing for what is to be packed.
    pub fn new(greedy: &mut Greedy<'_>, template: usize, items: Items) -> Option<Self> {
        let dims = greedy.problem.dims.len();
        let mut demand = vec![0.0; dims];
        let mut pods = 0;
        for item in &items.0 {
            pods += item.units.iter().map(Vec::len).sum::<usize>();
            for (sum, amount) in demand.iter_mut().zip(&item.kind.amounts) {
                *sum += *amount as f64 * item.units.len() as f64;
            }
        }
        let market = &greedy.problem.templates[template].market;
        let view = market.seen(greedy.problem.templates[template].base);
        let column = |row: usize| {
            let room = market.rows[row].room.iter().map(|amount| *amount as f64).collect();
            (view.prices[row], room)
        };
        let columns: Vec<(f64, Vec<f64>)> = view.rows.iter().map(column).collect();
        let worth = duals::unit_worth(&demand, &columns);
        let least_price = demand.iter().zip(&worth).map(|(amount, worth)| amount * worth).sum();
        let items = items.0;
        let values = worth::alone(greedy, template, &items)?;
        let expected = worth::expected(greedy, template, &items, &values);
        Some(Self {
            template,
            expected,
            shelves: Shelves::default(),
            waiting: Vec::new(),
            starts: FxHashMap::default(),
            items,
            values,
            least_price,
            steps: 0,
            most_steps: STEPS.max(STEPS_PER_POD * pods),
        })
    }

    /// What no packing can undercut.
    pub fn least_price(&self) -> f64 {
        self.least_price
    }

    /// The cheapest of several packings below a price. Each learns from the one before what pods have really cost.
    pub fn pack(mut self, greedy: &mut Greedy<'_>, below: f64) -> Option<Vec<Bin>> {
        let shelves = Shelves::new(&self.items);
        let mut best: Option<(f64, Vec<Filling>)> = None;
        for round in 0..HASTY_ROUNDS + CAREFUL_ROUNDS {
            let haste = if round < HASTY_ROUNDS { HASTE } else { 0.0 };
            self.shelves.clone_from(&shelves);
            let Some(packed) = self.pack_once(greedy, haste) else {
                break;
            };
            let price: f64 = packed.iter().map(|one| one.filling.price * one.copies as f64).sum();
            let to_beat = best.as_ref().map_or(below, |(price, _)| *price);
            self.learn(&packed);
            if price < to_beat * PROMISING {
                let copied = |one: Packed| std::iter::repeat_n(one.filling, one.copies);
                let bins = self.squeeze(greedy, packed.into_iter().flat_map(copied).collect());
                let price: f64 = bins.iter().map(|bin| bin.price).sum();
                if price < to_beat {
                    best = Some((price, bins));
                }
            }
            if self.steps > self.most_steps {
                break;
            }
        }
        best.map(|(_, bins)| self.bins(greedy, bins))
    }

    /// Every pod has cost its share of its machine.
    fn learn(&mut self, packed: &[Packed]) {
        let mut paid = vec![0.0; self.items.len()];
        for Packed { filling, copies } in packed {
            let ratio = filling.ratio() * *copies as f64;
            for (item, units) in &filling.taken {
                paid[*item] += ratio * self.values[*item] * *units as f64;
            }
        }
        for ((value, paid), item) in self.values.iter_mut().zip(paid).zip(&self.items) {
            *value = (*value + paid / item.units.len() as f64) / 2.0;
        }
    }

    fn pack_once(&mut self, greedy: &mut Greedy<'_>, haste: f64) -> Option<Vec<Packed>> {
        self.waiting = self.items.iter().map(|item| item.units.len()).collect();
        self.starts.clear();
        self.shelves.sort(&self.values);
        let mut order: Vec<usize> = (0..self.items.len()).collect();
        let (items, values) = (&self.items, &self.values);
        order.sort_by(|a, b| {
            let bundled = items[*a].kind.bundle.is_none().cmp(&items[*b].kind.bundle.is_none());
            bundled.then(values[*b].total_cmp(&values[*a])).then(a.cmp(b))
        });
        let mut all = Vec::new();
        for (position, seed) in order.into_iter().enumerate() {
            // Now and then is often enough: passing over what is gone costs little.
            if position % 32 == 0 {
                self.shelves.tidy(&self.waiting);
            }
            while self.waiting[seed] > 0 {
                let filling = self.best(greedy, seed, haste)?;
                // The same again, as often as there are pods for it.
                let copies = filling.taken.iter().map(|(item, units)| self.waiting[*item] / units);
                let copies = copies.min().unwrap_or(1).max(1);
                for (item, units) in &filling.taken {
                    self.waiting[*item] -= units * copies;
                }
                all.push(Packed { filling, copies });
            }
        }
        Some(all)
    }

    /// The filling that gives the most for its money, among those that begin with a unit of the seed.
    fn best(&mut self, greedy: &mut Greedy<'_>, seed: usize, haste: f64) -> Option<Filling> {
        let state = self.start(greedy, self.items[seed].kind.demand)?;
        let kind = &self.items[seed].kind;
        let market = &greedy.problem.templates[self.template].market;
        let start = &self.starts[&state];
        let mut rows = start.rows.clone();
        market.keep_roomy(&kind.amounts, &mut rows);
        market.keep_free_ports(&kind.ports, &mut rows);
        if let Some((row, usual)) = start.favourite.filter(|(row, _)| haste > 0.0 && rows.contains(*row)) {
            let filling = self.fill(greedy, seed, row, state, start.prices[row]);
            if filling.ratio() <= usual * haste && self.is_varied(greedy, &filling) {
                return Some(filling);
            }
        }
        let start = &self.starts[&state];
        let mut candidates: Vec<(f64, usize)> = rows.iter().map(|row| (start.ratios[row] * OPTIMISM, row)).collect();
        candidates.sort_unstable_by(|(a, x), (b, y)| a.total_cmp(b).then(x.cmp(y)));
        let mut best: Option<(f64, Filling)> = None;
        for (bound, row) in candidates {
            let exhausted = self.steps > self.most_steps;
            if best.as_ref().is_some_and(|(ratio, _)| bound >= *ratio || exhausted) {
                break;
            }
            let filling = self.fill(greedy, seed, row, state, self.starts[&state].prices[row]);
            let ratio = filling.ratio();
            if let Some(start) = self.starts.get_mut(&state) {
                start.ratios[row] = ratio;
            }
            if best.as_ref().is_none_or(|(known, _)| ratio < *known) && self.is_varied(greedy, &filling) {
                best = Some((ratio, filling));
            }
        }
        let (ratio, filling) = best?;
        if let Some(start) = self.starts.get_mut(&state) {
            start.favourite = Some((filling.row, ratio));
        }
        Some(filling)
    }

    /// The state that machines begin in for a demand.
    fn start(&mut self, greedy: &mut Greedy<'_>, demand: Demand) -> Option<State> {
        let problem = &mut greedy.problem;
        let template = &mut problem.templates[self.template];
        let state = problem.states.narrow(template.base, demand)?;
        if !self.starts.contains_key(&state) {
            let surcharge = problem.round.options.node_surcharge.dollars();
            template.market.view(&problem.states, state);
            let view = template.market.seen(state);
            let best_prices = &template.market.seen(template.base).prices;
            let prices: Vec<f64> = view.prices.iter().map(|price| price + surcharge).collect();
            let rows = self.expected.iter().zip(&prices).zip(best_prices);
            let ratios = rows
                .map(|((expected, price), best)| expected * price / (best + surcharge))
                .collect();
            let start = Start {
                rows: view.rows.clone(),
                prices,
                ratios,
                favourite: None,
            };
            self.starts.insert(state, start);
        }
        Some(state)
    }

    /// Fills a machine of one type, the most valuable pods first.
    fn fill(&mut self, greedy: &mut Greedy<'_>, seed: usize, row: usize, state: State, price: f64) -> Filling {
        let dims = greedy.problem.dims.len();
        let mut filling = Filling::new(row, state, price, dims);
        let room = greedy.problem.templates[self.template].market.rows[row].room.clone();
        let mut unwelcome = Bits::with_room(self.shelves.flavours);
        filling.take(seed, &self.items[seed], 1, self.values[seed]);
        for shelf in 0..self.shelves.all.len() {
            self.steps += 1;
            let Shelf { amounts, items, least } = &self.shelves.all[shelf];
            let mut most = filling.copies(amounts, &room);
            if most == 0 {
                if filling.copies(least, &room) == 0 {
                    break;
                }
                continue;
            }
            for (item, flavour) in items {
                let waiting = self.waiting[*item] - usize::from(*item == seed);
                if waiting == 0 || unwelcome.contains(*flavour) {
                    continue;
                }
                self.steps += 1;
                let groups = &greedy.problem.topology.groups;
                let units = filling.welcome(groups, &self.items[*item].kind, most.min(waiting));
                if units == 0 || !self.suits(greedy, &mut filling, *item) {
                    unwelcome.insert(*flavour);
                    continue;
                }
                let units = self.varied(greedy, &filling, *item, units);
                if units > 0 {
                    filling.take(*item, &self.items[*item], units, self.values[*item]);
                    most -= units;
                    if most == 0 {
                        break;
                    }
                }
            }
        }
        filling
    }

    /// Whether the machine can be what the item asks for, at no higher price.
    pub(super) fn suits(&self, greedy: &mut Greedy<'_>, filling: &mut Filling, item: usize) -> bool {
        let problem = &mut greedy.problem;
        let kind = &self.items[item].kind;
        let Some(state) = problem.states.narrow(filling.state, kind.demand) else {
            return false;
        };
        let market = &mut problem.templates[self.template].market;
        if !kind.ports.is_empty() {
            let mut here = Bits::default();
            here.insert(filling.row);
            market.keep_free_ports(&kind.ports, &mut here);
            if here.is_empty() {
                return false;
            }
        }
        if state != filling.state {
            let surcharge = problem.round.options.node_surcharge.dollars();
            if market.view(&problem.states, state).prices[filling.row] + surcharge > filling.price {
                return false;
            }
            filling.state = state;
        }
        true
    }

    /// Everything that the filled machine can be.
    fn rows(&self, greedy: &mut Greedy<'_>, filling: &Filling) -> Bits {
        let problem = &mut greedy.problem;
        let market = &mut problem.templates[self.template].market;
        let mut rows = market.view(&problem.states, filling.state).rows.clone();
        market.keep_roomy(&filling.used, &mut rows);
        market.keep_free_ports(&filling.ports, &mut rows);
        rows
    }

    /// How many units leave the cloud enough choice.
    pub(super) fn varied(&self, greedy: &mut Greedy<'_>, filling: &Filling, item: usize, most: usize) -> usize {
        if !greedy.problem.templates[self.template].variety.is_demanded() {
            return most;
        }
        let amounts = &self.items[item].kind.amounts;
        let mut most = most;
        while most > 0 {
            let mut rows = self.rows(greedy, filling);
            let mut used = filling.used.clone();
            for (used, amount) in used.iter_mut().zip(amounts) {
                *used += amount * i64::try_from(most).unwrap_or(i64::MAX);
            }
            let template = &greedy.problem.templates[self.template];
            template.market.keep_roomy(&used, &mut rows);
            if template.variety.suffices(&rows) {
                break;
            }
            most /= 2;
        }
        most
    }

    pub(super) fn is_varied(&self, greedy: &mut Greedy<'_>, filling: &Filling) -> bool {
        if !greedy.problem.templates[self.template].variety.is_demanded() {
            return true;
        }
        let rows = self.rows(greedy, filling);
        greedy.problem.templates[self.template].variety.suffices(&rows)
    }

    /// The packed machines with their pods.
    fn bins(&self, greedy: &mut Greedy<'_>, fillings: Vec<Filling>) -> Vec<Bin> {
        let mut waiting: Vec<usize> = self.items.iter().map(|item| item.units.len()).collect();
        let mut bins = Vec::with_capacity(fillings.len());
        for filling in fillings {
            let mut seats = Vec::new();
            for (item, units) in &filling.taken {
                waiting[*item] -= units;
                let from = waiting[*item];
                seats.extend(self.items[*item].units[from..from + units].iter().flatten().copied());
            }
            seats.sort_by_key(|seat| seat.member);
            bins.push(Bin {
                row: filling.row,
                state: filling.state,
                rows: self.rows(greedy, &filling),
                used: filling.used,
                ports: filling.ports,
                seats,
                price: filling.price,
            });
        }
        bins
    }
}
