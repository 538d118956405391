//! What a unit of each resource is worth at the prices of a market.
//!
//! The cheapest way to buy given amounts in fractions of instance types is a small linear programme: as many rows as there
//! are resources, as many columns as types. Its dual says what each unit of a resource is worth; no plan can be cheaper
//! than the worth of everything that is asked for.

/// The worth of a unit of each resource. `columns` are pairs of a price and the amounts that it buys.
///
/// The simplex method with an explicit basis: there are only a handful of resources. It starts from a column per resource
/// that nobody would pay for and ends when no type sells anything below its worth. What nobody sells is worth nothing.
pub fn unit_worth(demand: &[f64], columns: &[(f64, Vec<f64>)]) -> Vec<f64> {
    let size = demand.len();
    let sold = || columns.iter().filter(|(price, _)| price.is_finite() && *price > 0.0);
    let cheapest = |dim: usize| {
        let sellers = sold().filter(|(_, amounts)| amounts[dim] > 0.0);
        let each = sellers.map(|(price, amounts)| price / amounts[dim]);
        each.min_by(f64::total_cmp)
    };
    // What is asked for and sold, with the price at which nobody would buy it by itself.
    let wanted: Vec<(usize, f64)> = (0..size)
        .filter(|dim| demand[*dim] > 0.0)
        .filter_map(|dim| Some((dim, PROHIBITIVE * cheapest(dim)? * demand[dim])))
        .collect();
    let columns: Vec<(f64, Vec<f64>)> = sold()
        .map(|(price, amounts)| {
            let scaled = wanted.iter().map(|(dim, _)| amounts[*dim] / demand[*dim]);
            (*price, scaled.collect())
        })
        .collect();
    let mut basis = Basis::new(wanted.iter().map(|(_, price)| *price).collect());
    for _ in 0..MOST_PIVOTS {
        let worth = basis.worth();
        let surplus = |(price, amounts): &(f64, Vec<f64>)| {
            let value: f64 = amounts.iter().zip(&worth).map(|(amount, worth)| amount * worth).sum();
            value / price - 1.0
        };
        let best = columns
            .iter()
            .map(|column| (surplus(column), column))
            .max_by(|(a, _), (b, _)| a.total_cmp(b));
        let overpaid = worth.iter().enumerate().min_by(|(_, a), (_, b)| a.total_cmp(b));
        let entered = match (best, overpaid) {
            (Some((gain, column)), _) if gain > TOLERANCE => basis.enter(column.0, &column.1),
            (_, Some((dim, worth))) if *worth < -TOLERANCE => basis.enter(0.0, &waste(wanted.len(), dim)),
            _ => break,
        };
        if !entered {
            break;
        }
    }
    let mut result = vec![0.0; size];
    for ((dim, _), worth) in wanted.iter().zip(basis.worth()) {
        result[*dim] = worth.max(0.0) / demand[*dim];
    }
    result
}

/// How much more than its cheapest seller asks nobody pays for a resource. No worth is ever above the cheapest seller's
/// price, so a little is enough, and large numbers would drown the small differences that the search goes by.
const PROHIBITIVE: f64 = 4.0;
const MOST_PIVOTS: usize = 500;
const TOLERANCE: f64 = 1e-7;

/// Buying more of a resource than is asked for costs nothing extra.
fn waste(size: usize, dim: usize) -> Vec<f64> {
    (0..size).map(|other| if other == dim { -1.0 } else { 0.0 }).collect()
}

struct Basis {
    /// Rows of the inverse of the matrix of chosen columns.
    inverse: Vec<Vec<f64>>,
    prices: Vec<f64>,
    /// How much of each chosen column is bought. One of everything is asked for.
    bought: Vec<f64>,
}

