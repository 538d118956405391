//! Node pools.

use jiff::SignedDuration;
use kube::ResourceExt;
use model::budget::{Budget, Window};
use model::pool::{ConsolidationPolicy, Disruption, Template};
use model::{Pool, Requirements};

use super::claim::{class, length};
use super::requirement::requirements;
use super::{Parsed, fields};
use crate::conditions::{self, HasConditions};
use crate::duration::DurationOrNever;
use crate::field_error::{FieldError, joined};
use crate::v1::{self, NodeClaimTemplate, NodePool};
use crate::{hash, labels};

/// What the schema puts in when a pool says nothing about budgets.
const DEFAULT_BUDGET: &str = "10%";

/// A pool as decisions see it.
pub fn pool(written: &NodePool) -> Parsed<Pool> {
    let mut errors = Vec::new();
    let meta = &written.metadata;
    let spec = &written.spec;
    let mut template = template(&spec.template, &mut errors);
    label_as_converted(written, &mut template);
    let limits = fields::resources("spec.limits", spec.limits.as_ref(), &mut errors);
    // Hashing trips over the same durations as the template does; they are reported once.
    let hash = hash::node_pool(written).unwrap_or_default();
    let readable = errors.is_empty();
    let disruption = disruption(spec.disruption.as_ref(), &mut errors);
    let value = Pool {
        name: fields::name(meta).into(),
        uid: fields::uid(meta),
        hash,
        template,
        disruption,
        limits,
        weight: spec.weight.unwrap_or_default(),
        replicas: spec.replicas,
        ready: readable && conditions::is_true(written.conditions(), conditions::READY),
        deleting: fields::time(meta.deletion_timestamp.as_ref()),
    };
    Parsed { value, errors }
}

/// Nodes of a pool that follows a Provisioner carry its name as they always did, which no template may ask for.
fn label_as_converted(pool: &NodePool, template: &mut Template) {
    let managed = pool.labels().get(labels::compatibility::MANAGED);
    if managed.is_some_and(|value| value == labels::compatibility::LEGACY) {
        let label = model::Labels::from_iter([(labels::PROVISIONER_NAME.into(), pool.name_any().as_str().into())]);
        template.requirements.merge(&Requirements::from_labels(&label));
        template.labels.extend(label);
    }
}

fn template(written: &NodeClaimTemplate, errors: &mut Vec<FieldError>) -> Template {
    let metadata = written.metadata.as_ref();
    let labels = fields::labels(metadata.and_then(|metadata| metadata.labels.as_ref()));
    let spec = &written.spec;
    let mut all = requirements("spec.template.spec.requirements", &spec.requirements, errors);
    all.merge(&Requirements::from_labels(&labels));
    let expire_after = spec.expire_after.as_ref().map(DurationOrNever::parse);
    let grace = spec
        .termination_grace_period
        .as_ref()
        .map(|text| text.parse().map(Some));
    Template {
        labels,
        annotations: fields::labels(metadata.and_then(|metadata| metadata.annotations.as_ref())),
        requirements: all,
        taints: fields::taints("spec.template.spec.taints", spec.taints.as_ref(), errors),
        startup_taints: fields::taints("spec.template.spec.startupTaints", spec.startup_taints.as_ref(), errors),
        class: class(&spec.node_class_ref),
        expire_after: length("spec.template.spec.expireAfter", expire_after, errors),
        termination_grace: length("spec.template.spec.terminationGracePeriod", grace, errors),
    }
}

fn disruption(written: Option<&v1::Disruption>, errors: &mut Vec<FieldError>) -> Disruption {
    let consolidate_after = written
        .and_then(|disruption| disruption.consolidate_after.as_ref())
        .map_or(Ok(Some(SignedDuration::ZERO)), DurationOrNever::parse);
    let policy = written.and_then(|disruption| disruption.consolidation_policy.as_ref());
    Disruption {
        policy: match policy {
            None | Some(v1::ConsolidationPolicy::WhenEmptyOrUnderutilized) => {
                ConsolidationPolicy::WhenEmptyOrUnderutilized
            }
            Some(v1::ConsolidationPolicy::WhenEmpty) => ConsolidationPolicy::WhenEmpty,
            Some(v1::ConsolidationPolicy::Balanced) => ConsolidationPolicy::Balanced,
            Some(v1::ConsolidationPolicy::Other(word)) => {
                let problem = format!("{word:?} is not one of {}", v1::ConsolidationPolicy::WORDS.join(", "));
                errors.push(FieldError::new("spec.disruption.consolidationPolicy", problem));
                ConsolidationPolicy::WhenEmpty
            }
        },
        consolidate_after: length("spec.disruption.consolidateAfter", Some(consolidate_after), errors),
        budgets: budgets(written).map_err(|unreadable| {
            let message = joined(&unreadable);
            errors.extend(unreadable);
            message
        }),
    }
}

/// All budgets or, if one cannot be read, none: a pool whose owner meant to protect it stays protected.
fn budgets(written: Option<&v1::Disruption>) -> Result<Vec<Budget>, Vec<FieldError>> {
    let Some(written) = written.and_then(|disruption| disruption.budgets.as_ref()) else {
        let nodes = DEFAULT_BUDGET
            .parse()
            .map_err(|error| vec![FieldError::new("spec.disruption", error)])?;
        return Ok(vec![Budget::always(nodes)]);
    };
    let mut budgets = Vec::new();
    let mut errors = Vec::new();
    for (index, written) in written.iter().enumerate() {
        match budget(&format!("spec.disruption.budgets[{index}]"), written) {
            Ok(budget) => budgets.push(budget),
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() { Ok(budgets) } else { Err(errors) }
}

fn budget(path: &str, written: &v1::Budget) -> Result<Budget, FieldError> {
    let nodes = written
        .nodes
        .parse()
        .map_err(|error| FieldError::new(format!("{path}.nodes"), error))?;
    let reasons = written
        .reasons
        .as_ref()
        .map(|reasons| {
            reasons
                .iter()
                .map(|reason| reason.as_str().parse())
                .collect::<Result<_, _>>()
        })
        .transpose()
        .map_err(|error| FieldError::new(format!("{path}.reasons"), error))?;
    let window = match (&written.schedule, &written.duration) {
        (None, None) => None,
        (Some(schedule), Some(duration)) => Some(Window {
            schedule: schedule
                .parse()
                .map_err(|error| FieldError::new(format!("{path}.schedule"), error))?,
            duration: duration
                .parse()
                .map_err(|error| FieldError::new(format!("{path}.duration"), error))?,
        }),
        (Some(_), None) => return Err(FieldError::new(path, "schedule is set without duration")),
        (None, Some(_)) => return Err(FieldError::new(path, "duration is set without schedule")),
    };
    Ok(Budget { nodes, reasons, window })
}
