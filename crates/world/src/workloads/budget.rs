//! Disruption budgets: how many of the selected pods may be missing at this moment.

use std::{collections::BTreeMap, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::{
        core::v1::Pod,
        policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus},
    },
    apimachinery::pkg::{
        apis::meta::v1::{Condition, Time},
        util::intstr::IntOrString,
    },
};

use super::{
    pods::{controller_name, is_ready},
    rollout::resolve,
    selector::selects,
};
use crate::{
    component::{Component, Ctx, Next},
    kubelet::collector::is_terminal,
    mirror::{Key, Mirror, Seen, controller_of},
};

/// An eviction that was granted but not followed by a deletion is forgotten after this time.
const GRANTED_FOR: SignedDuration = SignedDuration::from_mins(2);

pub struct Budgets;

impl Component for Budgets {
    type Item = Key;
    const NAME: &'static str = "disruption-controller";

    fn touched(mirror: &Mirror, seen: &Seen, items: &mut Vec<Key>) {
        let of_namespace = |namespace: &str, items: &mut Vec<Key>| {
            items.extend(
                mirror
                    .budgets
                    .keys()
                    .into_iter()
                    .filter(|key| key.namespace == namespace),
            );
        };
        match seen {
            Seen::PodDisruptionBudget(change) if change.new.is_some() => items.push(change.key.clone()),
            Seen::Pod(change) => {
                for budget in mirror.budgets.all() {
                    let picked = change.both().any(|pod| covers(&budget, pod));
                    items.extend(picked.then(|| Key::of(&budget.metadata)));
                }
            }
            Seen::ReplicaSet(change) => of_namespace(&change.key.namespace, items),
            Seen::Deployment(change) => of_namespace(&change.key.namespace, items),
            Seen::StatefulSet(change) => of_namespace(&change.key.namespace, items),
            _ => {}
        }
    }

    async fn reconcile(&self, ctx: &Ctx, key: &Key) -> Result<Next, kube::Error> {
        let Some(budget) = ctx.mirror.budgets.get(key) else {
            return Ok(Next::OnChange);
        };
        let Some(spec) = &budget.spec else {
            return Ok(Next::OnChange);
        };
        let pods: Vec<_> = ctx
            .mirror
            .pods
            .all()
            .into_iter()
            .filter(|pod| covers(&budget, pod) && !is_terminal(pod))
            .collect();
        let (status, next) = status(ctx, &budget, spec, &pods);
        // The API server counts evictions in the same status. Written over one that was just granted, ours would allow it
        // once more.
        ctx.publish_over(&*budget, budget.status.as_ref(), &status).await?;
        Ok(next.map_or(Next::OnChange, |due| Next::at(due, ctx.now())))
    }
}

pub fn covers(budget: &PodDisruptionBudget, pod: &Pod) -> bool {
    let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    budget.metadata.namespace == pod.metadata.namespace
        && selector.is_some_and(|selector| selects(selector, pod.metadata.labels.as_ref()))
}

fn status(
    ctx: &Ctx,
    budget: &PodDisruptionBudget,
    spec: &PodDisruptionBudgetSpec,
    pods: &[Arc<Pod>],
) -> (PodDisruptionBudgetStatus, Option<Timestamp>) {
    let now = ctx.now();
    let old = budget.status.clone().unwrap_or_default();
    let leaving = |name: &str| {
        let pod = pods.iter().find(|pod| pod.metadata.name.as_deref() == Some(name));
        pod.is_none_or(|pod| pod.metadata.deletion_timestamp.is_some())
    };
    // Evictions that were granted count as done until they are done.
    let granted: BTreeMap<String, Time> = old
        .disrupted_pods
        .into_iter()
        .flatten()
        .filter(|(name, since)| !leaving(name) && now < since.0 + GRANTED_FOR)
        .collect();
    let healthy = pods.iter().filter(|pod| {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        pod.metadata.deletion_timestamp.is_none() && !granted.contains_key(name) && is_ready(pod)
    });
    let healthy = i32::try_from(healthy.count()).unwrap_or(i32::MAX);
    let (expected, desired) = sizes(ctx, spec, pods);
    let allowed = if expected > 0 { (healthy - desired).max(0) } else { 0 };
    let next = granted.values().map(|since| since.0 + GRANTED_FOR).min();
    let status = PodDisruptionBudgetStatus {
        current_healthy: Some(healthy),
        desired_healthy: Some(desired),
        expected_pods: Some(expected),
        disruptions_allowed: Some(allowed),
        disrupted_pods: Some(granted).filter(|granted| !granted.is_empty()),
        observed_generation: budget.metadata.generation,
        conditions: Some(vec![condition(ctx, budget, allowed)]),
    };
    (status, next)
}

/// How many pods there should be, and how many of them have to stay.
fn sizes(ctx: &Ctx, spec: &PodDisruptionBudgetSpec, pods: &[Arc<Pod>]) -> (i32, i32) {
    let present = i32::try_from(pods.len()).unwrap_or(i32::MAX);
    match (&spec.max_unavailable, &spec.min_available) {
        (Some(most), _) => {
            let expected = scale_of(ctx, pods);
            (
                expected,
                (expected - resolve(Some(most), expected, true).unwrap_or_default()).max(0),
            )
        }
        (None, Some(IntOrString::Int(least))) => (present, *least),
        (None, Some(share)) => {
            let expected = scale_of(ctx, pods);
            (expected, resolve(Some(share), expected, true).unwrap_or_default())
        }
        (None, None) => (present, 0),
    }
}

/// The sum of what the pods' workloads ask for: shares are shares of that, not of what happens to be there.
fn scale_of(ctx: &Ctx, pods: &[Arc<Pod>]) -> i32 {
    let mut scales: BTreeMap<String, i32> = BTreeMap::new();
    for pod in pods {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let key = |name: &str| Key::new(namespace, name);
        if let Some(name) = controller_name(&pod.metadata, "StatefulSet") {
            let set = ctx.mirror.stateful_sets.get(&key(name));
            scales.insert(
                format!("statefulset/{name}"),
                set.and_then(|set| set.spec.replicas).unwrap_or(1),
            );
        } else if let Some(set) =
            controller_name(&pod.metadata, "ReplicaSet").and_then(|name| ctx.mirror.replica_sets.get(&key(name)))
        {
            let deployment =
                controller_of(&set.metadata).and_then(|owner| ctx.mirror.deployments.get(&key(&owner.name)));
            match deployment {
                Some(deployment) => {
                    let name = deployment.metadata.name.clone().unwrap_or_default();
                    let replicas = deployment.spec.replicas.unwrap_or(1);
                    scales.insert(format!("deployment/{name}"), replicas);
                }
                None => {
                    let name = set.metadata.name.clone().unwrap_or_default();
                    let replicas = set.spec.replicas.unwrap_or(1);
                    scales.insert(format!("replicaset/{name}"), replicas);
                }
            }
        }
    }
    scales.values().sum()
}

fn condition(ctx: &Ctx, budget: &PodDisruptionBudget, allowed: i32) -> Condition {
    let (status, reason) = if allowed > 0 {
        ("True", "SufficientPods")
    } else {
        ("False", "InsufficientPods")
    };
    let old = budget
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    let before = old
        .filter(|condition| condition.type_ == "DisruptionAllowed")
        .find(|before| before.status == status);
    Condition {
        type_: "DisruptionAllowed".into(),
        status: status.into(),
        reason: reason.into(),
        message: String::new(),
        observed_generation: budget.metadata.generation,
        last_transition_time: before.map_or_else(|| ctx.time(), |before| before.last_transition_time.clone()),
    }
}
