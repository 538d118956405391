//! An object as it is stored, whatever its fields hold.

use std::{borrow::Cow, fmt, marker::PhantomData};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Resource, core::TypeMeta};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An object of kind `K` whose fields have not been read.
///
/// For kinds whose definition may be another program's: one object with a field that `K` cannot hold would keep the
/// whole list from being read. Here it is read when it is looked at, and its owner is told what is wrong with it.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Stored<K> {
    #[serde(flatten)]
    pub types: Option<TypeMeta>,
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// All other fields.
    #[serde(flatten)]
    pub data: Value,
    #[serde(skip)]
    kind: PhantomData<fn() -> K>,
}

impl<K> Clone for Stored<K> {
    fn clone(&self) -> Self {
        Self {
            types: self.types.clone(),
            metadata: self.metadata.clone(),
            data: self.data.clone(),
            kind: PhantomData,
        }
    }
}

impl<K> fmt::Debug for Stored<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stored")
            .field("metadata", &self.metadata)
            .field("data", &self.data)
            .finish()
    }
}

impl<K> PartialEq for Stored<K> {
    fn eq(&self, other: &Self) -> bool {
        self.metadata == other.metadata && self.data == other.data
    }
}

impl<K: Resource<DynamicType = ()>> Stored<K> {
    /// The whole document, with its kind even where the server left that out of a list.
    pub fn document(&self) -> Value {
        let mut document = self.data.clone();
        document["apiVersion"] = K::api_version(&()).into();
        document["kind"] = K::kind(&()).into();
        document["metadata"] = serde_json::to_value(&self.metadata).expect("metadata is plain data");
        document
    }
}

impl<K: Resource<DynamicType = ()>> Resource for Stored<K> {
    type DynamicType = ();
    type Scope = K::Scope;

    fn kind((): &()) -> Cow<'_, str> {
        K::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        K::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        K::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        K::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::v1alpha5::Provisioner;

    #[test]
    fn an_object_with_a_field_of_the_wrong_type_is_read_and_written_as_it_is() {
        let written = json!({"metadata": {"name": "default"}, "spec": {"weight": "heavy"}});
        let stored: Stored<Provisioner> = serde_json::from_value(written).expect("it is an object");
        assert_eq!(
            stored.document(),
            json!({
                "apiVersion": "karpenter.sh/v1alpha5", "kind": "Provisioner",
                "metadata": {"name": "default"}, "spec": {"weight": "heavy"},
            })
        );
    }
}
