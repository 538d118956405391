//! A document on its way.

use api::aws::KubeletConfiguration;
use serde_json::Value;

use super::Source;
use crate::notes::Notes;

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
        crate::manifest::name(&self.object)
    }

    pub fn is_karpenters(&self) -> bool {
        let (group, _) = crate::manifest::group_version(&self.object);
        matches!(group, "karpenter.sh" | "karpenter.k8s.aws")
    }
}
