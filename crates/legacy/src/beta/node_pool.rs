//! NodePool between v1beta1 and v1.

use api::aws::KubeletConfiguration;
use api::duration::{DurationOrNever, NEVER};
use api::v1::{
    self, ConsolidationPolicy, NodeClaimTemplate, NodeClaimTemplateSpec, NodeClassReference, Operator, Requirement,
};
use serde_json::{Map, Value};

use super::types::{Budget, Disruption, NodeClassRef, NodePoolSpec, Template, TemplateSpec};
use super::{V1BETA1, annotations};
use crate::manifest::{annotate, annotation, take_annotation};
use crate::notes::{Change, Notes};

const WHEN_UNDERUTILIZED: &str = "WhenUnderutilized";
const AWS_GROUP: &str = "karpenter.k8s.aws";
const AWS_KIND: &str = "EC2NodeClass";

/// The pool in v1. Kubelet settings and the reference as it was travel in annotations.
pub fn up(spec: NodePoolSpec, metadata: &mut Map<String, Value>) -> v1::NodePoolSpec {
    let template = spec.template.spec;
    let reference = template.node_class_ref.unwrap_or_default();
    put_reference(metadata, &reference);
    put_kubelet(metadata, template.kubelet.as_ref());
    let (disruption, expire_after) = match spec.disruption {
        Some(disruption) => {
            let expire_after = disruption.expire_after.clone();
            (Some(disruption_up(disruption)), expire_after)
        }
        None => (None, None),
    };
    v1::NodePoolSpec {
        template: NodeClaimTemplate {
            metadata: spec.template.metadata,
            spec: NodeClaimTemplateSpec {
                taints: template.taints,
                startup_taints: template.startup_taints,
                requirements: template.requirements,
                node_class_ref: reference_up(&reference),
                termination_grace_period: None,
                expire_after,
            },
        },
        disruption: disruption.filter(|disruption| *disruption != v1::Disruption::default()),
        limits: spec.limits,
        weight: spec.weight,
        replicas: None,
    }
}

/// Underutilized nodes were consolidated without delay, or, with `Never`, not at all.
fn disruption_up(written: Disruption) -> v1::Disruption {
    let never = written.consolidate_after.as_ref().is_some_and(|after| after.0 == NEVER);
    let underutilized = written.consolidation_policy.as_deref() == Some(WHEN_UNDERUTILIZED);
    v1::Disruption {
        consolidate_after: match written.consolidate_after {
            _ if underutilized && !never => Some(DurationOrNever::from("0s")),
            after => after,
        },
        consolidation_policy: written.consolidation_policy.map(|policy| {
            if underutilized {
                ConsolidationPolicy::WhenEmptyOrUnderutilized
            } else {
                ConsolidationPolicy::from(policy.as_str())
            }
        }),
        budgets: written.budgets.map(|budgets| {
            let budgets = budgets.into_iter().map(|budget| v1::Budget {
                nodes: budget.nodes,
                reasons: None,
                schedule: budget.schedule,
                duration: budget.duration,
            });
            budgets.collect()
        }),
    }
}

/// The pool in v1beta1. What v1beta1 has no field for is a loss.
pub fn down(spec: v1::NodePoolSpec, metadata: &mut Map<String, Value>, force: bool, notes: &mut Notes) -> NodePoolSpec {
    let template = spec.template.spec;
    if template.termination_grace_period.is_some() {
        notes.lose("spec.template.spec.terminationGracePeriod", V1BETA1, force);
    }
    if spec.replicas.is_some() {
        notes.lose("spec.replicas", V1BETA1, force);
    }
    let disruption = disruption_down(spec.disruption.unwrap_or_default(), template.expire_after, force, notes);
    take_annotation(metadata, annotations::STORED_VERSION_MIGRATED);
    NodePoolSpec {
        template: Template {
            metadata: spec.template.metadata,
            spec: TemplateSpec {
                taints: template.taints,
                startup_taints: template.startup_taints,
                requirements: requirements_down(template.requirements, "spec.template.spec.requirements", force, notes),
                kubelet: take_kubelet(metadata),
                node_class_ref: Some(take_reference(metadata, &template.node_class_ref)),
            },
        },
        disruption: (disruption != Disruption::default()).then_some(disruption),
        limits: spec.limits,
        weight: spec.weight,
    }
}

