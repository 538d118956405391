//! The generations of Karpenter's objects before v1, and their conversion.
//!
//! [`convert`] takes documents as people keep them (Provisioners, node templates, v1beta1 objects, Helm values, the
//! settings ConfigMap, other objects in between) and gives the same documents in v1 or v1beta1. Where a mapping exists it
//! is faithful; where meaning changes there is a [`Warning`]; where meaning would be lost there is a [`Refusal`] instead of
//! a result. Parsing and printing are left to the caller, and nothing here asks a cluster.
//!
//! [`admission`] says what was added to an object and what was refused about it while it was written, and
//! [`convert_single`] converts an object of v1beta1 or v1 by itself; both are what webhooks answer with.
//!
//! ```
//! use legacy::{Input, Options, convert};
//! use serde_json::json;
//!
//! let template = json!({
//!     "apiVersion": "karpenter.k8s.aws/v1alpha1",
//!     "kind": "AWSNodeTemplate",
//!     "metadata": {"name": "default"},
//!     "spec": {
//!         "subnetSelector": {"team": "a, b"},
//!         "securityGroupSelector": {"aws-ids": "sg-1"},
//!         "instanceProfile": "nodes",
//!     },
//! });
//! let inputs = [Input { place: "template.yaml".to_owned(), object: template }];
//! let converted = convert(&inputs, &Options::default()).expect("nothing is lost");
//! let class = converted.objects().next().expect("one object");
//! assert_eq!(class["kind"], "EC2NodeClass");
//! assert_eq!(class["spec"]["subnetSelectorTerms"], json!([{"tags": {"team": "a"}}, {"tags": {"team": "b"}}]));
//! ```

pub mod admission;
pub mod alpha;
pub mod beta;
pub mod kubelet;
pub mod settings;
pub mod values;
pub mod workloads;

mod batch;
mod context;
mod manifest;
mod notes;
mod options;
mod single;

pub use batch::{Conversion, Input, Output, convert};
pub use context::{CLUSTER_PLACEHOLDER, Context, Facts, ROLE_PLACEHOLDER};
pub use notes::{Change, Notes, Reason, Refusal, Subject, Warning};
pub use options::{LaunchTemplates, Options, Target};
pub use single::{Pools, convert_single, pool_of};
