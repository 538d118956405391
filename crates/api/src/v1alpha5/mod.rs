//! `karpenter.sh/v1alpha5`: the generation of Provisioners. Nothing but the conversion to v1 reads these kinds; what they
//! mean is decided in crate `legacy`.

mod machine;
mod provisioner;
mod shared;

pub use machine::{Machine, MachineSpec, MachineStatus};
pub use provisioner::{Consolidation, Limits, Provisioner, ProvisionerSpec, ProvisionerStatus};
pub use shared::{Kubelet, OldCondition, ProviderRef};
