//! A deployment owns one replica set per template and moves its pods from the old ones to the new one.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentCondition, DeploymentSpec, DeploymentStatus, ReplicaSet, ReplicaSetSpec},
        core::v1::PodTemplateSpec,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::api::Patch;
use serde_json::json;

use super::{
    pods::{controller_name, controller_reference, owned_by},
    rollout::{Size, Slack, next_sizes},
};
use crate::{
    component::{Component, Ctx, Next},
    dice::Dice,
    mirror::{Group, Key, Mirror, Seen},
};

const HASH_LABEL: &str = "pod-template-hash";
const REVISION: &str = "deployment.kubernetes.io/revision";

pub struct Deployments;

impl Component for Deployments {
    type Item = Key;
    const NAME: &'static str = "deployment-controller";

    fn touched(_: &Mirror, seen: &Seen, items: &mut Vec<Key>) {
        match seen {
            Seen::Deployment(change) if change.new.is_some() => items.push(change.key.clone()),
            Seen::ReplicaSet(change) => {
                let owner = controller_name(&change.either().metadata, "Deployment");
                items.extend(owner.map(|name| Key::new(&*change.key.namespace, name)));
            }
            _ => {}
        }
    }

    async fn reconcile(&self, ctx: &Ctx, key: &Key) -> Result<Next, kube::Error> {
        let Some(deployment) = ctx.mirror.deployments.get(key) else {
            return Ok(Next::OnChange);
        };
        if deployment.metadata.deletion_timestamp.is_some() {
            return Ok(Next::OnChange);
        }
        let spec = &deployment.spec;
        let hash = template_hash(&spec.template);
        let paused = spec.paused == Some(true);
        let sets = sets_of(ctx, &deployment);
        if !sets.iter().any(|set| has_hash(set, &hash)) && !paused {
            create_set(ctx, &deployment, spec, &hash, &sets).await?;
        }
        let sets = sets_of(ctx, &deployment);
        let (new, old): (Vec<_>, Vec<_>) = sets.into_iter().partition(|set| has_hash(set, &hash));
        resize(ctx, spec, new.first(), &old).await?;
        if new
            .first()
            .is_some_and(|set| size_of(set).available >= spec.replicas.unwrap_or(1))
        {
            forget_history(ctx, spec, &old).await?;
        }
        publish(ctx, &deployment, spec, &hash).await?;
        Ok(Next::OnChange)
    }
}

/// The replica sets of a deployment, oldest revision first.
fn sets_of(ctx: &Ctx, deployment: &Deployment) -> Vec<Arc<ReplicaSet>> {
    let uid = deployment.metadata.uid.clone().unwrap_or_default();
    let mut sets = ctx.mirror.replica_sets.group(&Group::Controller(uid));
    sets.retain(|set| set.metadata.deletion_timestamp.is_none());
    sets.sort_by_key(|set| (revision_of(set), set.metadata.name.clone()));
    sets
}

fn revision_of(set: &ReplicaSet) -> u64 {
    let annotations = set.metadata.annotations.as_ref();
    annotations
        .and_then(|all| all.get(REVISION)?.parse().ok())
        .unwrap_or_default()
}

fn has_hash(set: &ReplicaSet, hash: &str) -> bool {
    set.metadata
        .labels
        .as_ref()
        .and_then(|labels| labels.get(HASH_LABEL))
        .is_some_and(|value| value == hash)
}

fn size_of(set: &ReplicaSet) -> Size {
    let wanted = set.spec.replicas.unwrap_or(1);
    let available = set
        .status
        .as_ref()
        .and_then(|status| status.available_replicas)
        .unwrap_or_default();
    Size { wanted, available }
}

/// Ten letters and digits that stand for the template, in the alphabet that generated names use.
fn template_hash(template: &PodTemplateSpec) -> String {
    const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let text = serde_json::to_string(template).unwrap_or_default();
    let mut number = Dice::seeded(0).throw(&["template", &text]);
    let letters = (0..10).map(|_| {
        let letter = ALPHABET[usize::try_from(number % 27).unwrap_or_default()];
        number /= 27;
        char::from(letter)
    });
    letters.collect()
}

async fn create_set(
    ctx: &Ctx,
    deployment: &Deployment,
    spec: &DeploymentSpec,
    hash: &str,
    sets: &[Arc<ReplicaSet>],
) -> Result<(), kube::Error> {
    let label = (HASH_LABEL.to_owned(), hash.to_owned());
    let mut template = spec.template.clone();
    let meta = template.metadata.get_or_insert_default();
    meta.labels.get_or_insert_default().extend([label.clone()]);
    let labels = meta.labels.clone();
    let mut selector = spec.selector.clone();
    selector.match_labels.get_or_insert_default().extend([label]);
    let revision = sets.iter().map(|set| revision_of(set)).max().unwrap_or_default() + 1;
    let annotations = BTreeMap::from([(REVISION.to_owned(), revision.to_string())]);
    let key = Key::of(&deployment.metadata);
    let metadata = ObjectMeta {
        name: Some(format!("{}-{hash}", key.name)),
        namespace: Some(key.namespace.clone()),
        labels,
        annotations: Some(annotations.clone()),
        owner_references: Some(vec![controller_reference(deployment)]),
        ..ObjectMeta::default()
    };
    let spec = ReplicaSetSpec {
        replicas: Some(0),
        min_ready_seconds: spec.min_ready_seconds,
        selector,
        template: Some(template),
    };
    ctx.create(
        &key.namespace,
        &ReplicaSet {
            metadata,
            spec,
            status: None,
        },
    )
    .await?;
    ctx.patch::<Deployment>(
        &key,
        &Patch::Merge(json!({ "metadata": { "annotations": annotations } })),
    )
    .await
}

