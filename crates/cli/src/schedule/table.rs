//! A plan as people read it: what is launched, what fits where it is, what has no place and why, and the sum of it.

use std::{collections::BTreeMap, fmt::Write as _};

use model::{Quantity, Resources, Snapshot};
use scheduler::{Launch, Plan};

use super::report::{Report, Unschedulable};

/// How many names of pods a line shows before it counts the rest.
const SHOWN_PODS: usize = 3;

/// Without what only a closer look needs.
pub fn narrow(snapshot: &Snapshot, plan: &Plan, report: &Report, explain: bool) -> String {
    print(snapshot, plan, report, Detail { wide: false, explain })
}

/// With requests, alternatives and all names of pods.
pub fn wide(snapshot: &Snapshot, plan: &Plan, report: &Report, explain: bool) -> String {
    print(snapshot, plan, report, Detail { wide: true, explain })
}

#[derive(Clone, Copy)]
struct Detail {
    wide: bool,
    explain: bool,
}

fn print(snapshot: &Snapshot, plan: &Plan, report: &Report, detail: Detail) -> String {
    let mut text = String::new();
    if !plan.launches.is_empty() {
        let mut header = vec!["POOL", "TYPE", "ZONE", "CAPACITY", "PRICE/H", "PODS", "CPU", "MEMORY"];
        if detail.wide {
            header.extend(["ALTERNATIVES", "REQUESTS", "NAMES"]);
        }
        let launches = plan.launches.iter().zip(&report.new_nodes);
        let rows = launches.map(|(launch, node)| new_node(snapshot, launch, &node.pods, detail));
        section(&mut text, "New nodes", &header, rows.collect());
    }
    if !report.existing_nodes.is_empty() {
        let rows = report.existing_nodes.iter().map(|node| {
            let shown = if detail.wide {
                node.pods.join(" ")
            } else {
                some(&node.pods)
            };
            vec![node.name.clone(), node.pods.len().to_string(), shown]
        });
        section(&mut text, "Existing nodes", &["NODE", "PODS", "NAMES"], rows.collect());
    }
    if !report.unschedulable.is_empty() {
        heading(&mut text, "No place");
        refused(&mut text, &report.unschedulable, detail);
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text + &totals(report)
}

fn new_node(snapshot: &Snapshot, launch: &Launch, pods: &[String], detail: Detail) -> Vec<String> {
    let choice = &launch.choice;
    let shape = snapshot.instance_type(&launch.pool, &choice.instance_type);
    let offering = shape.and_then(|shape| {
        shape.offerings.iter().find(|offering| {
            offering.zone == choice.zone
                && offering.capacity_type == choice.capacity_type
                && offering.price == choice.price
        })
    });
    let room = match (shape, offering) {
        (Some(shape), Some(offering)) => shape.allocatable_under(offering),
        (Some(shape), None) => shape.allocatable().clone(),
        (None, _) => Resources::new(),
    };
    let mut row = vec![
        launch.pool.to_string(),
        choice.instance_type.to_string(),
        choice.zone.to_string(),
        choice.capacity_type.to_string(),
        format!("{:.4}", choice.price),
        pods.len().to_string(),
        share(&launch.requests, &room, "cpu"),
        share(&launch.requests, &room, "memory"),
    ];
    if detail.wide {
        let others = launch.instance_types.len().saturating_sub(1);
        row.extend([others.to_string(), launch.requests.to_string(), pods.join(" ")]);
    }
    row
}

fn share(requests: &Resources, room: &Resources, resource: &str) -> String {
    let (asked, there) = (requests.get(resource), room.get(resource));
    if there <= Quantity::ZERO {
        return "-".to_owned();
    }
    format!("{:.0}%", 100.0 * asked.as_f64() / there.as_f64())
}

/// Pods with one reason share a line; what every pool has against them follows when it is asked for.
fn refused(text: &mut String, unschedulable: &[Unschedulable], detail: Detail) {
    let mut groups: BTreeMap<(&str, &[super::report::PoolReason]), Vec<&str>> = BTreeMap::new();
    for one in unschedulable {
        groups.entry((&one.reason, &one.refusals)).or_default().push(&one.pod);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, pods)| std::cmp::Reverse(pods.len()));
    for ((reason, pools), pods) in groups {
        let shown = if detail.wide { pods.join(" ") } else { some(&pods) };
        let count = pods.len();
        let noun = if count == 1 { "pod" } else { "pods" };
        let _ = writeln!(text, "{count} {noun}: {shown}");
        if detail.explain && !pools.is_empty() {
            for pool in pools {
                let _ = writeln!(text, "    pool {}: {}", pool.node_pool, pool.reason);
            }
        } else {
            let _ = writeln!(text, "    {reason}");
        }
    }
}

fn totals(report: &Report) -> String {
    let on_new: usize = report.new_nodes.iter().map(|node| node.pods.len()).sum();
    let on_existing: usize = report.existing_nodes.iter().map(|node| node.pods.len()).sum();
    let left = report.unschedulable.len();
    if on_new + on_existing + left == 0 {
        return "No pod waits for a place.\n".to_owned();
    }
    let nodes = report.new_nodes.len();
    format!(
        "{} of {} pods have a place: {on_new} on {nodes} new node{} for ${:.4} per hour, {on_existing} on nodes that are there.\n",
        on_new + on_existing,
        on_new + on_existing + left,
        if nodes == 1 { "" } else { "s" },
        report.price_per_hour,
    )
}

fn some<T: AsRef<str>>(names: &[T]) -> String {
    let shown: Vec<&str> = names.iter().take(SHOWN_PODS).map(AsRef::as_ref).collect();
    match names.len().saturating_sub(SHOWN_PODS) {
        0 => shown.join(" "),
        rest => format!("{} and {rest} more", shown.join(" ")),
    }
}

fn heading(text: &mut String, title: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    let _ = writeln!(text, "{title}");
}

/// Columns as wide as their widest cell; numbers stand to the right.
fn section(text: &mut String, title: &str, header: &[&str], rows: Vec<Vec<String>>) {
    heading(text, title);
    let header = header.iter().map(|name| (*name).to_owned()).collect();
    let rows: Vec<Vec<String>> = std::iter::once(header).chain(rows).collect();
    let columns = rows[0].len();
    let widths: Vec<usize> = (0..columns)
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    let is_number = |column: usize| {
        let digits = |cell: &String| cell == "-" || cell.starts_with(|first: char| first.is_ascii_digit());
        let unit = |cell: &String| cell.trim_end_matches('%').parse::<f64>().is_ok() || cell == "-";
        rows[1..].iter().all(|row| digits(&row[column]) && unit(&row[column]))
    };
    let right: Vec<bool> = (0..columns).map(is_number).collect();
    for row in &rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let gap = if column == 0 { "" } else { "  " };
            let width = widths[column];
            let _ = if right[column] {
                write!(line, "{gap}{cell:>width$}")
            } else {
                write!(line, "{gap}{cell:<width$}")
            };
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
}
