//! v1alpha3 and v1alpha4 become v1alpha5: fields become requirements, labels become options of the provider.

use std::collections::BTreeMap;

use api::aws::Tags;
use api::labels::{ARCH, CAPACITY_TYPE, INSTANCE_TYPE, OS, ZONE};
use api::v1::{Operator, Requirement};

use super::class::{ClassSource, DefaultCluster};
use super::keys::EARLY_PREFIX;
use super::launch_template::TemplateRef;
use super::requirements::requirement;
use super::types::{ClusterFacts, EarlyProvisionerSpec, InlineProvider, NodeTemplateSpec, ProvisionerSpec};
use crate::context::Context;
use crate::manifest;
use crate::notes::{Change, Notes, Reason};

/// A Provisioner of an early generation in the words of v1alpha5.
#[derive(Debug, Default)]
pub struct Early {
    pub provisioner: ProvisionerSpec,
    pub class: ClassSource,
}

/// The cloud options that v1alpha3 took as labels.
#[derive(Debug, Default)]
struct LabelOptions {
    capacity_type: Option<String>,
    launch_template: Option<TemplateRef>,
    subnets: Tags,
    security_groups: Tags,
}

pub fn v1alpha3(spec: &EarlyProvisionerSpec, context: &Context<'_>, notes: &mut Notes) -> Early {
    let stated = spec.cluster.clone().unwrap_or_default();
    let cluster = context.cluster_name(stated.name.as_deref(), "spec.cluster.name", notes);
    settings(&stated, notes);
    if spec.provider.is_some() {
        notes.invalid("spec.provider", "v1alpha3 has no such field");
    }
    let (labels, options) = label_options(spec, notes);
    let mut provisioner = common(spec, labels);
    let mut requirements = shape(
        spec.zones.as_deref(),
        spec.instance_types.as_deref(),
        spec.architecture.as_ref().map(std::slice::from_ref),
        spec.operating_system.as_ref().map(std::slice::from_ref),
        notes,
    );
    requirements.extend(
        options
            .capacity_type
            .map(|word| requirement(CAPACITY_TYPE, Operator::In, vec![word])),
    );
    provisioner.requirements = Some(requirements);

    let Some(cluster) = cluster else {
        notes.refuse("spec.cluster.name", Reason::ClusterNameNeeded);
        return Early {
            provisioner,
            ..Early::default()
        };
    };
    // Filters came on top of the cluster's tag.
    let with_cluster = |mut filter: Tags| {
        filter.insert(format!("kubernetes.io/cluster/{cluster}"), "*".to_owned());
        filter
    };
    let class = ClassSource {
        spec: NodeTemplateSpec {
            ami_family: context.options.ami_family.clone(),
            subnet_selector: Some(with_cluster(options.subnets)),
            security_group_selector: Some(with_cluster(options.security_groups)),
            instance_profile: Some(format!("KarpenterNodeInstanceProfile-{cluster}")),
            ..NodeTemplateSpec::default()
        },
        launch_template: options.launch_template,
        default_cluster: DefaultCluster::Known(cluster),
    };
    Early { provisioner, class }
}

pub fn v1alpha4(spec: &EarlyProvisionerSpec, context: &Context<'_>, notes: &mut Notes) -> Early {
    if spec.cluster.is_some() {
        notes.invalid("spec.cluster", "is spec.provider.cluster from v1alpha4 on");
    }
    let mut provisioner = common(spec, spec.labels.clone().unwrap_or_default());
    let mut requirements = shape(
        spec.zones.as_deref(),
        spec.instance_types.as_deref(),
        spec.architectures.as_deref(),
        spec.operating_systems.as_deref(),
        notes,
    );
    let inline = spec
        .provider
        .as_ref()
        .and_then(|written| provider(written, true, notes));
    let inline = inline.unwrap_or_default();
    if let Some(words) = inline.capacity_types.as_deref() {
        requirements.extend(listed(CAPACITY_TYPE, Some(words), "spec.provider.capacityTypes", notes));
    }
    provisioner.requirements = Some(requirements);
    let stated = inline.cluster.unwrap_or_default();
    settings(&stated, notes);
    let field = "spec.provider.cluster.name";
    let cluster = context.cluster_name(stated.name.as_deref(), field, notes);
    let class = ClassSource {
        launch_template: inline.template.launch_template.clone().map(by_name),
        spec: inline.template,
        default_cluster: cluster.map_or(DefaultCluster::Unknown, DefaultCluster::Known),
    };
    Early { provisioner, class }
}

