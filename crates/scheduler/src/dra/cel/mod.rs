//! Conditions on devices, as claims and device classes write them: CEL over the variable `device`.
//!
//! | expression | is |
//! | --- | --- |
//! | `device.driver` | the driver's name |
//! | `device.allowMultipleAllocations` | whether others may have the device, too |
//! | `device.attributes["gpu.example.com"].model` | an attribute: string, number, bool or version |
//! | `device.capacity["gpu.example.com"].memory` | a quantity |
//!
//! An expression that fails on a device does not match it.

use std::sync::Arc;

use expressions::{Expression, Functions, Key, Value};
use model::dra::{AttributeValue, Device};

/// A condition that has been read.
#[derive(Debug)]
pub(super) struct Condition(Expression);

impl Condition {
    /// The error says what is wrong, in words for the author of the expression.
    pub fn read(text: &str) -> Result<Self, String> {
        Expression::read(text, Functions::Kubernetes).map(Condition)
    }

    /// Whether it holds for a device of the driver.
    pub fn holds(&self, driver: &str, device: &Device) -> bool {
        let Some(device) = variable(driver, device) else {
            return false;
        };
        self.0.evaluate(&[("device", device)]) == Some(Value::Bool(true))
    }
}

/// `None` for a device with a version that is none: nothing can be said about it.
fn variable(driver: &str, device: &Device) -> Option<Value> {
    let mut attributes = Domains::default();
    for (name, value) in &device.attributes {
        let value = match value {
            AttributeValue::Text(text) => Value::Text(text.clone()),
            AttributeValue::Int(number) => Value::Int(*number),
            AttributeValue::Bool(value) => Value::Bool(*value),
            AttributeValue::Version(text) => Value::Version(Arc::new(text.parse().ok()?)),
        };
        attributes.add(driver, name, value);
    }
    let mut capacity = Domains::default();
    for (name, amount) in &device.capacity {
        capacity.add(driver, name, Value::Quantity(amount.value));
    }
    Some(Value::map([
        ("driver", Value::text(driver)),
        ("allowMultipleAllocations", Value::Bool(device.shareable)),
        ("attributes", attributes.into_value()),
        ("capacity", capacity.into_value()),
    ]))
}

/// Values by domain and name.
#[derive(Default)]
struct Domains(std::collections::BTreeMap<Arc<str>, std::collections::BTreeMap<Key, Value>>);

impl Domains {
    /// A name without a domain belongs to the driver's.
    fn add(&mut self, driver: &str, name: &str, value: Value) {
        let (domain, name) = name.split_once('/').unwrap_or((driver, name));
        self.0
            .entry(domain.into())
            .or_default()
            .insert(Key::Text(name.into()), value);
    }

    fn into_value(self) -> Value {
        let domains = self.0.into_iter();
        Value::Domains(Arc::new(
            domains
                .map(|(domain, inner)| (Key::Text(domain), Value::Map(Arc::new(inner))))
                .collect(),
        ))
    }
}

#[cfg(test)]
mod tests;