fn disruption_down(
    written: v1::Disruption,
    expire_after: Option<DurationOrNever>,
    force: bool,
    notes: &mut Notes,
) -> Disruption {
    let after = written.consolidate_after;
    let field = "spec.disruption.consolidateAfter";
    let (policy, after) = match written.consolidation_policy {
        // Absent means underutilized on both sides.
        None => (None, immediate(after, field, notes)),
        Some(ConsolidationPolicy::WhenEmptyOrUnderutilized) => {
            (Some(WHEN_UNDERUTILIZED.to_owned()), immediate(after, field, notes))
        }
        Some(ConsolidationPolicy::Balanced) => {
            notes.warn("spec.disruption.consolidationPolicy", Change::BalanceLost);
            (Some(WHEN_UNDERUTILIZED.to_owned()), immediate(after, field, notes))
        }
        // v1beta1 wants a time here; v1 has a default.
        Some(ConsolidationPolicy::WhenEmpty) => {
            let after = after.unwrap_or_else(|| DurationOrNever::from("0s"));
            (Some(ConsolidationPolicy::WhenEmpty.to_string()), Some(after))
        }
        Some(ConsolidationPolicy::Other(word)) => (Some(word), after),
    };
    let mut budgets = Vec::new();
    for (index, budget) in written.budgets.iter().flatten().enumerate() {
        if budget.reasons.is_some() {
            notes.lose(format!("spec.disruption.budgets[{index}].reasons"), V1BETA1, force);
        }
        budgets.push(Budget {
            nodes: budget.nodes.clone(),
            schedule: budget.schedule.clone(),
            duration: budget.duration.clone(),
        });
    }
    Disruption {
        consolidation_policy: policy,
        consolidate_after: after,
        expire_after,
        budgets: written.budgets.map(|_| budgets),
    }
}

/// v1beta1 consolidates underutilized nodes at once or never.
fn immediate(after: Option<DurationOrNever>, field: &str, notes: &mut Notes) -> Option<DurationOrNever> {
    let after = after?;
    if after.0 == NEVER {
        return Some(after);
    }
    let zero = after
        .parse()
        .is_ok_and(|length| length.is_some_and(|length| length.is_zero()));
    if !zero {
        notes.warn(field, Change::DelayLost { from: after.0 });
    }
    None
}

/// Bounds that include their number are newer than v1beta1; between whole numbers they are the same as those that do not.
pub fn requirements_down(written: Vec<Requirement>, field: &str, force: bool, notes: &mut Notes) -> Vec<Requirement> {
    let mut requirements = Vec::new();
    for (index, mut requirement) in written.into_iter().enumerate() {
        let step = match requirement.operator {
            Operator::Gte => Some((Operator::Gt, -1)),
            Operator::Lte => Some((Operator::Lt, 1)),
            _ => None,
        };
        if let Some((operator, step)) = step {
            let bound = requirement
                .values
                .as_deref()
                .and_then(|values| values.first()?.parse::<i64>().ok());
            match bound.map(|bound| bound + step).filter(|bound| *bound >= 0) {
                Some(bound) => {
                    requirement.operator = operator;
                    requirement.values = Some(vec![bound.to_string()]);
                }
                None => {
                    notes.lose(format!("{field}[{index}]"), V1BETA1, force);
                    continue;
                }
            }
        }
        requirements.push(requirement);
    }
    requirements
}

pub fn reference_up(reference: &NodeClassRef) -> NodeClassReference {
    let group = reference
        .api_version
        .as_deref()
        .and_then(|version| version.split_once('/'));
    let kind = reference.kind.clone().filter(|kind| !kind.is_empty());
    NodeClassReference {
        group: group.map_or(AWS_GROUP, |(group, _)| group).to_owned(),
        kind: kind.unwrap_or_else(|| AWS_KIND.to_owned()),
        name: reference.name.clone(),
    }
}

/// The reference as it was, or as it can be told from today's. The version is only there to carry the group.
pub fn take_reference(metadata: &mut Map<String, Value>, reference: &NodeClassReference) -> NodeClassRef {
    let remembered = take_annotation(metadata, annotations::NODE_CLASS_REFERENCE);
    let remembered = remembered.and_then(|text| serde_json::from_str::<NodeClassRef>(&text).ok());
    // A pool may have moved to another class since the annotation was written.
    remembered
        .filter(|remembered| reference_up(remembered) == *reference)
        .unwrap_or_else(|| NodeClassRef {
            api_version: (reference.group != AWS_GROUP).then(|| format!("{}/{V1BETA1}", reference.group)),
            kind: Some(reference.kind.clone()),
            name: reference.name.clone(),
        })
}

pub fn put_reference(metadata: &mut Map<String, Value>, reference: &NodeClassRef) {
    let text = serde_json::to_string(reference).unwrap_or_default();
    annotate(metadata, annotations::NODE_CLASS_REFERENCE, text);
}

pub fn put_kubelet(metadata: &mut Map<String, Value>, kubelet: Option<&KubeletConfiguration>) {
    take_annotation(metadata, annotations::KUBELET);
    if let Some(kubelet) = kubelet {
        annotate(
            metadata,
            annotations::KUBELET,
            serde_json::to_string(kubelet).unwrap_or_default(),
        );
    }
}

/// An annotation that cannot be read would be lost with whatever it says.
pub fn check_kubelet(object: &Value, notes: &mut Notes) {
    if let Some(text) = annotation(object, annotations::KUBELET)
        && let Err(error) = serde_json::from_str::<KubeletConfiguration>(text)
    {
        notes.invalid(format!("metadata.annotations[{}]", annotations::KUBELET), error);
    }
}

pub fn take_kubelet(metadata: &mut Map<String, Value>) -> Option<KubeletConfiguration> {
    let text = take_annotation(metadata, annotations::KUBELET)?;
    serde_json::from_str(&text).ok()
}
