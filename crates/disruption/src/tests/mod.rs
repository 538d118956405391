//! Situations and what is decided about them. Names such as DI-C1 are rows of the behaviour specification.

mod candidates;
mod consolidation;
mod devices;
mod drifts;
mod empties;
mod goal;
mod many;
mod money;
mod replacements;
mod surroundings;
mod validation;

use std::{collections::BTreeSet, fmt::Write as _};

use expect_test::Expect;

use crate::{Command, Method, Pass, Settings, Why, decide, situation};

/// Types of three sizes, on demand and as spot, in two zones.
const TYPES: &str = "
    type small cpu=2 memory=8Gi price=0.2 zones=a,b sell=spot,on-demand
    type medium cpu=4 memory=16Gi price=0.4 zones=a,b sell=spot,on-demand
    type large cpu=8 memory=32Gi price=0.8 zones=a,b sell=spot,on-demand\n";

fn with_types(rest: &str) -> String {
    format!("{TYPES}{rest}")
}

/// Node `a` of a pool that could have smaller ones.
fn one_large(rest: &str) -> String {
    with_types(&format!(
        "pool general sell=on-demand\nnode a pool=general type=large\n{rest}"
    ))
}

/// Nodes `a` and `b` of the one type that their pool buys: no other is cheaper, but one of them may do without the other.
fn two_large(rest: &str) -> String {
    with_types(&format!(
        "pool general sell=on-demand types=large\nnode a pool=general type=large\nnode b pool=general type=large\n{rest}"
    ))
}

/// What is decided, one line for each command and each node that stays for a reason of its own.
#[track_caller]
pub(super) fn check(situation: &str, expected: &Expect) {
    check_with(&Settings::default(), situation, expected);
}

#[track_caller]
pub(super) fn check_with(settings: &Settings, situation: &str, expected: &Expect) {
    expected.assert_eq(&shown(&pass_of(settings, situation)));
}

pub(super) fn pass_of(settings: &Settings, situation: &str) -> Pass {
    let snapshot = situation::parse(situation);
    let pass = decide(&snapshot, settings, &BTreeSet::new(), situation::now());
    let named: BTreeSet<_> = pass.stays.iter().map(|stay| &stay.node).collect();
    let going: BTreeSet<_> = pass.commands.iter().flat_map(|command| &command.nodes).collect();
    for node in snapshot.nodes.values().filter(|node| node.is_managed()) {
        assert!(
            named.contains(&node.key) != going.contains(&node.key),
            "{} goes or stays, and for one reason",
            node.key
        );
    }
    pass
}

pub(super) fn shown(pass: &Pass) -> String {
    let mut text = String::new();
    for command in &pass.commands {
        writeln!(text, "{}", line(command)).expect("a string takes everything");
    }
    for stay in &pass.stays {
        match &stay.why {
            Why::Stranded { pod, .. } => writeln!(text, "{} stays: {} is stranded", stay.node, pod.name),
            why => writeln!(text, "{} stays: {why}", stay.node),
        }
        .expect("a string takes everything");
    }
    text
}

pub(super) fn line(command: &Command) -> String {
    let nodes: Vec<String> = command.nodes.iter().map(ToString::to_string).collect();
    let word = match command.method {
        Method::Emptiness => "empty",
        Method::StaticDrift | Method::Drift => "drift",
        Method::Consolidation => "consolidate",
    };
    let mut text = format!("{word} {}", nodes.join(","));
    for launch in &command.replacements {
        let more = launch.instance_types.len() - 1;
        write!(text, " -> {}", launch.choice).expect("a string takes everything");
        if more > 0 {
            write!(text, " or {more} more").expect("a string takes everything");
        }
    }
    for placement in &command.placements {
        let pods: Vec<&str> = placement.pods.iter().map(|pod| &*pod.name).collect();
        write!(text, " {}<-{}", placement.node, pods.join(",")).expect("a string takes everything");
    }
    write!(text, " saves {:.2}", command.saving).expect("a string takes everything");
    text
}
