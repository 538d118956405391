//! Makes the cluster cheaper: nodes whose pods fit elsewhere go, and dear nodes are exchanged for cheaper ones.
//!
//! - [`goal`](self::goal): which nodes the cluster would best do without, all at once.
//! - [`replacement`](self::replacement): what may be launched in the place of nodes.
//! - [`search`](self::search): which nodes go, alone.
//! - [`sets`](self::sets): which nodes go together.
//! - [`worth`](self::worth): what nodes and pods are worth.

pub(crate) mod goal;
pub(crate) mod replacement;
pub(crate) mod search;
mod sets;
mod worth;

use jiff::Timestamp;
use model::pool::ConsolidationPolicy;

use crate::{
    Candidate,
    stay::{Exempt, Why},
};

/// Whether consolidation looks at a node that has pods, budgets and prices aside.
pub(crate) fn eligible(candidate: &Candidate, now: Timestamp) -> Result<(), Why> {
    let pool = &candidate.pool;
    let exempt = if pool.is_static() {
        Exempt::Static(pool.name.clone())
    } else if let Some(unknown) = unknown_kind(candidate) {
        unknown
    } else if candidate.node.capacity_type().is_none() {
        Exempt::NoCapacityType
    } else if candidate.node.zone().is_none() {
        Exempt::NoZone
    } else if pool.disruption.consolidate_after.is_none() {
        Exempt::Never(pool.name.clone())
    } else if pool.disruption.policy == ConsolidationPolicy::WhenEmpty {
        Exempt::WhenEmpty(pool.name.clone())
    } else {
        return settling(candidate, now);
    };
    Err(Why::Exempt(exempt))
}

fn unknown_kind(candidate: &Candidate) -> Option<Exempt> {
    let unknown = || {
        candidate
            .node
            .instance_type()
            .map_or(Exempt::NoInstanceType, Exempt::UnknownKind)
    };
    (!candidate.known_kind).then(unknown)
}

/// A node is left alone until its claim says that the pool's `consolidateAfter` has passed.
pub(crate) fn settling(candidate: &Candidate, now: Timestamp) -> Result<(), Why> {
    let claim = candidate.node.claim.as_ref();
    if claim.is_some_and(|claim| claim.consolidatable) {
        return Ok(());
    }
    let since = claim.and_then(|claim| claim.last_pod_event.or(claim.initialized_at));
    let until = since
        .zip(candidate.pool.disruption.consolidate_after)
        .map(|(since, wait)| since.saturating_add(wait).unwrap_or(Timestamp::MAX))
        .filter(|until| *until > now);
    Err(Why::Settling { until })
}
