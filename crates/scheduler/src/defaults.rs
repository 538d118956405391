//! Spreads that the operator wants for pods that have none of their own.
//!
//! What such a spread counts is not written anywhere: it is deduced from the services and the controller of the pod, in
//! the way of kube-scheduler. From here on the spreads are like any others of the pod.

use std::{borrow::Cow, sync::Arc};

use model::{
    Labels, Pod, Requirement, Snapshot,
    pod::{LabelSelector, PodShape, TopologySpread},
    workload::{Controlled, ControllerKey},
};
use rustc_hash::FxHashMap;

use crate::round::Round;

/// Pods with this identity get the same spreads and keep sharing their shape: the namespace, the controller, and the
/// shape with its labels.
type Alike<'a> = (&'a str, Option<&'a ControllerKey>, *const PodShape);

/// The snapshot as the round has to see it.
pub(crate) fn with_default_spreads<'s>(snapshot: &'s Snapshot, round: &Round) -> Cow<'s, Snapshot> {
    let defaults = &round.options.default_spreads;
    if defaults.is_empty() {
        return Cow::Borrowed(snapshot);
    }
    let mut fork = snapshot.clone();
    let mut known: FxHashMap<Alike<'s>, Option<Arc<PodShape>>> = FxHashMap::default();
    let pods = round.pods.iter().filter_map(|key| snapshot.pods.get(key));
    for pod in pods.filter(|pod| pod.shape.spreads.is_empty()) {
        let alike = (&*pod.key.namespace, pod.controller.as_ref(), Arc::as_ptr(&pod.shape));
        let shape = known.entry(alike).or_insert_with(|| {
            let selector = selector(snapshot, pod)?;
            let mut shape = (*pod.shape).clone();
            shape.spreads = spreads(defaults, &selector);
            Some(Arc::new(shape))
        });
        if let Some(shape) = shape {
            fork.put_pod(Arc::new(Pod {
                shape: shape.clone(),
                ..(**pod).clone()
            }));
        }
    }
    Cow::Owned(fork)
}

fn spreads(defaults: &[TopologySpread], selector: &LabelSelector) -> Vec<TopologySpread> {
    let with_selector = |spread: &TopologySpread| TopologySpread {
        selector: Some(selector.clone()),
        ..spread.clone()
    };
    defaults.iter().map(with_selector).collect()
}

