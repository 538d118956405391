//! Voluntary disruption: what was decided, and what held it back.

use std::{collections::BTreeMap, time::Duration};

use model::budget::DisruptionReason;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

use super::{Histograms, durations, gauge_value};

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Evaluated {
    reason: String,
    consolidation_type: &'static str,
}

/// A command that was started.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct Decision {
    pub decision: &'static str,
    pub reason: String,
    pub consolidation_type: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct DecisionOfPool {
    nodepool: String,
    decision: &'static str,
    reason: String,
    consolidation_type: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfReason {
    reason: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfType {
    consolidation_type: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct PoolBudget {
    nodepool: String,
    reason: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Move {
    decision: &'static str,
    nodepool: String,
    policy: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Staying {
    nodepool: String,
    reason: &'static str,
}

/// Scores around the threshold of one half are told apart best.
const SCORES: [f64; 8] = [0.1, 0.25, 0.33, 0.5, 1.0, 2.0, 5.0, 10.0];

fn scores() -> Histogram {
    Histogram::new(SCORES)
}

pub struct DisruptionMetrics {
    evaluation: Histograms<Evaluated>,
    decisions: Family<Decision, Counter>,
    decisions_by_pool: Family<DecisionOfPool, Counter>,
    eligible: Family<OfReason, Gauge>,
    timeouts: Family<OfType, Counter>,
    failed_validations: Family<OfType, Counter>,
    queue_failures: Family<Decision, Counter>,
    allowed: Family<PoolBudget, Gauge>,
    consuming: Family<PoolBudget, Gauge>,
    scores: Histograms<Move>,
    moves: Family<Move, Counter>,
    staying: Family<Staying, Gauge>,
}

impl Default for DisruptionMetrics {
    fn default() -> Self {
        let metrics = Self {
            evaluation: Family::new_with_constructor(durations),
            decisions: Family::default(),
            decisions_by_pool: Family::default(),
            eligible: Family::default(),
            timeouts: Family::default(),
            failed_validations: Family::default(),
            queue_failures: Family::default(),
            allowed: Family::default(),
            consuming: Family::default(),
            scores: Family::new_with_constructor(scores),
            moves: Family::default(),
            staying: Family::default(),
        };
        // An alert on timeouts needs the series before the first one.
        for consolidation_type in ["multi", "single"] {
            drop(metrics.timeouts.get_or_create(&OfType { consolidation_type }));
        }
        metrics
    }
}

impl DisruptionMetrics {
    pub(super) fn register(&self, to: &mut Registry) {
        to.register(
            "karpenter_voluntary_disruption_decision_evaluation_duration_seconds",
            "Time to evaluate one method",
            self.evaluation.clone(),
        );
        to.register(
            "karpenter_voluntary_disruption_decisions",
            "Commands started",
            self.decisions.clone(),
        );
        to.register(
            "karpenter_voluntary_disruption_decisions_by_nodepool",
            "Commands started, by node pool",
            self.decisions_by_pool.clone(),
        );
        to.register(
            "karpenter_voluntary_disruption_eligible_nodes",
            "Candidates",
            self.eligible.clone(),
        );
        to.register(
            "karpenter_voluntary_disruption_consolidation_timeouts",
            "Searches that ran out of time",
            self.timeouts.clone(),
        );
        to.register(
            "karpenter_voluntary_disruption_failed_validations",
            "Candidates dropped at validation",
            self.failed_validations.clone(),
        );
        to.register(
            "karpenter_voluntary_disruption_queue_failures",
            "Replacements that did not become ready, and commands that failed otherwise after being started",
            self.queue_failures.clone(),
        );
        to.register(
            "karpenter_nodepools_allowed_disruptions",
            "What the budgets of a pool allow",
            self.allowed.clone(),
        );
        to.register(
            "karpenter_nodepools_nodes_consuming_budgets",
            "Nodes that count against the budgets of a pool",
            self.consuming.clone(),
        );
        to.register(
            "karpenter_consolidation_score",
            "Savings over disruption of moves in pools with policy Balanced",
            self.scores.clone(),
        );
        to.register(
            "karpenter_consolidation_moves",
            "Moves that were weighed, by pool",
            self.moves.clone(),
        );
        to.register(
            "karpenter_voluntary_disruption_staying_nodes",
            "Nodes that the last pass left alone, by what keeps them",
            self.staying.clone(),
        );
    }

    pub fn eligible(&self, reason: DisruptionReason, nodes: usize) {
        let reason = reason.as_str().to_lowercase();
        self.eligible
            .get_or_create(&OfReason { reason })
            .set(gauge_value(nodes));
    }

    pub fn evaluated(&self, reason: DisruptionReason, consolidation_type: &'static str, took: Duration) {
        let labels = Evaluated {
            reason: reason.as_str().to_lowercase(),
            consolidation_type,
        };
        self.evaluation.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// A move that was weighed for one of its pools. Only pools that go by the score have one.
    pub fn weighed(&self, nodepool: &str, policy: &'static str, approved: bool, score: Option<f64>) {
        let labels = Move {
            decision: if approved { "approved" } else { "rejected" },
            nodepool: nodepool.to_owned(),
            policy,
        };
        self.moves.get_or_create(&labels).inc();
        if let Some(score) = score {
            self.scores.get_or_create(&labels).observe(score);
        }
    }

    /// How many nodes of each pool stay, by the word for what keeps them. Whoever is not counted any more is forgotten.
    pub fn staying(&self, nodes: BTreeMap<(String, &'static str), usize>) {
        self.staying.clear();
        for ((nodepool, reason), count) in nodes {
            let labels = Staying { nodepool, reason };
            self.staying.get_or_create(&labels).set(gauge_value(count));
        }
    }

    pub fn decided<'a>(&self, decision: &Decision, pools: impl IntoIterator<Item = &'a str>) {
        self.decisions.get_or_create(decision).inc();
        for nodepool in pools {
            let Decision {
                decision,
                reason,
                consolidation_type,
            } = decision.clone();
            let nodepool = nodepool.to_owned();
            let labels = DecisionOfPool {
                nodepool,
                decision,
                reason,
                consolidation_type,
            };
            self.decisions_by_pool.get_or_create(&labels).inc();
        }
    }

    pub fn failed_validation(&self, consolidation_type: &'static str, nodes: usize) {
        self.failed_validations
            .get_or_create(&OfType { consolidation_type })
            .inc_by(nodes as u64);
    }

    pub fn queue_failures(&self, decision: &Decision, count: usize) {
        self.queue_failures.get_or_create(decision).inc_by(count as u64);
    }

    pub fn budget(&self, nodepool: &str, reason: DisruptionReason, allowed: u32, consuming: u32) {
        let labels = PoolBudget {
            nodepool: nodepool.to_owned(),
            reason: reason.as_str(),
        };
        self.allowed.get_or_create(&labels).set(allowed.into());
        self.consuming.get_or_create(&labels).set(consuming.into());
    }
}
