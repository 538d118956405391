//! Kubelet settings in their open form, where the API server checks nothing but that they are an object.
//!
//! Two independent passes: the [`structure`] against the kubelet's own configuration type, and the meaning of the fields
//! that Karpenter understands. Both report everything they find.

mod structure;

use std::collections::BTreeSet;

use model::Quantity;
use serde_json::{Map, Value};

use crate::duration;
use crate::field_error::FieldError;

const SIGNALS: &[&str] = &[
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "pid.available",
];

const RESERVABLE: &[&str] = &["cpu", "memory", "ephemeral-storage", "pid"];

const PATH: &str = "spec.kubelet";

/// All that is wrong with kubelet settings, as far as it can be said without an instance type.
///
/// A text where a number is wanted may be an expression over the instance type; whether it compiles is judged later.
pub fn kubelet(settings: &Map<String, Value>) -> Vec<FieldError> {
    let mut errors = structure::check(settings);
    if settings.contains_key("registerWithTaints") {
        errors.push(error("registerWithTaints", "taints of the node are set by Karpenter"));
    }
    for field in ["evictionHard", "evictionSoft", "evictionMinimumReclaim"] {
        each_text(settings, field, |key, text| {
            check_key(&mut errors, field, key, SIGNALS);
            if !is_threshold(text) {
                let problem = format!("{text:?} is neither 0% to 100% nor a non-negative quantity");
                errors.push(error(&format!("{field}[{key}]"), problem));
            }
        });
    }
    each_text(settings, "evictionSoftGracePeriod", |key, text| {
        let field = "evictionSoftGracePeriod";
        check_key(&mut errors, field, key, SIGNALS);
        match duration::parse(text) {
            Ok(period) if !period.is_negative() => {}
            Ok(_) => errors.push(error(&format!("{field}[{key}]"), format!("{text:?} is negative"))),
            Err(problem) => errors.push(error(&format!("{field}[{key}]"), problem.to_string())),
        }
    });
    same_keys(settings, "evictionSoft", "evictionSoftGracePeriod", &mut errors);
    for field in ["kubeReserved", "systemReserved"] {
        each_text(settings, field, |key, text| {
            check_key(&mut errors, field, key, RESERVABLE);
            if text.starts_with('-') {
                errors.push(error(&format!("{field}[{key}]"), format!("{text:?} is negative")));
            }
        });
    }
    image_gc(settings, &mut errors);
    for field in ["maxPods", "podsPerCore", "evictionMaxPodGracePeriod"] {
        if integer(settings, field).is_some_and(i64::is_negative) {
            errors.push(error(field, "may not be negative"));
        }
    }
    errors
}

fn error(field: &str, problem: impl std::fmt::Display) -> FieldError {
    FieldError::new(format!("{PATH}.{field}"), problem)
}

fn integer(settings: &Map<String, Value>, field: &str) -> Option<i64> {
    settings.get(field)?.as_i64()
}

/// Entries that are no text are a matter of structure.
fn each_text(settings: &Map<String, Value>, field: &str, mut visit: impl FnMut(&str, &str)) {
    let entries = settings.get(field).and_then(Value::as_object).into_iter().flatten();
    for (key, value) in entries {
        if let Some(text) = value.as_str() {
            visit(key, text);
        }
    }
}

fn check_key(errors: &mut Vec<FieldError>, field: &str, key: &str, known: &[&str]) {
    if !known.contains(&key) {
        errors.push(error(
            &format!("{field}[{key}]"),
            format!("unknown key; known are {}", known.join(", ")),
        ));
    }
}

fn is_threshold(text: &str) -> bool {
    match text.strip_suffix('%') {
        Some(percent) => percent
            .parse::<f64>()
            .is_ok_and(|percent| (0.0..=100.0).contains(&percent)),
        None => Quantity::parse(text).is_ok_and(|amount| !amount.is_negative()),
    }
}

/// A soft threshold without a grace period would never act, and the other way round.
fn same_keys(settings: &Map<String, Value>, one: &str, other: &str, errors: &mut Vec<FieldError>) {
    let keys = |field: &str| -> BTreeSet<&String> {
        let entries = settings.get(field).and_then(Value::as_object);
        entries.into_iter().flatten().map(|(key, _)| key).collect()
    };
    let (ours, theirs) = (keys(one), keys(other));
    for key in ours.difference(&theirs) {
        errors.push(error(
            &format!("{one}[{key}]"),
            format!("has no counterpart in {other}"),
        ));
    }
    for key in theirs.difference(&ours) {
        errors.push(error(
            &format!("{other}[{key}]"),
            format!("has no counterpart in {one}"),
        ));
    }
}

fn image_gc(settings: &Map<String, Value>, errors: &mut Vec<FieldError>) {
    const HIGH: &str = "imageGCHighThresholdPercent";
    const LOW: &str = "imageGCLowThresholdPercent";
    let percents = [HIGH, LOW].map(|field| {
        let percent = integer(settings, field)?;
        if !(0..=100).contains(&percent) {
            errors.push(error(field, format!("{percent} is not between 0 and 100")));
        }
        Some(percent)
    });
    if let [Some(high), Some(low)] = percents
        && high <= low
    {
        errors.push(error(HIGH, format!("{high} is not above {LOW} ({low})")));
    }
}

#[cfg(test)]
mod tests;
