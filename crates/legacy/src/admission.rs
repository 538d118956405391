//! What admission of the time of Provisioners did to an object while it was written: what it added, and what it refused.
//!
//! An object that is there already has to be converted as it is, so conversion mends what it can: it leaves a tag out, or
//! reads an empty value as any. Who writes an object can still write it otherwise. Admission therefore refuses what
//! conversion refuses about the object alone, and what conversion would have to mend.

use api::aws::{NodeTemplateSpec, Tags};
use api::labels::HOSTNAME;
use api::v1::Requirement;
use model::Quantity;
use serde_json::Value;

use crate::alpha::types::ProvisionerSpec;
use crate::alpha::{Generation, class, early, requirements};
use crate::batch::kind::{self, Kind};
use crate::batch::{Input, convert};
use crate::notes::{Notes, Refusal, Subject};
use crate::options::{LaunchTemplates, Options};
use crate::{manifest, settings};

/// The smallest and the largest volume, in bytes.
const VOLUME_BYTES: std::ops::RangeInclusive<i64> = 1_000_000_000..=64_000_000_000_000;

/// The requirements that admission appended to a Provisioner, in its order. Nothing for an object that cannot be read:
/// that is for [`problems`] to say.
pub fn defaults(object: &Value) -> Vec<Requirement> {
    if kind::of(object) != Kind::Provisioner(Generation::V1Alpha5) {
        return Vec::new();
    }
    let mut unheard = notes(object);
    let Some(spec) = provisioner_spec(object, &mut unheard) else {
        return Vec::new();
    };
    let written = requirements::renamed(spec.requirements.as_deref().unwrap_or_default(), &mut unheard);
    requirements::defaults(Generation::V1Alpha5, &written, spec.labels.as_ref())
}

/// All that is wrong with an object by itself. What other objects would have to say is left to conversion, as they may
/// still be written.
pub fn problems(object: &Value, options: &Options) -> Vec<Refusal> {
    let mut notes = notes(object);
    match kind::of(object) {
        Kind::Provisioner(Generation::V1Alpha5) => {
            notes.refusals = conversion_problems(object, options);
            provisioner(object, &mut notes);
        }
        Kind::NodeTemplate => {
            notes.refusals = conversion_problems(object, options);
            if let Some(spec) = template_spec(object, &mut self::notes(object)) {
                template(&spec, "spec", &mut notes);
            }
        }
        Kind::Settings => settings::check(object, &mut notes),
        _ => {}
    }
    notes.refusals
}

fn notes(object: &Value) -> Notes {
    Notes::on(Subject {
        place: String::new(),
        object: kind::title(object),
    })
}

fn conversion_problems(object: &Value, options: &Options) -> Vec<Refusal> {
    let options = Options {
        launch_templates: LaunchTemplates::Keep,
        ..options.clone()
    };
    let input = Input {
        place: String::new(),
        object: object.clone(),
    };
    let mut refusals = convert(&[input], &options).err().unwrap_or_default();
    refusals.retain(|refusal| !refusal.reason.is_about_others());
    refusals
}

fn provisioner_spec(object: &Value, notes: &mut Notes) -> Option<ProvisionerSpec> {
    let mut object = object.clone();
    if let Some(kubelet) = object.pointer_mut("/spec/kubeletConfiguration") {
        manifest::quote_kubelet(kubelet);
    }
    Some(manifest::read(&object, "spec", notes)?.value)
}

fn template_spec(object: &Value, notes: &mut Notes) -> Option<NodeTemplateSpec> {
    let mut object = object.clone();
    manifest::quote_numbers(&mut object, &["spec", "blockDeviceMappings", "*", "ebs", "volumeSize"]);
    Some(manifest::read(&object, "spec", notes)?.value)
}

fn provisioner(object: &Value, notes: &mut Notes) {
    let Some(spec) = provisioner_spec(object, &mut self::notes(object)) else {
        return;
    };
    if spec.provider.is_none() && spec.provider_ref.is_none() {
        notes.invalid("spec.providerRef", "is missing, and so is spec.provider");
    }
    let restricted = "the name of a node is not known before it is launched";
    if spec.labels.iter().flatten().any(|(key, _)| key == HOSTNAME) {
        notes.invalid(format!("spec.labels[{HOSTNAME}]"), restricted);
    }
    for (index, requirement) in spec.requirements.iter().flatten().enumerate() {
        if requirement.key == HOSTNAME {
            notes.invalid(format!("spec.requirements[{index}].key"), restricted);
        }
    }
    let inline = spec.provider.as_ref();
    if let Some(inline) = inline.and_then(|inline| early::provider(inline, false, &mut self::notes(object))) {
        template(&inline.template, "spec.provider", notes);
        if inline.template.launch_template.is_some() {
            class::check_exclusions(&inline.template, notes);
        }
    }
}

/// The rules for node templates and inline providers that conversion is milder about.
fn template(spec: &NodeTemplateSpec, field: &str, notes: &mut Notes) {
    for (name, selector) in [
        ("subnetSelector", &spec.subnet_selector),
        ("securityGroupSelector", &spec.security_group_selector),
        ("amiSelector", &spec.ami_selector),
    ] {
        if let Some(selector) = selector {
            check_selector(selector, &format!("{field}.{name}"), notes);
        }
    }
    for key in spec.tags.iter().flatten().map(|(key, _)| key.as_str()) {
        let taken = matches!(key, "karpenter.sh/provisioner-name" | "karpenter.sh/managed-by");
        if taken || key.starts_with("kubernetes.io/cluster/") {
            notes.invalid(format!("{field}.tags[{key}]"), "is set by Karpenter");
        } else if key.is_empty() {
            notes.invalid(format!("{field}.tags"), "a key is empty");
        }
    }
    for (index, device) in spec.block_device_mappings.iter().flatten().enumerate() {
        let size = device.ebs.as_ref().and_then(|ebs| ebs.volume_size.as_deref());
        let bytes = size
            .and_then(|size| Quantity::parse(size).ok())
            .map(Quantity::value_ceil);
        if bytes.is_some_and(|bytes| !VOLUME_BYTES.contains(&bytes)) {
            let field = format!("{field}.blockDeviceMappings[{index}].ebs.volumeSize");
            notes.invalid(field, "is not between 1G and 64T");
        }
    }
}

fn check_selector(selector: &Tags, field: &str, notes: &mut Notes) {
    for (key, value) in selector {
        if value.is_empty() {
            notes.invalid(format!("{field}[{key}]"), "is empty; \"*\" means any value");
        }
    }
    let ids = ["aws-ids", "aws::ids"]
        .into_iter()
        .find(|key| selector.contains_key(*key));
    if let Some(ids) = ids.filter(|_| selector.len() > 1) {
        notes.invalid(format!("{field}[{ids}]"), "excludes every other key");
    }
}
