//! Makes a valid plan cheaper.
//!
//! First fit lets a machine grow as long as any instance type can hold it, which ends on large and dear types. This pass
//! takes the pods of a pool's planned machines and packs them anew by price: again and again it asks which instance type,
//! filled as well as the waiting pods allow, gives the most for its money. What a pod is worth comes from a linear
//! programme over the whole pool: the price at which the cheapest mix of types would sell its share of every resource.
//!
//! The pass keeps what first fit has settled: the pool of every pod, its preferences that are met, the domains that rules
//! count along. So rules over zones hold as they held before, and only rules over hosts are looked at again. The result
//! is taken if it is cheaper. The work is bounded by a number of steps, not by time, so that plans are reproducible.

mod duals;
mod fill;
mod filling;
mod items;
mod shelves;
mod squeeze;
mod worth;

pub use self::duals::unit_worth;
use crate::{bits::Bits, greedy::Greedy, open::Open, reservations::Held, template::Template};

use self::{
    fill::{Bin, Packer},
    items::Items,
};

/// A plan this close to what no plan can undercut is left as it is.
const CLOSE_ENOUGH: f64 = 1.01;

/// Packs every pool's planned machines anew where that saves money.
pub(crate) fn improve(greedy: &mut Greedy<'_>) {
    // Where there are reservations, who has a place in them was settled pod by pod, and packing knows nothing of it.
    let packable = |(_, template): &(usize, &Template<'_>)| !template.has_reservations;
    let templates = greedy.problem.templates.iter().enumerate().filter(packable);
    let templates: Vec<usize> = templates.map(|(template, _)| template).collect();
    for template in templates {
        let (mut theirs, kept): (Vec<Open>, Vec<Open>) = std::mem::take(&mut greedy.opens)
            .into_iter()
            .partition(|open| open.template == template && can_be_packed(open));
        greedy.opens = kept;
        if !theirs.is_empty()
            && let Some(cheaper) = repacked(greedy, template, &theirs)
        {
            theirs = cheaper;
        }
        greedy.opens.append(&mut theirs);
    }
    // Launches are told apart by their order: that of the pools, then that of their first pods.
    greedy
        .opens
        .sort_by_key(|open| (open.template, open.pods.iter().map(|seat| seat.member).min()));
}

/// What hangs on the choice of this very machine stays where it is: places in reservations, devices, demands that were
/// lowered for it.
fn can_be_packed(open: &Open) -> bool {
    open.held.is_empty() && open.lowered.is_none() && !open.has_devices
}

/// The pods of these machines on cheaper ones, or nothing where that cannot be had.
fn repacked(greedy: &mut Greedy<'_>, template: usize, opens: &[Open]) -> Option<Vec<Open>> {
    let price: f64 = opens.iter().map(|open| price(greedy, open)).sum();
    let items = Items::new(greedy, template, opens);
    let packer = Packer::new(greedy, template, items)?;
    if price <= packer.least_price() * CLOSE_ENOUGH {
        return None;
    }
    let bins = packer.pack(greedy, price)?;
    let new_price: f64 = bins.iter().map(|bin| bin.price).sum();
    // Sums of the same prices in another order differ in the last digits.
    if new_price >= price * (1.0 - 1e-9) {
        return None;
    }
    within_limits(greedy, template, opens, &bins)
}

fn price(greedy: &mut Greedy<'_>, open: &Open) -> f64 {
    let problem = &mut greedy.problem;
    let view = problem.templates[open.template]
        .market
        .view(&problem.states, open.state);
    let prices = open.rows.iter().map(|row| view.prices[row]);
    prices.min_by(f64::total_cmp).unwrap_or(f64::INFINITY) + problem.round.options.node_surcharge.dollars()
}

/// The bins as planned machines that the pool's limits allow, whatever each of them turns out to be; if need be, by
/// leaving out what is larger than what was chosen.
fn within_limits(greedy: &mut Greedy<'_>, template: usize, old: &[Open], bins: &[Bin]) -> Option<Vec<Open>> {
    let Some(before) = greedy.problem.templates[template].limits.clone() else {
        return Some(bins.iter().map(|bin| open(template, bin, bin.rows.clone())).collect());
    };
    let mut freed = before;
    for open in old {
        freed.close(&open.charge);
    }
    for modest in [false, true] {
        let mut limits = freed.clone();
        let mut opens = Vec::with_capacity(bins.len());
        for bin in bins {
            let mut rows = bin.rows.clone();
            if modest {
                limits.keep_no_larger(bin.row, &mut rows);
            }
            let mut open = open(template, bin, rows);
            open.charge = limits.charge(&open.rows);
            limits.open(&open.charge);
            opens.push(open);
        }
        let varied = |open: &Open| greedy.problem.templates[template].variety.suffices(&open.rows);
        if limits.hold() && opens.iter().all(varied) {
            greedy.problem.templates[template].limits = Some(limits);
            return Some(opens);
        }
    }
    None
}

fn open(template: usize, bin: &Bin, rows: Bits) -> Open {
    Open {
        id: 0,
        template,
        state: bin.state,
        rows,
        used: bin.used.clone(),
        ports: bin.ports.clone(),
        pods: bin.seats.clone(),
        held: Held::new(),
        charge: Default::default(),
        lowered: None,
        has_devices: false,
    }
}
