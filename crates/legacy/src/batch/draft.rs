//! A document on its way.

use api::aws::KubeletConfiguration;
use serde_json::{Map, Value};

use super::{Output, Source};
use crate::notes::{Notes, Warning};
use crate::{beta, manifest};

#[derive(Debug)]
pub struct Draft {
    pub input: usize,
    pub object: Value,
    pub role: Role,
    pub changed: bool,
    /// No comments are written, as upstream's converter writes none.
    pub silent: bool,
    pub notes: Notes,
}

/// What other documents have to know of this one.
#[derive(Debug, PartialEq)]
pub enum Role {
    Pool(PoolRole),
    Class(ClassRole),
    /// A claim or machine that waits for its pool.
    Claim,
    None,
}

#[derive(Debug, Default, PartialEq)]
pub struct PoolRole {
    pub class: String,
    pub kubelet: Option<KubeletConfiguration>,
    /// Was v1 already, so that it means its class as it is.
    pub settled: bool,
}

#[derive(Debug, Default, PartialEq)]
pub struct ClassRole {
    /// The settings that the class had already.
    pub kubelet: Option<KubeletConfiguration>,
    /// Comes from the generation of Provisioners.
    pub alpha: bool,
}

impl PoolRole {
    /// Takes the annotations off that a conversion of a single object needs: their content finds its place in a class.
    pub fn take(metadata: &mut Map<String, Value>, class: &str, settled: bool) -> Self {
        manifest::take_annotation(metadata, beta::annotations::NODE_CLASS_REFERENCE);
        let kubelet = beta::node_pool::take_kubelet(metadata);
        Self {
            class: class.to_owned(),
            settled: settled && kubelet.is_none(),
            kubelet,
        }
    }
}

impl Draft {
    pub fn kept(source: &Source<'_>, object: Value) -> Self {
        Draft {
            input: source.input,
            object,
            role: Role::None,
            changed: false,
            silent: false,
            notes: Notes::on(source.subject.clone()),
        }
    }

    pub fn made(source: &Source<'_>, object: Value, role: Role, notes: Notes) -> Self {
        Draft {
            input: source.input,
            object,
            role,
            changed: true,
            silent: false,
            notes,
        }
    }

    pub fn name(&self) -> &str {
        manifest::name(&self.object)
    }

    pub fn is_karpenters(&self) -> bool {
        let (group, _) = manifest::group_version(&self.object);
        matches!(group, "karpenter.sh" | "karpenter.k8s.aws")
    }

    /// The document for the user, and what there is to say about it.
    pub fn finished(self) -> (Output, Vec<Warning>) {
        let (input, object, warnings) = (self.input, self.object, self.notes.warnings);
        if !self.changed {
            return (Output::Kept { input, object }, warnings);
        }
        let told = warnings.iter().filter(|_| !self.silent);
        let comments = told.map(Warning::comment).collect();
        (
            Output::Made {
                input,
                object,
                comments,
            },
            warnings,
        )
    }
}
