//! A Provisioner becomes a NodePool.

use std::collections::BTreeMap;

use api::aws::KubeletConfiguration;
use api::duration::{self, DurationOrNever};
use api::labels::annotations::DO_NOT_DISRUPT;
use api::v1::{
    Budget, ConsolidationPolicy, Disruption, DisruptionReason, NodeClaimTemplate, NodeClaimTemplateSpec,
    NodeClassReference, NodePool, NodePoolSpec, Requirement, TemplateMetadata,
};
use api::{validate, vocabulary};
use jiff::SignedDuration;
use model::Quantity;
use serde_json::Value;

use super::keys::{DO_NOT_CONSOLIDATE, Fate, fate};
use super::types::ProvisionerSpec;
use super::{Generation, requirements};
use crate::beta;
use crate::context::Context;
use crate::notes::{Change, Notes, Reason};

const MOST_REQUIREMENTS: usize = 100;

/// When nodes are removed though nothing is wrong with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Removal {
    Never,
    AfterEmpty(i64),
    WhenUnderutilized,
}

fn removal(spec: &ProvisionerSpec, force: bool, notes: &mut Notes) -> Removal {
    let consolidates = spec
        .consolidation
        .as_ref()
        .and_then(|consolidation| consolidation.enabled);
    match (consolidates.unwrap_or(false), spec.ttl_seconds_after_empty) {
        (true, Some(_)) if force => {
            notes.warn("spec.consolidation", Change::ConsolidationWins);
            Removal::WhenUnderutilized
        }
        (true, Some(_)) => {
            let problem = "excludes ttlSecondsAfterEmpty; with --force consolidation wins";
            notes.invalid("spec.consolidation.enabled", problem);
            Removal::WhenUnderutilized
        }
        (true, None) => Removal::WhenUnderutilized,
        (false, Some(seconds)) => Removal::AfterEmpty(seconds),
        (false, None) => Removal::Never,
    }
}

fn seconds(seconds: i64) -> DurationOrNever {
    DurationOrNever(duration::format(SignedDuration::from_secs(seconds)))
}

fn expire_after(spec: &ProvisionerSpec, notes: &mut Notes) -> DurationOrNever {
    let field = "spec.ttlSecondsUntilExpired";
    match spec.ttl_seconds_until_expired {
        None => DurationOrNever::never(),
        Some(time) => {
            notes.warn(field, Change::ExpiryIsForceful);
            if time == 0 {
                notes.warn(field, Change::ExpiresAtOnce);
            }
            seconds(time)
        }
    }
}

fn check_numbers(spec: &ProvisionerSpec, notes: &mut Notes) {
    for (field, time) in [
        ("spec.ttlSecondsAfterEmpty", spec.ttl_seconds_after_empty),
        ("spec.ttlSecondsUntilExpired", spec.ttl_seconds_until_expired),
    ] {
        if time.is_some_and(i64::is_negative) {
            notes.invalid(field, "may not be negative");
        }
    }
    if spec.weight.is_some_and(|weight| !(1..=100).contains(&weight)) {
        notes.invalid("spec.weight", "is not between 1 and 100");
    }
    for (resource, amount) in limits(spec).iter().flatten() {
        if Quantity::parse(&amount.0).is_err() {
            let problem = format!("{:?} is not a quantity", amount.0);
            notes.invalid(format!("spec.limits.resources[{resource}]"), problem);
        }
    }
}

/// Labels and annotations of the nodes, with today's keys.
fn metadata(spec: &ProvisionerSpec, notes: &mut Notes) -> Option<TemplateMetadata> {
    let mut labels = BTreeMap::new();
    for (key, value) in spec.labels.iter().flatten() {
        match fate(key) {
            Fate::Stays(key) => {
                labels.insert(key.to_owned(), value.clone());
            }
            Fate::Goes(why) => {
                let key = key.clone();
                notes.warn("spec.labels", Change::RequirementRemoved { key, why });
            }
        }
    }
    let mut annotations = BTreeMap::new();
    for (key, value) in spec.annotations.iter().flatten() {
        let mut key = key.as_str();
        if key == DO_NOT_CONSOLIDATE {
            let to = DO_NOT_DISRUPT;
            notes.warn(format!("spec.annotations[{key}]"), Change::Widens { to });
            key = to;
        }
        annotations.insert(key.to_owned(), value.clone());
    }
    let metadata = TemplateMetadata {
        labels: (!labels.is_empty()).then_some(labels),
        annotations: (!annotations.is_empty()).then_some(annotations),
    };
    (metadata != TemplateMetadata::default()).then_some(metadata)
}

fn requirements(
    spec: &ProvisionerSpec,
    generation: Generation,
    context: &Context<'_>,
    notes: &mut Notes,
) -> Vec<Requirement> {
    let written = spec.requirements.as_deref().unwrap_or_default();
    let mut requirements = requirements::renamed(written, notes);
    if !context.options.ignore_defaults {
        let added = requirements::defaults(generation, &requirements, spec.labels.as_ref());
        if !added.is_empty() {
            let keys = added
                .iter()
                .map(|requirement| requirement.key.as_str())
                .collect::<Vec<_>>();
            let keys = keys.join(", ");
            notes.warn("spec.requirements", Change::DefaultsFrozen { keys });
        }
        requirements.extend(added);
    }
    if requirements.len() > MOST_REQUIREMENTS {
        let count = requirements.len();
        let most = MOST_REQUIREMENTS;
        notes.refuse(
            "spec.requirements",
            Reason::TooMany {
                count,
                what: "requirements",
                most,
            },
        );
    }
    requirements
}

