//! Custom resources: from one version of a definition to a resource type.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, LazyLock, OnceLock};

use parking_lot::Mutex;
use serde_json::Value;

use super::{Gvk, ResourceType, Subresource};
use crate::schema::CrdSchema;

/// What a version of a custom resource definition says beyond the names.
pub struct CustomVersion {
    /// The entry of `spec.versions` as it was written: printer columns, schema, selectable fields.
    pub definition: Value,
    pub schema: CrdSchema,
    pub has_status: bool,
    pub scale: Option<ScalePaths>,
    /// Paths without the leading dot, for field selectors.
    pub selectable_fields: Vec<String>,
    /// The version in which objects are stored.
    pub storage_version: String,
}

impl fmt::Debug for CustomVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CustomVersion")
            .field("has_status", &self.has_status)
            .field("storage_version", &self.storage_version)
            .finish_non_exhaustive()
    }
}

/// Where the scale subresource finds its three values, as paths of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalePaths {
    pub spec_replicas: Vec<String>,
    pub status_replicas: Vec<String>,
    pub label_selector: Option<Vec<String>>,
}

/// Compiling the rules of a schema costs milliseconds and thousands of small worlds register the same few
/// definitions, so the results are kept for the process. A result depends on its text alone.
static COMPILED: LazyLock<Mutex<BTreeMap<String, Arc<CustomVersion>>>> = LazyLock::new(Mutex::default);

/// Reads every served version of a definition.
///
/// *Errors*: the text of what is wrong with a schema.
pub(crate) fn served_versions(definition: &Value) -> Result<Vec<ResourceType>, String> {
    let spec = &definition["spec"];
    let versions = spec["versions"].as_array().map_or(&[][..], Vec::as_slice);
    let storage = versions
        .iter()
        .find(|version| version["storage"] == Value::Bool(true))
        .and_then(|version| version["name"].as_str())
        .unwrap_or_default();
    versions
        .iter()
        .filter(|version| version["served"] == Value::Bool(true))
        .map(|version| resource_type(spec, version, storage))
        .collect()
}

fn resource_type(spec: &Value, version: &Value, storage: &str) -> Result<ResourceType, String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let words = |value: &Value| -> Vec<String> {
        let list = value.as_array().map_or(&[][..], Vec::as_slice);
        list.iter().map(text).collect()
    };
    let names = &spec["names"];
    let kind = text(&names["kind"]);
    let own = Gvk::new(text(&spec["group"]), text(&version["name"]), &kind);
    let custom = compiled(version, &own, storage)?;
    let mut subresources = Vec::new();
    if custom.has_status {
        subresources.push(Subresource {
            name: "status",
            gvk: own.clone(),
            verbs: vec!["get", "patch", "update"],
        });
    }
    if custom.scale.is_some() {
        subresources.push(Subresource {
            name: "scale",
            gvk: Gvk::new("autoscaling", "v1", "Scale"),
            verbs: vec!["get", "patch", "update"],
        });
    }
    let plural = text(&names["plural"]);
    Ok(ResourceType {
        types: OnceLock::new(),
        collection: ResourceType::collection_name(&own.group, &plural),
        plural,
        singular: names["singular"]
            .as_str()
            .filter(|name| !name.is_empty())
            .map_or_else(|| kind.to_lowercase(), str::to_owned),
        list_kind: names["listKind"]
            .as_str()
            .filter(|name| !name.is_empty())
            .map_or_else(|| format!("{kind}List"), str::to_owned),
        namespaced: spec["scope"] == "Namespaced",
        short_names: words(&names["shortNames"]),
        categories: words(&names["categories"]),
        // The order is the one in which the real server lists the verbs of custom resources.
        verbs: vec![
            "delete",
            "deletecollection",
            "get",
            "list",
            "patch",
            "create",
            "update",
            "watch",
        ],
        subresources,
        custom: Some(custom),
        group: own.group,
        version: own.version,
        kind,
    })
}

fn compiled(version: &Value, gvk: &Gvk, storage: &str) -> Result<Arc<CustomVersion>, String> {
    let key = format!("{} {storage} {version}", gvk.api_version());
    if let Some(found) = COMPILED.lock().get(&key) {
        return Ok(found.clone());
    }
    let schema = CrdSchema::compile(version).map_err(|cause| cause.to_string())?;
    let subresources = &version["subresources"];
    let custom = Arc::new(CustomVersion {
        schema,
        has_status: subresources["status"].is_object(),
        scale: scale_paths(&subresources["scale"]),
        selectable_fields: version["selectableFields"]
            .as_array()
            .map_or(&[][..], Vec::as_slice)
            .iter()
            .filter_map(|field| field["jsonPath"].as_str())
            .map(|path| path.trim_start_matches('.').to_owned())
            .collect(),
        storage_version: storage.to_owned(),
        definition: version.clone(),
    });
    COMPILED.lock().insert(key, custom.clone());
    Ok(custom)
}

fn scale_paths(scale: &Value) -> Option<ScalePaths> {
    let path = |key: &str| -> Option<Vec<String>> {
        let text = scale[key].as_str()?;
        Some(text.trim_start_matches('.').split('.').map(str::to_owned).collect())
    };
    Some(ScalePaths {
        spec_replicas: path("specReplicasPath")?,
        status_replicas: path("statusReplicasPath")?,
        label_selector: path("labelSelectorPath"),
    })
}
