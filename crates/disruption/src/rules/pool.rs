//! Without its pool and the pool's prices nothing can be said about a node's worth.

use std::sync::Arc;

use model::{Pool, Snapshot, StateNode};

use super::Blocked;

pub(super) fn check<'a>(snapshot: &'a Snapshot, node: &StateNode) -> Result<&'a Arc<Pool>, Blocked> {
    let name = node.pool().ok_or(Blocked::NoPoolLabel)?;
    let pool = snapshot
        .pools
        .get(&name)
        .ok_or_else(|| Blocked::PoolUnknown(name.clone()))?;
    match snapshot.catalogs.get(&name) {
        Some(types) if !types.is_empty() => Ok(pool),
        _ => Err(Blocked::NoInstanceTypes(name)),
    }
}
