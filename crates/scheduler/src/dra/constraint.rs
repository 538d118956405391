//! Conditions on all devices of some requests together.

use std::{collections::BTreeSet, sync::Arc};

use model::dra::{AttributeBinding, AttributeValue, Device, DeviceId};

/// All devices of the named requests have one value for an attribute.
///
/// The value may be unknown while a machine is planned. Then the provider says which devices will share it. Known and
/// unknown values never meet in one constraint: nobody could compare them.
#[derive(Clone, Debug)]
pub(super) struct Match {
    pub attribute: Arc<str>,
    /// Empty for all requests of the claim.
    pub requests: BTreeSet<String>,
    /// The devices that have been taken, in their order.
    taken: Vec<Taken>,
}

#[derive(Clone, Debug)]
enum Taken {
    Known(AttributeValue),
    Unknown(DeviceId),
}

impl Match {
    pub fn new(attribute: Arc<str>, requests: BTreeSet<String>) -> Self {
        Self {
            attribute,
            requests,
            taken: Vec::new(),
        }
    }

    /// `name` is the request's own or, for one of several alternatives, `request/alternative`.
    pub fn covers(&self, name: &str) -> bool {
        let parent = name.split('/').next().unwrap_or(name);
        self.requests.is_empty() || self.requests.contains(name) || self.requests.contains(parent)
    }

    /// Takes the device, or says no and stays as it is.
    pub fn take(&mut self, id: &DeviceId, device: &Device, bindings: &[AttributeBinding]) -> bool {
        let taken = match attribute(&self.attribute, id, device) {
            Some(value) => match self.taken.first() {
                None => Taken::Known(value.clone()),
                Some(Taken::Known(first)) if first == value => Taken::Known(value.clone()),
                Some(_) => return false,
            },
            None => {
                let group = bound_to(&self.attribute, id, bindings);
                match self.taken.first() {
                    // A device that is bound to no other shares its value with nobody.
                    None if group.len() > 1 => Taken::Unknown(id.clone()),
                    Some(Taken::Unknown(first)) if group.len() > 1 && group.contains(first) => {
                        Taken::Unknown(id.clone())
                    }
                    _ => return false,
                }
            }
        };
        self.taken.push(taken);
        true
    }

    /// Gives the last device back.
    pub fn give_back(&mut self) {
        self.taken.pop();
    }
}

/// The driver's name is the domain of attributes that are written without one.
fn attribute<'d>(name: &str, id: &DeviceId, device: &'d Device) -> Option<&'d AttributeValue> {
    device.attributes.get(name).or_else(|| {
        let (domain, name) = name.split_once('/')?;
        (domain == &*id.driver).then(|| device.attributes.get(name)).flatten()
    })
}

/// The devices that will share the attribute's value with this one, itself among them.
fn bound_to<'b>(attribute: &str, id: &'b DeviceId, bindings: &'b [AttributeBinding]) -> BTreeSet<&'b DeviceId> {
    let mut group = BTreeSet::from([id]);
    let relevant: Vec<&AttributeBinding> = bindings
        .iter()
        .filter(|binding| *binding.attribute == *attribute && binding.devices.len() > 1)
        .collect();
    // Bindings that have a device in common speak of one value.
    loop {
        let before = group.len();
        for binding in &relevant {
            if binding.devices.iter().any(|device| group.contains(device)) {
                group.extend(&binding.devices);
            }
        }
        if group.len() == before {
            return group;
        }
    }
}
