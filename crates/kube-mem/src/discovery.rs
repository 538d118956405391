//! Which groups, versions and resources there are: `/api`, `/apis` and what lies between them and the objects.
//!
//! Clients ask in one of two ways. Old ones walk the tree document by document; new ones name the aggregated type
//! in `Accept` and get all of it at `/api` and `/apis`.

use std::cmp::Reverse;

use serde_json::{Map, Value, json};

use crate::registry::{Registry, ResourceType, Subresource, api_version};

const AGGREGATED: &str = "APIGroupDiscoveryList";

/// A document with its media type.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub content_type: &'static str,
    pub body: Value,
}

/// The document at `path`, or nothing if discovery has none there.
pub fn answer(registry: &Registry, path: &str, accept: &str) -> Option<Answer> {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let aggregated = accepts_aggregated(accept);
    let plain = |body| {
        Some(Answer {
            content_type: "application/json",
            body,
        })
    };
    match (parts.as_slice(), aggregated) {
        (["api"], Some(version)) => Some(aggregated_list(registry, version, str::is_empty)),
        (["apis"], Some(version)) => Some(aggregated_list(registry, version, |group| !group.is_empty())),
        (["api"], None) => plain(json!({
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [],
        })),
        (["apis"], None) => plain(json!({
            "kind": "APIGroupList",
            "apiVersion": "v1",
            "groups": groups(registry)
                .iter()
                .filter(|(group, _)| !group.is_empty())
                .map(|(group, versions)| group_document(group, versions))
                .collect::<Vec<_>>(),
        })),
        (["apis", group], _) => {
            let (_, versions) = groups(registry).into_iter().find(|(name, _)| name == group)?;
            let mut document = group_document(group, &versions);
            document["kind"] = "APIGroup".into();
            document["apiVersion"] = "v1".into();
            plain(document)
        }
        (["api", version], _) => resource_list(registry, "", version).and_then(plain),
        (["apis", group, version], _) => resource_list(registry, group, version).and_then(plain),
        _ => None,
    }
}

/// The version of the aggregated type that the client asks for first, if it asks for one at all.
fn accepts_aggregated(accept: &str) -> Option<&'static str> {
    accept.split(',').find_map(|choice| {
        let has = |parameter: &str| choice.split(';').any(|part| part.trim() == parameter);
        if !has("as=APIGroupDiscoveryList") || !has("g=apidiscovery.k8s.io") {
            return None;
        }
        ["v2", "v2beta1"]
            .into_iter()
            .find(|version| has(&format!("v={version}")))
    })
}

/// The groups in serving order, each with its versions from most to least stable.
fn groups(registry: &Registry) -> Vec<(String, Vec<String>)> {
    let mut groups = registry.groups();
    for (_, versions) in &mut groups {
        versions.sort_by_key(|version| Reverse(stability(version)));
    }
    groups
}

/// Orders `v2 > v1 > v1beta2 > v1beta1 > v1alpha1 > anything else`.
fn stability(version: &str) -> (u8, u32, u32) {
    let parse = || {
        let rest = version.strip_prefix('v')?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let major = rest[..digits].parse().ok()?;
        let stage = &rest[digits..];
        if stage.is_empty() {
            return Some((3, major, 0));
        }
        if let Some(minor) = stage.strip_prefix("beta") {
            return Some((2, major, minor.parse().ok()?));
        }
        Some((1, major, stage.strip_prefix("alpha")?.parse().ok()?))
    };
    parse().unwrap_or((0, 0, 0))
}

fn group_document(group: &str, versions: &[String]) -> Value {
    let entry = |version: &String| json!({"groupVersion": api_version(group, version), "version": version});
    json!({
        "name": group,
        "versions": versions.iter().map(entry).collect::<Vec<_>>(),
        "preferredVersion": versions.first().map(entry),
    })
}

fn resource_list(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let mut types = registry.of_group_version(group, version).peekable();
    types.peek()?;
    let resources: Vec<Value> = types
        .flat_map(|ty| {
            let below = ty.subresources.iter().map(|sub| subresource_entry(ty, sub));
            std::iter::once(resource_entry(ty)).chain(below)
        })
        .collect();
    Some(json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": api_version(group, version),
        "resources": resources,
    }))
}

fn resource_entry(ty: &ResourceType) -> Value {
    let mut entry = json!({
        "name": ty.plural,
        "singularName": ty.singular,
        "namespaced": ty.namespaced,
        "kind": ty.kind,
        "verbs": ty.verbs,
    });
    add_words(&mut entry, ty);
    entry
}

fn subresource_entry(ty: &ResourceType, sub: &Subresource) -> Value {
    let mut entry = json!({
        "name": format!("{}/{}", ty.plural, sub.name),
        "singularName": "",
        "namespaced": ty.namespaced,
        "kind": sub.gvk.kind,
        "verbs": sub.verbs,
    });
    if (&sub.gvk.group, &sub.gvk.version) != (&ty.group, &ty.version) {
        entry["group"] = sub.gvk.group.clone().into();
        entry["version"] = sub.gvk.version.clone().into();
    }
    entry
}

