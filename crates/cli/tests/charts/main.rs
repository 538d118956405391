//! The charts under a real Helm: what they render, what they refuse, and how they live in a real cluster.

mod cluster;
mod earlier;
mod going_back;
mod helm;
mod install;
mod least;
mod render;
mod reused;
mod rights;
#[cfg(feature = "aws")]
mod rights_aws;
mod values;
