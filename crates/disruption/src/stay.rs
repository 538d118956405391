//! Why a node stays: the data behind events, metrics and `karpenter plan`.

use std::fmt;

use jiff::Timestamp;
use model::{InstanceTypeName, LabelKey, NodeKey, PodKey, PoolName, budget::DisruptionReason};
use scheduler::Refusal;

use crate::rules::Blocked;

/// A node that stays, and what keeps it.
#[derive(Clone, Debug, PartialEq)]
pub struct Stay {
    pub node: NodeKey,
    pub why: Why,
}

/// What keeps a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Why {
    /// A rule holds it back, whatever it costs.
    Blocked(Blocked),
    /// Its pool lets no further node go for this reason now.
    Budget {
        pool: PoolName,
        reason: DisruptionReason,
        /// What the budgets allow at once.
        allowed: u32,
        /// How many nodes use that up: those that are down or going, and those that this pass has decided on.
        used: u32,
    },
    /// Its pool's budgets cannot be read, so that no node goes for any reason.
    BudgetUnreadable { pool: PoolName, problem: String },
    /// Its pool wants it left alone for a while after its pods have come and gone: until then, or until its claim is
    /// marked.
    Settling { until: Option<Timestamp> },
    /// Consolidation is not for it.
    Exempt(Exempt),
    /// One of its pods would have nowhere to go.
    Stranded { pod: PodKey, refusal: Refusal },
    /// One of its pods would have to wait for a node that is still starting.
    Starting { pod: PodKey, on: NodeKey },
    /// Nothing that could take its place is cheaper.
    NotCheaper { price: f64, replacement: Option<f64> },
    /// A replacement is cheaper, but not by enough for its pods to be moved.
    SmallSaving { saving: f64, least: f64 },
    /// What is cheaper has too little variety for the pool's `minValues`.
    MinValues { key: LabelKey, wanted: u32, found: u32 },
    /// Spot machines are not replaced by spot machines.
    SpotToSpotOff,
    /// Too few kinds of spot machine are cheaper for the next interruption not to bring the same one back.
    TooFewSpot { wanted: usize, found: usize },
    /// The saving is too small for the disruption, by the pool's policy.
    Score { pool: PoolName, score: f64 },
    /// Pods of other nodes are on their way to it.
    Receives,
    /// Pods of other nodes take devices with them, which are promised for one command at a time.
    Devices,
    /// Its pool replaces nodes one for one, and has no place for one more.
    NoSpare { pool: PoolName, limit: u64 },
    /// Its pool replaces nodes one for one, and gives up those first that are too many.
    Surplus { pool: PoolName, nodes: u64, replicas: i64 },
    /// Nothing is on sale that could replace it.
    NothingSold { pool: PoolName },
}

/// Why consolidation passes a node over.
#[derive(Clone, Debug, PartialEq)]
pub enum Exempt {
    /// The pool has a fixed number of nodes.
    Static(PoolName),
    /// `consolidateAfter: Never`.
    Never(PoolName),
    /// The pool lets only empty nodes go.
    WhenEmpty(PoolName),
    /// A capacity buffer counts on its room.
    Buffer,
    /// The catalog does not know what it is.
    UnknownKind(InstanceTypeName),
    NoInstanceType,
    NoCapacityType,
    NoZone,
}

