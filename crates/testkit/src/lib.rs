//! Harnesses that tests of several crates share.
//!
//! [`ControlPlane`] is a real kube-apiserver of a test's own. Nothing in here is used by the product.

mod control_plane;

pub use control_plane::{ControlPlane, ControlPlaneError, Parts};
