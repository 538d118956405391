//! What a source is told, as the conditions of its status.

use api::conditions::Conditions;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde_json::{Value, json};

use crate::follow::Verdict;

/// Whether there are v1 objects that say what the source says.
pub const CONVERTED: &str = "Converted";
/// Whether nodes can be had by it.
pub const ACTIVE: &str = "Active";

/// The conditions that a source has, as today's type. What a controller of the time wrote may lack a reason or a time.
pub fn conditions(status: &Value, generation: Option<i64>) -> Conditions {
    let listed = status.get("conditions").and_then(Value::as_array).into_iter().flatten();
    let listed: Vec<Condition> = listed.filter_map(condition).collect();
    Conditions::plain(&listed, generation)
}

fn condition(written: &Value) -> Option<Condition> {
    let text = |field: &str| {
        written
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let since: Option<Timestamp> = text("lastTransitionTime").parse().ok();
    let type_ = text("type");
    (!type_.is_empty()).then(|| Condition {
        type_,
        status: text("status"),
        reason: text("reason"),
        message: text("message"),
        last_transition_time: Time(since.unwrap_or_default()),
        observed_generation: written.get("observedGeneration").and_then(Value::as_i64),
    })
}

pub fn note(conditions: &mut Conditions, verdict: &Verdict, now: Timestamp) {
    match verdict {
        Verdict::Converted => conditions.set_true(CONVERTED, now),
        Verdict::Adopted { object } => {
            let message = format!("{object} has been taken over by its user and is no longer changed");
            conditions.set_true_because(CONVERTED, "Adopted", &message, now)
        }
        Verdict::NameConflict { object } => conditions.set_false(CONVERTED, "NameConflict", &conflict(object), now),
        Verdict::ValidationFailed { problem } => conditions.set_false(CONVERTED, "ValidationFailed", problem, now),
    };
}

pub fn conflict(object: &str) -> String {
    format!("{object} exists and was not made from this object; it is left as it is")
}

/// `Active` says what `Ready` says of the pool.
pub fn note_active(conditions: &mut Conditions, ready: Option<&Condition>, now: Timestamp) {
    match ready {
        Some(ready) if ready.status == "True" => conditions.set_true(ACTIVE, now),
        Some(ready) if ready.status == "False" => conditions.set_false(ACTIVE, &ready.reason, &ready.message, now),
        Some(ready) => conditions.set_unknown(ACTIVE, &ready.reason, &ready.message, now),
        None => conditions.set_false(ACTIVE, "NotConverted", "there is no NodePool of this name", now),
    };
}

/// The status with its conditions; an empty list is left out.
pub fn with_conditions(mut status: Value, conditions: Conditions) -> Value {
    if status.is_null() {
        status = json!({});
    }
    status["conditions"] = json!(conditions.into_list());
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_of_the_time_is_carried_on() {
        let status = json!({"conditions": [{"type": "Active", "status": "True", "severity": "Info"}]});
        let now = Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_secs(60);
        let mut conditions = conditions(&status, Some(2));
        note(&mut conditions, &Verdict::Converted, now);
        note_active(&mut conditions, None, now);
        let written = with_conditions(Value::Null, conditions);
        let told: Vec<_> = written["conditions"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|one| format!("{}={} {}", one["type"], one["status"], one["reason"]))
            .collect();
        assert_eq!(
            told,
            [
                r#""Converted"="True" "Converted""#,
                r#""Active"="False" "NotConverted""#
            ]
        );
    }
}
