//! NodePool.

use std::collections::BTreeSet;

use model::{Effect, Vocabulary};

use super::names::{label_value, qualified_name};
use super::requirement::{Demand, requirement};
use crate::field_error::FieldError;
use crate::labels;
use crate::v1::{NodeClaimTemplateSpec, NodePool};

/// All that is wrong with a pool's template.
pub fn node_pool(pool: &NodePool, words: &Vocabulary) -> Vec<FieldError> {
    let template = &pool.spec.template;
    let mut errors = template_labels(pool, words);
    errors.extend(taints(&template.spec));
    errors.extend(requirements(&template.spec, words));
    errors
}

fn template_labels(pool: &NodePool, words: &Vocabulary) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let labels = pool
        .spec
        .template
        .metadata
        .as_ref()
        .and_then(|metadata| metadata.labels.as_ref());
    for (key, value) in labels.into_iter().flatten() {
        let path = format!("spec.template.metadata.labels[{key}]");
        if key == labels::NODE_POOL {
            errors.push(FieldError::new(&path, "this label is set by Karpenter"));
        }
        if let Err(problem) = qualified_name(key) {
            errors.push(FieldError::new(&path, problem));
        }
        if let Err(problem) = label_value(value) {
            errors.push(FieldError::new(&path, problem));
        }
        if words.is_restricted(key) {
            errors.push(FieldError::new(&path, format_args!("label {key:?} is restricted")));
        }
    }
    errors
}

fn taints(spec: &NodeClaimTemplateSpec) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    let lists = [("taints", &spec.taints), ("startupTaints", &spec.startup_taints)];
    for (name, list) in lists {
        for (index, taint) in list.iter().flatten().enumerate() {
            let path = format!("spec.template.spec.{name}[{index}]");
            if let Err(problem) = qualified_name(&taint.key) {
                errors.push(FieldError::new(format!("{path}.key"), problem));
            }
            if let Some(value) = taint.value.as_deref().filter(|value| !value.is_empty())
                && let Err(problem) = qualified_name(value)
            {
                errors.push(FieldError::new(format!("{path}.value"), problem));
            }
            if !taint.effect.is_empty()
                && let Err(problem) = taint.effect.parse::<Effect>()
            {
                errors.push(FieldError::new(format!("{path}.effect"), problem));
            }
            // A node cannot have both, so one of the two would be lost.
            if !seen.insert((&taint.key, &taint.effect)) {
                let problem = format!("taint {}:{} occurs twice", taint.key, taint.effect);
                errors.push(FieldError::new(path, problem));
            }
        }
    }
    errors
}

fn requirements(spec: &NodeClaimTemplateSpec, words: &Vocabulary) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (index, written) in spec.requirements.iter().enumerate() {
        let path = format!("spec.template.spec.requirements[{index}]");
        let demand = Demand {
            key: &written.key,
            operator: written.operator.as_str(),
            values: written.values.as_deref().unwrap_or_default(),
            min_values: written.min_values,
        };
        errors.extend(requirement(&path, &demand, words));
        if written.key == labels::NODE_POOL {
            let problem = format!("label {:?} is restricted", labels::NODE_POOL);
            errors.push(FieldError::new(format!("{path}.key"), problem));
        }
    }
    errors
}