/// The pods that belong together with this one; nothing where neither a service nor a controller says so.
fn selector(snapshot: &Snapshot, pod: &Pod) -> Option<LabelSelector> {
    let mut labels = Labels::new();
    for service in snapshot.services_in(&pod.key.namespace) {
        if service.selects(&pod.shape.labels) {
            labels.extend(
                service
                    .selector
                    .iter()
                    .flatten()
                    .map(|(key, value)| (key.clone(), value.clone())),
            );
        }
    }
    let controller = pod
        .controller
        .as_ref()
        .and_then(|controller| snapshot.controllers.get(controller));
    let mut more: &[Requirement] = &[];
    match controller.map(AsRef::as_ref) {
        Some(Controlled::Labels(theirs)) => labels.extend(theirs.clone()),
        Some(Controlled::Selector(Some(theirs))) => more = &theirs.requirements,
        Some(Controlled::Selector(None)) | None => {}
    }
    let labels = labels.into_iter();
    let labels = labels.map(|(key, value)| Requirement::one_of(key.as_str(), [value]));
    let requirements: Vec<Requirement> = labels.chain(more.iter().cloned()).collect();
    (!requirements.is_empty()).then_some(LabelSelector { requirements })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::situation;

    /// What the selector of the pod `web` comes to, in a word per requirement.
    #[track_caller]
    fn check(situation: &str, expected: &[&str]) {
        let (snapshot, _) = situation::parse(situation);
        let pod = &snapshot.pods[&model::PodKey::new("default", "web")];
        let found = selector(&snapshot, pod)
            .map(|selector| selector.requirements)
            .unwrap_or_default();
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{situation}");
    }

    /// SC15.16.9
    #[test]
    fn what_is_counted_follows_from_services_and_the_controller() {
        let owned = |owner: &str| format!("{owner}\npod web label:app=web label:index=0 owner=ReplicaSet/web");
        check(&owned("owner ReplicaSet/web label:app=web"), &["app In [web]"]);
        check(
            &owned("owner ReplicaSet/web label:app=web where=tier:Exists where=old:NotIn:yes"),
            &["app In [web]", "tier Exists", "old NotIn [yes]"],
        );
        // The owner is gone, or there never was one that has a selector.
        check(&owned("service other label:app=other"), &[]);
        check("pod web label:app=web", &[]);
        check(
            "owner StatefulSet/web label:app=web
             pod web label:app=web label:index=0 owner=StatefulSet/web",
            &["app In [web]"],
        );
        check(
            "owner ReplicationController/web label:app=web
             pod web label:app=web label:index=0 owner=ReplicationController/web",
            &["app In [web]"],
        );
    }

    /// SC15.16.9
    #[test]
    fn services_count_where_they_lead_to_the_pod() {
        let pod = |services: &str| format!("{services}\npod web label:app=web label:tier=front");
        check(&pod("service one label:app=web"), &["app In [web]"]);
        check(
            &pod("service one label:app=web\nservice two label:tier=front"),
            &["app In [web]", "tier In [front]"],
        );
        check(&pod("service other label:app=db"), &[]);
        check(&pod("service none unselective"), &[]);
        check(&pod("service all"), &[]);
        check(&pod("service far in=elsewhere label:app=web"), &[]);
    }

    /// SC15.16.9
    #[test]
    fn services_and_controllers_count_together() {
        check(
            "service one label:tier=front
             owner ReplicaSet/web label:app=web
             pod web label:app=web label:tier=front owner=ReplicaSet/web",
            &["tier In [front]", "app In [web]"],
        );
        check(
            "service one label:app=web
             owner ReplicationController/web label:app=other
             pod web label:app=web owner=ReplicationController/web",
            &["app In [other]"],
        );
        // Both have to hold, so nothing is selected.
        check(
            "service one label:app=web
             owner ReplicaSet/web label:app=other
             pod web label:app=web owner=ReplicaSet/web",
            &["app In [web]", "app In [other]"],
        );
    }

    /// SC15.16.10
    #[test]
    fn only_pods_of_one_group_share_a_selector() {
        let (mut snapshot, mut round) = situation::parse(
            "owner ReplicaSet/web label:app=web
             owner ReplicaSet/web in=elsewhere label:app=far
             service one label:tier=front
             pod web label:app=web count=2 owner=ReplicaSet/web
             pod front label:app=web label:tier=front owner=ReplicaSet/web
             pod far in=elsewhere label:app=far owner=ReplicaSet/web",
        );
        round.options.default_spreads = [zonal()].into();
        snapshot = with_default_spreads(&snapshot, &round).into_owned();
        let spreads = |namespace: &str, name: &str| &snapshot.pods[&model::PodKey::new(namespace, name)].shape;
        assert!(Arc::ptr_eq(spreads("default", "web-1"), spreads("default", "web-2")));
        let shapes = [
            spreads("default", "web-1"),
            spreads("default", "front"),
            spreads("elsewhere", "far"),
        ];
        let selectors: Vec<usize> = shapes
            .iter()
            .map(|shape| {
                shape.spreads[0]
                    .selector
                    .as_ref()
                    .expect("a selector")
                    .requirements
                    .len()
            })
            .collect();
        assert_eq!(selectors, [1, 2, 1]);
        for shape in shapes {
            let spread = TopologySpread {
                selector: None,
                ..shape.spreads[0].clone()
            };
            assert_eq!(spread, zonal(), "what is configured is kept");
        }
    }

    fn zonal() -> TopologySpread {
        TopologySpread {
            topology_key: model::vocabulary::ZONE.to_owned(),
            max_skew: 2,
            min_domains: Some(3),
            required: true,
            selector: None,
            match_label_keys: Vec::new(),
            honor_affinity: false,
            honor_taints: true,
        }
    }
}
