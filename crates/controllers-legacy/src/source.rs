//! The objects that v1 objects are made from.

use std::fmt;

use api::labels::compatibility;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde_json::Value;
use sha2::{Digest, Sha256};
use state::View;

/// One source. Node templates come first: classes are made before pools refer to them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    NodeTemplate(String),
    Provisioner(String),
}

impl Source {
    pub fn name(&self) -> &str {
        match self {
            Source::NodeTemplate(name) | Source::Provisioner(name) => name,
        }
    }

    pub fn kind(&self) -> &'static str {
        match self {
            Source::NodeTemplate(_) => "AWSNodeTemplate",
            Source::Provisioner(_) => "Provisioner",
        }
    }

    pub fn api_version(&self) -> &'static str {
        match self {
            Source::NodeTemplate(_) => "karpenter.k8s.aws/v1alpha1",
            Source::Provisioner(_) => "karpenter.sh/v1alpha5",
        }
    }

    /// What is made from the source goes with it.
    pub fn owner(&self, meta: &ObjectMeta) -> OwnerReference {
        OwnerReference {
            api_version: self.api_version().to_owned(),
            kind: self.kind().to_owned(),
            name: self.name().to_owned(),
            uid: meta.uid.clone().unwrap_or_default(),
            block_owner_deletion: Some(true),
            controller: Some(true),
        }
    }

    /// Whether an object says that it was made from this source.
    pub fn is_of(&self, target: &Value) -> bool {
        let annotations = target.pointer("/metadata/annotations");
        let said = annotations.and_then(|all| all.get(compatibility::SOURCE)?.as_str());
        said.is_some_and(|said| said == self.to_string())
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind(), self.name())
    }
}

/// A source as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    pub source: Source,
    pub meta: ObjectMeta,
    pub object: Value,
}

impl Document {
    /// Tells one state of the spec from another.
    pub fn hash(&self) -> String {
        let spec = self.object.get("spec").unwrap_or(&Value::Null).to_string();
        let digest = Sha256::digest(spec.as_bytes());
        digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// All sources that are not on their way out, in order.
pub fn documents(view: &View) -> Vec<Document> {
    let templates = view.node_templates.values().map(|stored| Document {
        source: Source::NodeTemplate(stored.metadata.name.clone().unwrap_or_default()),
        meta: stored.metadata.clone(),
        object: stored.document(),
    });
    let provisioners = view.provisioners.values().map(|stored| Document {
        source: Source::Provisioner(stored.metadata.name.clone().unwrap_or_default()),
        meta: stored.metadata.clone(),
        object: stored.document(),
    });
    let mut all: Vec<Document> = templates.chain(provisioners).collect();
    all.retain(|document| document.meta.deletion_timestamp.is_none());
    all.sort_by(|one, other| one.source.cmp(&other.source));
    all
}

/// The settings of the time, if the cluster has kept them.
pub fn settings(view: &View) -> Option<Value> {
    let stored = view.settings.values().next()?;
    let mut object = serde_json::to_value(&**stored).ok()?;
    object["apiVersion"] = "v1".into();
    object["kind"] = "ConfigMap".into();
    Some(object)
}
