//! `karpenter.sh/v1`: node pools and node claims.

mod node_claim;
mod node_pool;
mod shared;

pub use node_claim::{NodeClaim, NodeClaimResources, NodeClaimSpec, NodeClaimStatus};
pub use node_pool::{
    Budget, ConsolidationPolicy, Disruption, DisruptionReason, NodeClaimTemplate, NodeClaimTemplateSpec, NodePool,
    NodePoolSpec, NodePoolStatus, TemplateMetadata,
};
pub use shared::{NodeClassReference, Operator, Quantities, Requirement};
