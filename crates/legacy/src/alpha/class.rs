//! A node template, or the inline provider of a Provisioner, becomes an EC2NodeClass.

use api::aws::{AmiSelectorTerm, EC2NodeClassSpec, SecurityGroupSelectorTerm, SubnetSelectorTerm, Tags};

use super::devices::{absent_metadata_options, check_metadata_options, metadata_options, ubuntu_root, volumes};
use super::images::images;
use super::launch_template::{self, TemplateRef};
use super::selectors::{Selected, Term, product, terms};
use super::types::NodeTemplateSpec;
use crate::beta;
use crate::context::{CLUSTER_PLACEHOLDER, Context, ROLE_PLACEHOLDER};
use crate::notes::{Change, Notes, Reason};

/// Tags that Karpenter sets, and tags of older releases.
const TAKEN_TAGS: &[&str] = &[
    "",
    "eks:eks-cluster-name",
    "karpenter.sh/nodepool",
    "karpenter.sh/nodeclaim",
    "karpenter.k8s.aws/ec2nodeclass",
    "karpenter.sh/provisioner-name",
    "karpenter.sh/managed-by",
];

/// What a class is made from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClassSource {
    pub spec: NodeTemplateSpec,
    /// The template's name, or its id and version in the earliest generation.
    pub launch_template: Option<TemplateRef>,
    /// Selectors may be absent and mean the tag of this cluster: the object may be older than 0.5.5.
    pub default_cluster: DefaultCluster,
}

/// Whose tag an absent selector means.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DefaultCluster {
    /// Nobody's: the selector is required.
    #[default]
    Nobody,
    Known(String),
    /// A chart that leaves the name to its user.
    Placeholder,
    Unknown,
}

/// The selector, or the tag of the cluster where that was the default.
fn or_cluster(written: Option<&Tags>, source: &ClassSource, field: &str, notes: &mut Notes) -> Option<Tags> {
    if let Some(selector) = written.filter(|selector| !selector.is_empty()) {
        return Some(selector.clone());
    }
    let cluster = match &source.default_cluster {
        DefaultCluster::Known(name) => name,
        DefaultCluster::Placeholder => {
            notes.warn(
                field,
                Change::ClusterPlaceholder {
                    placeholder: CLUSTER_PLACEHOLDER,
                },
            );
            CLUSTER_PLACEHOLDER
        }
        DefaultCluster::Nobody | DefaultCluster::Unknown => {
            notes.refuse(field, Reason::NoSelector);
            return None;
        }
    };
    notes.warn(field, Change::ClusterTagWritten);
    Some(Tags::from([(
        format!("kubernetes.io/cluster/{cluster}"),
        "*".to_owned(),
    )]))
}

/// The class, and the value of the annotation that keeps a launch template.
pub fn v1(source: &ClassSource, context: &Context<'_>, notes: &mut Notes) -> (EC2NodeClassSpec, Option<String>) {
    let spec = &source.spec;
    let options = context.options;
    let mut class = EC2NodeClassSpec {
        role: options.node_role.clone(),
        user_data: spec.user_data.clone(),
        tags: tags(spec, context, notes),
        detailed_monitoring: spec.detailed_monitoring,
        context: spec.context.clone(),
        ..EC2NodeClassSpec::default()
    };
    let field = "spec.subnetSelector";
    if let Some(selector) = or_cluster(spec.subnet_selector.as_ref(), source, field, notes) {
        class.subnet_selector_terms = each(terms(&selector, Selected::Subnets, field, notes));
    }
    class.metadata_options = match &spec.metadata_options {
        Some(written) => {
            check_metadata_options(written, notes);
            Some(metadata_options(written))
        }
        None if options.v1_metadata_defaults => None,
        None => {
            notes.warn("spec.metadataOptions", Change::HopLimitWritten);
            Some(absent_metadata_options())
        }
    };
    let mut annotation = None;
    let field = "spec.securityGroupSelector";
    if let Some(reference) = &source.launch_template {
        if let Some(selector) = spec
            .security_group_selector
            .as_ref()
            .filter(|selector| !selector.is_empty())
        {
            class.security_group_selector_terms = each(terms(selector, Selected::SecurityGroups, field, notes));
        }
        let described = &context.launch_templates;
        annotation = launch_template::apply(reference, options.launch_templates, described, &mut class, notes);
    } else {
        if let Some(selector) = or_cluster(spec.security_group_selector.as_ref(), source, field, notes) {
            class.security_group_selector_terms = each(terms(&selector, Selected::SecurityGroups, field, notes));
        }
        let images = images(spec.ami_family.as_deref(), spec.ami_selector.as_ref(), notes);
        class.ami_family = images.family;
        class.ami_selector_terms = images.terms;
        class.block_device_mappings = spec
            .block_device_mappings
            .as_ref()
            .map(|written| volumes(written, notes));
        if images.ubuntu && class.block_device_mappings.is_none() {
            class.block_device_mappings = Some(vec![ubuntu_root()]);
        }
        if spec.ami_family.as_deref() == Some("Custom") {
            notes.warn("spec.userData", Change::UserDataNeedsTaint);
        }
    }
    identity(spec, context, &mut class, notes);
    (class, annotation)
}

