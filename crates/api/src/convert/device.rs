//! Devices: slices, classes and their parts. Claims for them are in [`super::device_claim`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{NodeSelector, NodeSelectorRequirement, NodeSelectorTerm};
use k8s_openapi::api::resource::v1 as resource;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as QuantityText;
use model::dra::{
    Amounts, AttributeValue, CounterSet, CounterUse, Device, DeviceCapacity, DeviceClass, DeviceSelector,
    NodeSelection, NodeTerms, Portions, PublishedDevice, Reach, RequestPolicy, ResourceSlice,
};
use model::requirement::Operator;
use model::{NodeName, Quantity, Requirement, Requirements};

use super::requirement::{Written, requirement};
use super::{Parsed, fields};
use crate::field_error::FieldError;

/// A class as decisions see it. Everything in it can be read, except for selectors, which are read when they are used.
pub fn device_class(written: &resource::DeviceClass) -> DeviceClass {
    let spec = written.spec.as_ref();
    DeviceClass {
        name: fields::name(&written.metadata).into(),
        selectors: selectors(spec.and_then(|spec| spec.selectors.as_ref())),
    }
}

pub(super) fn selectors(written: Option<&Vec<resource::DeviceSelector>>) -> Vec<DeviceSelector> {
    let read = |selector: &resource::DeviceSelector| match &selector.cel {
        Some(cel) => DeviceSelector::Cel(cel.expression.as_str().into()),
        None => DeviceSelector::Unknown,
    };
    written.into_iter().flatten().map(read).collect()
}

/// A slice as decisions see it. A device with an amount that cannot be read is left out: nobody could tell what it has.
pub fn resource_slice(written: &resource::ResourceSlice) -> Parsed<ResourceSlice> {
    let mut errors = Vec::new();
    let spec = &written.spec;
    let common = Places {
        node: spec.node_name.as_ref(),
        selector: spec.node_selector.as_ref(),
        everywhere: spec.all_nodes,
    };
    let common = Arc::new(common.reach("spec", &mut errors));
    let mut devices = Vec::new();
    for (index, written) in spec.devices.iter().flatten().enumerate() {
        let path = format!("spec.devices[{index}]");
        let reach = if spec.per_device_node_selection == Some(true) {
            let places = Places {
                node: written.node_name.as_ref(),
                selector: written.node_selector.as_ref(),
                everywhere: written.all_nodes,
            };
            Arc::new(places.reach(&path, &mut errors))
        } else {
            common.clone()
        };
        let device = device(&path, written, &mut errors).map(Arc::new);
        devices.extend(device.map(|device| PublishedDevice { device, reach }));
    }
    let owners = written.metadata.owner_references.iter().flatten();
    let owner = owners.into_iter().find(|owner| owner.kind == "Node");
    let value = ResourceSlice {
        name: fields::name(&written.metadata).into(),
        driver: spec.driver.as_str().into(),
        pool: spec.pool.name.as_str().into(),
        generation: spec.pool.generation,
        slice_count: spec.pool.resource_slice_count,
        devices,
        shared_counters: counter_sets("spec", spec.shared_counters.as_ref(), &mut errors),
        owner_node: owner.map(|owner| owner.name.as_str().into()),
    };
    Parsed { value, errors }
}

/// From where something says that it can be reached.
struct Places<'a> {
    node: Option<&'a String>,
    selector: Option<&'a NodeSelector>,
    everywhere: Option<bool>,
}

impl Places<'_> {
    fn reach(&self, path: &str, errors: &mut Vec<FieldError>) -> Reach {
        if self.everywhere == Some(true) {
            Reach::Everywhere
        } else if let Some(node) = fields::non_empty(self.node) {
            Reach::Node(node.into())
        } else if let Some(selector) = self.selector {
            Reach::Nodes(node_terms(&format!("{path}.nodeSelector"), selector, errors))
        } else {
            Reach::Nowhere
        }
    }
}

/// A device, or nothing where an amount of it cannot be read.
pub fn device(path: &str, written: &resource::Device, errors: &mut Vec<FieldError>) -> Option<Device> {
    let known = errors.len();
    let mut capacity = BTreeMap::new();
    for (name, one) in written.capacity.iter().flatten() {
        let path = format!("{path}.capacity[{name}]");
        let Some(value) = amount(&format!("{path}.value"), &one.value, errors) else {
            continue;
        };
        let policy = one.request_policy.as_ref();
        let policy = policy.map(|policy| request_policy(&format!("{path}.requestPolicy"), policy, errors));
        capacity.insert(Arc::from(name.as_str()), DeviceCapacity { value, policy });
    }
    let mut consumes = Vec::new();
    for (index, one) in written.consumes_counters.iter().flatten().enumerate() {
        consumes.push(CounterUse {
            set: one.counter_set.as_str().into(),
            counters: counters(&format!("{path}.consumesCounters[{index}]"), &one.counters, errors),
        });
    }
    let attributes = written.attributes.iter().flatten();
    let device = Device {
        name: written.name.as_str().into(),
        attributes: attributes
            .filter_map(|(name, value)| Some((Arc::from(name.as_str()), attribute(value)?)))
            .collect(),
        capacity,
        shareable: written.allow_multiple_allocations == Some(true),
        consumes,
    };
    (errors.len() == known).then_some(device)
}

