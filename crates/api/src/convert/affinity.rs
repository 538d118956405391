//! Affinity, spread and toleration rules of a pod.

use k8s_openapi::api::core::v1 as core;
use model::Toleration;
use model::pod::{Affinity, NodeTerm, PodTerm, TopologySpread};
use model::taint::TolerationOperator;

use super::requirement::{Written, requirement};
use super::selector::selector;
use crate::field_error::FieldError;

/// `namespace` is the pod's own: where a term names none, it means that one.
pub fn affinity(namespace: &str, affinity: Option<&core::Affinity>, errors: &mut Vec<FieldError>) -> Affinity {
    let Some(affinity) = affinity else {
        return Affinity::default();
    };
    let mut read = Affinity::default();
    if let Some(nodes) = &affinity.node_affinity {
        let path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
        let required = nodes.required_during_scheduling_ignored_during_execution.iter();
        for (index, term) in required.flat_map(|selector| &selector.node_selector_terms).enumerate() {
            read.required_nodes
                .push(node_term(&format!("{path}[{index}]"), term, errors));
        }
        // A preference that cannot be read cannot be honoured either; it is given up like any other.
        for term in nodes
            .preferred_during_scheduling_ignored_during_execution
            .iter()
            .flatten()
        {
            let mut unread = Vec::new();
            let preferred = node_term("", &term.preference, &mut unread);
            if unread.is_empty() {
                read.preferred_nodes.push(NodeTerm {
                    weight: term.weight,
                    ..preferred
                });
            }
        }
    }
    if let Some(pods) = &affinity.pod_affinity {
        read.required_pods = required_pods(
            namespace,
            "spec.affinity.podAffinity",
            pods.required_during_scheduling_ignored_during_execution.as_ref(),
            errors,
        );
        read.preferred_pods = preferred_pods(
            namespace,
            "spec.affinity.podAffinity",
            pods.preferred_during_scheduling_ignored_during_execution.as_ref(),
            errors,
        );
    }
    if let Some(pods) = &affinity.pod_anti_affinity {
        read.required_anti = required_pods(
            namespace,
            "spec.affinity.podAntiAffinity",
            pods.required_during_scheduling_ignored_during_execution.as_ref(),
            errors,
        );
        read.preferred_anti = preferred_pods(
            namespace,
            "spec.affinity.podAntiAffinity",
            pods.preferred_during_scheduling_ignored_during_execution.as_ref(),
            errors,
        );
    }
    read
}

fn node_term(path: &str, term: &core::NodeSelectorTerm, errors: &mut Vec<FieldError>) -> NodeTerm {
    // A node that does not exist yet has no fields to match. Daemon pods carry such a term once they are placed.
    if term.match_fields.as_ref().is_some_and(|fields| !fields.is_empty()) {
        errors.push(FieldError::new(
            format!("{path}.matchFields"),
            "only labels can be matched",
        ));
    }
    let mut requirements = Vec::new();
    for (index, expression) in term.match_expressions.iter().flatten().enumerate() {
        let written = Written {
            key: &expression.key,
            operator: &expression.operator,
            values: expression.values.as_ref(),
            min_values: None,
        };
        match requirement(&format!("{path}.matchExpressions[{index}]"), &written) {
            Ok(requirement) => requirements.push(requirement),
            Err(error) => errors.push(error),
        }
    }
    NodeTerm {
        weight: 0,
        requirements,
    }
}

fn required_pods(
    namespace: &str,
    path: &str,
    terms: Option<&Vec<core::PodAffinityTerm>>,
    errors: &mut Vec<FieldError>,
) -> Vec<PodTerm> {
    let path = format!("{path}.requiredDuringSchedulingIgnoredDuringExecution");
    let terms = terms.into_iter().flatten().enumerate();
    terms
        .map(|(index, term)| pod_term(namespace, &format!("{path}[{index}]"), term, 0, errors))
        .collect()
}