impl Why {
    /// The word that `plan` and metrics use.
    pub fn word(&self) -> &'static str {
        match self {
            Why::Blocked(blocked) => blocked.word(),
            Why::Budget { .. } | Why::BudgetUnreadable { .. } => "Budget",
            Why::Settling { .. } => "ConsolidateAfter",
            Why::Exempt(Exempt::Static(_)) => "StaticPool",
            Why::Exempt(Exempt::Never(_)) => "ConsolidationDisabled",
            Why::Exempt(Exempt::WhenEmpty(_)) => "ConsolidationPolicy",
            Why::Exempt(Exempt::Buffer) => "CapacityBuffer",
            Why::Exempt(Exempt::UnknownKind(_) | Exempt::NoInstanceType | Exempt::NoCapacityType | Exempt::NoZone) => {
                "UnknownPrice"
            }
            Why::Stranded { .. } => "DoesNotFit",
            Why::Starting { .. } => "NodeStarting",
            Why::NotCheaper { .. } => "NotCheaper",
            Why::SmallSaving { .. } => "SmallSaving",
            Why::MinValues { .. } => "MinValues",
            Why::SpotToSpotOff | Why::TooFewSpot { .. } => "SpotToSpot",
            Why::Score { .. } => "Balanced",
            Why::Receives => "ReceivesPods",
            Why::Devices => "Devices",
            Why::NoSpare { .. } => "NodeLimit",
            Why::Surplus { .. } => "Replicas",
            Why::NothingSold { .. } => "NothingSold",
        }
    }

    /// The object that keeps the node, where there is one: `namespace/name`, or a name.
    pub fn object(&self) -> Option<String> {
        match self {
            Why::Blocked(blocked) => blocked.object(),
            Why::Budget { pool, .. }
            | Why::BudgetUnreadable { pool, .. }
            | Why::Score { pool, .. }
            | Why::NoSpare { pool, .. }
            | Why::Surplus { pool, .. }
            | Why::NothingSold { pool }
            | Why::Exempt(Exempt::Static(pool) | Exempt::Never(pool) | Exempt::WhenEmpty(pool)) => {
                Some(pool.to_string())
            }
            Why::Stranded { pod, .. } | Why::Starting { pod, .. } => Some(pod.to_string()),
            Why::Settling { .. }
            | Why::Exempt(
                Exempt::Buffer
                | Exempt::UnknownKind(_)
                | Exempt::NoInstanceType
                | Exempt::NoCapacityType
                | Exempt::NoZone,
            )
            | Why::NotCheaper { .. }
            | Why::SmallSaving { .. }
            | Why::MinValues { .. }
            | Why::SpotToSpotOff
            | Why::TooFewSpot { .. }
            | Why::Receives
            | Why::Devices => None,
        }
    }

    /// When it ends by itself, where that is known.
    pub fn ends(&self) -> Option<Timestamp> {
        match self {
            Why::Blocked(Blocked::Nominated(until)) => Some(*until),
            Why::Blocked(Blocked::PodProtected { until, .. }) | Why::Settling { until } => *until,
            _ => None,
        }
    }

    /// Whether the `Unconsolidatable` event tells it; the others have events of their own or pass by themselves.
    pub fn is_unconsolidatable(&self) -> bool {
        match self {
            Why::Exempt(exempt) => !matches!(exempt, Exempt::Static(_)),
            Why::Stranded { .. }
            | Why::Starting { .. }
            | Why::NotCheaper { .. }
            | Why::SmallSaving { .. }
            | Why::MinValues { .. }
            | Why::SpotToSpotOff
            | Why::TooFewSpot { .. } => true,
            Why::Blocked(_)
            | Why::Budget { .. }
            | Why::BudgetUnreadable { .. }
            | Why::Settling { .. }
            | Why::Score { .. }
            | Why::Receives
            | Why::Devices
            | Why::NoSpare { .. }
            | Why::Surplus { .. }
            | Why::NothingSold { .. } => false,
        }
    }

    /// Whether it keeps a drifted node from being replaced, which the `DisruptionBlocked` event tells.
    pub fn blocks_drift(&self) -> bool {
        matches!(
            self,
            Why::Stranded { .. }
                | Why::Starting { .. }
                | Why::NoSpare { .. }
                | Why::Surplus { .. }
                | Why::NothingSold { .. }
        )
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Blocked(blocked) => blocked.fmt(f),
            Why::Budget {
                pool,
                reason,
                allowed,
                used,
            } => {
                write!(
                    f,
                    "the budgets of NodePool {pool} let no more nodes go for reason {reason} now: \
                     they allow {allowed}, and {used} are down or going"
                )
            }
            Why::BudgetUnreadable { pool, problem } => {
                write!(
                    f,
                    "the budgets of NodePool {pool} cannot be read, so that none of its nodes goes: {problem}"
                )
            }
            Why::Settling { until: Some(until) } => write!(f, "consolidateAfter has not passed; it will at {until:.0}"),
            Why::Settling { until: None } => write!(f, "its claim has no condition Consolidatable yet"),
            Why::Exempt(exempt) => exempt.fmt(f),
            Why::Stranded { pod, refusal } => write!(f, "pod {pod} would have no place: {refusal}"),
            Why::Starting { pod, on } => write!(f, "pod {pod} would have to wait for node {on}, which is starting"),
            Why::NotCheaper {
                price,
                replacement: Some(replacement),
            } => write!(
                f,
                "it costs ${price:.4} an hour and a replacement would cost ${replacement:.4}"
            ),
            Why::NotCheaper {
                price,
                replacement: None,
            } => write!(f, "it costs ${price:.4} an hour and no replacement is reliably cheaper"),
            Why::SmallSaving { saving, least } => write!(
                f,
                "a replacement would save ${saving:.4} an hour, and to move its pods it would have to save ${least:.4}"
            ),
            Why::MinValues { key, wanted, found } => write!(
                f,
                "cheaper instance types have {found} values of {key}, and the NodePool demands {wanted}"
            ),
            Why::SpotToSpotOff => write!(
                f,
                "a spot node is replaced by a spot node only with feature gate SpotToSpotConsolidation"
            ),
            Why::TooFewSpot { wanted, found } => write!(
                f,
                "replacing spot by spot takes {wanted} cheaper instance types to choose from, and there are {found}"
            ),
            Why::Score { pool, score } => write!(
                f,
                "the saving is too small for the disruption: score {score:.2}, and NodePool {pool} asks for 0.50"
            ),
            Why::Receives => write!(f, "pods of other nodes are moving to it"),
            Why::Devices => write!(
                f,
                "pods use devices of the cluster, so that commands are given one by one"
            ),
            Why::NoSpare { pool, limit } => write!(
                f,
                "NodePool {pool} may have {limit} nodes, which leaves no room for a replacement next to them"
            ),
            Why::Surplus { pool, nodes, replicas } => write!(
                f,
                "NodePool {pool} has {nodes} nodes and asks for {replicas}; those that are too many go first"
            ),
            Why::NothingSold { pool } => write!(f, "nothing that NodePool {pool} asks for is on sale"),
        }
    }
}

impl fmt::Display for Exempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exempt::Static(pool) => write!(f, "NodePool {pool} has a fixed number of nodes"),
            Exempt::Never(pool) => write!(f, "NodePool {pool} never consolidates"),
            Exempt::WhenEmpty(pool) => write!(f, "NodePool {pool} gives up only empty nodes"),
            Exempt::Buffer => write!(f, "a capacity buffer counts on its room"),
            Exempt::UnknownKind(name) => write!(f, "its instance type {name} is not known to the provider"),
            Exempt::NoInstanceType => write!(f, "label node.kubernetes.io/instance-type is missing"),
            Exempt::NoCapacityType => write!(f, "label karpenter.sh/capacity-type is missing"),
            Exempt::NoZone => write!(f, "label topology.kubernetes.io/zone is missing"),
        }
    }
}
