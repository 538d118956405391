//! The server's description of itself: OpenAPI v3 per group and version, and a bare v2.
//!
//! kubectl reads v3 for `explain`, for the merge keys of client-side apply, and to learn that the server checks fields
//! itself. It asks for v2 only where v3 fails, so v2 is a valid document and no more.

mod definitions;
mod document;
mod paths;

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Map, Value, json};

use crate::registry::Registry;

pub(crate) use definitions::{definition, name_of};

const VERSION: &str = "v1.35.4";

/// A document with its media type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub content_type: &'static str,
    pub body: Vec<u8>,
}

/// The document at `path` (`/openapi/v2`, `/openapi/v3`, `/openapi/v3/apis/apps/v1`), or nothing if there is none.
pub fn answer(registry: &Registry, path: &str, accept: &str) -> Option<Answer> {
    let takes_json =
        accept.is_empty() || accept.contains("json") && !accept.contains("protobuf") || accept.contains("*/*");
    let document = match path.trim_matches('/').strip_prefix("openapi/")? {
        "v2" if takes_json => json!({
            "swagger": "2.0",
            "info": {"title": "Kubernetes", "version": VERSION},
            "paths": {},
            "definitions": {},
        }),
        "v3" => index(registry),
        rest => {
            let parts: Vec<&str> = rest.strip_prefix("v3/")?.split('/').collect();
            match parts.as_slice() {
                ["api", version] => document::of(registry, "", version)?,
                ["apis", group, version] => document::of(registry, group, version)?,
                _ => return None,
            }
        }
    };
    Some(Answer {
        content_type: "application/json",
        body: document.to_string().into_bytes(),
    })
}

/// Where each group and version is described. The hash lets clients keep what has not changed.
fn index(registry: &Registry) -> Value {
    let mut paths = Map::new();
    for (group, versions) in registry.groups() {
        for version in versions {
            let path = match group.as_str() {
                "" => format!("api/{version}"),
                group => format!("apis/{group}/{version}"),
            };
            let url = format!(
                "/openapi/v3/{path}?hash={:016X}",
                fingerprint(registry, &group, &version)
            );
            paths.insert(path, json!({"serverRelativeURL": url}));
        }
    }
    json!({"paths": paths})
}

/// Changes when a document can have changed: never for built-in groups, with the definitions for others.
fn fingerprint(registry: &Registry, group: &str, version: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    VERSION.hash(&mut hasher);
    for ty in registry.of_group_version(group, version) {
        ty.plural.hash(&mut hasher);
        if let Some(custom) = &ty.custom {
            custom.definition.to_string().hash(&mut hasher);
        }
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(path: &str) -> Value {
        let answer = answer(&Registry::default(), path, "application/json").expect("the document is served");
        serde_json::from_slice(&answer.body).expect("the document is JSON")
    }

    #[test]
    fn the_index_leads_to_every_document() {
        let index = document("/openapi/v3");
        let paths = index["paths"].as_object().expect("paths are a map");
        assert!(paths.contains_key("api/v1") && paths.contains_key("apis/apps/v1"));
        for path in paths.keys() {
            assert_eq!(document(&format!("/openapi/v3/{path}"))["openapi"], "3.0.0", "{path}");
        }
    }

    #[test]
    fn every_reference_of_a_document_is_in_it() {
        fn references(value: &Value, found: &mut Vec<String>) {
            match value {
                Value::Object(fields) => {
                    if let Some(Value::String(reference)) = fields.get("$ref") {
                        found.push(reference.clone());
                    }
                    fields.values().for_each(|below| references(below, found));
                }
                Value::Array(items) => items.iter().for_each(|item| references(item, found)),
                _ => {}
            }
        }
        let document = document("/openapi/v3/apis/apps/v1");
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(!found.is_empty());
        for reference in found {
            let pointer = reference.trim_start_matches('#');
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
    }

    /// What kubectl looks for before it leaves the checking of fields to the server and merges lists by key.
    #[test]
    fn patches_state_their_media_types_parameters_and_merge_keys() {
        let apps = document("/openapi/v3/apis/apps/v1");
        let patch = &apps["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];
        assert_eq!(patch["x-kubernetes-group-version-kind"]["kind"], "Deployment");
        let content = patch["requestBody"]["content"].as_object().expect("content is a map");
        assert!(content.contains_key("application/strategic-merge-patch+json"));
        let parameters = patch["parameters"].as_array().expect("parameters are a list");
        assert!(
            parameters
                .iter()
                .any(|parameter| parameter["name"] == "fieldValidation")
        );
        let spec = &apps["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"];
        assert_eq!(spec["properties"]["containers"]["x-kubernetes-patch-merge-key"], "name");
    }

    #[test]
    fn unknown_documents_are_not_served() {
        assert_eq!(answer(&Registry::default(), "/openapi/v3/apis/none/v1", ""), None);
        assert_eq!(answer(&Registry::default(), "/openapi/v4", ""), None);
        assert_eq!(
            answer(&Registry::default(), "/openapi/v2", "application/x-protobuf"),
            None
        );
    }
}
