//! Everything simulated around the production controllers.

pub mod binder;
pub mod cluster;
pub mod component;
pub mod dice;
pub mod faults;
pub mod kubelet;
pub mod mirror;
pub mod workloads;
