//! Makes packed machines cheaper one by one: pods move into room that is paid for elsewhere, and what is left behind
//! goes onto a smaller machine or needs none at all.
//!
//! Filling by worth cannot see this. Where a rule wants many machines that are half empty, room on them costs nothing, and
//! no worth per pod says so.

use super::{fill::Packer, filling::Filling};
use crate::{amounts, greedy::Greedy};

/// How often all machines are gone through.
const PASSES: usize = 3;

/// The share of all steps that one run may take.
const SHARE: usize = 64;

/// A saving below this is the noise of sums.
const TRIFLE: f64 = 1e-9;

impl Packer {
    /// The same pods on machines that cost no more. The dearest for what they hold are tried first.
    pub(super) fn squeeze(&mut self, greedy: &mut Greedy<'_>, mut bins: Vec<Filling>) -> Vec<Filling> {
        let until = self.steps + self.most_steps / SHARE;
        for _ in 0..PASSES {
            let mut order: Vec<usize> = (0..bins.len()).collect();
            order.sort_by(|a, b| bins[*b].ratio().total_cmp(&bins[*a].ratio()).then(a.cmp(b)));
            let mut roomy = self.roomy(greedy, &bins);
            let mut saved = false;
            for bin in order {
                if self.steps > until {
                    break;
                }
                saved |= self.relieve(greedy, &mut bins, bin, &mut roomy);
            }
            bins.retain(|bin| !bin.taken.is_empty());
            if !saved || self.steps > until {
                break;
            }
        }
        bins
    }

    /// The machines with room for anything at all.
    fn roomy(&self, greedy: &Greedy<'_>, bins: &[Filling]) -> Vec<usize> {
        let rows = &greedy.problem.templates[self.template].market.rows;
        let mut least = match self.items.first() {
            Some(item) => item.kind.amounts.clone(),
            None => return Vec::new(),
        };
        for item in &self.items {
            for (least, amount) in least.iter_mut().zip(&item.kind.amounts) {
                *least = (*least).min(*amount);
            }
        }
        let roomy = bins.iter().enumerate();
        roomy
            .filter(|(_, bin)| bin.copies(&least, &rows[bin.row].room) > 0)
            .map(|(number, _)| number)
            .collect()
    }

    /// Moves pods of one machine to others, if that saves money.
    fn relieve(&mut self, greedy: &mut Greedy<'_>, bins: &mut [Filling], bin: usize, roomy: &mut Vec<usize>) -> bool {
        let mut leaving = bins[bin].taken.to_vec();
        let size = |item: usize| -> i64 { self.items[item].kind.amounts.iter().sum() };
        leaving.sort_by_key(|(item, _)| (std::cmp::Reverse(size(*item)), *item));
        let mut changed: Vec<(usize, Filling)> = Vec::new();
        let mut staying: Vec<(usize, usize)> = Vec::new();
        for (item, units) in leaving {
            let left = if self.items[item].kind.bundle.is_some() {
                units
            } else {
                self.give_away(greedy, bins, bin, roomy, &mut changed, (item, units))
            };
            if left > 0 {
                staying.push((item, left));
            }
        }
        if changed.is_empty() {
            return false;
        }
        let rest = if staying.is_empty() {
            None
        } else {
            match self.smallest(greedy, &staying) {
                Some(rest) => Some(rest),
                None => return false,
            }
        };
        let saved = bins[bin].price - rest.as_ref().map_or(0.0, |rest| rest.price);
        if saved < TRIFLE {
            return false;
        }
        for (number, filling) in changed {
            bins[number] = filling;
        }
        match rest {
            Some(rest) => bins[bin] = rest,
            None => {
                bins[bin].taken.clear();
                roomy.retain(|number| *number != bin);
            }
        }
        true
    }

    /// Puts units of an item onto other machines; the answer is how many found no room.
    fn give_away(
        &mut self,
        greedy: &mut Greedy<'_>,
        bins: &[Filling],
        from: usize,
        roomy: &[usize],
        changed: &mut Vec<(usize, Filling)>,
        (item, units): (usize, usize),
    ) -> usize {
        let mut left = units;
        for number in roomy.iter().copied().filter(|number| *number != from) {
            if left == 0 {
                break;
            }
            self.steps += 1;
            let known = changed.iter().position(|(known, _)| *known == number);
            let there = known.map_or(&bins[number], |known| &changed[known].1);
            let kind = &self.items[item].kind;
            let market = &greedy.problem.templates[self.template].market;
            let most = there.copies(&kind.amounts, &market.rows[there.row].room).min(left);
            if most == 0 {
                continue;
            }
            let most = there.welcome(&greedy.problem.topology.groups, kind, most);
            if most == 0 {
                continue;
            }
            let mut there = there.clone();
            if !self.suits(greedy, &mut there, item) {
                continue;
            }
            let most = self.varied(greedy, &there, item, most);
            if most == 0 {
                continue;
            }
            there.take(item, &self.items[item], most, self.values[item]);
            left -= most;
            match known {
                Some(known) => changed[known].1 = there,
                None => changed.push((number, there)),
            }
        }
        left
    }

    /// The cheapest machine that holds these units.
    fn smallest(&self, greedy: &mut Greedy<'_>, units: &[(usize, usize)]) -> Option<Filling> {
        let problem = &mut greedy.problem;
        let mut state = problem.templates[self.template].base;
        let mut used = amounts::Amounts::from_elem(0, problem.dims.len());
        for (item, units) in units {
            let kind = &self.items[*item].kind;
            state = problem.states.narrow(state, kind.demand)?;
            for _ in 0..*units {
                amounts::add(&mut used, &kind.amounts);
            }
        }
        let market = &mut problem.templates[self.template].market;
        let mut rows = market.view(&problem.states, state).rows.clone();
        market.keep_roomy(&used, &mut rows);
        for (item, _) in units {
            market.keep_free_ports(&self.items[*item].kind.ports, &mut rows);
        }
        let prices = &market.seen(state).prices;
        let row = rows.iter().min_by(|a, b| prices[*a].total_cmp(&prices[*b]))?;
        let price = prices[row] + problem.round.options.node_surcharge.dollars();
        let mut filling = Filling::new(row, state, price, used.len());
        for (item, units) in units {
            filling.take(*item, &self.items[*item], *units, self.values[*item]);
        }
        self.is_varied(greedy, &filling).then_some(filling)
    }
}
