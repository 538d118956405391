//! A simulated cloud: a drop-in for upstream's KWOK provider, with latency and faults.
//!
//! - [`SimCloud`] is the region: machines that take time, run short, fail and get interrupted, by seed and clock.
//! - [`SimProvider`] puts it behind [`CloudProvider`](::provider::CloudProvider).
//! - [`join::run`] lets machines join a cluster as Node objects, and removes the nodes of machines that are gone.
//! - [`Catalog`] is what the region sells: real EC2 shapes, or a file in the KWOK format.
//!
//! What the crate does not do is play the kubelet: nodes become ready and pods run by kwok's hand on a real control
//! plane, and by crate `world`'s in a simulation.
//!
//! ```
//! use std::{collections::BTreeMap, sync::Arc};
//! use provider_sim::{Catalog, Faults, Latency, SimCloud, SimProvider};
//! use jiff::SignedDuration;
//!
//! let faults = Faults { launch_latency: Latency::exactly(SignedDuration::from_secs(20)), ..Faults::default() };
//! let cloud = SimCloud::new(7, Arc::new(clock::SystemClock)).with_faults(faults);
//! let provider = SimProvider::new(cloud.clone(), Arc::new(Catalog::generic()), Arc::new(BTreeMap::new()));
//! assert!(provider.cloud().live().is_empty());
//! ```

pub mod catalog;
pub mod cloud;
mod dice;
mod fate;
pub mod faults;
pub mod join;
pub mod ledger;
pub mod machine;
pub mod market;
pub mod node;
pub mod node_class;
pub mod order;
mod provider;
pub mod recover;

pub use catalog::{Catalog, CatalogError, SpotPrices};
pub use cloud::{Notice, SimCloud};
pub use faults::{Faults, Interruption, Latency, Shortage};
pub use machine::{Machine, MachineState, OfferingKey};
pub use market::Market;
pub use node_class::NodeClasses;
pub use provider::{SHORT_FOR, SimProvider};
pub use recover::Recovered;
