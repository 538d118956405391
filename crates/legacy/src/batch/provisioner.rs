//! Provisioners and node templates, to either generation.

use std::collections::BTreeSet;

use api::v1::Requirement;
use serde_json::Value;

use super::Source;
use super::draft::{ClassRole, Draft, PoolRole, Role};
use super::up::{check_name, keep_template};
use crate::alpha::class::{self, ClassSource, DefaultCluster};
use crate::alpha::types::{EarlyProvisionerSpec, NodeTemplateSpec, ProviderRef, ProvisionerSpec};
use crate::alpha::{Generation, early, pool};
use crate::context::Context;
use crate::manifest;
use crate::notes::{Change, Notes};
use crate::options::{LaunchTemplates, Target};

/// A Provisioner in the words of v1alpha5, and where its class comes from.
struct Parts {
    spec: ProvisionerSpec,
    class: ClassChoice,
}

enum ClassChoice {
    Referenced(String),
    Inline(Box<ClassSource>),
}

/// The pool, and the class that an inline provider becomes.
pub fn provisioner(
    source: &Source<'_>,
    generation: Generation,
    classes: &BTreeSet<&str>,
    context: &Context<'_>,
) -> Vec<Draft> {
    let mut notes = Notes::on(source.subject.clone());
    let parts = match generation {
        Generation::V1Alpha3 | Generation::V1Alpha4 => early_parts(source, generation, context, &mut notes),
        Generation::V1Alpha5 => parts(source, context, &mut notes),
    };
    let Some(parts) = parts else {
        return vec![Draft {
            notes,
            ..Draft::kept(source, source.object.clone().into_owned())
        }];
    };
    let name = source.name();
    let class = match &parts.class {
        ClassChoice::Referenced(name) => name.clone(),
        // The class of a template keeps its name, so the inline one gives way.
        ClassChoice::Inline(_) if classes.contains(name) => format!("{name}-provider"),
        ClassChoice::Inline(_) => name.to_owned(),
    };
    check_name(&class, &mut notes);
    let mut kubelet = None;
    let metadata = manifest::metadata(&source.object);
    let object = match context.options.target {
        Target::V1 => {
            kubelet = pool::kubelet(&parts.spec, &mut notes);
            let spec = pool::v1(&parts.spec, generation, &class, context, &mut notes);
            manifest::object("karpenter.sh/v1", "NodePool", metadata, spec)
        }
        Target::V1Beta1 => {
            let spec = pool::v1beta1(&parts.spec, generation, &class, context, &mut notes);
            manifest::object("karpenter.sh/v1beta1", "NodePool", metadata, spec)
        }
    };
    let role = Role::Pool(PoolRole {
        class: class.clone(),
        kubelet,
        settled: false,
    });
    let mut drafts = vec![Draft::made(source, object, role, notes)];
    if let ClassChoice::Inline(inline) = parts.class {
        let mut metadata = serde_json::Map::new();
        metadata.insert("name".to_owned(), class.into());
        drafts.push(class_draft(source, &inline, metadata, context));
    }
    silence(&mut drafts, context);
    drafts
}

/// An AWSNodeTemplate.
pub fn node_template(source: &Source<'_>, context: &Context<'_>) -> Draft {
    let mut notes = Notes::on(source.subject.clone());
    let mut object = source.object.clone().into_owned();
    manifest::quote_numbers(&mut object, &["spec", "blockDeviceMappings", "*", "ebs", "volumeSize"]);
    let Some(read) = manifest::read::<NodeTemplateSpec>(&object, "spec", &mut notes) else {
        return Draft {
            notes,
            ..Draft::kept(source, object)
        };
    };
    for field in read.unknown {
        notes.warn(field, Change::FieldUnknown);
    }
    if read.value.launch_template.is_some() && context.options.launch_templates != LaunchTemplates::Refuse {
        class::check_exclusions(&read.value, &mut notes);
    }
    let class = ClassSource {
        launch_template: read.value.launch_template.clone().map(early::by_name),
        spec: read.value,
        default_cluster: DefaultCluster::Nobody,
    };
    let mut draft = class_draft(source, &class, manifest::metadata(&object), context);
    notes.warnings.append(&mut draft.notes.warnings);
    notes.refusals.append(&mut draft.notes.refusals);
    draft.notes = notes;
    silence(std::slice::from_mut(&mut draft), context);
    draft
}