/// What a launch template decides could not be said beside it.
pub fn check_exclusions(spec: &NodeTemplateSpec, notes: &mut Notes) {
    let said = [
        ("securityGroupSelector", spec.security_group_selector.is_some()),
        ("metadataOptions", spec.metadata_options.is_some()),
        ("amiFamily", spec.ami_family.is_some()),
        ("instanceProfile", spec.instance_profile.is_some()),
        ("blockDeviceMappings", spec.block_device_mappings.is_some()),
        ("userData", spec.user_data.is_some()),
        ("amiSelector", spec.ami_selector.is_some()),
    ];
    for (field, _) in said.iter().filter(|(_, present)| *present) {
        notes.invalid(format!("spec.{field}"), "excludes launchTemplate");
    }
}

fn each<T: From<Term>>(terms: Vec<Term>) -> Vec<T> {
    terms.into_iter().map(T::from).collect()
}

/// Exactly one of role and profile. A profile keeps working without changes to IAM, so it stays one.
fn identity(spec: &NodeTemplateSpec, context: &Context<'_>, class: &mut EC2NodeClassSpec, notes: &mut Notes) {
    if class.role.is_some() || class.instance_profile.is_some() {
        return;
    }
    let profile = spec.instance_profile.clone().filter(|profile| !profile.is_empty());
    class.instance_profile = profile.or_else(|| context.facts.default_instance_profile.clone());
    if class.instance_profile.is_none() {
        let placeholder = ROLE_PLACEHOLDER;
        notes.warn("spec.instanceProfile", Change::RolePlaceholder { placeholder });
        class.role = Some(placeholder.to_owned());
    }
}

fn tags(spec: &NodeTemplateSpec, context: &Context<'_>, notes: &mut Notes) -> Option<Tags> {
    let mut tags = context.facts.tags.clone();
    tags.extend(spec.tags.clone().unwrap_or_default());
    tags.retain(|key, _| {
        let taken = TAKEN_TAGS.contains(&key.as_str()) || key.starts_with("kubernetes.io/cluster");
        if taken {
            notes.warn("spec.tags", Change::TagRemoved { key: key.clone() });
        }
        !taken
    });
    (!tags.is_empty()).then_some(tags)
}

/// The class as upstream's converter of 0.32 writes it: the whole product of selectors, a placeholder for the role, and
/// everything else as it stands.
pub fn v1beta1(source: &ClassSource, context: &Context<'_>, notes: &mut Notes) -> beta::EC2NodeClassSpec {
    let spec = &source.spec;
    if source.launch_template.is_some() {
        notes.refuse("", Reason::LaunchTemplate);
    }
    let family = spec.ami_family.clone().filter(|family| !family.is_empty());
    let mut class = beta::EC2NodeClassSpec {
        ami_family: Some(family.unwrap_or_else(|| "AL2".to_owned())),
        role: Some(context.options.node_role.clone().unwrap_or_else(|| {
            let placeholder = ROLE_PLACEHOLDER;
            notes.warn("spec.instanceProfile", Change::RolePlaceholder { placeholder });
            placeholder.to_owned()
        })),
        user_data: spec.user_data.clone(),
        tags: spec.tags.clone().filter(|tags| !tags.is_empty()),
        metadata_options: spec.metadata_options.clone(),
        block_device_mappings: spec.block_device_mappings.clone(),
        detailed_monitoring: spec.detailed_monitoring,
        context: spec.context.clone(),
        ..beta::EC2NodeClassSpec::default()
    };
    let field = "spec.subnetSelector";
    if let Some(selector) = or_cluster(spec.subnet_selector.as_ref(), source, field, notes) {
        class.subnet_selector_terms = each::<SubnetSelectorTerm>(product(&selector, Selected::Subnets, field, notes));
    }
    let field = "spec.securityGroupSelector";
    if source.launch_template.is_none()
        && let Some(selector) = or_cluster(spec.security_group_selector.as_ref(), source, field, notes)
    {
        let terms = product(&selector, Selected::SecurityGroups, field, notes);
        class.security_group_selector_terms = each::<SecurityGroupSelectorTerm>(terms);
    }
    if let Some(selector) = spec.ami_selector.as_ref().filter(|selector| !selector.is_empty()) {
        let terms = product(selector, Selected::Images, "spec.amiSelector", notes);
        class.ami_selector_terms = Some(each::<AmiSelectorTerm>(terms));
    }
    class
}
