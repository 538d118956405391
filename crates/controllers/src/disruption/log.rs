//! What log lines say of a command: the same at its beginning and at its end, so that one can be found by the other.

use std::collections::BTreeSet;

use disruption::Command;
use model::{CapacityType, InstanceTypeName, NodeName, StateNode};
use state::View;

/// More names of instance types than this are counted.
const NAMED_TYPES: usize = 5;

/// A command as it was begun, in words.
#[derive(Clone, Debug)]
pub struct Line {
    pub command: String,
    pub decision: &'static str,
    pub node_count: usize,
    pub replacement_count: usize,
    pub pods: usize,
    pub pools: String,
    pub nodes: String,
    pub replacements: String,
    pub instance_types: String,
}

/// One line about a command; what follows the [`Line`] are further fields and the message.
macro_rules! log {
    ($level:ident, $line:expr, $($rest:tt)+) => {{
        let line: &$crate::disruption::log::Line = $line;
        tracing::$level!(
            command = %line.command,
            decision = line.decision,
            "disrupted-node-count" = line.node_count,
            "replacement-node-count" = line.replacement_count,
            "pod-count" = line.pods,
            nodepools = %line.pools,
            "disrupted-nodes" = %line.nodes,
            "replacement-nodes" = %line.replacements,
            "instance-types" = %line.instance_types,
            $($rest)+
        )
    }};
}
pub(super) use log;

impl Line {
    pub fn of(view: &View, command: &Command) -> Self {
        let machines = || command.nodes.iter().filter_map(|key| view.snapshot.nodes.get(key));
        let pools: BTreeSet<_> = machines().filter_map(|machine| machine.pool()).collect();
        let paid = command.replacements.iter().map(|launch| launch.choice.capacity_type);
        Self {
            command: command.to_string(),
            decision: command.decision(),
            node_count: command.nodes.len(),
            replacement_count: command.replacements.len(),
            pods: command.pods,
            pools: joined(pools),
            nodes: joined(machines().map(|machine| node(machine))),
            replacements: joined(paid),
            instance_types: match &command.replacements[..] {
                [only] => types(&only.instance_types),
                _ => String::new(),
            },
        }
    }
}

fn joined(parts: impl IntoIterator<Item = impl ToString>) -> String {
    let parts: Vec<String> = parts.into_iter().map(|part| part.to_string()).collect();
    parts.join(", ")
}

fn node(machine: &StateNode) -> String {
    let name = machine.node_name().map(NodeName::as_str).unwrap_or_default();
    let kind = machine.instance_type();
    let kind = kind.as_ref().map(InstanceTypeName::as_str).unwrap_or_default();
    let paid = machine.capacity_type().map(CapacityType::as_str).unwrap_or_default();
    format!("{name} ({}, {kind}, {paid})", machine.key)
}

fn types(listed: &[InstanceTypeName]) -> String {
    let named = joined(listed.iter().take(NAMED_TYPES));
    match listed.len().saturating_sub(NAMED_TYPES) {
        0 => named,
        more => format!("{named} and {more} other(s)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_of_types_is_cut() {
        let listed = |names: &[&str]| types(&names.iter().map(|name| (*name).into()).collect::<Vec<_>>());
        assert_eq!(listed(&[]), "");
        assert_eq!(listed(&["a", "b", "c", "d", "e"]), "a, b, c, d, e");
        assert_eq!(
            listed(&["a", "b", "c", "d", "e", "f", "g"]),
            "a, b, c, d, e and 2 other(s)"
        );
    }
}