/// The pool in v1. Its class is a reference by name; its kubelet settings are [`kubelet`].
pub fn v1(
    spec: &ProvisionerSpec,
    generation: Generation,
    class: &str,
    context: &Context<'_>,
    notes: &mut Notes,
) -> NodePoolSpec {
    check_numbers(spec, notes);
    let (policy, after) = match removal(spec, context.options.force, notes) {
        Removal::Never => (ConsolidationPolicy::WhenEmpty, DurationOrNever::never()),
        Removal::AfterEmpty(time) => (ConsolidationPolicy::WhenEmpty, seconds(time)),
        Removal::WhenUnderutilized => (ConsolidationPolicy::WhenEmptyOrUnderutilized, seconds(0)),
    };
    let pool = NodePoolSpec {
        template: NodeClaimTemplate {
            metadata: metadata(spec, notes),
            spec: NodeClaimTemplateSpec {
                taints: spec.taints.clone().filter(|taints| !taints.is_empty()),
                startup_taints: spec.startup_taints.clone().filter(|taints| !taints.is_empty()),
                requirements: requirements(spec, generation, context, notes),
                node_class_ref: class_reference(class),
                termination_grace_period: None,
                expire_after: Some(expire_after(spec, notes)),
            },
        },
        disruption: Some(Disruption {
            consolidation_policy: Some(policy),
            consolidate_after: Some(after),
            budgets: context.options.preserve_parallelism.then(parallel_budgets),
        }),
        limits: limits(spec),
        weight: spec.weight,
        replicas: None,
    };
    check_template(&pool, notes);
    pool
}

pub fn class_reference(name: &str) -> NodeClassReference {
    NodeClassReference {
        group: "karpenter.k8s.aws".to_owned(),
        kind: "EC2NodeClass".to_owned(),
        name: name.to_owned(),
    }
}

fn limits(spec: &ProvisionerSpec) -> Option<api::v1::Quantities> {
    let resources = spec.limits.as_ref()?.resources.clone()?;
    (!resources.is_empty()).then_some(resources)
}

/// Empty nodes all at once and others one by one, which comes nearest to the releases before budgets.
fn parallel_budgets() -> Vec<Budget> {
    let budget = |nodes: &str, reasons: Vec<DisruptionReason>| Budget {
        nodes: nodes.to_owned(),
        reasons: Some(reasons),
        schedule: None,
        duration: None,
    };
    vec![
        budget("100%", vec![DisruptionReason::Empty]),
        budget("1", vec![DisruptionReason::Underutilized, DisruptionReason::Drifted]),
    ]
}

/// The rules for labels, taints and requirements are those of v1, which is where the result has to live.
fn check_template(pool: &NodePoolSpec, notes: &mut Notes) {
    let pool = NodePool {
        metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta::default(),
        spec: pool.clone(),
        status: None,
    };
    for error in validate::node_pool(&pool, &vocabulary::aws()) {
        let field = error.field.replacen("spec.template.spec.", "spec.", 1);
        notes.invalid(field.replacen("spec.template.metadata.", "spec.", 1), error.problem);
    }
}

/// The kubelet settings, which belong to the class from v1 on.
pub fn kubelet(spec: &ProvisionerSpec, notes: &mut Notes) -> Option<KubeletConfiguration> {
    let written = spec.kubelet_configuration.as_ref()?;
    if written
        .container_runtime
        .as_deref()
        .is_some_and(|runtime| runtime != "containerd")
    {
        let problem = "only containerd is left; dockerd ended with Kubernetes 1.24";
        notes.invalid("spec.kubeletConfiguration.containerRuntime", problem);
    }
    if let Ok(Value::Object(settings)) = serde_json::to_value(&written.settings) {
        for error in validate::kubelet(&settings) {
            notes.invalid(
                error.field.replacen("spec.kubelet", "spec.kubeletConfiguration", 1),
                error.problem,
            );
        }
    }
    (written.settings != KubeletConfiguration::default()).then(|| written.settings.clone())
}

/// The pool as upstream's converter of 0.32 writes it.
pub fn v1beta1(
    spec: &ProvisionerSpec,
    generation: Generation,
    class: &str,
    context: &Context<'_>,
    notes: &mut Notes,
) -> beta::NodePoolSpec {
    check_numbers(spec, notes);
    let (policy, after) = match removal(spec, context.options.force, notes) {
        Removal::Never => (None, None),
        Removal::AfterEmpty(time) => (Some("WhenEmpty"), Some(seconds(time))),
        Removal::WhenUnderutilized => (Some("WhenUnderutilized"), None),
    };
    beta::NodePoolSpec {
        template: beta::Template {
            metadata: metadata(spec, notes),
            spec: beta::TemplateSpec {
                taints: spec.taints.clone().filter(|taints| !taints.is_empty()),
                startup_taints: spec.startup_taints.clone().filter(|taints| !taints.is_empty()),
                requirements: requirements(spec, generation, context, notes),
                kubelet: kubelet(spec, notes),
                node_class_ref: Some(beta::NodeClassRef {
                    name: class.to_owned(),
                    ..beta::NodeClassRef::default()
                }),
            },
        },
        disruption: Some(beta::Disruption {
            consolidation_policy: policy.map(str::to_owned),
            consolidate_after: after,
            expire_after: Some(match spec.ttl_seconds_until_expired {
                Some(time) => seconds(time),
                None => DurationOrNever::never(),
            }),
            budgets: None,
        }),
        limits: limits(spec),
        weight: spec.weight,
    }
}
