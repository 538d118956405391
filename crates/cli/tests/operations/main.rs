//! `karpenter doctor` and `karpenter snapshot` on a live cluster.

mod doctor;
#[path = "../live/mod.rs"]
mod server;
mod snapshot;
