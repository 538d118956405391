//! Pods that are alike are placed together.
//!
//! A workload of ten thousand replicas is one question asked ten thousand times. Pods with the same needs form a class;
//! what refuses one of them refuses all, so that a class walks over the machines once.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use model::{
    Pod, PodKey, Quantity, Requirements, Resources, Toleration,
    pod::{HostPort, PodShape},
};

/// What matters about a pod when a place is looked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Needs {
    pub requests: Resources,
    pub ports: Vec<HostPort>,
    /// Ways to make the pod content, best first.
    pub ways: Vec<Way>,
}

/// One way to make a pod content.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Way {
    pub requirements: Requirements,
    pub tolerations: Vec<Toleration>,
}

impl Needs {
    /// With `discouraged`, taints that merely discourage are put up with once nothing else is left.
    fn of(shape: &PodShape, discouraged: bool) -> Self {
        let strict = Requirements::alternatives_of_pod(shape)
            .into_iter()
            .map(|requirements| Way {
                requirements,
                tolerations: shape.tolerations.clone(),
            });
        let mut ways: Vec<Way> = strict.collect();
        if discouraged {
            let mut tolerant = ways.clone();
            for way in &mut tolerant {
                way.tolerations.push(Toleration::of_prefer_no_schedule());
            }
            ways.extend(tolerant);
        }
        Self {
            requests: shape.requests.clone(),
            ports: shape.host_ports.clone(),
            ways,
        }
    }
}

/// Pods with the same needs, oldest first.
#[derive(Debug)]
pub(crate) struct Class {
    pub needs: Needs,
    pub pods: Vec<PodKey>,
}

/// Sorts pods into classes: those that ask for the most CPU first, then the most memory, then the oldest.
///
/// Upstream sorts single pods that way; here a class stands where its oldest pod stands, so that pods of equal size but
/// of different classes are not interleaved by age.
pub(crate) fn classes<'a>(pods: impl IntoIterator<Item = &'a Pod>, discouraged: bool) -> Vec<Class> {
    let mut by_age: Vec<&Pod> = pods.into_iter().collect();
    by_age.sort_by_key(|pod| (pod.created, &pod.uid, &pod.key));

    // Pods of one workload usually share their shape; then a pointer tells the class without a comparison. The
    // addresses are only looked up, their order never shows.
    let mut known: BTreeMap<*const PodShape, usize> = BTreeMap::new();
    let mut numbers: BTreeMap<Needs, usize> = BTreeMap::new();
    let mut members: Vec<Vec<PodKey>> = Vec::new();
    for pod in by_age {
        let number = *known.entry(Arc::as_ptr(&pod.shape)).or_insert_with(|| {
            *numbers.entry(Needs::of(&pod.shape, discouraged)).or_insert_with(|| {
                members.push(Vec::new());
                members.len() - 1
            })
        });
        members[number].push(pod.key.clone());
    }

    let mut in_order: Vec<(Reverse<Quantity>, Reverse<Quantity>, usize, Needs)> = numbers
        .into_iter()
        .map(|(needs, number)| {
            (
                Reverse(needs.requests.get("cpu")),
                Reverse(needs.requests.get("memory")),
                number,
                needs,
            )
        })
        .collect();
    in_order.sort();
    in_order
        .into_iter()
        .map(|(_, _, number, needs)| Class {
            needs,
            pods: std::mem::take(&mut members[number]),
        })
        .collect()
}
