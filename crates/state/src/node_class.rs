//! What every provider's node class has in common: a generation, a readiness, an end.

use api::conditions;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{ResourceExt, core::DynamicObject};

/// A node class of whatever kind.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeClass {
    pub name: String,
    pub generation: i64,
    pub deleting: Option<Timestamp>,
    /// Condition Ready, if the class has one.
    pub ready: Option<Condition>,
    /// The object as it is stored, for the provider that understands it.
    pub object: DynamicObject,
}

impl NodeClass {
    pub(crate) fn of(object: DynamicObject) -> Self {
        let listed = object.data.pointer("/status/conditions").cloned();
        // A condition that cannot be read is as good as none: the class does not count as ready.
        let listed: Vec<Condition> = listed
            .and_then(|list| serde_json::from_value(list).ok())
            .unwrap_or_default();
        Self {
            name: object.name_any(),
            generation: object.metadata.generation.unwrap_or_default(),
            deleting: object.metadata.deletion_timestamp.as_ref().map(|time| time.0),
            ready: conditions::find(&listed, conditions::READY).cloned(),
            object,
        }
    }
}
