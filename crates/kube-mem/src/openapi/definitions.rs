//! The schemas of the built-in kinds, as data.
//!
//! The files under `definitions/` are made by the example `trim_openapi`. They are parsed when first asked for: a
//! simulation that only sees pods and nodes pays for `core.json` alone.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;

use crate::registry::Gvk;

type File = LazyLock<BTreeMap<String, Value>>;

macro_rules! files {
    ($($group:literal),+ $(,)?) => {
        &[$(($group, {
            static FILE: File = LazyLock::new(|| parse(include_str!(concat!("definitions/", $group, ".json"))));
            &FILE
        })),+]
    };
}

static FILES: &[(&str, &File)] = files![
    "apiextensions",
    "apps",
    "authentication",
    "authorization",
    "autoscaling",
    "batch",
    "coordination",
    "core",
    "discovery",
    "events",
    "meta",
    "networking",
    "node",
    "policy",
    "rbac",
    "resource",
    "scheduling",
    "storage",
];

fn parse(text: &str) -> BTreeMap<String, Value> {
    serde_json::from_str(text).expect("the generated definitions are valid JSON")
}

/// The schema named `io.k8s.api.core.v1.Pod` and the like. References in it are bare names.
pub(crate) fn definition(name: &str) -> Option<&'static Value> {
    file_of(name)?.get(name)
}

fn file_of(name: &str) -> Option<&'static File> {
    let group = match name.strip_prefix("io.k8s.api.") {
        Some(rest) => rest.split('.').next()?,
        None if name.contains("apiextensions") => "apiextensions",
        None => "meta",
    };
    let at = FILES.binary_search_by_key(&group, |(name, _)| name).ok()?;
    Some(FILES[at].1)
}

/// The name under which a built-in kind's schema is kept.
pub(crate) fn name_of(gvk: &Gvk) -> String {
    let package = match gvk.group.as_str() {
        "" if gvk.kind == "Status" => return format!("io.k8s.apimachinery.pkg.apis.meta.{}.Status", gvk.version),
        "" => "io.k8s.api.core",
        "apiextensions.k8s.io" => "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions",
        "rbac.authorization.k8s.io" => "io.k8s.api.rbac",
        group => {
            let first = group.split('.').next().unwrap_or_default();
            return format!("io.k8s.api.{first}.{}.{}", gvk.version, gvk.kind);
        }
    };
    format!("{package}.{}.{}", gvk.version, gvk.kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::builtin_types;

    #[test]
    fn every_built_in_kind_and_subresource_has_a_schema() {
        for ty in builtin_types() {
            let kinds = ty.subresources.iter().map(|sub| sub.gvk.clone()).chain([ty.gvk()]);
            for gvk in kinds {
                assert!(definition(&name_of(&gvk)).is_some(), "{}", name_of(&gvk));
            }
        }
    }

    #[test]
    fn every_reference_leads_somewhere() {
        fn check(schema: &Value) {
            if let Some(Value::String(name)) = schema.get("$ref") {
                assert!(definition(name).is_some(), "{name}");
            }
            for below in schema
                .get("properties")
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
            {
                check(below.1);
            }
            for key in ["items", "additionalProperties"] {
                schema.get(key).into_iter().for_each(check);
            }
        }
        FILES.iter().flat_map(|(_, file)| file.values()).for_each(check);
    }
}
