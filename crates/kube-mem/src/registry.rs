//! Which resources the server knows, and what can be done with each.
//!
//! The built-in kinds are one static table (`registry/builtin.rs`) that all servers of a process share; a server adds
//! the versions of its custom resource definitions (`registry/custom.rs`). Discovery, OpenAPI and the tables are
//! rendered from what this file describes.

mod builtin;
mod custom;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

pub use builtin::builtin_types;
pub(crate) use custom::served_versions;
pub use custom::{CustomVersion, ScalePaths};

use crate::schema::TypeSchema;

/// Group, version and kind: what an object says about itself in `apiVersion` and `kind`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gvk {
    pub group: String,
    pub version: String,
    pub kind: String,
}

impl Gvk {
    pub fn new(group: impl Into<String>, version: impl Into<String>, kind: impl Into<String>) -> Self {
        Self {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
        }
    }

    /// `v1` for the core group, `group/version` elsewhere.
    pub fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }
}

/// The text of `apiVersion` for a group and a version.
pub fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    }
}

/// A group and a plural name, written as the server's messages write them: `pods`, `deployments.apps`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupResource {
    pub group: String,
    pub plural: String,
}

impl fmt::Display for GroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            f.write_str(&self.plural)
        } else {
            write!(f, "{}.{}", self.plural, self.group)
        }
    }
}

/// One resource in one version.
#[derive(Clone, Debug)]
pub struct ResourceType {
    pub group: String,
    pub version: String,
    pub plural: String,
    pub singular: String,
    pub kind: String,
    pub list_kind: String,
    pub namespaced: bool,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
    pub verbs: Vec<&'static str>,
    pub subresources: Vec<Subresource>,
    /// Where the objects lie. Versions of one resource share a place, and so do the two groups that have events.
    pub collection: Arc<str>,
    /// Merge facts of a built-in kind, read when they are first needed.
    pub(crate) types: OnceLock<Arc<TypeSchema>>,
    /// What only custom resources have; `None` for the built-in kinds.
    pub custom: Option<Arc<CustomVersion>>,
}

/// A path below an object, such as `status` or `eviction`.
#[derive(Clone, Debug)]
pub struct Subresource {
    pub name: &'static str,
    /// The kind that is sent and received there.
    pub gvk: Gvk,
    pub verbs: Vec<&'static str>,
}

impl ResourceType {
    pub fn gvk(&self) -> Gvk {
        Gvk::new(&self.group, &self.version, &self.kind)
    }

    pub fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }

    /// The name of the place in which objects of this group and plural name are kept.
    pub(crate) fn collection_name(group: &str, plural: &str) -> Arc<str> {
        match (group, plural) {
            ("events.k8s.io", "events") | ("", _) => plural.into(),
            _ => format!("{plural}.{group}").into(),
        }
    }

    pub fn group_resource(&self) -> GroupResource {
        GroupResource {
            group: self.group.clone(),
            plural: self.plural.clone(),
        }
    }

    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|sub| sub.name == name)
    }

    pub fn has_verb(&self, verb: &str) -> bool {
        self.verbs.contains(&verb)
    }

    /// True for kinds that are looked up in the static table by exactly this group and plural name.
    pub fn is(&self, group: &str, plural: &str) -> bool {
        self.plural == plural && self.group == group
    }
}

type TypeKey = (String, String, String);

/// All resource types of one server.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    custom: BTreeMap<TypeKey, Arc<ResourceType>>,
}

impl Registry {
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<ResourceType>> {
        builtin::find(group, version, plural).or_else(|| {
            self.custom
                .get(&(group.to_owned(), version.to_owned(), plural.to_owned()))
        })
    }

    /// The type that an owner reference or a scale target names.
    pub fn find_kind(&self, gvk: &Gvk) -> Option<&Arc<ResourceType>> {
        self.all()
            .find(|ty| ty.kind == gvk.kind && ty.group == gvk.group && ty.version == gvk.version)
    }

    /// The type in whose version the objects of a collection are stored.
    pub(crate) fn of_collection(&self, collection: &str) -> Option<&Arc<ResourceType>> {
        builtin::of_collection(collection).or_else(|| {
            self.custom.values().find(|ty| {
                *ty.collection == *collection
                    && ty
                        .custom
                        .as_ref()
                        .is_some_and(|custom| custom.storage_version == ty.version)
            })
        })
    }

    /// Every type: first the built-in ones in their table's order, then the custom ones by group, version and plural.
    pub fn all(&self) -> impl Iterator<Item = &Arc<ResourceType>> {
        builtin_types().iter().chain(self.custom.values())
    }

    /// Every type of a group and version, in the order of [`Registry::all`].
    pub fn of_group_version<'a>(
        &'a self,
        group: &'a str,
        version: &'a str,
    ) -> impl Iterator<Item = &'a Arc<ResourceType>> {
        self.all().filter(move |ty| ty.group == group && ty.version == version)
    }

    /// The groups with their versions, the preferred version first; the core group is the empty string.
    pub fn groups(&self) -> Vec<(String, Vec<String>)> {
        let mut groups: Vec<(String, Vec<String>)> = Vec::new();
        for ty in self.all() {
            match groups.iter_mut().find(|(group, _)| *group == ty.group) {
                Some((_, versions)) if versions.contains(&ty.version) => {}
                Some((_, versions)) => versions.push(ty.version.clone()),
                None => groups.push((ty.group.clone(), vec![ty.version.clone()])),
            }
        }
        groups
    }

    /// Serves one version of a custom resource definition.
    pub(crate) fn add_custom(&mut self, ty: ResourceType) {
        let key = (ty.group.clone(), ty.version.clone(), ty.plural.clone());
        self.custom.insert(key, Arc::new(ty));
    }

    /// Stops serving every version of a custom resource.
    pub(crate) fn remove_custom(&mut self, group: &str, plural: &str) {
        self.custom.retain(|(g, _, p), _| !(g == group && p == plural));
    }
}