impl Basis {
    fn new(prices: Vec<f64>) -> Self {
        let size = prices.len();
        let unit = |row: usize| (0..size).map(|column| if row == column { 1.0 } else { 0.0 }).collect();
        Self {
            inverse: (0..size).map(unit).collect(),
            prices,
            bought: vec![1.0; size],
        }
    }

    fn worth(&self) -> Vec<f64> {
        let size = self.prices.len();
        let of = |dim: usize| (0..size).map(|row| self.prices[row] * self.inverse[row][dim]).sum();
        (0..size).map(of).collect()
    }

    /// Takes a column in and another out; no when nothing limits the new one.
    fn enter(&mut self, price: f64, column: &[f64]) -> bool {
        let direction: Vec<f64> = self
            .inverse
            .iter()
            .map(|row| row.iter().zip(column).map(|(a, b)| a * b).sum())
            .collect();
        let ratios = (0..direction.len()).filter(|row| direction[*row] > 1e-12);
        let leaving =
            ratios.min_by(|a, b| (self.bought[*a] / direction[*a]).total_cmp(&(self.bought[*b] / direction[*b])));
        let Some(leaving) = leaving else { return false };
        let pivot = direction[leaving];
        for entry in &mut self.inverse[leaving] {
            *entry /= pivot;
        }
        self.bought[leaving] /= pivot;
        self.prices[leaving] = price;
        let (row, bought) = (self.inverse[leaving].clone(), self.bought[leaving]);
        for other in (0..direction.len()).filter(|other| *other != leaving) {
            let factor = direction[other];
            for (entry, by) in self.inverse[other].iter_mut().zip(&row) {
                *entry -= factor * by;
            }
            self.bought[other] -= factor * bought;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::unit_worth;

    #[track_caller]
    fn check(demand: &[f64], columns: &[(f64, Vec<f64>)], expected: &[f64]) {
        let found = unit_worth(demand, columns);
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "{found} instead of {expected}");
        }
    }

    #[test]
    fn a_single_type_is_paid_for_by_the_resource_that_runs_out() {
        check(&[10.0, 1.0], &[(2.0, vec![4.0, 4.0])], &[0.5, 0.0]);
    }

    #[test]
    fn two_types_share_the_price_of_both_resources() {
        let compute = (1.0, vec![4.0, 4.0]);
        let memory = (2.0, vec![4.0, 16.0]);
        check(&[4.0, 10.0], &[compute, memory], &[1.0 / 6.0, 1.0 / 12.0]);
    }

    #[test]
    fn nothing_is_worth_anything_where_nothing_is_sold() {
        check(&[1.0], &[], &[0.0]);
        check(&[1.0], &[(f64::INFINITY, vec![1.0])], &[0.0]);
    }

    /// Shapes of upstream's KWOK provider, whose prices are a sum over processors and memory, and a pod far smaller than any.
    #[test]
    fn a_small_demand_is_worth_its_share_of_the_cheapest_type() {
        let kinds = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0].into_iter();
        let shapes = kinds.flat_map(|cpu| [2.0, 4.0, 8.0].map(|ratio| (cpu, cpu * ratio)));
        let columns: Vec<(f64, Vec<f64>)> = shapes
            .map(|(cpu, memory)| (0.025 * cpu + 0.001 * memory, vec![cpu - 0.1, (memory - 0.01) * 1e9]))
            .collect();
        let found = unit_worth(&[0.1, 64e6], &columns);
        let largest = (0.025 * 256.0 + 0.001 * 512.0) / 255.9;
        assert!((found[0] - largest).abs() < 1e-9 && found[1] == 0.0, "{found:?}");
    }

    #[test]
    fn what_nobody_sells_is_worth_nothing() {
        check(&[1.0, 1.0], &[(1.0, vec![2.0, 0.0])], &[0.5, 0.0]);
    }

    #[test]
    fn what_nobody_asks_for_is_worth_nothing() {
        check(&[1.0, 0.0], &[(1.0, vec![2.0, 5.0])], &[0.5, 0.0]);
    }
}
