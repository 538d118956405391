//! The production controllers on a cluster in memory and a region in memory, on virtual time.

mod classes;
mod cluster;
mod machines;
mod refresh;
