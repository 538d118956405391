//! The generation of Provisioners: v1alpha3, v1alpha4, v1alpha5, with their node templates and machines.

pub mod class;
pub mod devices;
pub mod early;
pub mod images;
pub mod keys;
pub mod launch_template;
pub mod machine;
pub mod pool;
pub mod requirements;
pub mod selectors;
pub mod types;

pub use types::{Kubelet, NodeTemplateSpec, ProvisionerSpec};

/// Which release a Provisioner was written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    V1Alpha3,
    V1Alpha4,
    V1Alpha5,
}
