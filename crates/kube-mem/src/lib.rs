//! The Kubernetes API in memory: a tower service under the ordinary kube client, and over HTTPS.

pub mod discovery;
pub mod managed_fields;
pub mod openapi;
pub mod patch;
pub mod registry;
pub mod schema;
pub mod table;
pub mod types;
