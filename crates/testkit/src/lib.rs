//! Harnesses that tests of several crates share.
//!
//! [`ControlPlane`] is a real kube-apiserver of a test's own, [`Process`] the program beside it, and [`eventually`] waits for
//! what they do. [`assert_events_are_listed`] holds a list against sources. Nothing in here is used by the product.

mod control_plane;
mod events;
mod patience;
mod process;

pub use control_plane::{ControlPlane, ControlPlaneError, Parts};
pub use events::assert_events_are_listed;
pub use patience::eventually;
pub use process::{Process, free_port};
