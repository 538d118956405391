//! The controllers that keep workloads at the size they ask for, and the two that look after their pods:
//! disruption budgets and eviction by taint.
//!
//! Each file is one controller. They follow the controllers of a cluster in what others can observe: which pods exist,
//! in which order they come and go, and what the status fields say.

pub mod budget;
pub mod daemon_set;
pub mod deployment;
pub mod job;
mod pods;
pub mod replica_set;
mod rollout;
mod selector;
pub mod stateful_set;
pub mod taint_eviction;

pub use pods::{is_active, is_available, is_ready};
pub use selector::selects;
