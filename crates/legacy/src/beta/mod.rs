//! v1beta1: pools, claims and classes, up to v1 and down again.
//!
//! The functions here convert one object by itself, as a conversion webhook does: what v1 keeps elsewhere travels in
//! annotations. A conversion of many objects takes the annotations off again and moves their content to where v1 has it.

pub mod node_claim;
pub mod node_class;
pub mod node_pool;
pub mod types;

pub use types::{Disruption, EC2NodeClassSpec, NodeClaimSpec, NodeClassRef, NodePoolSpec, Template, TemplateSpec};

/// Annotations that carry what the other generation has no field for.
pub mod annotations {
    pub const KUBELET: &str = "compatibility.karpenter.sh/v1beta1-kubelet-conversion";
    pub const NODE_CLASS_REFERENCE: &str = "compatibility.karpenter.sh/v1beta1-nodeclass-reference";
    pub const UBUNTU: &str = "compatibility.karpenter.k8s.aws/v1beta1-ubuntu";
    pub const ALIAS_VERSION: &str = "compatibility.karpenter.k8s.aws/v1-alias-version";
    pub const STORED_VERSION_MIGRATED: &str = "karpenter.sh/stored-version-migrated";
}

/// The name of the generation in messages.
pub const V1BETA1: &str = "v1beta1";
