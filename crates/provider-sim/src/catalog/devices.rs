//! The devices that come with a shape: `dynamicResources` of the file.
//!
//! Devices and counters are written as in a ResourceSlice of the Kubernetes API.

use std::sync::Arc;

use api::{FieldError, convert};
use k8s_openapi::api::resource::v1 as resource;
use model::dra::{AttributeBinding, DeviceId, DynamicResources, ResourceSliceTemplate};
use serde::Deserialize;

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct DevicesEntry {
    #[serde(default)]
    resource_slice_templates: Vec<TemplateEntry>,
    #[serde(default)]
    attribute_bindings: Vec<BindingEntry>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TemplateEntry {
    driver: String,
    pool: String,
    #[serde(default)]
    devices: Vec<resource::Device>,
    #[serde(default)]
    shared_counters: Vec<resource::CounterSet>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BindingEntry {
    attribute: String,
    devices: Vec<DeviceEntry>,
}

#[derive(Clone, Debug, Deserialize)]
struct DeviceEntry {
    driver: String,
    pool: String,
    device: String,
}

pub(super) fn read(entry: &DevicesEntry) -> Result<DynamicResources, FieldError> {
    let mut templates = Vec::new();
    for (index, template) in entry.resource_slice_templates.iter().enumerate() {
        let path = format!("resourceSliceTemplates[{index}]");
        if !template.devices.is_empty() && !template.shared_counters.is_empty() {
            return Err(FieldError::new(
                path,
                "has devices and sharedCounters: a slice has one of them",
            ));
        }
        let mut errors = Vec::new();
        let devices = template.devices.iter().enumerate();
        let devices = devices.filter_map(|(place, device)| {
            convert::device(&format!("{path}.devices[{place}]"), device, &mut errors).map(Arc::new)
        });
        templates.push(ResourceSliceTemplate {
            driver: template.driver.as_str().into(),
            pool: template.pool.as_str().into(),
            devices: devices.collect(),
            shared_counters: convert::counter_sets(&path, Some(&template.shared_counters), &mut errors),
        });
        if let Some(error) = errors.into_iter().next() {
            return Err(error);
        }
    }
    let device = |entry: &DeviceEntry| DeviceId::new(&entry.driver, &entry.pool, &entry.device);
    let bindings = entry.attribute_bindings.iter().map(|binding| AttributeBinding {
        attribute: binding.attribute.as_str().into(),
        devices: binding.devices.iter().map(device).collect(),
    });
    Ok(DynamicResources {
        templates,
        bindings: bindings.collect(),
    })
}
