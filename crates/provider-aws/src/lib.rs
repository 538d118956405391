//! EC2 behind the provider trait, without the AWS SDK.
//!
//! - [`AwsProvider`] is what the controllers talk to, [`Services`] what it shares with the controllers of its own kinds,
//!   [`startup`] how the program finds out where it is. [`Objects`] is what is read from Kubernetes.
//! - [`ports`] are the calls that are made, as narrow traits over plain values. Only what implements them needs the SDK; the
//!   tests here put scripted answers behind them.
//! - [`discovery`] finds what the selectors of a node class mean, [`class_status`] makes the class's status of it.
//! - [`instance_type`] and [`offering`] say what can be bought: labels, capacity, price, availability. [`catalog`] puts them
//!   together for a class.
//! - [`user_data`] is what an instance is told at its first boot.
//! - [`launch`] turns a launch request into a fleet request and its answer into an instance.
//! - [`templates`] keeps the launch templates of the cluster, [`fleets`] joins the requests of a wave.
//! - [`inheritance`] gives claims the instances that an earlier process had launched for them.
//! - [`instances`] looks instances up and ends them, many at once.
//! - [`machine`] is an instance as Karpenter sees it, [`drift`] whether it still is what its class asks for.
//! - [`validation`] tries a class on EC2 before it may be used, [`clean_up`] removes what a class leaves behind.
//! - [`housekeeping`] says what has to go because nothing needs it any more.
//! - [`interruption`] reads what AWS announces about instances.
//! - [`error`] knows what AWS means by its codes, [`options`] what users can set.

pub mod batch;
pub mod cache;
pub mod catalog;
pub mod class_hash;
pub mod class_status;
pub mod class_view;
pub mod clean_up;
pub mod discovery;
pub mod drift;
pub mod error;
pub mod facts;
pub mod family;
pub mod fleets;
pub mod housekeeping;
pub mod inheritance;
pub mod instance_type;
pub mod instances;
pub mod interruption;
pub mod launch;
pub mod machine;
pub mod metrics;
mod objects;
pub mod offering;
pub mod options;
pub mod ports;
mod provider;
pub mod provider_id;
pub mod repair;
mod services;
pub mod startup;
pub mod tags;
pub mod templates;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod user_data;
pub mod validation;

use std::sync::Arc;

use ::provider::NodeClassKind;
use model::Vocabulary;

pub use objects::{Inherited, Objects};
pub use provider::AwsProvider;
pub use services::{Foundation, Services};

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
