//! Storage: claims, volumes, classes, and how much of it a node can attach.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{NodeSelectorTerm, PersistentVolume, PersistentVolumeClaim, TopologySelectorTerm};
use k8s_openapi::api::storage::v1::{CSINode, StorageClass as WrittenClass};
use model::ids::PodKey;
use model::requirement::{Requirement, Values};
use model::snapshot::AttachLimits;
use model::volume::{BindingMode, EBS_DRIVER, driver_of_provisioner};
use model::{StorageClass, Volume, VolumeClaim};

use super::requirement::{Written, requirement};
use super::{Parsed, fields};
use crate::field_error::FieldError;

const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
const IS_DEFAULT: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];

/// A claim as decisions see it. Everything in it can be read.
pub fn volume_claim(written: &PersistentVolumeClaim) -> VolumeClaim {
    let meta = &written.metadata;
    let spec = written.spec.as_ref();
    let phase = written.status.as_ref().and_then(|status| status.phase.as_deref());
    VolumeClaim {
        key: PodKey::new(meta.namespace.as_deref().unwrap_or_default(), fields::name(meta)),
        volume: spec
            .and_then(|spec| fields::non_empty(spec.volume_name.as_ref()))
            .map(Into::into),
        storage_class: spec.and_then(|spec| spec.storage_class_name.as_deref()).map(Into::into),
        bind_completed: meta
            .annotations
            .as_ref()
            .is_some_and(|annotations| annotations.contains_key(BIND_COMPLETED)),
        deleting: meta.deletion_timestamp.is_some(),
        lost: phase == Some("Lost"),
    }
}

/// A volume as decisions see it. A demand that cannot be read is one that no node meets.
pub fn volume(written: &PersistentVolume) -> Parsed<Volume> {
    let mut errors = Vec::new();
    let meta = &written.metadata;
    let spec = written.spec.clone().unwrap_or_default();
    let driver = match (&spec.csi, &spec.aws_elastic_block_store) {
        (Some(csi), _) => Some(csi.driver.as_str()),
        (None, Some(_)) => Some(EBS_DRIVER),
        (None, None) => None,
    };
    let required = spec.node_affinity.and_then(|affinity| affinity.required);
    let terms = required.iter().flat_map(|selector| &selector.node_selector_terms);
    let value = Volume {
        name: fields::name(meta).into(),
        deleting: meta.deletion_timestamp.is_some(),
        driver: driver.map(Into::into),
        machine_bound: spec.local.is_some() || spec.host_path.is_some(),
        node_terms: terms
            .enumerate()
            .map(|(index, term)| {
                let path = format!("spec.nodeAffinity.required.nodeSelectorTerms[{index}]");
                node_term(&path, term, &mut errors)
            })
            .collect(),
    };
    Parsed { value, errors }
}

fn node_term(path: &str, term: &NodeSelectorTerm, errors: &mut Vec<FieldError>) -> Vec<Requirement> {
    let expressions = term.match_expressions.iter().flatten().enumerate();
    expressions
        .map(|(index, expression)| {
            let written = Written {
                key: &expression.key,
                operator: &expression.operator,
                values: expression.values.as_ref(),
                min_values: None,
            };
            requirement(&format!("{path}.matchExpressions[{index}]"), &written).unwrap_or_else(|error| {
                errors.push(error);
                Requirement::of(&expression.key, Values::NONE)
            })
        })
        .collect()
}

/// A class as decisions see it. A binding mode that is not known is taken for the one that makes pods wait.
pub fn storage_class(written: &WrittenClass) -> Parsed<StorageClass> {
    let mut errors = Vec::new();
    let meta = &written.metadata;
    let is_default = |key: &&str| {
        let annotations = meta.annotations.as_ref();
        annotations.and_then(|map| map.get(*key)).map(String::as_str) == Some("true")
    };
    let binding = match written.volume_binding_mode.as_deref() {
        Some("WaitForFirstConsumer") => BindingMode::WaitForFirstConsumer,
        None | Some("" | "Immediate") => BindingMode::Immediate,
        Some(other) => {
            let problem = format_args!("{other:?} is not Immediate or WaitForFirstConsumer").to_string();
            errors.push(FieldError::new("volumeBindingMode", problem));
            BindingMode::Immediate
        }
    };
    let value = StorageClass {
        name: fields::name(meta).into(),
        driver: driver_of_provisioner(&written.provisioner).into(),
        binding,
        allowed_topologies: written.allowed_topologies.iter().flatten().map(topology).collect(),
        is_default: IS_DEFAULT.iter().any(is_default),
        created: fields::created(meta),
    };
    Parsed { value, errors }
}

fn topology(term: &TopologySelectorTerm) -> Vec<Requirement> {
    let expressions = term.match_label_expressions.iter().flatten();
    expressions
        .map(|expression| Requirement::one_of(&expression.key, &expression.values))
        .collect()
}

/// How many volumes of each driver a node can attach. A driver that gives no number has no limit.
pub fn attach_limits(written: &CSINode) -> AttachLimits {
    let limits: BTreeMap<Arc<str>, u32> = written
        .spec
        .drivers
        .iter()
        .filter_map(|driver| {
            let count = driver.allocatable.as_ref()?.count?;
            Some((driver.name.as_str().into(), u32::try_from(count).unwrap_or(0)))
        })
        .collect();
    Arc::new(limits)
}
