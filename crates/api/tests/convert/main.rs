//! Kubernetes objects become model types, and what cannot be read is reported with its field.

mod claim;
mod device;
mod overlay;
mod pod;
mod pod_claims;
mod pool;
mod requests;
mod volume;
mod workload;

use api::convert::Parsed;
use serde::de::DeserializeOwned;
use serde_json::Value;

fn object<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("the object decodes")
}

fn fields<T>(parsed: &Parsed<T>) -> Vec<&str> {
    parsed.errors.iter().map(|error| error.field.as_str()).collect()
}
