//! Controllers over nodes that are on their way out, or should be.

pub mod eviction;
pub mod health;
pub mod termination;
