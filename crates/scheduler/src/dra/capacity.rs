//! Portions of devices that several claims may have at once.

use model::{
    Quantity,
    dra::{Amounts, Device, DeviceCapacity, Portions, RequestPolicy},
};

/// What a request takes of a device, in every dimension that the device has. `None` when it asks for a dimension that
/// the device lacks, or for an amount that the device does not give.
pub(super) fn portion(asked: &Amounts, device: &Device) -> Option<Amounts> {
    if asked.keys().any(|name| !device.capacity.contains_key(name)) {
        return None;
    }
    let mut portion = Amounts::new();
    for (name, capacity) in &device.capacity {
        let taken = match asked.get(name) {
            Some(asked) => rounded(*asked, capacity.policy.as_ref()),
            None => unasked(capacity),
        };
        if taken > capacity.value || !admits(capacity.policy.as_ref(), taken) {
            return None;
        }
        portion.insert(name.clone(), taken);
    }
    Some(portion)
}

/// Whether a device that is had whole has as much as was asked for.
pub(super) fn suffices(asked: &Amounts, device: &Device) -> bool {
    asked.iter().all(|(name, asked)| {
        device.capacity.get(name).is_some_and(|capacity| {
            let taken = rounded(*asked, capacity.policy.as_ref());
            taken <= capacity.value && admits(capacity.policy.as_ref(), taken)
        })
    })
}

/// Who does not name a dimension takes the default, or all of it.
fn unasked(capacity: &DeviceCapacity) -> Quantity {
    let default = capacity.policy.as_ref().and_then(|policy| policy.default);
    default.unwrap_or(capacity.value)
}

/// The smallest amount that is given and is not less than what was asked for.
fn rounded(asked: Quantity, policy: Option<&RequestPolicy>) -> Quantity {
    match policy.map(|policy| &policy.portions) {
        None | Some(Portions::Any) => asked,
        Some(Portions::OneOf(values)) => values.iter().copied().find(|value| asked <= *value).unwrap_or(asked),
        Some(Portions::Range { min, .. }) if asked <= *min => *min,
        Some(Portions::Range { min, step, .. }) => match step.filter(|step| *step > Quantity::ZERO) {
            None => asked,
            Some(step) => {
                let beyond = asked.saturating_sub(*min).nanos();
                let short = beyond.rem_euclid(step.nanos());
                let up = if short == 0 { 0 } else { step.nanos() - short };
                asked.saturating_add(Quantity::from_nanos(up))
            }
        },
    }
}

/// Whether this amount can be had. The default always can, whatever else the policy says.
fn admits(policy: Option<&RequestPolicy>, amount: Quantity) -> bool {
    let Some(policy) = policy else { return true };
    if policy.default == Some(amount) {
        return true;
    }
    match &policy.portions {
        Portions::Any => true,
        Portions::OneOf(values) => values.is_empty() || values.contains(&amount),
        Portions::Range { min, max, step } => {
            let stepped = |step: Quantity| amount.saturating_sub(*min).nanos().rem_euclid(step.nanos()) == 0;
            max.is_none_or(|max| amount <= max) && step.filter(|step| *step > Quantity::ZERO).is_none_or(stepped)
        }
    }
}
