//! Selections of pods and namespaces by label.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector as Written;
use model::LabelValue;
use model::pod::LabelSelector;
use model::requirement::{IntRange, Requirement, Values};

use crate::field_error::FieldError;

/// `None` selects nothing: that is what an absent selector means, and what an unreadable one is taken for.
pub fn selector(path: &str, written: Option<&Written>, errors: &mut Vec<FieldError>) -> Option<LabelSelector> {
    let written = written?;
    let mut requirements = Vec::new();
    for (key, value) in written.match_labels.iter().flatten() {
        requirements.push(Requirement::of(key, Values::Only([LabelValue::from(value)].into())));
    }
    for (index, expression) in written.match_expressions.iter().flatten().enumerate() {
        let values: BTreeSet<LabelValue> = expression.values.iter().flatten().map(LabelValue::from).collect();
        let values = match (expression.operator.as_str(), values.is_empty()) {
            ("In", false) => Values::Only(values),
            ("NotIn", false) => Values::AllBut {
                except: values,
                range: IntRange::ALL,
            },
            ("Exists", true) => Values::ANY,
            ("DoesNotExist", true) => Values::NONE,
            (operator, _) => {
                errors.push(FieldError::new(
                    format!("{path}.matchExpressions[{index}]"),
                    format_args!("operator {operator:?} does not go with {} values", values.len()),
                ));
                return None;
            }
        };
        requirements.push(Requirement::of(&expression.key, values));
    }
    Some(LabelSelector { requirements })
}
