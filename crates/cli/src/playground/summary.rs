//! What a story came to.

use std::collections::BTreeMap;

use super::{cloud::Bill, teller::Waited};

/// Prints how the story went: machines, waiting times, the bill.
pub fn print(story: &str, waits: &[Waited], bill: &Bill) {
    let launched: usize = bill.launched.values().sum();
    println!();
    println!("story {story} ended as it should");
    println!("  nodes launched      {launched}{}", kinds(&bill.launched));
    for waited in waits {
        println!("  {:<19} {:.1}s", waited.what, waited.took.as_secs_f64());
    }
    println!("  cost                ${:.4}", bill.dollars);
    println!("  nodes consolidated  {}", launched - bill.left);
    println!("  nodes left          {}", bill.left);
    if let Some(note) = bill.note {
        println!("  ({note})");
    }
}

/// ` (3 × m5.large spot, 1 × c5.xlarge on-demand)`
fn kinds(counts: &BTreeMap<String, usize>) -> String {
    if counts.is_empty() {
        return String::new();
    }
    let list: Vec<String> = counts.iter().map(|(kind, count)| format!("{count} × {kind}")).collect();
    format!(" ({})", list.join(", "))
}