/// Upstream's converter to v1beta1 writes no comments, and byte for byte the same is what is asked for.
fn silence(drafts: &mut [Draft], context: &Context<'_>) {
    if context.options.target == Target::V1Beta1 {
        drafts.iter_mut().for_each(|draft| draft.silent = true);
    }
}

fn class_draft(
    source: &Source<'_>,
    class: &ClassSource,
    mut metadata: serde_json::Map<String, Value>,
    context: &Context<'_>,
) -> Draft {
    let mut notes = Notes::on(source.subject.clone());
    let object = match context.options.target {
        Target::V1 => {
            let (spec, kept) = class::v1(class, context, &mut notes);
            keep_template(&mut metadata, kept);
            manifest::object("karpenter.k8s.aws/v1", "EC2NodeClass", metadata, spec)
        }
        Target::V1Beta1 => {
            let spec = class::v1beta1(class, context, &mut notes);
            manifest::object("karpenter.k8s.aws/v1beta1", "EC2NodeClass", metadata, spec)
        }
    };
    let role = Role::Class(ClassRole {
        kubelet: None,
        alpha: true,
    });
    Draft::made(source, object, role, notes)
}

fn early_parts(source: &Source<'_>, generation: Generation, context: &Context<'_>, notes: &mut Notes) -> Option<Parts> {
    let read = manifest::read::<EarlyProvisionerSpec>(&source.object, "spec", notes)?;
    for field in read.unknown {
        notes.warn(field, Change::FieldUnknown);
    }
    let early = match generation {
        Generation::V1Alpha3 => early::v1alpha3(&read.value, context, notes),
        Generation::V1Alpha4 | Generation::V1Alpha5 => early::v1alpha4(&read.value, context, notes),
    };
    // The class would only repeat what is wrong.
    if !notes.refusals.is_empty() {
        return None;
    }
    Some(Parts {
        spec: early.provisioner,
        class: ClassChoice::Inline(Box::new(early.class)),
    })
}

fn parts(source: &Source<'_>, context: &Context<'_>, notes: &mut Notes) -> Option<Parts> {
    let mut object = source.object.clone().into_owned();
    if let Some(kubelet) = object.pointer_mut("/spec/kubeletConfiguration") {
        manifest::quote_kubelet(kubelet);
    }
    let read = manifest::read::<ProvisionerSpec>(&object, "spec", notes)?;
    for field in read.unknown {
        notes.warn(field, Change::FieldUnknown);
    }
    let spec = read.value;
    check_operators(spec.requirements.as_deref().unwrap_or_default(), notes);
    let class = match (&spec.provider, &spec.provider_ref) {
        (Some(_), Some(_)) => {
            notes.invalid("spec.providerRef", "excludes spec.provider");
            return None;
        }
        (None, Some(reference)) => ClassChoice::Referenced(referenced(reference, notes)),
        (provider, None) => {
            let empty = serde_json::json!({});
            let inline = early::provider(provider.as_ref().unwrap_or(&empty), false, notes)?;
            let known = context.facts.cluster_name.clone().map(DefaultCluster::Known);
            ClassChoice::Inline(Box::new(ClassSource {
                launch_template: inline.template.launch_template.clone().map(early::by_name),
                spec: inline.template,
                default_cluster: known.unwrap_or(if source.from_chart {
                    DefaultCluster::Placeholder
                } else {
                    DefaultCluster::Unknown
                }),
            }))
        }
    };
    Some(Parts { spec, class })
}

/// v1 knows more operators than the time of Provisioners did, and admits them in their place.
fn check_operators(requirements: &[Requirement], notes: &mut Notes) {
    const KNOWN: &[&str] = &["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"];
    for (index, requirement) in requirements.iter().enumerate() {
        let operator = requirement.operator.as_str();
        if !KNOWN.contains(&operator) {
            let known = KNOWN.join(", ");
            notes.invalid(
                format!("spec.requirements[{index}].operator"),
                format!("{operator:?} is none of {known}"),
            );
        }
    }
}

fn referenced(reference: &ProviderRef, notes: &mut Notes) -> String {
    let kind = reference.kind.as_deref().filter(|kind| !kind.is_empty());
    if kind.is_some_and(|kind| kind != "AWSNodeTemplate") {
        notes.invalid("spec.providerRef.kind", "is not AWSNodeTemplate");
    }
    let version = reference.api_version.as_deref().filter(|version| !version.is_empty());
    if version.is_some_and(|version| !version.starts_with("karpenter.k8s.aws/")) {
        notes.invalid("spec.providerRef.apiVersion", "is not of karpenter.k8s.aws");
    }
    reference.name.clone()
}
