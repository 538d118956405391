//! Node overlays.

use model::Requirements;
use model::overlay::{Overlay, PriceChange};

use super::requirement::{Written, requirement};
use super::{Parsed, fields};
use crate::field_error::FieldError;
use crate::v1alpha1::NodeOverlay;

/// An overlay as it is applied to catalogs. Conflicts with others show when it is; one with errors should not be.
pub fn overlay(written: &NodeOverlay) -> Parsed<Overlay> {
    let mut errors = Vec::new();
    let spec = &written.spec;
    let mut requirements = Requirements::new();
    for (index, one) in spec.requirements.iter().enumerate() {
        let written = Written {
            key: &one.key,
            operator: one.operator.as_str(),
            values: one.values.as_ref(),
            min_values: None,
        };
        match requirement(&format!("spec.requirements[{index}]"), &written) {
            Ok(requirement) => requirements.add(requirement),
            Err(error) => errors.push(error),
        }
    }
    let price = match (&spec.price, &spec.price_adjustment) {
        (Some(_), Some(_)) => {
            errors.push(FieldError::new("spec", "price and priceAdjustment cannot both be set"));
            None
        }
        (Some(price), None) => price_change("spec.price", price, false, &mut errors),
        (None, Some(change)) => price_change("spec.priceAdjustment", change, true, &mut errors),
        (None, None) => None,
    };
    let value = Overlay {
        name: fields::name(&written.metadata).into(),
        weight: spec.weight.unwrap_or_default(),
        requirements,
        price,
        capacity: fields::resources("spec.capacity", spec.capacity.as_ref(), &mut errors),
    };
    Parsed { value, errors }
}

fn price_change(field: &str, text: &str, relative: bool, errors: &mut Vec<FieldError>) -> Option<PriceChange> {
    let problem = match text.parse() {
        Ok(change) if matches!(change, PriceChange::Absolute(_)) != relative => return Some(change),
        Ok(_) if relative => format!("{text:?} needs a sign: it is added to the provider's price"),
        Ok(_) => format!("{text:?} must not have a sign: it replaces the provider's price"),
        Err(error) => format!("{error}"),
    };
    errors.push(FieldError::new(field, problem));
    None
}
