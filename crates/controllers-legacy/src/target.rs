//! What is to be done about one object of v1.

use api::labels::compatibility;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Value, json};

use crate::{Source, source::Document};

/// Labels and annotations by which tools know what they have made. On a copy they would make it theirs, and the next
/// sync would remove it.
const TRACKING: &[&str] = &[
    "app.kubernetes.io/instance",
    "app.kubernetes.io/managed-by",
    "helm.sh/chart",
];
const TRACKING_DOMAINS: &[&str] = &[
    "argocd.argoproj.io/",
    "meta.helm.sh/",
    "kustomize.toolkit.fluxcd.io/",
    "helm.toolkit.fluxcd.io/",
];

/// An object that a source wants to be there.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    pub is_pool: bool,
    pub name: String,
    /// What is applied.
    pub document: Value,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is missing, or it says something else.
    Apply,
    /// It says all that it should.
    Keep,
    /// Somebody else made it: it is not touched.
    Conflict,
    /// Its user has taken it over.
    Adopted { is_owned: bool },
    /// It is on its way out, and is made anew when it is gone.
    Leaving,
}

/// The object with the marks of its source.
pub fn wanted(document: &Document, mut object: Value) -> Wanted {
    let source = &document.source;
    if let Some(metadata) = object["metadata"].as_object_mut() {
        // Finalizers hold the source until something of its own is done; there is nothing like it to do here.
        metadata.remove("finalizers");
        for field in ["labels", "annotations"] {
            if let Some(entries) = metadata.get_mut(field).and_then(Value::as_object_mut) {
                entries.retain(|key, _| !is_tracking(key));
            }
        }
    }
    let metadata = &mut object["metadata"];
    metadata["labels"][compatibility::MANAGED] = compatibility::LEGACY.into();
    metadata["annotations"][compatibility::SOURCE] = source.to_string().into();
    metadata["annotations"][compatibility::SOURCE_HASH] = document.hash().into();
    metadata["ownerReferences"] = json!([source.owner(&document.meta)]);
    Wanted {
        is_pool: object["kind"] == "NodePool",
        name: object
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned(),
        document: object,
    }
}

fn is_tracking(key: &str) -> bool {
    TRACKING.contains(&key) || TRACKING_DOMAINS.iter().any(|domain| key.starts_with(domain))
}

pub fn fate(wanted: &Wanted, source: &Source, uid: &str, found: Option<&Value>) -> Fate {
    let Some(found) = found else {
        return Fate::Apply;
    };
    let is_ours = source.is_of(found);
    match (is_managed(found), is_ours) {
        (true, true) if is_leaving(found) => Fate::Leaving,
        (true, true) if covers(found, &wanted.document) => Fate::Keep,
        (true, true) => Fate::Apply,
        (false, true) => Fate::Adopted {
            is_owned: owners(found).iter().any(|owner| owner.uid == uid),
        },
        (_, false) => Fate::Conflict,
    }
}

pub fn is_managed(object: &Value) -> bool {
    let labels = object.pointer("/metadata/labels");
    let managed = labels.and_then(|labels| labels.get(compatibility::MANAGED)?.as_str());
    managed == Some(compatibility::LEGACY)
}

fn is_leaving(object: &Value) -> bool {
    object
        .pointer("/metadata/deletionTimestamp")
        .is_some_and(Value::is_string)
}

/// Those of an object that are left when the source lets go of it.
pub fn other_owners(object: &Value, uid: &str) -> Vec<OwnerReference> {
    let mut owners = owners(object);
    owners.retain(|owner| owner.uid != uid);
    owners
}

fn owners(object: &Value) -> Vec<OwnerReference> {
    let listed = object.pointer("/metadata/ownerReferences").cloned();
    listed
        .and_then(|listed| serde_json::from_value(listed).ok())
        .unwrap_or_default()
}

/// Whether an object says all that a document says. What it says besides belongs to others: defaults of the server, or
/// fields that its users have set.
fn covers(found: &Value, document: &Value) -> bool {
    match (found, document) {
        (Value::Object(found), Value::Object(document)) => {
            document.iter().all(|(field, value)| match found.get(field) {
                Some(found) => covers(found, value),
                None => value.is_null(),
            })
        }
        (Value::Array(found), Value::Array(document)) => {
            found.len() == document.len() && found.iter().zip(document).all(|(found, value)| covers(found, value))
        }
        (found, value) => found == value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> Document {
        let source = Source::Provisioner("default".to_owned());
        let meta = serde_json::from_value(json!({"name": "default", "uid": "u"})).expect("metadata");
        let object = json!({"spec": {"weight": 1}});
        Document { source, meta, object }
    }

    fn pool() -> Value {
        json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool",
            "metadata": {
                "name": "default", "finalizers": ["someone/else"],
                "labels": {"team": "a", "app.kubernetes.io/instance": "karpenter"},
                "annotations": {"argocd.argoproj.io/tracking-id": "x"},
            },
            "spec": {"weight": 1},
        })
    }

    fn fate_of(found: Option<Value>) -> Fate {
        let document = document();
        fate(&wanted(&document, pool()), &document.source, "u", found.as_ref())
    }

    #[test]
    fn an_object_bears_the_marks_of_its_source_and_none_of_other_tools() {
        let wanted = wanted(&document(), pool());
        assert_eq!(
            wanted.document["metadata"],
            json!({
                "name": "default",
                "labels": {"team": "a", "compatibility.karpenter.sh/managed": "legacy"},
                "annotations": {
                    "compatibility.karpenter.sh/source": "Provisioner/default",
                    "compatibility.karpenter.sh/source-hash": document().hash(),
                },
                "ownerReferences": [{
                    "apiVersion": "karpenter.sh/v1alpha5", "kind": "Provisioner", "name": "default", "uid": "u",
                    "blockOwnerDeletion": true, "controller": true,
                }],
            })
        );
    }

    #[test]
    fn what_is_missing_or_edited_is_applied_and_what_users_add_is_theirs() {
        let stored = wanted(&document(), pool()).document;
        assert_eq!(fate_of(None), Fate::Apply);
        assert_eq!(fate_of(Some(stored.clone())), Fate::Keep);
        let mut more = stored.clone();
        more["spec"]["disruption"] = json!({"budgets": [{"nodes": "1"}]});
        assert_eq!(fate_of(Some(more)), Fate::Keep);
        let mut edited = stored.clone();
        edited["spec"]["weight"] = 2.into();
        assert_eq!(fate_of(Some(edited.clone())), Fate::Apply);
        edited["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        assert_eq!(fate_of(Some(edited)), Fate::Leaving);
    }

    /// LE18.17
    #[test]
    fn an_object_that_somebody_else_made_is_not_touched() {
        assert_eq!(fate_of(Some(pool())), Fate::Conflict);
        let mut of_another = wanted(&document(), pool()).document;
        of_another["metadata"]["annotations"][compatibility::SOURCE] = "Provisioner/other".into();
        assert_eq!(fate_of(Some(of_another)), Fate::Conflict);
    }

    #[test]
    fn an_object_without_the_label_is_its_users() {
        let mut taken = wanted(&document(), pool()).document;
        taken["metadata"]["labels"] = json!({});
        assert_eq!(fate_of(Some(taken.clone())), Fate::Adopted { is_owned: true });
        assert!(other_owners(&taken, "u").is_empty());
        taken["metadata"]["ownerReferences"] = json!([]);
        assert_eq!(fate_of(Some(taken)), Fate::Adopted { is_owned: false });
    }
}
