//! Harnesses that tests of several crates share.
//!
//! [`ControlPlane`] is a real kube-apiserver of a test's own, [`Process`] the program beside it, and [`eventually`] waits for
//! what they do. Nothing in here is used by the product.

mod control_plane;
mod patience;
mod process;

pub use control_plane::{ControlPlane, ControlPlaneError, Parts};
pub use patience::eventually;
pub use process::{Process, free_port};
