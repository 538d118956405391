//! Fills machines by price.

use model::pod::HostPort;
use rustc_hash::FxHashMap;

use super::{
    duals,
    items::{Item, Items, Kind},
};
use crate::{
    amounts::Amounts,
    bits::Bits,
    greedy::Greedy,
    open::Seat,
    rules::ports_clash,
    states::State,
    topology::{GroupId, Rule},
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

/// How many steps may be spent, and how many for each pod of a large round. A step looks at one kind of pods for one
/// instance type. When the steps are used up, what is left is packed onto the first type that will do.
const STEPS: usize = 250_000;
const STEPS_PER_POD: usize = 400;

/// How often everything is packed anew with what was learned about the worth of pods.
const ROUNDS: usize = 6;

/// Packs the pods of one pool.
pub(super) struct Packer {
    template: usize,
    items: Vec<Item>,
    /// What one unit of each item is worth.
    values: Vec<f64>,
    /// The items that wait, in the order in which they are placed: bundles, then the dearest first.
    order: Vec<usize>,
    /// How many units of each item wait.
    waiting: Vec<usize>,
    /// How much money a unit of worth can be expected to cost on each row at the pool's best prices.
    expected: Vec<f64>,
    /// How much money a unit of worth has cost on each row, when it was tried last.
    ratios: FxHashMap<State, Vec<f64>>,
    least_price: f64,
    steps: usize,
    most_steps: usize,
}

/// How much better than last time a row may turn out to be.
const OPTIMISM: f64 = 0.9;

/// What a machine was filled with.
#[derive(Clone, Debug)]
struct Filled {
    value: f64,
    /// Items with the number of units taken.
    taken: Vec<(usize, usize)>,
}

/// A machine while it is being filled.
struct Filling {
    row: usize,
    state: State,
    price: f64,
    used: Amounts,
    value: f64,
    /// Items with the number of units taken.
    taken: Vec<(usize, usize)>,
    ports: Vec<HostPort>,
    counted: FxHashMap<GroupId, u32>,
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
        let worth = duals::worth(&demand, &columns);
        let least_price = demand.iter().zip(&worth).map(|(amount, worth)| amount * worth).sum();
        let items = items.0;
        let values = items
            .iter()
            .map(|item| alone(greedy, template, item))
            .collect::<Option<Vec<f64>>>()?;
        let expected = expected(greedy, template, &items, &values);
        Some(Self {
            template,
            expected,
            order: Vec::new(),
            waiting: Vec::new(),
            ratios: FxHashMap::default(),
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
        let mut best: Option<(f64, Vec<Bin>)> = None;
        for _ in 0..ROUNDS {
            let Some(bins) = self.pack_once(greedy) else { break };
            let price: f64 = bins.iter().map(|(bin, _)| bin.price).sum();
            self.learn(&bins);
            if price < best.as_ref().map_or(below, |(price, _)| *price) {
                best = Some((price, bins.into_iter().map(|(bin, _)| bin).collect()));
            }
            if self.steps > self.most_steps {
                break;
            }
        }
        best.map(|(_, bins)| bins)
    }

    /// Every pod has cost its share of its machine.
    fn learn(&mut self, bins: &[(Bin, Filled)]) {
        let mut paid = vec![0.0; self.items.len()];
        for (bin, filled) in bins {
            let ratio = bin.price / filled.value;
            for (item, units) in &filled.taken {
                paid[*item] += ratio * self.values[*item] * *units as f64;
            }
        }
        for ((value, paid), item) in self.values.iter_mut().zip(paid).zip(&self.items) {
            *value = (*value + paid / item.units.len() as f64) / 2.0;
        }
    }

    fn pack_once(&mut self, greedy: &mut Greedy<'_>) -> Option<Vec<(Bin, Filled)>> {
        self.waiting = self.items.iter().map(|item| item.units.len()).collect();
        self.ratios.clear();
        self.order = (0..self.items.len()).collect();
        let (items, values) = (&self.items, &self.values);
        self.order.sort_by(|a, b| {
            let bundled = items[*a].kind.bundle.is_none().cmp(&items[*b].kind.bundle.is_none());
            bundled.then(values[*b].total_cmp(&values[*a])).then(a.cmp(b))
        });
        let mut bins = Vec::new();
        while let Some(seed) = self.order.first().copied() {
            while self.waiting[seed] > 0 {
                let filling = self.best(greedy, seed)?;
                // The same again, as often as there are pods for it.
                let copies = filling
                    .taken
                    .iter()
                    .map(|(item, units)| self.waiting[*item] / units)
                    .min();
                let rows = self.rows(greedy, &filling);
                for _ in 0..copies.unwrap_or(1).max(1) {
                    let bin = self.bin(&filling, rows.clone());
                    let filled = Filled {
                        value: filling.value,
                        taken: filling.taken.clone(),
                    };
                    bins.push((bin, filled));
                }
            }
            self.order.retain(|item| self.waiting[*item] > 0);
        }
        Some(bins)
    }

    /// The filling that gives the most for its money, among those that begin with a unit of the seed.
    fn best(&mut self, greedy: &mut Greedy<'_>, seed: usize) -> Option<Filling> {
        let problem = &mut greedy.problem;
        let template = &mut problem.templates[self.template];
        let kind = &self.items[seed].kind;
        let state = problem.states.narrow(template.base, kind.demand)?;
        let view = template.market.view(&problem.states, state);
        let mut rows = view.rows.clone();
        let surcharge = problem.round.options.node_surcharge.dollars();
        let prices: Vec<f64> = view.prices.iter().map(|price| price + surcharge).collect();
        template.market.keep_roomy(&kind.amounts, &mut rows);
        template.market.keep_free_ports(&kind.ports, &mut rows);
        let best_prices = &template.market.seen(template.base).prices;
        let expected = &self.expected;
        let known = self.ratios.entry(state).or_insert_with(|| {
            let rows = expected.iter().zip(&prices).zip(best_prices);
            rows.map(|((expected, price), best)| expected * price / (best + surcharge))
                .collect()
        });
        let mut candidates: Vec<(f64, usize)> = rows.iter().map(|row| (known[row] * OPTIMISM, row)).collect();
        candidates.sort_by(|(a, x), (b, y)| a.total_cmp(b).then(x.cmp(y)));
        let mut best: Option<(f64, Filling)> = None;
        for (bound, row) in candidates {
            let exhausted = self.steps > self.most_steps;
            if best.as_ref().is_some_and(|(ratio, _)| bound >= *ratio || exhausted) {
                break;
            }
            let filling = self.fill(greedy, seed, row, state, prices[row]);
            let ratio = filling.price / filling.value;
            if let Some(known) = self.ratios.get_mut(&state) {
                known[row] = ratio;
            }
            if best.as_ref().is_none_or(|(known, _)| ratio < *known) && self.is_varied(greedy, &filling) {
                best = Some((ratio, filling));
            }
        }
        best.map(|(_, filling)| filling)
    }

    /// Fills a machine of one type, the most valuable pods first.
    fn fill(&mut self, greedy: &mut Greedy<'_>, seed: usize, row: usize, state: State, price: f64) -> Filling {
        let dims = greedy.problem.dims.len();
        let mut filling = Filling {
            row,
            state,
            price,
            used: Amounts::from_elem(0, dims),
            value: 0.0,
            taken: Vec::new(),
            ports: Vec::new(),
            counted: FxHashMap::default(),
        };
        let room = greedy.problem.templates[self.template].market.rows[row].room.clone();
        self.take(&mut filling, seed, 1);
        for position in 0..self.order.len() {
            let item = self.order[position];
            let waiting = self.waiting[item] - usize::from(item == seed);
            let kind = &self.items[item].kind;
            if waiting == 0 || kind.bundle.is_some() {
                continue;
            }
            self.steps += 1;
            let most = copies(&kind.amounts, &filling.used, &room).min(waiting);
            if most == 0 {
                continue;
            }
            let most = welcome(greedy, &filling, kind, most);
            if most > 0 && self.suits(greedy, &mut filling, item) {
                let most = self.varied(greedy, &filling, item, most);
                self.take(&mut filling, item, most);
            }
        }
        filling
    }

    /// Whether the machine can be what the item asks for, at no higher price.
    fn suits(&self, greedy: &mut Greedy<'_>, filling: &mut Filling, item: usize) -> bool {
        let problem = &mut greedy.problem;
        let kind = &self.items[item].kind;
        let Some(state) = problem.states.narrow(filling.state, kind.demand) else {
            return false;
        };
        let market = &mut problem.templates[self.template].market;
        if state != filling.state {
            let surcharge = problem.round.options.node_surcharge.dollars();
            if market.view(&problem.states, state).prices[filling.row] + surcharge > filling.price {
                return false;
            }
            filling.state = state;
        }
        if !kind.ports.is_empty() {
            let mut here = Bits::default();
            here.insert(filling.row);
            market.keep_free_ports(&kind.ports, &mut here);
            return !here.is_empty();
        }
        true
    }

    fn take(&self, filling: &mut Filling, item: usize, units: usize) {
        if units == 0 {
            return;
        }
        let kind = &self.items[item].kind;
        for (used, amount) in filling.used.iter_mut().zip(&kind.amounts) {
            *used += amount * i64::try_from(units).unwrap_or(i64::MAX);
        }
        filling.value += self.values[item] * units as f64;
        filling.ports.extend(kind.ports.iter().cloned());
        for group in &kind.counts {
            *filling.counted.entry(*group).or_default() += u32::try_from(units).unwrap_or(u32::MAX);
        }
        match filling.taken.iter_mut().find(|(known, _)| *known == item) {
            Some((_, count)) => *count += units,
            None => filling.taken.push((item, units)),
        }
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
    fn varied(&self, greedy: &mut Greedy<'_>, filling: &Filling, item: usize, most: usize) -> usize {
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

    fn is_varied(&self, greedy: &mut Greedy<'_>, filling: &Filling) -> bool {
        if !greedy.problem.templates[self.template].variety.is_demanded() {
            return true;
        }
        let rows = self.rows(greedy, filling);
        greedy.problem.templates[self.template].variety.suffices(&rows)
    }

    fn bin(&mut self, filling: &Filling, rows: Bits) -> Bin {
        let mut seats = Vec::new();
        for (item, units) in &filling.taken {
            self.waiting[*item] -= units;
            let from = self.waiting[*item];
            seats.extend(self.items[*item].units[from..from + units].iter().flatten().copied());
        }
        seats.sort_by_key(|seat| seat.member);
        Bin {
            row: filling.row,
            state: filling.state,
            rows,
            used: filling.used.clone(),
            ports: filling.ports.clone(),
            seats,
            price: filling.price,
        }
    }
}

/// What a unit costs on machines that are filled with its like only; nothing where no machine takes it.
fn alone(greedy: &mut Greedy<'_>, template: usize, item: &Item) -> Option<f64> {
    let problem = &mut greedy.problem;
    let state = problem
        .states
        .narrow(problem.templates[template].base, item.kind.demand)?;
    let market = &mut problem.templates[template].market;
    market.view(&problem.states, state);
    let view = market.seen(state);
    let mut rows = view.rows.clone();
    market.keep_roomy(&item.kind.amounts, &mut rows);
    let none = Amounts::from_elem(0, item.kind.amounts.len());
    let surcharge = problem.round.options.node_surcharge.dollars();
    let per_unit = rows.iter().map(|row| {
        let most = copies(&item.kind.amounts, &none, &market.rows[row].room);
        (view.prices[row] + surcharge) / most.clamp(1, 1 << 20) as f64
    });
    per_unit.min_by(f64::total_cmp)
}

/// How many kinds of pods are looked at to learn what a row is good for.
const SAMPLE: usize = 48;

/// What a unit of worth costs on each row that is filled with pods of the kind that suits it best, among the kinds that
/// count most. One is as good as it gets; where pods complement each other, it gets better still.
fn expected(greedy: &Greedy<'_>, template: usize, items: &[Item], values: &[f64]) -> Vec<f64> {
    let weight = |item: usize| values[item] * items[item].units.len() as f64;
    let mut sample: Vec<usize> = (0..items.len()).collect();
    sample.sort_by(|a, b| weight(*b).total_cmp(&weight(*a)).then(a.cmp(b)));
    sample.truncate(SAMPLE);
    let surcharge = greedy.problem.round.options.node_surcharge.dollars();
    let template = &greedy.problem.templates[template];
    let prices = &template.market.seen(template.base).prices;
    let rows = template.market.rows.iter().zip(prices).map(|(row, price)| {
        let ratios = sample.iter().map(|item| {
            let amounts = &items[*item].kind.amounts;
            let most = copies(amounts, &Amounts::from_elem(0, amounts.len()), &row.room);
            (price + surcharge) / (most.min(1 << 20) as f64 * values[*item])
        });
        ratios.fold(f64::INFINITY, f64::min)
    });
    rows.collect()
}

/// How many units fit beside what is used.
fn copies(amounts: &Amounts, used: &Amounts, room: &Amounts) -> usize {
    let three = || amounts.iter().zip(used).zip(room);
    // Most of those who are asked do not fit at all, and a comparison is cheaper than a division.
    if three().any(|((amount, used), room)| *amount > room - used) {
        return 0;
    }
    let mut most = usize::MAX;
    for ((amount, used), room) in three() {
        if *amount > 0 {
            most = most.min(usize::try_from((room - used) / amount).unwrap_or(0));
        }
    }
    most
}

/// How many units the rules over hosts and the ports allow.
fn welcome(greedy: &Greedy<'_>, filling: &Filling, kind: &Kind, most: usize) -> usize {
    let mut most = most;
    if !kind.ports.is_empty() {
        if ports_clash(&kind.ports, &filling.ports) {
            return 0;
        }
        most = 1;
    }
    for (number, counts_self) in &kind.asks {
        let here = filling.counted.get(number).copied().unwrap_or(0);
        let alone = kind.counts.contains(number);
        match greedy.problem.topology.groups[*number].identity.rule {
            Rule::Spread { max_skew, .. } => {
                let room = max_skew.saturating_add(u32::from(!counts_self)).saturating_sub(here) as usize;
                // Whoever is not counted does not fill the host up.
                most = most.min(if *counts_self || alone {
                    room
                } else {
                    room.min(1) * most
                });
            }
            Rule::AntiAffinity => {
                if here > 0 {
                    return 0;
                }
                if alone {
                    most = most.min(1);
                }
            }
            Rule::Affinity => {}
        }
    }
    most
}
