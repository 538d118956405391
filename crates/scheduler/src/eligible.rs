//! Pods that ask for something no node can have are told so before any place is looked for.

use model::{LabelKey, Pod, Requirement, Snapshot, pod::PodShape, requirement::Operator, vocabulary};

use crate::{
    dra::DraRefusal,
    refusal::{InvalidPod, Refusal},
    round::Options,
    wishes::contradiction,
};

/// Whether a pod takes part in a round.
///
/// # Errors
///
/// The first demand that rules the pod out, whatever the pools are.
pub(crate) fn check(snapshot: &Snapshot, pod: &Pod, options: &Options) -> Result<(), Refusal> {
    let shape = &pod.shape;
    if options.ignore_dra && shape.claims_devices() {
        return Err(Refusal::Devices(DraRefusal::Ignored));
    }
    let first_term = shape.affinity.required_nodes.first();
    let insists = shape
        .node_selector
        .iter()
        .chain(first_term.into_iter().flat_map(|term| &term.requirements));
    let opts_out = |requirement: &Requirement| {
        requirement.key == vocabulary::NODEPOOL && requirement.operator() == Operator::DoesNotExist
    };
    if insists.clone().any(opts_out) {
        return Err(Refusal::Invalid(InvalidPod::OptsOut));
    }
    let terms = shape.affinity.required_nodes.iter().flat_map(|term| &term.requirements);
    for requirement in shape.node_selector.iter().chain(terms) {
        valid(snapshot, requirement).map_err(Refusal::Invalid)?;
    }
    contradicted(shape).map_or(Ok(()), |key| Err(Refusal::Invalid(InvalidPod::Contradiction { key })))
}

/// A label about which each alternative of the pod contradicts itself.
fn contradicted(shape: &PodShape) -> Option<LabelKey> {
    let terms = &shape.affinity.required_nodes;
    let selector = || shape.node_selector.iter();
    let mut keys = terms
        .iter()
        .map(|term| contradiction(selector().chain(&term.requirements)));
    let first = keys.next().unwrap_or_else(|| contradiction(selector()))?;
    keys.all(|key| key.is_some()).then(|| first.clone())
}

fn valid(snapshot: &Snapshot, requirement: &Requirement) -> Result<(), InvalidPod> {
    let vocabulary = &snapshot.vocabulary;
    let key = &requirement.key;
    if vocabulary.is_restricted(key.as_str()) {
        return Err(InvalidPod::Restricted { key: key.clone() });
    }
    if requirement.operator() == Operator::In
        && let Some(known) = vocabulary.known_values.get(key)
        && !known.iter().any(|value| requirement.has(value.as_str()))
    {
        return Err(InvalidPod::UnknownValues {
            requirement: requirement.clone(),
            known: known.iter().cloned().collect(),
        });
    }
    Ok(())
}
