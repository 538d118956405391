//! The charts under a real Helm: what they render, what they refuse, and how they live in a real cluster.

mod cluster;
mod helm;
mod install;
mod render;
mod rights;
mod values;
