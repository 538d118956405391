//! Fields that many kinds have: names, labels, times, amounts, taints.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as QuantityText;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use model::{Effect, Labels, Quantity, ResourceName, Resources, Taint};

use crate::field_error::FieldError;
use crate::v1::Quantities;

pub fn labels(map: Option<&BTreeMap<String, String>>) -> Labels {
    let entries = map.into_iter().flatten();
    entries.map(|(key, value)| (key.into(), value.into())).collect()
}

pub fn name(meta: &ObjectMeta) -> &str {
    meta.name.as_deref().unwrap_or_default()
}

pub fn uid(meta: &ObjectMeta) -> String {
    meta.uid.clone().unwrap_or_default()
}

/// Objects that the server has not stored yet have no creation time.
pub fn created(meta: &ObjectMeta) -> Timestamp {
    time(meta.creation_timestamp.as_ref()).unwrap_or(Timestamp::UNIX_EPOCH)
}

pub fn time(time: Option<&Time>) -> Option<Timestamp> {
    time.map(|time| time.0)
}

pub fn non_empty(text: Option<&String>) -> Option<&str> {
    text.map(String::as_str).filter(|text| !text.is_empty())
}

pub fn resources(path: &str, amounts: Option<&Quantities>, errors: &mut Vec<FieldError>) -> Resources {
    let mut resources = Resources::new();
    for (name, QuantityText(text)) in amounts.into_iter().flatten() {
        match Quantity::parse(text) {
            Ok(amount) => resources.set(ResourceName::from(name.as_str()), amount),
            Err(error) => errors.push(FieldError::new(member(path, name), error)),
        }
    }
    resources
}

/// The path of a member of a map. A name with a dot in it would read like several.
fn member(path: &str, name: &str) -> String {
    if name.contains('.') {
        format!("{path}[{name}]")
    } else {
        format!("{path}.{name}")
    }
}

/// Amounts as an object carries them.
pub fn resources_text(resources: &Resources) -> Quantities {
    let text = |(name, amount): (&ResourceName, Quantity)| (name.to_string(), QuantityText(amount.to_string()));
    resources.iter().map(text).collect()
}

/// Taints whose effect is one of the three; others are errors.
pub fn taints(path: &str, taints: Option<&Vec<core::Taint>>, errors: &mut Vec<FieldError>) -> Vec<Taint> {
    let mut read = Vec::new();
    for (index, taint) in taints.into_iter().flatten().enumerate() {
        match taint.effect.parse::<Effect>() {
            Ok(effect) => read.push(Taint {
                key: taint.key.clone(),
                value: taint.value.clone().unwrap_or_default(),
                effect,
                time_added: time(taint.time_added.as_ref()),
            }),
            Err(error) => errors.push(FieldError::new(format!("{path}[{index}].effect"), error)),
        }
    }
    read
}
