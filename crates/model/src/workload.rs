//! Who stands for a group of pods: services that lead to them and controllers that made them.
//!
//! Only read where the operator has default spreads: what such a spread counts is deduced from these.

use crate::{Labels, ids::PodKey, pod::LabelSelector};

/// Controllers whose selectors say which pods belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ControllerKind {
    ReplicationController,
    ReplicaSet,
    StatefulSet,
}

/// A controller by kind and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ControllerKey {
    pub kind: ControllerKind,
    pub key: PodKey,
}

/// The pods of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    pub key: PodKey,
    /// Without a selector a service leads to no pod.
    pub selector: Option<Labels>,
}

impl Service {
    pub fn selects(&self, labels: &Labels) -> bool {
        let wanted = self.selector.as_ref();
        wanted.is_some_and(|wanted| wanted.iter().all(|(key, value)| labels.get(key) == Some(value)))
    }
}

/// The pods of a controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Controlled {
    /// Of a ReplicationController.
    Labels(Labels),
    /// Of a ReplicaSet or a StatefulSet; `None` selects nothing.
    Selector(Option<LabelSelector>),
}
