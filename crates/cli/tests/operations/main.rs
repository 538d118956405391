//! What operators meet: the controller's start, `karpenter doctor` and `karpenter snapshot`, on a live cluster.

#[cfg(feature = "aws")]
mod account;
mod doctor;
mod proxy;
#[path = "../live/mod.rs"]
mod server;
mod snapshot;
mod start;
#[cfg(feature = "aws")]
mod start_aws;
