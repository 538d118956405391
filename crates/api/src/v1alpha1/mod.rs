//! `karpenter.sh/v1alpha1`: node overlays.

mod node_overlay;

pub use node_overlay::{NodeOverlay, NodeOverlayRequirement, NodeOverlaySpec, NodeOverlayStatus};
