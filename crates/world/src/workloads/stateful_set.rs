//! A stateful set has numbered pods that come in order, go in reverse order and keep their names.

use std::{collections::BTreeMap, sync::Arc};

use jiff::SignedDuration;
use k8s_openapi::api::{
    apps::v1::{StatefulSet, StatefulSetSpec, StatefulSetStatus},
    core::v1::Pod,
};

use super::pods::{available_at, controller_name, is_active, is_available, is_ready, owned_by, pod_of};
use crate::{
    component::{Component, Ctx, Next},
    dice::Dice,
    kubelet::collector::is_terminal,
    mirror::{Key, Mirror, Seen},
};

const REVISION_LABEL: &str = "controller-revision-hash";
const NAME_LABEL: &str = "statefulset.kubernetes.io/pod-name";
const INDEX_LABEL: &str = "apps.kubernetes.io/pod-index";

pub struct StatefulSets;

/// The one thing to do next, so that the order of the pods is kept whatever happens in between.
#[derive(Debug, PartialEq)]
enum Step {
    Settled,
    Create(i32),
    Delete(String),
}

impl Component for StatefulSets {
    type Item = Key;
    const NAME: &'static str = "statefulset-controller";

    fn touched(_: &Mirror, seen: &Seen, items: &mut Vec<Key>) {
        match seen {
            Seen::StatefulSet(change) if change.new.is_some() => items.push(change.key.clone()),
            Seen::Pod(change) => {
                let owner = controller_name(&change.either().metadata, "StatefulSet");
                items.extend(owner.map(|name| Key::new(&*change.key.namespace, name)));
            }
            _ => {}
        }
    }

    async fn reconcile(&self, ctx: &Ctx, key: &Key) -> Result<Next, kube::Error> {
        let Some(set) = ctx.mirror.stateful_sets.get(key) else {
            return Ok(Next::OnChange);
        };
        if set.metadata.deletion_timestamp.is_some() {
            return Ok(Next::OnChange);
        }
        let spec = &set.spec;
        let revision = revision_of(key, spec);
        let parallel = spec.pod_management_policy.as_deref() == Some("Parallel");
        loop {
            match decide(spec, &revision, key, &pods_by_ordinal(ctx, &set, key)) {
                Step::Settled => break,
                Step::Create(ordinal) => {
                    ctx.create(&key.namespace, &numbered_pod(&set, spec, key, ordinal, &revision))
                        .await?;
                    if !parallel {
                        break;
                    }
                }
                Step::Delete(name) => {
                    let pod = ctx.mirror.pods.get(&Key::new(&*key.namespace, name));
                    let Some(pod) = pod else { break };
                    ctx.delete(&*pod, None).await?;
                    break;
                }
            }
        }
        publish(ctx, &set, spec, key, &revision).await
    }
}

/// The pods of the set, also those that are on their way out: their names are still taken.
fn pods_by_ordinal(ctx: &Ctx, set: &StatefulSet, key: &Key) -> BTreeMap<i32, Arc<Pod>> {
    let prefix = format!("{}-", key.name);
    let ordinal = |pod: &Pod| pod.metadata.name.as_ref()?.strip_prefix(&prefix)?.parse().ok();
    owned_by(ctx, &set.metadata)
        .into_iter()
        .filter_map(|pod| Some((ordinal(&pod)?, pod)))
        .collect()
}

fn first_ordinal(spec: &StatefulSetSpec) -> i32 {
    spec.ordinals
        .as_ref()
        .and_then(|ordinals| ordinals.start)
        .unwrap_or_default()
}

fn decide(spec: &StatefulSetSpec, revision: &str, key: &Key, pods: &BTreeMap<i32, Arc<Pod>>) -> Step {
    let first = first_ordinal(spec);
    let wanted = first..first + spec.replicas.unwrap_or(1);
    let parallel = spec.pod_management_policy.as_deref() == Some("Parallel");
    let name = |ordinal: i32| format!("{}-{ordinal}", key.name);
    for ordinal in wanted.clone() {
        match pods.get(&ordinal) {
            None => return Step::Create(ordinal),
            Some(pod) if is_terminal(pod) && pod.metadata.deletion_timestamp.is_none() => {
                return Step::Delete(name(ordinal));
            }
            // The next pod comes when all before it are there.
            Some(pod) if !(parallel || is_active(pod) && is_ready(pod)) => return Step::Settled,
            Some(_) => {}
        }
    }
    // The next pod goes when the one before it is gone.
    let surplus: Vec<(&i32, &Arc<Pod>)> = pods.iter().filter(|(ordinal, _)| !wanted.contains(ordinal)).collect();
    if surplus.iter().any(|(_, pod)| pod.metadata.deletion_timestamp.is_some()) && !parallel {
        return Step::Settled;
    }
    let live = |pod: &Pod| pod.metadata.deletion_timestamp.is_none();
    if let Some((ordinal, _)) = surplus.iter().rev().find(|(_, pod)| live(pod)) {
        return Step::Delete(name(**ordinal));
    }
    let strategy = spec.update_strategy.as_ref();
    if strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("OnDelete") {
        return Step::Settled;
    }
    let partition = strategy
        .and_then(|s| s.rolling_update.as_ref()?.partition)
        .unwrap_or_default();
    for (ordinal, pod) in pods.iter().rev().filter(|(ordinal, _)| **ordinal >= partition) {
        if !live(pod) {
            return Step::Settled;
        }
        if !has_revision(pod, revision) {
            return Step::Delete(name(*ordinal));
        }
        if !is_ready(pod) {
            return Step::Settled;
        }
    }
    Step::Settled
}

