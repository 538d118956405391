//! EC2NodeClass between v1beta1 and v1.

use api::aws::{self, AmiFamily, AmiSelectorTerm};
use serde_json::{Map, Value};

use super::types::EC2NodeClassSpec;
use super::{V1BETA1, annotations};
use crate::alpha::devices::ubuntu_root;
use crate::manifest::{annotate, take_annotation};
use crate::notes::{Change, Notes};

const UBUNTU: &str = "Ubuntu";
const PLACEHOLDER_IMAGE: &str = "ami-placeholder";
const LATEST: &str = "latest";

/// Families that have images of their own, and so an alias, which is their name in lower case.
const ALIAS_FAMILIES: &[&str] = &["AL2", "AL2023", "Bottlerocket", "Windows2019", "Windows2022"];

/// What was done to an Ubuntu class on its way up; the annotation lists it, so that the way down can undo it.
mod ubuntu {
    pub const FAMILY: &str = "amiFamily";
    pub const VOLUMES: &str = "blockDeviceMappings";
    pub const INCOMPATIBLE: &str = "incompatible";
}

pub fn up(spec: EC2NodeClassSpec, metadata: &mut Map<String, Value>, notes: &mut Notes) -> aws::EC2NodeClassSpec {
    let mut class = aws::EC2NodeClassSpec {
        subnet_selector_terms: spec.subnet_selector_terms,
        security_group_selector_terms: spec.security_group_selector_terms,
        ami_selector_terms: spec.ami_selector_terms.unwrap_or_default(),
        role: spec.role,
        instance_profile: spec.instance_profile,
        user_data: spec.user_data,
        tags: spec.tags,
        block_device_mappings: spec.block_device_mappings,
        instance_store_policy: spec.instance_store_policy,
        detailed_monitoring: spec.detailed_monitoring,
        associate_public_ip_address: spec.associate_public_ip_address,
        metadata_options: spec.metadata_options,
        context: spec.context,
        ..aws::EC2NodeClassSpec::default()
    };
    let version = take_annotation(metadata, annotations::ALIAS_VERSION);
    match spec.ami_family.as_deref() {
        Some(family) if ALIAS_FAMILIES.contains(&family) => {
            if class.ami_selector_terms.is_empty() {
                let version = version.unwrap_or_else(|| LATEST.to_owned());
                let alias = Some(format!("{}@{version}", family.to_lowercase()));
                class.ami_selector_terms = vec![AmiSelectorTerm {
                    alias,
                    ..AmiSelectorTerm::default()
                }];
            } else {
                class.ami_family = Some(AmiFamily::from(family));
            }
        }
        Some(UBUNTU) => ubuntu_up(&mut class, metadata, notes),
        _ => class.ami_family = Some(AmiFamily::Custom),
    }
    class
}

fn ubuntu_up(class: &mut aws::EC2NodeClassSpec, metadata: &mut Map<String, Value>, notes: &mut Notes) {
    let mut done = vec![ubuntu::FAMILY];
    class.ami_family = Some(AmiFamily::Al2);
    if class.block_device_mappings.as_ref().is_none_or(Vec::is_empty) {
        class.block_device_mappings = Some(vec![ubuntu_root()]);
        done.push(ubuntu::VOLUMES);
    }
    if class.ami_selector_terms.is_empty() {
        class.ami_selector_terms = vec![placeholder()];
        done.push(ubuntu::INCOMPATIBLE);
        notes.warn("spec.amiFamily", Change::UbuntuWithoutImages);
    } else {
        notes.warn("spec.amiFamily", Change::UbuntuBecomesAl2);
    }
    annotate(metadata, annotations::UBUNTU, done.join(","));
}

fn placeholder() -> AmiSelectorTerm {
    AmiSelectorTerm {
        id: Some(PLACEHOLDER_IMAGE.to_owned()),
        ..AmiSelectorTerm::default()
    }
}

