//! The Kubernetes API in memory: a tower service under the ordinary kube client, and over HTTPS.
//!
//! Tests, simulations and the playground run the production controllers against this server instead of a cluster. It
//! keeps what clients rely on (versions, watches, conflicts, finalizers, owner collection, schemas, eviction); it runs
//! no workload controllers, no scheduler and no kubelet, which are the job of crate `world`. `README.md` lists the
//! differences from the real server.
//!
//! A request is handled to its end under one lock, with all that it sets off. Time comes from a clock and names come
//! from a seed, so equal requests give equal answers.
//!
//! ```
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube::api::{Api, PostParams};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), kube::Error> {
//! let server = kube_mem::ApiServer::builder().seed(7).build();
//! let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
//! let mut map = ConfigMap::default();
//! map.metadata.generate_name = Some("settings-".to_owned());
//! let created = maps.create(&PostParams::default(), &map).await?;
//! assert!(created.metadata.resource_version.is_some());
//! # Ok(())
//! # }
//! ```

pub mod discovery;
pub mod https;
pub mod managed_fields;
pub mod openapi;
pub mod patch;
pub mod registry;
pub mod schema;
pub mod table;
pub mod types;

mod body;
mod bootstrap;
mod cluster;
mod complaint;
mod dump;
mod encode;
mod events;
mod failure;
mod ids;
mod kinds;
mod meta;
mod names;
mod protobuf;
mod reactions;
mod request;
mod selector;
mod server;
mod store;
mod verbs;
mod watch;

pub use body::Body;
pub use dump::Dump;
pub use failure::Failure;
pub use selector::LabelSelector;
pub use server::{ApiServer, ApiServerBuilder, ApiService};
