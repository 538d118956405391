//! Plain values: what a cluster is made of and the algebra over it.
//!
//! Everything a decision needs is here as data without client, clock or async: quantities, requirements, taints,
//! instance types, and the [`Snapshot`] that a round is decided on. Kubernetes objects are turned into these types
//! by crate `api`, once, at the border; nothing in here knows an API object.
//!
//! ```
//! use model::{Quantity, ids::LabelKey};
//! let half: Quantity = "0.5".parse().unwrap();
//! assert_eq!(half.to_string(), "500m");
//! assert_eq!(LabelKey::from("kubernetes.io/arch").as_str(), "kubernetes.io/arch");
//! ```

pub mod budget;
pub mod dra;
pub mod ids;
pub mod instance_type;
pub mod node;
pub mod overlay;
pub mod pod;
pub mod pool;
pub mod quantity;
pub mod requirement;
pub mod requirements;
pub mod resources;
#[cfg(any(test, feature = "samples"))]
pub mod samples;
pub mod snapshot;
pub mod taint;
pub mod vocabulary;
pub mod volume;
pub mod workload;

pub use ids::{
    ClaimName, InstanceTypeName, LabelKey, LabelValue, NodeKey, NodeName, PodKey, PodUid, PoolName, ProviderId, Zone,
};
pub use instance_type::{CapacityType, InstanceType, Offering, Overhead};
pub use node::{Claim, ClaimPhase, NodeFacts, StateNode};
pub use pod::Pod;
pub use pool::Pool;
pub use quantity::Quantity;
pub use requirement::{Operator, Requirement};
pub use requirements::Requirements;
pub use resources::{ResourceName, Resources};
pub use snapshot::Snapshot;
pub use taint::{Effect, Taint, Toleration};
pub use vocabulary::Vocabulary;
pub use volume::{StorageClass, Volume, VolumeClaim};

/// Labels or annotations of an object.
pub type Labels = std::collections::BTreeMap<LabelKey, LabelValue>;
