//! What the provider reads from Kubernetes: the classes, what claims were stamped with, and prices that users know better.

use std::sync::Arc;

use api::{aws::EC2NodeClass, v1alpha1::NodeOverlay};
use jiff::Timestamp;
use model::{ClaimName, Labels, ProviderId};

/// The cluster's objects as they are known now. Whoever implements it has them at hand: nothing here waits.
pub trait Objects: Send + Sync + 'static {
    fn class(&self, name: &str) -> Option<Arc<EC2NodeClass>>;

    /// The annotations of the claim that has this instance.
    fn claim_annotations(&self, instance: &ProviderId) -> Option<Labels>;

    /// Whether the status of some claim names this instance.
    fn is_claimed(&self, instance: &ProviderId) -> bool;

    /// Says of a claim that it was there before this process took charge, so that another one may have launched for it.
    fn inherited(&self, claim: &ClaimName) -> Option<Inherited>;

    /// All overlays, in force or not.
    fn overlays(&self) -> Vec<Arc<NodeOverlay>>;
}

/// A claim of an earlier process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inherited {
    pub created: Timestamp,
    /// When this process took charge.
    pub at: Timestamp,
}
