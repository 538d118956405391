//! Claims for devices.

use std::sync::Arc;

use k8s_openapi::api::resource::v1 as resource;
use model::dra::{
    AllocatedDevice, Amounts, Ask, ClaimAllocation, ConstraintRule, Consumer, DeviceAsk, DeviceConstraint, DeviceCount,
    DeviceId, DeviceRequest, ResourceClaim,
};
use model::ids::PodKey;

use super::device::{amount, node_terms, selectors};
use super::{Parsed, fields};
use crate::field_error::FieldError;

/// A claim as decisions see it. A request that cannot be read is one of an unknown form: its pods wait.
pub fn resource_claim(written: &resource::ResourceClaim) -> Parsed<ResourceClaim> {
    let mut errors = Vec::new();
    let meta = &written.metadata;
    let devices = written.spec.as_ref().and_then(|spec| spec.devices.as_ref());
    let requests = devices.and_then(|devices| devices.requests.as_ref());
    let requests = requests.into_iter().flatten().enumerate();
    let constraints = devices.and_then(|devices| devices.constraints.as_ref());
    let status = written.status.as_ref();
    let users = status.and_then(|status| status.reserved_for.as_ref());
    let value = ResourceClaim {
        key: PodKey::new(meta.namespace.as_deref().unwrap_or_default(), fields::name(meta)),
        requests: requests
            .map(|(index, request)| DeviceRequest {
                name: request.name.as_str().into(),
                ask: ask(&format!("spec.devices.requests[{index}]"), request, &mut errors),
            })
            .collect(),
        constraints: constraints.into_iter().flatten().map(constraint).collect(),
        allocation: status
            .and_then(|status| status.allocation.as_ref())
            .map(|allocation| self::allocation(allocation, &mut errors)),
        reserved_for: users.into_iter().flatten().map(consumer).collect(),
        deleting: meta.deletion_timestamp.is_some(),
    };
    Parsed { value, errors }
}

fn ask(path: &str, written: &resource::DeviceRequest, errors: &mut Vec<FieldError>) -> Ask {
    let known = errors.len();
    let ask = match (&written.exactly, &written.first_available) {
        (Some(exactly), _) => {
            let path = format!("{path}.exactly");
            Ask::Exactly(DeviceAsk {
                class: exactly.device_class_name.as_str().into(),
                selectors: selectors(exactly.selectors.as_ref()),
                count: count(&path, exactly.allocation_mode.as_ref(), exactly.count, errors),
                capacity: capacity(&path, exactly.capacity.as_ref(), errors),
            })
        }
        (None, Some(options)) => {
            let mut read = Vec::new();
            for (index, option) in options.iter().enumerate() {
                let path = format!("{path}.firstAvailable[{index}]");
                let ask = DeviceAsk {
                    class: option.device_class_name.as_str().into(),
                    selectors: selectors(option.selectors.as_ref()),
                    count: count(&path, option.allocation_mode.as_ref(), option.count, errors),
                    capacity: capacity(&path, option.capacity.as_ref(), errors),
                };
                read.push((Arc::from(option.name.as_str()), ask));
            }
            Ask::FirstAvailable(read)
        }
        (None, None) => Ask::Unknown,
    };
    if errors.len() == known { ask } else { Ask::Unknown }
}

fn count(path: &str, mode: Option<&String>, count: Option<i64>, errors: &mut Vec<FieldError>) -> DeviceCount {
    match fields::non_empty(mode) {
        None | Some("ExactCount") => match usize::try_from(count.unwrap_or(1)) {
            Ok(count) => DeviceCount::Exactly(count),
            Err(error) => {
                errors.push(FieldError::new(format!("{path}.count"), error));
                DeviceCount::Exactly(0)
            }
        },
        Some("All") => DeviceCount::All,
        Some(mode) => DeviceCount::Unknown(mode.to_owned()),
    }
}

fn capacity(path: &str, written: Option<&resource::CapacityRequirements>, errors: &mut Vec<FieldError>) -> Amounts {
    let mut amounts = Amounts::new();
    for (name, text) in written
        .and_then(|written| written.requests.as_ref())
        .into_iter()
        .flatten()
    {
        if let Some(value) = amount(&format!("{path}.capacity.requests[{name}]"), text, errors) {
            amounts.insert(name.as_str().into(), value);
        }
    }
    amounts
}

fn constraint(written: &resource::DeviceConstraint) -> DeviceConstraint {
    DeviceConstraint {
        requests: written.requests.iter().flatten().cloned().collect(),
        rule: match (&written.match_attribute, &written.distinct_attribute) {
            (Some(attribute), _) => ConstraintRule::MatchAttribute(attribute.as_str().into()),
            (None, Some(_)) => ConstraintRule::Unknown("distinctAttribute"),
            (None, None) => ConstraintRule::Unknown("of an unknown kind"),
        },
    }
}

/// A device of which an amount cannot be read counts as held alone.
fn allocation(written: &resource::AllocationResult, errors: &mut Vec<FieldError>) -> ClaimAllocation {
    let results = written.devices.as_ref().and_then(|devices| devices.results.as_ref());
    let mut devices = Vec::new();
    for (index, result) in results.into_iter().flatten().enumerate() {
        let path = format!("status.allocation.devices.results[{index}].consumedCapacity");
        let known = errors.len();
        let consumed = result.consumed_capacity.as_ref().map(|consumed| {
            let mut amounts = Amounts::new();
            for (name, text) in consumed {
                if let Some(value) = amount(&format!("{path}[{name}]"), text, errors) {
                    amounts.insert(name.as_str().into(), value);
                }
            }
            amounts
        });
        devices.push(AllocatedDevice {
            id: DeviceId::new(&result.driver, &result.pool, &result.device),
            consumed: consumed.filter(|_| errors.len() == known),
        });
    }
    let selector = written.node_selector.as_ref();
    ClaimAllocation {
        devices,
        nodes: selector.map(|selector| node_terms("status.allocation.nodeSelector", selector, errors)),
    }
}

fn consumer(written: &resource::ResourceClaimConsumerReference) -> Consumer {
    let core = written.api_group.as_deref().unwrap_or_default().is_empty();
    if core && written.resource == "pods" {
        Consumer::Pod(written.uid.as_str().into())
    } else {
        Consumer::Other(format!("{}/{}", written.resource, written.name))
    }
}
