//! An AWS region over the wire, for an autoscaler: EC2, IAM, SQS, Systems Manager, EKS, the price list and STS answer the
//! calls that Karpenter makes, from a region that scripts change.
//!
//! [`Fake`] is the whole of it, in process; [`server::serve`] puts it on a port; [`control`] is its control page. [`region`]
//! is the state machine behind, [`wire`] the protocols, [`throttle`] AWS's rates, [`iam`] the caller's policy. `join` (a
//! feature, on by default) lets booted instances join a cluster, with the user data that they were given actually read by
//! [`user_data`].
//!
//! It knows nothing of the provider that it is used to try, and no AWS SDK: what it answers is held to AWS's own clients.
//!
//! ```
//! use std::sync::Arc;
//! use aws_fake::{Fake, region::Plan};
//! let fake = Fake::new(Plan::new("us-west-2", "demo"), Arc::new(clock::SystemClock));
//! assert_eq!(fake.with(|state, _| state.region.network.subnets.len()), 3);
//! ```

pub mod control;
pub mod facts;
pub mod fake;
pub mod glob;
pub mod iam;
pub mod idempotency;
#[cfg(feature = "join")]
pub mod join;
pub mod record;
pub mod refusal;
pub mod region;
pub mod server;
pub mod throttle;
pub mod user_data;
pub mod wire;

pub use fake::Fake;
