use serde_json::json;

use super::node_claim::{DRIFTED, INITIALIZED, LAUNCHED, REGISTERED};
use super::*;

fn at(minute: i64) -> Timestamp {
    Timestamp::from_second(minute * 60).expect("a time")
}

/// A claim of this generation, created at minute 0, with these conditions.
fn claim(generation: i64, conditions: Vec<Condition>) -> NodeClaim {
    let mut claim = NodeClaim::default();
    claim.metadata.generation = Some(generation);
    claim.metadata.creation_timestamp = Some(Time(at(0)));
    *claim.conditions_mut() = conditions;
    claim
}

fn text(conditions: &Conditions, type_: &str) -> String {
    let condition = conditions.get(type_).expect("the condition exists");
    let Condition {
        status,
        reason,
        message,
        ..
    } = condition;
    format!(
        "{status} {reason} {message:?} at {}",
        condition.last_transition_time.0.as_second() / 60
    )
}

/// AP12.1
#[test]
fn the_first_touch_creates_dependents_and_ready_as_unknown_since_creation() {
    let conditions = Conditions::of(&claim(1, vec![]), at(5));
    for type_ in [LAUNCHED, REGISTERED, INITIALIZED] {
        assert_eq!(
            text(&conditions, type_),
            r#"Unknown AwaitingReconciliation "object is awaiting reconciliation" at 0"#
        );
    }
    assert_eq!(
        text(&conditions, READY),
        r#"Unknown ReconcilingDependents "Launched=Unknown, Registered=Unknown, Initialized=Unknown" at 0"#
    );
    assert_eq!(
        conditions.into_list().last().map(|last| last.type_.clone()).as_deref(),
        Some(READY)
    );
}

#[test]
fn ready_follows_when_every_dependent_is_true() {
    let mut conditions = Conditions::of(&claim(1, vec![]), at(0));
    conditions.set_true(LAUNCHED, at(1));
    conditions.set_true(REGISTERED, at(2));
    assert_eq!(
        text(&conditions, READY),
        r#"Unknown ReconcilingDependents "Initialized=Unknown" at 0"#
    );
    conditions.set_true(INITIALIZED, at(3));
    assert_eq!(text(&conditions, INITIALIZED), r#"True Initialized "" at 3"#);
    assert_eq!(text(&conditions, READY), r#"True Ready "" at 3"#);
}

#[test]
fn one_false_dependent_makes_ready_false_and_the_latest_change_comes_first() {
    let mut conditions = Conditions::of(&claim(1, vec![]), at(0));
    conditions.set_true(LAUNCHED, at(1));
    conditions.set_false(INITIALIZED, "Why", "because", at(2));
    conditions.set_false(REGISTERED, "Why", "because", at(3));
    assert_eq!(
        text(&conditions, READY),
        r#"False UnhealthyDependents "Registered=False, Initialized=False" at 2"#
    );
}

#[test]
fn a_new_generation_asks_for_every_dependent_again() {
    let mut conditions = Conditions::of(&claim(1, vec![]), at(0));
    for type_ in [LAUNCHED, REGISTERED, INITIALIZED] {
        conditions.set_true(type_, at(1));
    }
    let mut conditions = Conditions::of(&claim(2, conditions.into_list()), at(2));
    assert!(conditions.set_true(LAUNCHED, at(2)), "the observed generation changes");
    assert_eq!(text(&conditions, LAUNCHED), r#"True Launched "" at 1"#);
    assert_eq!(
        text(&conditions, READY),
        r#"Unknown ReconcilingDependents "Registered=True, Initialized=True" at 2"#
    );
    conditions.set_true(REGISTERED, at(3));
    conditions.set_true(INITIALIZED, at(3));
    assert_eq!(text(&conditions, READY), r#"True Ready "" at 3"#);
}

#[test]
fn an_identical_write_changes_nothing_and_another_message_keeps_the_time() {
    let mut conditions = Conditions::of(&claim(1, vec![]), at(0));
    assert!(conditions.set_unknown(LAUNCHED, "LaunchFailed", "first", at(1)));
    let before = conditions.clone();
    assert!(!conditions.set_unknown(LAUNCHED, "LaunchFailed", "first", at(2)));
    assert_eq!(conditions, before);
    assert!(conditions.set_unknown(LAUNCHED, "LaunchFailed", "second", at(3)));
    assert_eq!(text(&conditions, LAUNCHED), r#"Unknown LaunchFailed "second" at 0"#);
}

#[test]
fn other_conditions_come_and_go_without_touching_ready() {
    let mut conditions = Conditions::of(&claim(1, vec![]), at(0));
    let ready = text(&conditions, READY);
    conditions.set_true_because(DRIFTED, "AMIDrift", "AMIDrift", at(4));
    assert_eq!(text(&conditions, DRIFTED), r#"True AMIDrift "AMIDrift" at 4"#);
    assert_eq!(text(&conditions, READY), ready);
    assert!(conditions.clear(DRIFTED));
    assert!(!conditions.clear(DRIFTED));
    assert!(!conditions.clear(LAUNCHED), "dependents are never removed");
}

#[test]
fn a_kind_without_dependents_is_ready_by_its_own_word() {
    let class: KwokNodeClass = serde_json::from_value(json!({ "metadata": {} })).expect("a class");
    let mut conditions = Conditions::of(&class, at(0));
    assert!(!conditions.is_true(READY));
    conditions.set_true(READY, at(1));
    assert!(conditions.is_true(READY));
}
