//! What a story came to.

use std::collections::BTreeMap;

use provider_sim::{Machine, SimCloud, SpotPrices};

use super::teller::Waited;

/// Prints how the story went: machines, waiting times, the bill.
pub fn print(story: &str, waits: &[Waited], cloud: &SimCloud, spot_prices: SpotPrices) {
    let machines = cloud.machines();
    let left = cloud.live().len();
    println!();
    println!("story {story} ended as it should");
    println!(
        "  nodes launched      {}{}",
        machines.len(),
        shapes(machines.iter().map(AsRef::as_ref))
    );
    for waited in waits {
        println!("  {:<19} {:.1}s", waited.what, waited.took.as_secs_f64());
    }
    println!("  cost                ${:.4}", cloud.spent());
    println!("  nodes consolidated  {}", machines.len() - left);
    println!("  nodes left          {left}");
    if let Some(note) = spot_prices.note() {
        println!("  ({note})");
    }
}

/// ` (3 m5.large spot, 1 c5.xlarge on-demand)`
fn shapes<'a>(machines: impl Iterator<Item = &'a Machine>) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for machine in machines {
        let offering = &machine.offering;
        *counts
            .entry(format!("{} {}", offering.instance_type, offering.capacity_type))
            .or_default() += 1;
    }
    if counts.is_empty() {
        return String::new();
    }
    let list: Vec<String> = counts
        .iter()
        .map(|(shape, count)| format!("{count} × {shape}"))
        .collect();
    format!(" ({})", list.join(", "))
}
