//! One requirement of a pool's template, an overlay or a pod.

use model::{LabelValue, Operator, Vocabulary};

use super::names::{label_value, qualified_name};
use crate::field_error::FieldError;
use crate::labels;

/// A requirement as it is written.
#[derive(Clone, Copy, Debug)]
pub struct Demand<'a> {
    pub key: &'a str,
    pub operator: &'a str,
    pub values: &'a [String],
    pub min_values: Option<i64>,
}

/// All that is wrong with a requirement. Old label keys are judged by what they stand for today.
pub fn requirement(path: &str, demand: &Demand<'_>, words: &Vocabulary) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut complain = |field: &str, problem: String| errors.push(FieldError::new(format!("{path}.{field}"), problem));
    let key = labels::normalized(demand.key);
    let operator = demand.operator.parse::<Operator>();

    if let Err(error) = &operator {
        complain("operator", error.to_string());
    }
    if words.is_restricted(key) {
        complain("key", format!("label {key:?} is restricted"));
    }
    if let Err(problem) = qualified_name(key) {
        complain("key", problem);
    }
    for value in demand.values {
        if let Err(problem) = label_value(value) {
            complain("values", format!("{problem}, for key {key:?}"));
        }
    }
    match operator {
        Ok(Operator::In) => {
            if demand.values.is_empty() {
                complain("values", format!("operator In on {key:?} needs a value"));
            }
            check_least(demand.values.len(), demand.min_values, "values", key, &mut complain);
            if let Some(known) = words.known_values.get(key).filter(|_| words.is_well_known(key)) {
                let understood = demand
                    .values
                    .iter()
                    .filter(|value| known.contains(value.as_str()))
                    .count();
                if understood == 0 && !demand.values.is_empty() {
                    let known = known.iter().map(LabelValue::as_str).collect::<Vec<_>>().join(", ");
                    complain(
                        "values",
                        format!("none of the values of {key:?} is known; known are {known}"),
                    );
                } else {
                    check_least(understood, demand.min_values, "known values", key, &mut complain);
                }
            }
        }
        Ok(Operator::Gt | Operator::Lt | Operator::Gte | Operator::Lte) => {
            let is_bound = matches!(demand.values, [bound] if is_natural(bound));
            if !is_bound {
                complain(
                    "values",
                    format!("operator {} on {key:?} needs one non-negative integer", demand.operator),
                );
            }
        }
        Ok(Operator::NotIn | Operator::Exists | Operator::DoesNotExist) | Err(_) => {}
    }
    errors
}

fn check_least(count: usize, least: Option<i64>, what: &str, key: &str, complain: &mut impl FnMut(&str, String)) {
    let Some(least) = least else { return };
    if i64::try_from(count).is_ok_and(|count| count < least) {
        complain(
            "minValues",
            format!("{key:?} has {count} {what}, fewer than minValues {least}"),
        );
    }
}

fn is_natural(text: &str) -> bool {
    text.parse::<i64>().is_ok_and(|number| number >= 0)
}
