//! Whether the node class of a pool can be used.

use api::conditions::{self, Conditions, node_pool as condition};
use jiff::Timestamp;
use state::NodeClass;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    Ready,
    NotReady { reason: String, message: String },
}

pub fn check(class: Option<&NodeClass>) -> Readiness {
    let not = |reason: &str, message: &str| Readiness::NotReady {
        reason: reason.to_owned(),
        message: message.to_owned(),
    };
    let Some(class) = class else {
        return not("NodeClassNotFound", "NodeClass not found on cluster");
    };
    if class.deleting.is_some() {
        return not("NodeClassTerminating", "NodeClass is Terminating");
    }
    match &class.ready {
        Some(ready) if ready.status == conditions::TRUE => Readiness::Ready,
        Some(ready) if ready.status == conditions::FALSE => not(&ready.reason, &ready.message),
        _ => not("NodeClassReadinessUnknown", "Node Class Readiness Unknown"),
    }
}

impl Readiness {
    pub fn note(&self, conditions: &mut Conditions, now: Timestamp) {
        match self {
            Readiness::Ready => conditions.set_true(condition::NODE_CLASS_READY, now),
            Readiness::NotReady { reason, message } => {
                conditions.set_false(condition::NODE_CLASS_READY, reason, message, now)
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
    use kube::core::{ApiResource, DynamicObject, GroupVersionKind};

    use super::*;

    fn class(ready: Option<&str>, deleting: bool) -> NodeClass {
        let condition = |status: &str| Condition {
            type_: "Ready".to_owned(),
            status: status.to_owned(),
            reason: "SubnetsMissing".to_owned(),
            message: "no subnets".to_owned(),
            last_transition_time: Time(Timestamp::UNIX_EPOCH),
            observed_generation: None,
        };
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("g", "v", "K"));
        NodeClass {
            name: "default".to_owned(),
            generation: 1,
            deleting: deleting.then_some(Timestamp::UNIX_EPOCH),
            ready: ready.map(condition),
            object: DynamicObject::new("default", &resource),
        }
    }

    /// LC-P5.
    #[test]
    fn a_class_has_to_be_there_and_say_that_it_is_ready() {
        let reason = |class: Option<NodeClass>| match check(class.as_ref()) {
            Readiness::Ready => "ready".to_owned(),
            Readiness::NotReady { reason, .. } => reason,
        };
        assert_eq!(reason(None), "NodeClassNotFound");
        assert_eq!(reason(Some(class(Some("True"), false))), "ready");
        assert_eq!(reason(Some(class(Some("False"), false))), "SubnetsMissing");
        assert_eq!(reason(Some(class(None, false))), "NodeClassReadinessUnknown");
        assert_eq!(reason(Some(class(Some("True"), true))), "NodeClassTerminating");
    }
}