fn preferred_pods(
    namespace: &str,
    path: &str,
    terms: Option<&Vec<core::WeightedPodAffinityTerm>>,
    errors: &mut Vec<FieldError>,
) -> Vec<PodTerm> {
    let path = format!("{path}.preferredDuringSchedulingIgnoredDuringExecution");
    let terms = terms.into_iter().flatten().enumerate();
    terms
        .map(|(index, term)| {
            let path = format!("{path}[{index}].podAffinityTerm");
            pod_term(namespace, &path, &term.pod_affinity_term, term.weight, errors)
        })
        .collect()
}

fn pod_term(
    namespace: &str,
    path: &str,
    term: &core::PodAffinityTerm,
    weight: i32,
    errors: &mut Vec<FieldError>,
) -> PodTerm {
    let mut namespaces: std::collections::BTreeSet<String> = term.namespaces.iter().flatten().cloned().collect();
    if namespaces.is_empty() && term.namespace_selector.is_none() {
        namespaces.insert(namespace.to_owned());
    }
    PodTerm {
        topology_key: term.topology_key.clone(),
        selector: selector(&format!("{path}.labelSelector"), term.label_selector.as_ref(), errors),
        namespaces,
        namespace_selector: selector(
            &format!("{path}.namespaceSelector"),
            term.namespace_selector.as_ref(),
            errors,
        ),
        match_label_keys: term.match_label_keys.clone().unwrap_or_default(),
        mismatch_label_keys: term.mismatch_label_keys.clone().unwrap_or_default(),
        weight,
    }
}

pub fn spreads(
    constraints: Option<&Vec<core::TopologySpreadConstraint>>,
    errors: &mut Vec<FieldError>,
) -> Vec<TopologySpread> {
    let mut read = Vec::new();
    for (index, constraint) in constraints.into_iter().flatten().enumerate() {
        let path = format!("spec.topologySpreadConstraints[{index}]");
        let positive = |field: &str, number: i32, errors: &mut Vec<FieldError>| match u32::try_from(number) {
            Ok(number) if number > 0 => Some(number),
            _ => {
                errors.push(FieldError::new(
                    format!("{path}.{field}"),
                    format_args!("{number} is not positive"),
                ));
                None
            }
        };
        read.push(TopologySpread {
            topology_key: constraint.topology_key.clone(),
            max_skew: positive("maxSkew", constraint.max_skew, errors).unwrap_or(1),
            min_domains: constraint
                .min_domains
                .and_then(|least| positive("minDomains", least, errors)),
            required: constraint.when_unsatisfiable != "ScheduleAnyway",
            selector: selector(
                &format!("{path}.labelSelector"),
                constraint.label_selector.as_ref(),
                errors,
            ),
            match_label_keys: constraint.match_label_keys.clone().unwrap_or_default(),
            honor_affinity: constraint.node_affinity_policy.as_deref() != Some("Ignore"),
            honor_taints: constraint.node_taints_policy.as_deref() == Some("Honor"),
        });
    }
    read
}

pub fn tolerations(written: Option<&Vec<core::Toleration>>, errors: &mut Vec<FieldError>) -> Vec<Toleration> {
    let mut read = Vec::new();
    for (index, toleration) in written.into_iter().flatten().enumerate() {
        let path = format!("spec.tolerations[{index}]");
        let operator = match toleration.operator.as_deref() {
            None | Some("" | "Equal") => TolerationOperator::Equal,
            Some("Exists") => TolerationOperator::Exists,
            Some("Lt") => TolerationOperator::Lt,
            Some("Gt") => TolerationOperator::Gt,
            Some(other) => {
                let problem = format_args!("{other:?} is not Equal, Exists, Lt or Gt").to_string();
                errors.push(FieldError::new(format!("{path}.operator"), problem));
                continue;
            }
        };
        let effect = match toleration.effect.as_deref() {
            None | Some("") => None,
            Some(effect) => match effect.parse() {
                Ok(effect) => Some(effect),
                Err(error) => {
                    errors.push(FieldError::new(format!("{path}.effect"), error));
                    continue;
                }
            },
        };
        read.push(Toleration {
            key: toleration.key.clone().unwrap_or_default(),
            operator,
            value: toleration.value.clone().unwrap_or_default(),
            effect,
            toleration_seconds: toleration.toleration_seconds,
        });
    }
    read
}
