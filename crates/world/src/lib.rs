//! Everything simulated around the production controllers.

pub mod binder;
pub mod checkers;
pub mod cluster;
pub mod component;
pub mod dice;
pub mod faults;
pub mod history;
pub mod kubelet;
pub mod mirror;
pub mod storm;
pub mod story;
pub mod tally;
pub mod timeline;
pub mod workloads;
pub mod world;
