//! The plan for people: a line for each command, then why each other node stays.

use std::fmt::Write as _;

use super::report::{CommandReport, PassReport, Report};

pub fn shown(report: &Report) -> String {
    let mut text = String::new();
    let several = report.passes.len() > 1;
    for (index, pass) in report.passes.iter().enumerate() {
        if several {
            line(&mut text, &format!("pass {}", index + 1));
        }
        for command in &pass.commands {
            line(&mut text, &command_line(command));
        }
    }
    if let Some(last) = report.passes.last() {
        stays(&mut text, last);
    }
    let (start, rest) = (&report.start, &report.rest);
    line(
        &mut text,
        &format!(
            "{} nodes at ${:.2} an hour → {} nodes at ${:.2} an hour; {} pods evicted",
            start.nodes, start.price_per_hour, rest.fleet.nodes, rest.fleet.price_per_hour, rest.pods_disrupted
        ),
    );
    text
}

fn line(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("a string takes everything");
}

fn stays(text: &mut String, pass: &PassReport) {
    let width = pass.stays.iter().map(|stay| stay.node.len()).max().unwrap_or(0);
    for stay in &pass.stays {
        line(
            text,
            &format!("stay    {:width$}  {}: {}", stay.node, stay.reason, stay.message),
        );
    }
}

fn command_line(command: &CommandReport) -> String {
    let removed = command.removed.join(",");
    let launched = launches(command);
    let saving = format!("(saves ${:.2}/h)", command.saves_per_hour);
    match command.method {
        "provisioning" => format!("launch  {launched} for {} pods", command.moves.len()),
        "emptiness" => format!("delete  {removed} (empty) {saving}"),
        "drift" | "staticDrift" => {
            let why = command.drift.join(", ");
            let instead = if launched.is_empty() {
                String::new()
            } else {
                format!(" → {launched}")
            };
            format!("drift   {removed} ({why}){instead}")
        }
        _ if launched.is_empty() => format!("delete  {removed} {saving}"),
        _ => format!("replace {removed} → {launched} {saving}"),
    }
}

/// `2 × m5.large/spot, 1 × c5.large/spot`, in the order of their names.
fn launches(command: &CommandReport) -> String {
    let mut counts = std::collections::BTreeMap::new();
    for launch in &command.replacements {
        let name = format!("{}/{}", launch.instance_type, launch.capacity_type);
        *counts.entry(name).or_insert(0) += 1;
    }
    let counted = counts.into_iter().map(|(name, count)| format!("{count} × {name}"));
    counted.collect::<Vec<_>>().join(", ")
}
