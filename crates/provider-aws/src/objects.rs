//! What the provider reads from Kubernetes: the classes, what claims were stamped with, and prices that users know better.

use std::sync::Arc;

use api::{aws::EC2NodeClass, v1alpha1::NodeOverlay};
use model::{Labels, ProviderId};

/// The cluster's objects as they are known now. Whoever implements it has them at hand: nothing here waits.
pub trait Objects: Send + Sync + 'static {
    fn class(&self, name: &str) -> Option<Arc<EC2NodeClass>>;

    /// The annotations of the claim that has this instance.
    fn claim_annotations(&self, instance: &ProviderId) -> Option<Labels>;

    /// All overlays, in force or not.
    fn overlays(&self) -> Vec<Arc<NodeOverlay>>;
}
