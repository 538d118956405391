//! NodeOverlay.

use model::Vocabulary;

use super::requirement::{Demand, requirement};
use crate::field_error::FieldError;
use crate::v1::Operator;
use crate::v1alpha1::NodeOverlay;

/// All that is wrong with an overlay by itself. Conflicts between overlays show when they are applied.
pub fn node_overlay(overlay: &NodeOverlay, words: &Vocabulary) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (index, written) in overlay.spec.requirements.iter().enumerate() {
        let path = format!("spec.requirements[{index}]");
        let demand = Demand {
            key: &written.key,
            operator: written.operator.as_str(),
            values: written.values.as_deref().unwrap_or_default(),
            min_values: None,
        };
        errors.extend(requirement(&path, &demand, words));
        if written.operator == Operator::NotIn && demand.values.is_empty() {
            let problem = format!("operator NotIn on {:?} needs a value", written.key);
            errors.push(FieldError::new(format!("{path}.values"), problem));
        }
    }
    for resource in overlay.spec.capacity.iter().flatten().map(|(resource, _)| resource) {
        if words.well_known_resources.contains(resource.as_str()) {
            let problem = format!("resource {resource:?} is the provider's to set");
            errors.push(FieldError::new(format!("spec.capacity[{resource}]"), problem));
        }
    }
    errors
}