async fn resize(
    ctx: &Ctx,
    spec: &DeploymentSpec,
    new: Option<&Arc<ReplicaSet>>,
    old: &[Arc<ReplicaSet>],
) -> Result<(), kube::Error> {
    let Some(new) = new else { return Ok(()) };
    let replicas = spec.replicas.unwrap_or(1);
    let sizes: Vec<Size> = old.iter().map(|set| size_of(set)).collect();
    let strategy = spec.strategy.clone().unwrap_or_default();
    let (next_new, next_old) = if spec.paused == Some(true) {
        (
            replicas - sizes.iter().map(|size| size.wanted).sum::<i32>().min(replicas),
            sizes.iter().map(|s| s.wanted).collect(),
        )
    } else if strategy.type_.as_deref() == Some("Recreate") {
        let gone = old.iter().all(|set| owned_by(ctx, &set.metadata).is_empty());
        (if gone { replicas } else { size_of(new).wanted }, vec![0; old.len()])
    } else {
        let rolling = strategy.rolling_update.unwrap_or_default();
        let slack = Slack::of(rolling.max_surge.as_ref(), rolling.max_unavailable.as_ref(), replicas);
        next_sizes(replicas, slack, size_of(new), &sizes)
    };
    for (set, size) in old.iter().zip(next_old).chain([(new, next_new)]) {
        if size_of(set).wanted != size {
            let patch = Patch::Merge(json!({ "spec": { "replicas": size } }));
            ctx.patch::<ReplicaSet>(&Key::of(&set.metadata), &patch).await?;
        }
    }
    Ok(())
}

/// Old empty replica sets are kept for undoing, but not all of them.
async fn forget_history(ctx: &Ctx, spec: &DeploymentSpec, old: &[Arc<ReplicaSet>]) -> Result<(), kube::Error> {
    let limit = usize::try_from(spec.revision_history_limit.unwrap_or(10)).unwrap_or_default();
    let empty =
        |set: &ReplicaSet| size_of(set).wanted == 0 && set.status.as_ref().is_none_or(|status| status.replicas == 0);
    for set in &old[..old.len().saturating_sub(limit)] {
        if empty(set) {
            ctx.delete(&**set, None).await?;
        }
    }
    Ok(())
}

async fn publish(ctx: &Ctx, deployment: &Deployment, spec: &DeploymentSpec, hash: &str) -> Result<(), kube::Error> {
    let sets = sets_of(ctx, deployment);
    let of = |sets: &mut dyn Iterator<Item = &Arc<ReplicaSet>>| {
        sets.filter_map(|set| set.status.as_ref()).fold([0; 3], |sum, status| {
            let (ready, available) = (status.ready_replicas, status.available_replicas);
            [
                sum[0] + status.replicas,
                sum[1] + ready.unwrap_or_default(),
                sum[2] + available.unwrap_or_default(),
            ]
        })
    };
    let [replicas, ready, available] = of(&mut sets.iter());
    let [updated, ..] = of(&mut sets.iter().filter(|set| has_hash(set, hash)));
    let wanted = spec.replicas.unwrap_or(1);
    let slack = {
        let rolling = spec
            .strategy
            .clone()
            .unwrap_or_default()
            .rolling_update
            .unwrap_or_default();
        Slack::of(rolling.max_surge.as_ref(), rolling.max_unavailable.as_ref(), wanted)
    };
    let old = deployment.status.as_ref();
    let complete = updated == wanted && replicas == wanted && available >= wanted;
    let enough = available >= wanted - slack.unavailable;
    let availability = if enough {
        ("MinimumReplicasAvailable", "Deployment has minimum availability.")
    } else {
        (
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        )
    };
    let progress = if complete {
        (
            "NewReplicaSetAvailable",
            "The new replica set has all its pods available.",
        )
    } else {
        ("ReplicaSetUpdated", "The new replica set is progressing.")
    };
    let conditions = vec![
        condition(ctx, old, "Available", enough, availability),
        condition(ctx, old, "Progressing", true, progress),
    ];
    let some = |count: i32| (count > 0).then_some(count);
    let status = DeploymentStatus {
        observed_generation: deployment.metadata.generation,
        replicas: some(replicas),
        updated_replicas: some(updated),
        ready_replicas: some(ready),
        available_replicas: some(available),
        unavailable_replicas: some(wanted - available),
        conditions: Some(conditions),
        ..DeploymentStatus::default()
    };
    ctx.publish(deployment, old, &status).await
}

fn condition(
    ctx: &Ctx,
    old: Option<&DeploymentStatus>,
    kind: &str,
    holds: bool,
    (reason, message): (&str, &str),
) -> DeploymentCondition {
    let (kind, status) = (
        Some(kind.to_owned()),
        Some(if holds { "True" } else { "False" }.to_owned()),
    );
    let before = old.and_then(|old| {
        old.conditions
            .as_ref()?
            .iter()
            .find(|condition| condition.type_ == kind)
    });
    if let Some(same) = before.filter(|before| before.status == status && before.reason.as_deref() == Some(reason)) {
        return same.clone();
    }
    let since = before
        .filter(|before| before.status == status)
        .and_then(|before| before.last_transition_time.clone());
    DeploymentCondition {
        type_: kind,
        status,
        reason: Some(reason.into()),
        message: Some(message.into()),
        last_transition_time: since.or_else(|| Some(ctx.time())),
        last_update_time: Some(ctx.time()),
    }
}
