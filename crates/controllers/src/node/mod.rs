//! Controllers over nodes that are on their way out.

pub mod eviction;
pub mod termination;