/// Short names and categories are left out where there are none.
fn add_words(entry: &mut Value, ty: &ResourceType) {
    if !ty.short_names.is_empty() {
        entry["shortNames"] = json!(ty.short_names);
    }
    if !ty.categories.is_empty() {
        entry["categories"] = json!(ty.categories);
    }
}

fn aggregated_list(registry: &Registry, version: &'static str, wanted: impl Fn(&str) -> bool) -> Answer {
    let items: Vec<Value> = groups(registry)
        .iter()
        .filter(|(group, _)| wanted(group))
        .map(|(group, versions)| aggregated_group(registry, group, versions))
        .collect();
    let content_type = match version {
        "v2" => "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        _ => "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
    };
    Answer {
        content_type,
        body: json!({
            "kind": AGGREGATED,
            "apiVersion": format!("apidiscovery.k8s.io/{version}"),
            "metadata": {},
            "items": items,
        }),
    }
}

fn aggregated_group(registry: &Registry, group: &str, versions: &[String]) -> Value {
    let mut metadata = Map::new();
    if !group.is_empty() {
        metadata.insert("name".into(), group.into());
    }
    let versions: Vec<Value> = versions
        .iter()
        .map(|version| {
            let resources: Vec<Value> = registry
                .of_group_version(group, version)
                .map(|ty| aggregated_resource(ty))
                .collect();
            json!({"version": version, "freshness": "Current", "resources": resources})
        })
        .collect();
    json!({"metadata": metadata, "versions": versions})
}

fn aggregated_resource(ty: &ResourceType) -> Value {
    // An empty group and version in a response kind stand for those of the document.
    let response_kind = |sub: Option<&Subresource>| match sub {
        Some(sub) if (&sub.gvk.group, &sub.gvk.version) != (&ty.group, &ty.version) => {
            json!({"group": sub.gvk.group, "version": sub.gvk.version, "kind": sub.gvk.kind})
        }
        _ if ty.custom.is_some() => {
            json!({"group": ty.group, "version": ty.version, "kind": ty.kind})
        }
        _ => json!({"group": "", "version": "", "kind": ty.kind}),
    };
    let mut entry = json!({
        "resource": ty.plural,
        "responseKind": response_kind(None),
        "scope": if ty.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": ty.singular,
        "verbs": ty.verbs,
    });
    add_words(&mut entry, ty);
    if !ty.subresources.is_empty() {
        let below = ty.subresources.iter().map(|sub| {
            json!({
                "subresource": sub.name,
                "responseKind": response_kind(Some(sub)),
                "verbs": sub.verbs,
            })
        });
        entry["subresources"] = below.collect();
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    const KUBECTL: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
        application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

    #[track_caller]
    fn body(path: &str, accept: &str) -> Value {
        answer(&Registry::default(), path, accept)
            .expect("the path is served")
            .body
    }

    #[test]
    fn kubectl_gets_everything_in_two_documents() {
        let core = body("/api", KUBECTL);
        assert_eq!(core["apiVersion"], "apidiscovery.k8s.io/v2");
        assert_eq!(core["items"].as_array().map(Vec::len), Some(1));
        let named = body("/apis", KUBECTL);
        let names: Vec<&str> = named["items"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|item| item["metadata"]["name"].as_str())
            .collect();
        assert!(names.contains(&"apps") && names.contains(&"policy"), "{names:?}");
    }

    #[test]
    fn old_clients_walk_the_tree() {
        assert_eq!(body("/api", "application/json")["versions"], json!(["v1"]));
        assert_eq!(body("/apis", "*/*")["kind"], "APIGroupList");
        assert_eq!(body("/apis/apps", "")["preferredVersion"]["groupVersion"], "apps/v1");
        assert_eq!(body("/apis/apps/v1", "")["groupVersion"], "apps/v1");
        assert!(answer(&Registry::default(), "/apis/none", "").is_none());
        assert!(answer(&Registry::default(), "/apis/apps/v2", "").is_none());
    }

    #[test]
    fn a_subresource_of_another_group_names_it() {
        let core = body("/api/v1", "");
        let find = |name: &str| -> Value {
            let list = core["resources"].as_array().expect("resources are a list");
            list.iter()
                .find(|entry| entry["name"] == name)
                .cloned()
                .expect("the entry is there")
        };
        assert_eq!(find("pods/eviction")["group"], "policy");
        assert_eq!(find("pods/status").get("group"), None);
        assert_eq!(find("pods")["shortNames"], json!(["po"]));
    }

    #[test]
    fn stable_versions_come_first() {
        let mut versions = ["v1alpha1", "v1beta2", "v1", "foo", "v1beta10", "v2"];
        versions.sort_by_key(|version| Reverse(stability(version)));
        assert_eq!(versions, ["v2", "v1", "v1beta10", "v1beta2", "v1alpha1", "foo"]);
    }
}