pub fn down(
    mut spec: aws::EC2NodeClassSpec,
    metadata: &mut Map<String, Value>,
    force: bool,
    notes: &mut Notes,
) -> EC2NodeClassSpec {
    take_annotation(metadata, annotations::STORED_VERSION_MIGRATED);
    let family = match take_annotation(metadata, annotations::UBUNTU) {
        Some(done) => ubuntu_down(&done, &mut spec),
        None => family_down(&mut spec, metadata, force, notes),
    };
    losses(&spec, force, notes);
    for term in &mut spec.ami_selector_terms {
        term.ssm_parameter = None;
    }
    // A term that said nothing else selects nothing.
    spec.ami_selector_terms
        .retain(|term| *term != AmiSelectorTerm::default());
    for device in spec.block_device_mappings.iter_mut().flatten() {
        if let Some(ebs) = &mut device.ebs {
            ebs.volume_initialization_rate = None;
        }
    }
    EC2NodeClassSpec {
        subnet_selector_terms: spec.subnet_selector_terms,
        security_group_selector_terms: spec.security_group_selector_terms,
        associate_public_ip_address: spec.associate_public_ip_address,
        ami_selector_terms: Some(spec.ami_selector_terms).filter(|terms| !terms.is_empty()),
        ami_family: family,
        user_data: spec.user_data,
        role: spec.role,
        instance_profile: spec.instance_profile,
        tags: spec.tags,
        block_device_mappings: spec.block_device_mappings,
        instance_store_policy: spec.instance_store_policy,
        detailed_monitoring: spec.detailed_monitoring,
        metadata_options: spec.metadata_options,
        context: spec.context,
    }
}

/// Takes back what [`ubuntu_up`] did.
fn ubuntu_down(done: &str, spec: &mut aws::EC2NodeClassSpec) -> Option<String> {
    let done: Vec<&str> = done.split(',').collect();
    if done.contains(&ubuntu::INCOMPATIBLE) {
        spec.ami_selector_terms.retain(|term| *term != placeholder());
    }
    if done.contains(&ubuntu::VOLUMES) {
        spec.block_device_mappings = None;
    }
    if done.contains(&ubuntu::FAMILY) {
        return Some(UBUNTU.to_owned());
    }
    spec.ami_family.as_ref().map(ToString::to_string)
}

/// The family by name. An alias names it too; a version other than the latest is remembered.
fn family_down(
    spec: &mut aws::EC2NodeClassSpec,
    metadata: &mut Map<String, Value>,
    force: bool,
    notes: &mut Notes,
) -> Option<String> {
    let stated = spec.ami_family.as_ref().map(ToString::to_string);
    let alias = spec.ami_selector_terms.iter().find_map(|term| term.alias.clone());
    let Some(alias) = alias else {
        if let Some(family) = stated.as_deref()
            && family != AmiFamily::Custom.as_str()
            && !ALIAS_FAMILIES.contains(&family)
        {
            notes.lose("spec.amiFamily", V1BETA1, force);
        }
        return stated;
    };
    spec.ami_selector_terms.retain(|term| term.alias.is_none());
    let (name, version) = alias.split_once('@').unwrap_or((&alias, LATEST));
    let family = ALIAS_FAMILIES.iter().find(|family| family.to_lowercase() == name);
    let Some(family) = family.filter(|_| stated.as_deref() != Some(AmiFamily::Custom.as_str())) else {
        notes.lose("spec.amiSelectorTerms", V1BETA1, force);
        return stated;
    };
    if version != LATEST {
        annotate(metadata, annotations::ALIAS_VERSION, version.to_owned());
    }
    Some((*family).to_owned())
}

/// Everything that is newer than v1beta1.
fn losses(spec: &aws::EC2NodeClassSpec, force: bool, notes: &mut Notes) {
    let devices = spec.block_device_mappings.iter().flatten();
    let rates = devices.filter_map(|device| device.ebs.as_ref()?.volume_initialization_rate);
    let newer = [
        ("kubelet", spec.kubelet.is_some()),
        (
            "capacityReservationSelectorTerms",
            spec.capacity_reservation_selector_terms.is_some(),
        ),
        ("placementGroupSelector", spec.placement_group_selector.is_some()),
        ("networkInterfaces", spec.network_interfaces.is_some()),
        ("ipPrefixCount", spec.ip_prefix_count.is_some()),
        ("connectionTracking", spec.connection_tracking.is_some()),
        ("cpuOptions", spec.cpu_options.is_some()),
        (
            "amiSelectorTerms[].ssmParameter",
            spec.ami_selector_terms.iter().any(|term| term.ssm_parameter.is_some()),
        ),
        ("blockDeviceMappings[].ebs.volumeInitializationRate", rates.count() > 0),
    ];
    for (field, _) in newer.iter().filter(|(_, present)| *present) {
        notes.lose(format!("spec.{field}"), V1BETA1, force);
    }
}
