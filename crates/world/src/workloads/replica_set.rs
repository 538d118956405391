//! A replica set has as many pods as it asks for.

use jiff::SignedDuration;
use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetStatus};

use super::pods::{available_at, controller_name, deletion_order, is_active, is_available, is_ready, owned_by, pod_of};
use crate::{
    component::{Component, Ctx, Next},
    mirror::{Key, Mirror, Seen},
};

pub struct ReplicaSets;

impl Component for ReplicaSets {
    type Item = Key;
    const NAME: &'static str = "replicaset-controller";

    fn touched(_: &Mirror, seen: &Seen, items: &mut Vec<Key>) {
        match seen {
            Seen::ReplicaSet(change) if change.new.is_some() => items.push(change.key.clone()),
            Seen::Pod(change) => {
                let owner = controller_name(&change.either().metadata, "ReplicaSet");
                items.extend(owner.map(|name| Key::new(&*change.key.namespace, name)));
            }
            _ => {}
        }
    }

    async fn reconcile(&self, ctx: &Ctx, key: &Key) -> Result<Next, kube::Error> {
        let Some(set) = ctx.mirror.replica_sets.get(key) else {
            return Ok(Next::OnChange);
        };
        if set.metadata.deletion_timestamp.is_some() {
            return Ok(Next::OnChange);
        }
        scale(ctx, &set).await?;
        // What was just created is in the mirror already, so that the status never lags behind the spec's effect.
        publish(ctx, &set).await
    }
}

async fn scale(ctx: &Ctx, set: &ReplicaSet) -> Result<(), kube::Error> {
    let spec = &set.spec;
    let mut active: Vec<_> = owned_by(ctx, &set.metadata)
        .into_iter()
        .filter(|pod| is_active(pod))
        .collect();
    let wanted = usize::try_from(spec.replicas.unwrap_or(1)).unwrap_or_default();
    let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
    if let Some(template) = &spec.template {
        let pod = pod_of(set, template);
        for _ in active.len()..wanted {
            ctx.create(namespace, &pod).await?;
        }
    }
    if active.len() > wanted {
        deletion_order(&mut active);
        for pod in &active[..active.len() - wanted] {
            ctx.delete(&**pod, None).await?;
        }
    }
    Ok(())
}

async fn publish(ctx: &Ctx, set: &ReplicaSet) -> Result<Next, kube::Error> {
    let min_ready = SignedDuration::from_secs(set.spec.min_ready_seconds.unwrap_or_default().into());
    let now = ctx.now();
    let pods: Vec<_> = owned_by(ctx, &set.metadata)
        .into_iter()
        .filter(|pod| is_active(pod))
        .collect();
    let count = |picked: usize| i32::try_from(picked).unwrap_or(i32::MAX);
    let status = ReplicaSetStatus {
        replicas: count(pods.len()),
        fully_labeled_replicas: Some(count(pods.len())),
        ready_replicas: Some(count(pods.iter().filter(|pod| is_ready(pod)).count())),
        available_replicas: Some(count(
            pods.iter().filter(|pod| is_available(pod, min_ready, now)).count(),
        )),
        observed_generation: set.metadata.generation,
        ..ReplicaSetStatus::default()
    };
    ctx.publish(set, set.status.as_ref(), &status).await?;
    let next = pods.iter().filter_map(|pod| available_at(pod, min_ready, now)).min();
    Ok(next.map_or(Next::OnChange, |due| Next::at(due, now)))
}
