//! What people are told about conditions, in the words that upstream's library uses.

use api::v1beta1::CapacityBuffer;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use provider::NodeClassKind;
use state::NodeClass;

use crate::outbox::{About, Notice};

pub fn transitioned(about: About, before: &Condition, after: &Condition) -> Notice {
    let mut message = format!(
        "Status condition transitioned, Type: {}, Status: {} -> {}, Reason: {}",
        after.type_, before.status, after.status, after.reason
    );
    if !after.message.is_empty() {
        message.push_str(", Message: ");
        message.push_str(&after.message);
    }
    // A wave of launches is thousands of transitions, and requests are needed for the launches themselves.
    Notice::normal(after.type_.clone(), about, message)
        .told_apart_by(after.status.clone())
        .at_most(5, 100)
}

pub fn finalized(about: About) -> Notice {
    let message = format!("Finalized {}", api::labels::finalizers::TERMINATION);
    Notice::normal("Finalized", about, message).at_most(5, 100)
}

pub fn about_buffer(buffer: &CapacityBuffer) -> About {
    let meta = &buffer.metadata;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    About {
        api_version: "autoscaling.x-k8s.io/v1beta1".into(),
        kind: "CapacityBuffer",
        namespace: text(&meta.namespace),
        name: text(&meta.name),
        uid: text(&meta.uid),
    }
}

pub fn about_class(kind: &NodeClassKind, class: &NodeClass) -> About {
    About {
        api_version: format!("{}/{}", kind.group, kind.version).into(),
        kind: kind.kind,
        namespace: String::new(),
        name: class.name.clone(),
        uid: class.object.metadata.uid.clone().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    #[test]
    fn a_transition_is_told_in_the_words_that_people_know() {
        let condition = |status: &str, message: &str| Condition {
            type_: "Launched".to_owned(),
            status: status.to_owned(),
            reason: "Launched".to_owned(),
            message: message.to_owned(),
            last_transition_time: Time(jiff::Timestamp::UNIX_EPOCH),
            observed_generation: None,
        };
        let told = |message: &str| {
            let about = About::claim("a", "uid");
            transitioned(about, &condition("Unknown", ""), &condition("True", message))
        };
        let plain = told("");
        assert_eq!(plain.reason, "Launched");
        assert_eq!(
            plain.message,
            "Status condition transitioned, Type: Launched, Status: Unknown -> True, Reason: Launched"
        );
        assert!(told("done").message.ends_with("Reason: Launched, Message: done"));
    }
}
