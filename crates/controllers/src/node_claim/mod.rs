//! Controllers over node claims, from the launch of an instance to its end.

pub mod consistency;
pub mod disruption;
mod draft;
pub mod expiration;
pub mod garbage_collection;
pub mod lifecycle;
pub mod pod_events;
mod removal;
pub mod termination;

pub(crate) use draft::Draft;
pub use removal::{Removal, remove};