/// An inline provider. Decoding was strict: what is unknown is a mistake, not a leftover.
pub fn provider(written: &serde_json::Value, v1alpha4: bool, notes: &mut Notes) -> Option<InlineProvider> {
    let mut written = written.clone();
    manifest::quote_numbers(&mut written, &["blockDeviceMappings", "*", "ebs", "volumeSize"]);
    let read = manifest::read_value::<InlineProvider>(&written, "spec.provider", notes)?;
    for field in read.unknown {
        notes.invalid(field, "no such field");
    }
    let value = read.value;
    let template = &value.template;
    let absent_then = [
        ("userData", template.user_data.is_some()),
        ("amiSelector", template.ami_selector.is_some()),
        ("detailedMonitoring", template.detailed_monitoring.is_some()),
        ("cluster", !v1alpha4 && value.cluster.is_some()),
        ("capacityTypes", !v1alpha4 && value.capacity_types.is_some()),
    ];
    for (field, _) in absent_then.iter().filter(|(_, present)| *present) {
        notes.invalid(format!("spec.provider.{field}"), "an inline provider has no such field");
    }
    if value.kind.as_deref().is_some_and(|kind| kind != "AWS") {
        notes.invalid("spec.provider.kind", "is not AWS");
    }
    Some(value)
}

pub fn by_name(name: String) -> TemplateRef {
    TemplateRef {
        template: name,
        version: None,
    }
}

/// What both generations share with v1alpha5.
fn common(spec: &EarlyProvisionerSpec, labels: BTreeMap<String, String>) -> ProvisionerSpec {
    ProvisionerSpec {
        labels: (!labels.is_empty()).then_some(labels),
        taints: spec.taints.clone(),
        ttl_seconds_after_empty: spec.ttl_seconds_after_empty,
        ttl_seconds_until_expired: spec.ttl_seconds_until_expired,
        ..ProvisionerSpec::default()
    }
}

/// The four lists, in their order.
fn shape(
    zones: Option<&[String]>,
    instance_types: Option<&[String]>,
    architectures: Option<&[String]>,
    operating_systems: Option<&[String]>,
    notes: &mut Notes,
) -> Vec<Requirement> {
    [
        listed(ZONE, zones, "spec.zones", notes),
        listed(INSTANCE_TYPE, instance_types, "spec.instanceTypes", notes),
        listed(ARCH, architectures, "spec.architectures", notes),
        listed(OS, operating_systems, "spec.operatingSystems", notes),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn listed(key: &str, values: Option<&[String]>, field: &str, notes: &mut Notes) -> Option<Requirement> {
    let values = values?;
    if values.is_empty() {
        notes.invalid(field, "is empty; leave it out to allow everything");
        return None;
    }
    Some(requirement(key, Operator::In, values.to_vec()))
}

/// The cluster's address is a setting of the controller today.
fn settings(cluster: &ClusterFacts, notes: &mut Notes) {
    for (setting, value) in [
        ("CLUSTER_ENDPOINT", &cluster.endpoint),
        ("CLUSTER_CA_BUNDLE", &cluster.ca_bundle),
    ] {
        if let Some(value) = value.clone().filter(|value| !value.is_empty()) {
            notes.warn("spec.cluster", Change::SettingNeeded { setting, value });
        }
    }
}

/// Splits labels into those of nodes and those that were options.
fn label_options(spec: &EarlyProvisionerSpec, notes: &mut Notes) -> (BTreeMap<String, String>, LabelOptions) {
    let mut labels = BTreeMap::new();
    let mut options = LabelOptions::default();
    let (mut template, mut version) = (None, None);
    for (key, value) in spec.labels.iter().flatten() {
        let Some(option) = key.strip_prefix(EARLY_PREFIX) else {
            labels.insert(key.clone(), value.clone());
            continue;
        };
        let any = || "*".to_owned();
        match option {
            "capacity-type" => options.capacity_type = Some(value.clone()),
            "launch-template-name" | "launch-template-id" => template = Some(value.clone()),
            "launch-template-version" => version = Some(value.clone()),
            "subnet-name" => drop(options.subnets.insert("Name".to_owned(), value.clone())),
            "subnet-tag-key" => drop(options.subnets.insert(value.clone(), any())),
            "security-group-name" => drop(options.security_groups.insert("Name".to_owned(), value.clone())),
            "security-group-tag-key" => drop(options.security_groups.insert(value.clone(), any())),
            _ => notes.invalid(format!("spec.labels[{key}]"), "no such option"),
        }
    }
    if version.is_some() && template.is_none() {
        notes.invalid("spec.labels", "a launch template version without a launch template");
    }
    options.launch_template = template.map(|template| TemplateRef { template, version });
    (labels, options)
}
