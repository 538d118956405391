//! Requirements as objects write them, and back.

use model::requirement::SelectorRequirement;
use model::{LabelValue, Requirement, Requirements};

use crate::field_error::FieldError;
use crate::v1;

/// One requirement with its key, operator and values as text.
pub struct Written<'a> {
    pub key: &'a str,
    pub operator: &'a str,
    pub values: Option<&'a Vec<String>>,
    pub min_values: Option<i64>,
}

/// Reads a requirement on node labels. `path` leads to the requirement itself.
pub fn requirement(path: &str, written: &Written<'_>) -> Result<Requirement, FieldError> {
    let operator = written
        .operator
        .parse()
        .map_err(|error| FieldError::new(format!("{path}.operator"), error))?;
    let min_values = written
        .min_values
        .map(u32::try_from)
        .transpose()
        .map_err(|error| FieldError::new(format!("{path}.minValues"), error))?;
    let values = written.values.into_iter().flatten().map(LabelValue::from).collect();
    let selector = SelectorRequirement {
        key: written.key.into(),
        operator,
        values,
        min_values,
    };
    Requirement::try_from(&selector).map_err(|error| FieldError::new(path, error))
}

/// The requirements of a pool's template or of a claim, narrowed by each other.
pub fn requirements(path: &str, written: &[v1::Requirement], errors: &mut Vec<FieldError>) -> Requirements {
    let mut all = Requirements::new();
    for (index, one) in written.iter().enumerate() {
        let written = Written {
            key: &one.key,
            operator: one.operator.as_str(),
            values: one.values.as_ref(),
            min_values: one.min_values,
        };
        match requirement(&format!("{path}[{index}]"), &written) {
            Ok(requirement) => all.add(requirement),
            Err(error) => errors.push(error),
        }
    }
    all
}

/// Requirements as a claim carries them.
pub fn to_requirements(requirements: &Requirements) -> Vec<v1::Requirement> {
    let write = |written: SelectorRequirement| v1::Requirement {
        key: written.key.to_string(),
        operator: written.operator.as_str().into(),
        values: (!written.values.is_empty()).then(|| written.values.iter().map(ToString::to_string).collect()),
        min_values: written.min_values.map(i64::from),
    };
    requirements.to_selector().into_iter().map(write).collect()
}