fn has_revision(pod: &Pod, revision: &str) -> bool {
    let labels = pod.metadata.labels.as_ref();
    labels
        .and_then(|labels| labels.get(REVISION_LABEL))
        .is_some_and(|value| value == revision)
}

fn revision_of(key: &Key, spec: &StatefulSetSpec) -> String {
    let text = serde_json::to_string(&spec.template).unwrap_or_default();
    format!(
        "{}-{:010x}",
        key.name,
        Dice::seeded(0).throw(&["template", &text]) >> 24
    )
}

fn numbered_pod(set: &StatefulSet, spec: &StatefulSetSpec, key: &Key, ordinal: i32, revision: &str) -> Pod {
    let mut pod = pod_of(set, &spec.template);
    let name = format!("{}-{ordinal}", key.name);
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert(REVISION_LABEL.into(), revision.into());
    labels.insert(NAME_LABEL.into(), name.clone());
    labels.insert(INDEX_LABEL.into(), ordinal.to_string());
    if let Some(pod_spec) = &mut pod.spec {
        pod_spec.hostname = Some(name.clone());
        pod_spec.subdomain = spec.service_name.clone();
    }
    pod.metadata.generate_name = None;
    pod.metadata.name = Some(name);
    pod
}

async fn publish(
    ctx: &Ctx,
    set: &StatefulSet,
    spec: &StatefulSetSpec,
    key: &Key,
    revision: &str,
) -> Result<Next, kube::Error> {
    let min_ready = SignedDuration::from_secs(spec.min_ready_seconds.unwrap_or_default().into());
    let now = ctx.now();
    let pods: Vec<_> = pods_by_ordinal(ctx, set, key)
        .into_values()
        .filter(|pod| is_active(pod))
        .collect();
    let count =
        |which: &dyn Fn(&Pod) -> bool| i32::try_from(pods.iter().filter(|pod| which(pod)).count()).unwrap_or(i32::MAX);
    let updated = count(&|pod| has_revision(pod, revision));
    let replicas = count(&|_| true);
    let old = set.status.as_ref();
    // The current revision is the one that all pods had last.
    let current = match old.and_then(|old| old.current_revision.clone()) {
        Some(current) if updated < spec.replicas.unwrap_or(1) => current,
        _ => revision.to_owned(),
    };
    let status = StatefulSetStatus {
        observed_generation: set.metadata.generation,
        replicas,
        ready_replicas: Some(count(&is_ready)),
        available_replicas: Some(count(&|pod| is_available(pod, min_ready, now))),
        current_replicas: Some(count(&|pod| has_revision(pod, &current))),
        updated_replicas: Some(updated),
        current_revision: Some(current),
        update_revision: Some(revision.to_owned()),
        collision_count: old.and_then(|old| old.collision_count),
        ..StatefulSetStatus::default()
    };
    ctx.publish(set, old, &status).await?;
    let next = pods.iter().filter_map(|pod| available_at(pod, min_ready, now)).min();
    Ok(next.map_or(Next::OnChange, |due| Next::at(due, now)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn set(replicas: i32, policy: &str) -> StatefulSetSpec {
        StatefulSetSpec {
            replicas: Some(replicas),
            pod_management_policy: Some(policy.into()),
            ..StatefulSetSpec::default()
        }
    }

    /// One letter per pod: `r`eady, `p`ending, `t`erminating, `o`ld revision and ready.
    fn check(spec: &StatefulSetSpec, pods: &str, expected: &Step) {
        let pod = |letter: char| {
            let revision = if letter == 'o' { "old" } else { "new" };
            let ready = if letter == 'p' { "False" } else { "True" };
            let deletion = (letter == 't').then_some("2026-01-01T00:00:00Z");
            serde_json::from_value::<Pod>(json!({
                "metadata": { "labels": { REVISION_LABEL: revision }, "deletionTimestamp": deletion },
                "status": { "conditions": [{ "type": "Ready", "status": ready }] },
            }))
            .map(Arc::new)
            .expect("a pod")
        };
        let pods = (0..)
            .zip(pods.chars())
            .map(|(ordinal, letter)| (ordinal, pod(letter)))
            .collect();
        assert_eq!(decide(spec, "new", &Key::new("default", "db"), &pods), *expected);
    }

    #[test]
    fn pods_come_in_order_and_go_in_reverse_order() {
        let ordered = set(3, "OrderedReady");
        check(&ordered, "", &Step::Create(0));
        check(&ordered, "p", &Step::Settled);
        check(&ordered, "r", &Step::Create(1));
        check(&ordered, "rrr", &Step::Settled);
        check(&ordered, "rrrrr", &Step::Delete("db-4".into()));
        check(&ordered, "rrrrt", &Step::Settled);
        check(&set(3, "Parallel"), "p", &Step::Create(1));
    }

    #[test]
    fn a_terminating_pod_still_holds_its_name() {
        check(&set(2, "OrderedReady"), "tr", &Step::Settled);
    }

    #[test]
    fn updates_go_from_the_last_pod_to_the_first_one_at_a_time() {
        let ordered = set(3, "OrderedReady");
        check(&ordered, "ooo", &Step::Delete("db-2".into()));
        check(&ordered, "oot", &Step::Settled);
        check(&ordered, "oop", &Step::Settled);
        check(&ordered, "oor", &Step::Delete("db-1".into()));
    }
}
