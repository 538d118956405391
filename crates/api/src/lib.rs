//! The custom resources that Karpenter serves and reads, exactly as upstream defines them.
//!
//! A kind lives in the module of its API version. The facts that its types cannot state (defaults,
//! bounds, CEL rules) are tables in [`crds`], and [`crds::all`] puts both together into the
//! manifests that a cluster is given.
//!
//! Objects are kept as written. Durations, quantities and enumerated words stay text here, so that
//! an object with one bad field can still be read, reported on and written back unchanged.
//!
//! ```
//! use api::v1::NodePool;
//! use kube::Resource;
//!
//! assert_eq!(NodePool::api_version(&()), "karpenter.sh/v1");
//! ```

mod absent_spec;
mod field_error;
mod stored;
mod text_enum;

pub mod aws;
pub mod conditions;
pub mod convert;
pub mod crds;
pub mod duration;
pub mod hash;
pub mod kwok;
pub mod labels;
pub mod v1;
pub mod v1alpha1;
pub mod v1alpha5;
pub mod v1beta1;
pub mod validate;
pub mod vocabulary;

pub use field_error::{FieldError, joined};
pub use stored::Stored;
