//! Everything to v1.

use std::collections::BTreeSet;

use api::aws::{EC2NodeClassSpec, KubeletConfiguration};
use serde_json::{Map, Value};

use super::draft::{ClassRole, Draft, PoolRole, Role};
use super::kind::Kind;
use super::{Source, claims, kubelets, other, refused};
use crate::alpha::{devices, launch_template};
use crate::beta;
use crate::context::Context;
use crate::notes::{Change, Notes, Reason};
use crate::{manifest, settings, values};

const LONGEST_NAME: usize = 253;

pub fn drafts(sources: &[Source<'_>], context: &Context<'_>) -> Vec<Draft> {
    let is_class = |source: &&Source<'_>| matches!(source.kind, Kind::NodeTemplate | Kind::BetaClass | Kind::Class);
    let classes: BTreeSet<&str> = sources.iter().filter(is_class).map(Source::name).collect();
    let mut drafts = Vec::new();
    for source in sources {
        if source.kind == Kind::LaunchTemplates {
            continue;
        }
        drafts.extend(draft(source, &classes, context));
    }
    kubelets::settle(&mut drafts, context);
    claims::settle(&mut drafts);
    drafts
}

fn draft(source: &Source<'_>, classes: &BTreeSet<&str>, context: &Context<'_>) -> Vec<Draft> {
    let nameless = !matches!(source.kind, Kind::Values | Kind::Other) && source.name().is_empty();
    if nameless {
        let problem = "is missing".to_owned();
        return vec![refused(source, "metadata.name", Reason::Invalid { problem })];
    }
    match source.kind {
        Kind::Provisioner(generation) => super::provisioner(source, generation, classes, context),
        Kind::NodeTemplate => vec![super::node_template(source, context)],
        Kind::BetaPool => vec![beta_pool(source)],
        Kind::BetaClass => vec![beta_class(source, context)],
        Kind::Pool => vec![pool(source)],
        Kind::Class => vec![class(source)],
        Kind::Machine | Kind::BetaClaim => {
            let draft = Draft::kept(source, source.object.clone().into_owned());
            vec![Draft {
                role: Role::Claim,
                ..draft
            }]
        }
        Kind::Settings => {
            let mut notes = Notes::on(source.subject.clone());
            match settings::environment(&source.object, &mut notes) {
                Some(object) => vec![Draft::made(source, object, Role::None, notes)],
                None => vec![other(source, context.options)],
            }
        }
        Kind::Values => {
            let mut notes = Notes::on(source.subject.clone());
            let object = values::convert(&source.object, &mut notes);
            let changed = object != *source.object;
            vec![Draft {
                changed,
                ..Draft::made(source, object, Role::None, notes)
            }]
        }
        Kind::TooOld => vec![refused(source, "apiVersion", Reason::TooOld)],
        Kind::Claim | Kind::LaunchTemplates => vec![Draft::kept(source, source.object.clone().into_owned())],
        Kind::Other => vec![other(source, context.options)],
    }
}

fn beta_pool(source: &Source<'_>) -> Draft {
    let mut notes = Notes::on(source.subject.clone());
    let mut object = source.object.clone().into_owned();
    if let Some(kubelet) = object.pointer_mut("/spec/template/spec/kubelet") {
        manifest::quote_kubelet(kubelet);
    }
    let Some(read) = manifest::read::<beta::NodePoolSpec>(&object, "spec", &mut notes) else {
        return Draft {
            notes,
            ..Draft::kept(source, object)
        };
    };
    for field in read.unknown {
        notes.warn(field, Change::FieldUnknown);
    }
    let mut metadata = manifest::metadata(&object);
    let spec = beta::node_pool::up(read.value, &mut metadata);
    let role = PoolRole::take(&mut metadata, &spec.template.spec.node_class_ref.name, false);
    Draft::made(
        source,
        manifest::object("karpenter.sh/v1", "NodePool", metadata, spec),
        Role::Pool(role),
        notes,
    )
}

/// A pool of v1 stays as it is, unless a webhook of 1.0 left annotations on it.
fn pool(source: &Source<'_>) -> Draft {
    let mut object = source.object.clone().into_owned();
    let class = object
        .pointer("/spec/template/spec/nodeClassRef/name")
        .and_then(Value::as_str);
    let class = class.unwrap_or_default().to_owned();
    let changed = [beta::annotations::KUBELET, beta::annotations::NODE_CLASS_REFERENCE]
        .iter()
        .any(|key| manifest::annotation(&object, key).is_some());
    let mut role = PoolRole {
        class: class.clone(),
        settled: true,
        kubelet: None,
    };
    if changed {
        let mut metadata = manifest::metadata(&object);
        role = PoolRole::take(&mut metadata, &class, true);
        object["metadata"] = Value::Object(metadata);
        if let Some(fields) = object.as_object_mut() {
            fields.remove("status");
        }
    }
    let mut notes = Notes::on(source.subject.clone());
    beta::node_pool::check_kubelet(&source.object, &mut notes);
    Draft {
        changed,
        role: Role::Pool(role),
        notes,
        ..Draft::kept(source, object)
    }
}

fn beta_class(source: &Source<'_>, context: &Context<'_>) -> Draft {
    let mut notes = Notes::on(source.subject.clone());
    let object = source.object.clone().into_owned();
    let Some(read) = manifest::read::<beta::EC2NodeClassSpec>(&object, "spec", &mut notes) else {
        return Draft {
            notes,
            ..Draft::kept(source, object)
        };
    };
    for field in read.unknown {
        notes.warn(field, Change::FieldUnknown);
    }
    let mut metadata = manifest::metadata(&object);
    let mut spec = beta::node_class::up(read.value, &mut metadata, &mut notes);
    write_hop_limit(&mut spec, context, &mut notes);
    if spec.ami_selector_terms.is_empty() {
        notes.invalid(
            "spec.amiSelectorTerms",
            "is missing, and the family has no images of its own",
        );
    }
    let role = Role::Class(ClassRole::default());
    Draft::made(
        source,
        manifest::object("karpenter.k8s.aws/v1", "EC2NodeClass", metadata, spec),
        role,
        notes,
    )
}

/// v1beta1 let answers of the metadata service travel two hops unless told otherwise, v1 lets them travel one.
fn write_hop_limit(spec: &mut EC2NodeClassSpec, context: &Context<'_>, notes: &mut Notes) {
    let silent = spec
        .metadata_options
        .as_ref()
        .is_none_or(|options| options.http_put_response_hop_limit.is_none());
    if context.options.v1_metadata_defaults || !silent {
        return;
    }
    notes.warn("spec.metadataOptions", Change::HopLimitWritten);
    let options = spec
        .metadata_options
        .get_or_insert_with(devices::absent_metadata_options);
    options.http_put_response_hop_limit = Some(2);
}

fn class(source: &Source<'_>) -> Draft {
    let object = source.object.clone().into_owned();
    let mut kubelet = object.pointer("/spec/kubelet").cloned().unwrap_or_default();
    manifest::quote_kubelet(&mut kubelet);
    let kubelet = serde_json::from_value::<Option<KubeletConfiguration>>(kubelet)
        .ok()
        .flatten();
    let role = Role::Class(ClassRole { kubelet, alpha: false });
    Draft {
        role,
        ..Draft::kept(source, object)
    }
}

/// The annotation that keeps a launch template, on the class that is made.
pub fn keep_template(metadata: &mut Map<String, Value>, kept: Option<String>) {
    if let Some(kept) = kept {
        manifest::annotate(metadata, launch_template::ANNOTATION, kept);
    }
}

pub fn check_name(name: &str, notes: &mut Notes) {
    if name.len() > LONGEST_NAME {
        notes.invalid(
            "metadata.name",
            format!("{name:?} is longer than {LONGEST_NAME} characters"),
        );
    }
}
