//! A decided disruption.

use std::fmt;

use model::{NodeKey, budget::DisruptionReason};
use scheduler::{Launch, Placement};

use crate::balanced::Score;

/// Which consideration led to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    Emptiness,
    StaticDrift,
    Drift,
    Consolidation,
}

impl Method {
    pub fn reason(self) -> DisruptionReason {
        match self {
            Method::Emptiness => DisruptionReason::Empty,
            Method::StaticDrift | Method::Drift => DisruptionReason::Drifted,
            Method::Consolidation => DisruptionReason::Underutilized,
        }
    }

    /// Decisions about money are looked at again a while later; a node that has drifted will not undrift.
    pub fn is_validated(self) -> bool {
        matches!(self, Method::Emptiness | Method::Consolidation)
    }
}

/// Nodes to remove for one reason, what has to be running before they go, and where their pods are expected to go.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    pub method: Method,
    /// In the order in which they were chosen.
    pub nodes: Vec<NodeKey>,
    /// Empty for a plain deletion.
    pub replacements: Vec<Launch>,
    /// Pods for machines that are there.
    pub placements: Vec<Placement>,
    /// How many pods will be evicted.
    pub pods: usize,
    /// US dollars per hour, at the present prices. Negative where a replacement costs more than what it replaces.
    pub saving: f64,
    /// How saving and disruption compare for each of the nodes' pools, where consolidation decided.
    pub scores: Vec<Score>,
}

impl Command {
    pub fn reason(&self) -> DisruptionReason {
        self.method.reason()
    }

    /// Tells its lines in the log from those of other commands. The same for the same nodes in the same order: nothing else
    /// would be the same in every run, and a node is in one command at a time.
    pub fn id(&self) -> String {
        // FNV-1a. It has to be short and repeat everywhere, and no more.
        let hash = self.nodes.iter().fold(0x811c_9dc5_u32, |hash, node| {
            let name = node.to_string();
            let bytes = name.bytes().chain([0]);
            bytes.fold(hash, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
        });
        format!("{hash:08x}")
    }

    /// The word that metrics and logs use.
    pub fn decision(&self) -> &'static str {
        match (self.nodes.is_empty(), self.replacements.is_empty()) {
            (true, _) => "no-op",
            (false, true) => "delete",
            (false, false) => "replace",
        }
    }

    /// The word by which metrics tell kinds of consolidation apart.
    pub fn consolidation_type(&self) -> &'static str {
        match self.method {
            Method::Emptiness => "empty",
            Method::StaticDrift | Method::Drift => "",
            Method::Consolidation if self.nodes.len() == 1 => "single",
            Method::Consolidation => "multi",
        }
    }
}

/// Why, which command it is, what happens to which nodes, and what it saves.
impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes: Vec<String> = self.nodes.iter().map(ToString::to_string).collect();
        write!(
            f,
            "{}/{}: {}, nodes [{}]",
            self.reason(),
            self.id(),
            self.decision(),
            nodes.join(", ")
        )?;
        match self.replacements.len() {
            0 => {}
            1 => write!(f, ", 1 replacement")?,
            count => write!(f, ", {count} replacements")?,
        }
        let sign = if self.saving < 0.0 { "-" } else { "" };
        write!(f, " (savings: {sign}${:.2})", self.saving.abs())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use model::{CapacityType, Labels, Requirements, Resources};
    use scheduler::Choice;

    use super::*;

    fn launch() -> Launch {
        Launch {
            pool: "p".into(),
            requirements: Arc::new(Requirements::default()),
            instance_types: ["t".into()].into(),
            requests: Resources::default(),
            pods: Vec::new(),
            labels: Arc::new(Labels::default()),
            choice: Choice {
                instance_type: "t".into(),
                zone: "a".into(),
                capacity_type: CapacityType::Spot,
                price: 1.0,
            },
            min_values_relaxed: false,
            device_drivers: Default::default(),
        }
    }

    fn command(method: Method, nodes: &[&str], replacements: usize, saving: f64) -> Command {
        Command {
            method,
            nodes: nodes.iter().map(|name| NodeKey::Claim((*name).into())).collect(),
            replacements: vec![launch(); replacements],
            placements: Vec::new(),
            pods: 0,
            saving,
            scores: Vec::new(),
        }
    }

    /// DI-Q13: decision and node list, replacements in the singular and in the plural, nothing to do.
    #[test]
    fn a_command_says_what_it_does() {
        let said = |nodes: &[&str], replacements: usize, saving: f64| {
            let command = command(Method::Consolidation, nodes, replacements, saving);
            let said = command.to_string();
            let (id, rest) = (format!("Underutilized/{}: ", command.id()), said.as_str());
            rest.strip_prefix(&id).expect("reason and id").to_owned()
        };
        assert_eq!(said(&["a"], 0, 1.256), "delete, nodes [a] (savings: $1.26)");
        assert_eq!(
            said(&["a", "b"], 1, 0.5),
            "replace, nodes [a, b], 1 replacement (savings: $0.50)"
        );
        assert_eq!(
            said(&["a"], 2, -0.5),
            "replace, nodes [a], 2 replacements (savings: -$0.50)"
        );
        assert_eq!(said(&[], 0, 0.0), "no-op, nodes [] (savings: $0.00)");
    }

    #[test]
    fn a_command_is_known_by_its_nodes() {
        let id = |nodes: &[&str]| command(Method::Emptiness, nodes, 0, 0.0).id();
        assert_eq!(id(&["a", "b"]), id(&["a", "b"]));
        let all = [id(&["a"]), id(&["b"]), id(&["ab"]), id(&["a", "b"]), id(&["b", "a"])];
        assert_eq!(
            std::collections::BTreeSet::from(all.clone()).len(),
            all.len(),
            "{all:?}"
        );
    }

    /// DI-Q12: the words that metrics tell commands apart by.
    #[test]
    fn metrics_know_commands_by_decision_reason_and_type() {
        let words = |method: Method, nodes: usize, replacements: usize| {
            let command = command(method, &["a", "b", "c"][..nodes], replacements, 0.0);
            (command.decision(), command.reason(), command.consolidation_type())
        };
        use DisruptionReason::{Drifted, Empty, Underutilized};
        assert_eq!(words(Method::Emptiness, 3, 0), ("delete", Empty, "empty"));
        assert_eq!(words(Method::Drift, 1, 0), ("delete", Drifted, ""));
        assert_eq!(words(Method::Drift, 1, 2), ("replace", Drifted, ""));
        assert_eq!(words(Method::StaticDrift, 1, 1), ("replace", Drifted, ""));
        assert_eq!(words(Method::Consolidation, 1, 0), ("delete", Underutilized, "single"));
        assert_eq!(words(Method::Consolidation, 1, 1), ("replace", Underutilized, "single"));
        assert_eq!(words(Method::Consolidation, 2, 0), ("delete", Underutilized, "multi"));
        assert_eq!(words(Method::Consolidation, 2, 1), ("replace", Underutilized, "multi"));
    }
}
