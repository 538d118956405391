//! Kubernetes objects into model types: the one border where text becomes values.
//!
//! Nothing is dropped and nothing panics. A pod whose affinity cannot be read still sits on its node and takes its
//! resources there, so every conversion yields a value, chosen on the side of caution, together with the fields that
//! could not be read:
//!
//! | unreadable | what stands in its place |
//! | --- | --- |
//! | a demand of a pod | the pod waits: no node is launched for it |
//! | anything in a pool's template | the pool is not ready: it launches nothing |
//! | `consolidateAfter`, `expireAfter` | never |
//! | a budget | no node of the pool may be disrupted |
//! | an amount | zero |
//! | a device of a slice | the device is left out |
//! | a request of a resource claim | the pods of the claim wait |
//! | a term of a node selector of devices | it selects no node |
//! | a place of a volume | nowhere |
//! | a label selector | it selects nothing |
//!
//! Start at [`pod`](pod()) or [`pool`](pool()).

mod affinity;
mod claim;
mod device;
mod device_claim;
mod fields;
mod node;
mod overlay;
mod pod;
mod pod_claims;
mod pool;
mod requests;
mod requirement;
mod selector;
mod shape;
mod volume;
mod workload;

pub use claim::{claim, phase};
pub use device::{counter_sets, device, device_class, resource_slice};
pub use device_claim::resource_claim;
pub use fields::resources_text;
pub use node::node;
pub use overlay::overlay;
pub use pod::pod;
pub use pool::pool;
pub use requests::pod_limits;
pub use requirement::to_requirements;
pub use shape::pod_shape;
pub use volume::{attach_limits, storage_class, volume, volume_claim};
pub use workload::{
    daemon, daemon_like, disruption_budget, replica_set, replication_controller, service, stateful_set,
};

use crate::field_error::FieldError;

/// A value, and the fields of its object that could not be read.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed<T> {
    pub value: T,
    pub errors: Vec<FieldError>,
}

/// A value of which everything could be read.
impl<T> From<T> for Parsed<T> {
    fn from(value: T) -> Self {
        Self {
            value,
            errors: Vec::new(),
        }
    }
}

impl<T> Parsed<T> {
    /// The value if everything could be read.
    pub fn strict(self) -> Result<T, Vec<FieldError>> {
        if self.errors.is_empty() {
            Ok(self.value)
        } else {
            Err(self.errors)
        }
    }
}
