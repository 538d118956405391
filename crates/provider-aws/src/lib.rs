//! EC2 behind the provider trait. The only crate that may build the AWS SDK; nothing but the program's `aws` feature
//! depends on it.
//!
//! It knows the provider's node class and vocabulary.

use std::sync::Arc;

use model::Vocabulary;
use provider::NodeClassKind;

/// The node class that pools and claims refer to.
pub const NODE_CLASS: NodeClassKind = NodeClassKind {
    group: api::labels::AWS_DOMAIN,
    version: "v1",
    kind: "EC2NodeClass",
    plural: "ec2nodeclasses",
};

/// Labels and resources with a meaning to EC2.
pub fn vocabulary() -> Arc<Vocabulary> {
    Arc::new(api::vocabulary::aws())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_label_is_the_one_that_nodes_carry() {
        assert_eq!(NODE_CLASS.label(), "karpenter.k8s.aws/ec2nodeclass");
        assert!(vocabulary().is_restricted("karpenter.k8s.aws/unknown"));
    }
}