/// Lists of values are left out: no decision here looks at them.
fn attribute(written: &resource::DeviceAttribute) -> Option<AttributeValue> {
    if let Some(number) = written.int {
        return Some(AttributeValue::Int(number));
    }
    if let Some(value) = written.bool {
        return Some(AttributeValue::Bool(value));
    }
    if let Some(text) = &written.string {
        return Some(AttributeValue::Text(text.as_str().into()));
    }
    let version = written.version.as_ref()?;
    Some(AttributeValue::Version(version.as_str().into()))
}

fn request_policy(
    path: &str,
    written: &resource::CapacityRequestPolicy,
    errors: &mut Vec<FieldError>,
) -> RequestPolicy {
    let mut one = |field: &str, text: &QuantityText| amount(&format!("{path}.{field}"), text, errors);
    let default = written.default.as_ref().and_then(|text| one("default", text));
    let portions = if let Some(range) = &written.valid_range {
        Portions::Range {
            min: one("validRange.min", &range.min).unwrap_or_default(),
            max: range.max.as_ref().and_then(|text| one("validRange.max", text)),
            step: range.step.as_ref().and_then(|text| one("validRange.step", text)),
        }
    } else if let Some(values) = written.valid_values.as_ref().filter(|values| !values.is_empty()) {
        let mut values: Vec<Quantity> = values.iter().filter_map(|text| one("validValues", text)).collect();
        values.sort_unstable();
        Portions::OneOf(values)
    } else {
        Portions::Any
    };
    RequestPolicy { default, portions }
}

/// Counter sets with the amounts that can be read.
pub fn counter_sets(
    path: &str,
    written: Option<&Vec<resource::CounterSet>>,
    errors: &mut Vec<FieldError>,
) -> Vec<CounterSet> {
    let written = written.into_iter().flatten().enumerate();
    written
        .map(|(index, set)| CounterSet {
            name: set.name.as_str().into(),
            counters: counters(&format!("{path}.sharedCounters[{index}]"), &set.counters, errors),
        })
        .collect()
}

fn counters(path: &str, written: &BTreeMap<String, resource::Counter>, errors: &mut Vec<FieldError>) -> Amounts {
    let mut amounts = Amounts::new();
    for (name, counter) in written {
        if let Some(value) = amount(&format!("{path}.counters[{name}].value"), &counter.value, errors) {
            amounts.insert(name.as_str().into(), value);
        }
    }
    amounts
}

pub(super) fn amount(path: &str, text: &QuantityText, errors: &mut Vec<FieldError>) -> Option<Quantity> {
    match Quantity::parse(&text.0) {
        Ok(amount) => Some(amount),
        Err(error) => {
            errors.push(FieldError::new(path, error));
            None
        }
    }
}

/// A selection of nodes. A term that cannot be read selects no node.
pub(super) fn node_terms(path: &str, selector: &NodeSelector, errors: &mut Vec<FieldError>) -> NodeTerms {
    let terms = selector.node_selector_terms.iter().enumerate();
    let terms =
        terms.filter_map(|(index, term)| node_term(&format!("{path}.nodeSelectorTerms[{index}]"), term, errors));
    NodeTerms(joined(terms.collect()))
}

fn node_term(path: &str, term: &NodeSelectorTerm, errors: &mut Vec<FieldError>) -> Option<NodeSelection> {
    let known = errors.len();
    let mut labels = Requirements::new();
    for (index, expression) in term.match_expressions.iter().flatten().enumerate() {
        match requirement(&format!("{path}.matchExpressions[{index}]"), &text_of(expression)) {
            Ok(requirement) => labels.add(requirement),
            Err(error) => errors.push(error),
        }
    }
    let mut names = None;
    for (index, field) in term.match_fields.iter().flatten().enumerate() {
        if field.key != "metadata.name" || field.operator != "In" {
            let path = format!("{path}.matchFields[{index}]");
            errors.push(FieldError::new(path, "only metadata.name In can be matched"));
            continue;
        }
        let listed: BTreeSet<NodeName> = field.values.iter().flatten().map(Into::into).collect();
        names = Some(match names {
            None => listed,
            Some(names) => &names & &listed,
        });
    }
    // A term without any condition selects no node either.
    (errors.len() == known && !(labels.is_empty() && names.is_none())).then_some(NodeSelection { labels, names })
}

fn text_of(expression: &NodeSelectorRequirement) -> Written<'_> {
    Written {
        key: &expression.key,
        operator: &expression.operator,
        values: expression.values.as_ref(),
        min_values: None,
    }
}

/// Terms that each allow values of one and the same label are one term that allows all of these values: a node that is
/// planned may then take any of them.
fn joined(terms: Vec<NodeSelection>) -> Vec<NodeSelection> {
    let only = |term: &NodeSelection| -> Option<Requirement> {
        let mut labels = term.labels.iter();
        let first = labels.next().filter(|first| first.operator() == Operator::In)?.clone();
        (labels.next().is_none() && term.names.is_none()).then_some(first)
    };
    let Some(all) = terms.iter().map(only).collect::<Option<Vec<Requirement>>>() else {
        return terms;
    };
    let Some(first) = all
        .first()
        .filter(|first| all.iter().all(|other| other.key == first.key))
    else {
        return terms;
    };
    let values = all
        .iter()
        .flat_map(|requirement| requirement.values.listed().into_iter().flatten().cloned());
    let union = Requirement::one_of(first.key.as_str(), values);
    vec![NodeSelection {
        labels: [union].into_iter().collect(),
        names: None,
    }]
}
