//! What pods are worth before anything is packed, and what rows may be good for.

use rustc_hash::FxHashMap;

use super::{
    filling::copies,
    items::{Item, Kind},
};
use crate::{amounts::Amounts, greedy::Greedy};

/// What a unit of each item costs on machines that are filled with its like only; nothing where no machine takes it.
pub(super) fn alone(greedy: &mut Greedy<'_>, template: usize, items: &[Item]) -> Option<Vec<f64>> {
    let mut known: FxHashMap<_, f64> = FxHashMap::default();
    let mut values = Vec::with_capacity(items.len());
    for Item { kind, .. } in items {
        let value = match known.get(&(kind.demand, &kind.amounts)) {
            Some(value) => *value,
            None => {
                let value = cheapest(greedy, template, kind)?;
                known.insert((kind.demand, &kind.amounts), value);
                value
            }
        };
        values.push(value);
    }
    Some(values)
}

fn cheapest(greedy: &mut Greedy<'_>, template: usize, kind: &Kind) -> Option<f64> {
    let problem = &mut greedy.problem;
    let state = problem.states.narrow(problem.templates[template].base, kind.demand)?;
    let market = &mut problem.templates[template].market;
    market.view(&problem.states, state);
    let view = market.seen(state);
    let mut rows = view.rows.clone();
    market.keep_roomy(&kind.amounts, &mut rows);
    let none = Amounts::from_elem(0, kind.amounts.len());
    let surcharge = problem.round.options.node_surcharge.dollars();
    let per_unit = rows.iter().map(|row| {
        let most = copies(&kind.amounts, &none, &market.rows[row].room);
        (view.prices[row] + surcharge) / most.clamp(1, 1 << 20) as f64
    });
    per_unit.min_by(f64::total_cmp)
}

/// How many kinds of pods are looked at to learn what a row is good for.
const SAMPLE: usize = 48;

/// What a unit of worth costs on each row that is filled with pods of the kind that suits it best, among the kinds that
/// count most. One is as good as it gets; where pods complement each other, it gets better still.
pub(super) fn expected(greedy: &Greedy<'_>, template: usize, items: &[Item], values: &[f64]) -> Vec<f64> {
    let mut weights: FxHashMap<&Amounts, (f64, usize)> = FxHashMap::default();
    for (number, item) in items.iter().enumerate() {
        let (weight, _) = weights.entry(&item.kind.amounts).or_insert((0.0, number));
        *weight += values[number] * item.units.len() as f64;
    }
    let mut sample: Vec<(f64, usize)> = weights.into_values().collect();
    sample.sort_by(|(a, x), (b, y)| b.total_cmp(a).then(x.cmp(y)));
    sample.truncate(SAMPLE);
    let surcharge = greedy.problem.round.options.node_surcharge.dollars();
    let template = &greedy.problem.templates[template];
    let prices = &template.market.seen(template.base).prices;
    let rows = template.market.rows.iter().zip(prices).map(|(row, price)| {
        let ratios = sample.iter().map(|(_, item)| {
            let amounts = &items[*item].kind.amounts;
            let most = copies(amounts, &Amounts::from_elem(0, amounts.len()), &row.room);
            (price + surcharge) / (most.min(1 << 20) as f64 * values[*item])
        });
        ratios.fold(f64::INFINITY, f64::min)
    });
    rows.collect()
}
