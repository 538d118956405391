//! A job runs pods until enough of them have succeeded.
//!
//! Every pod carries a finalizer until its outcome is counted, so that a pod that is removed together with its node
//! after it succeeded is not run a second time.

use std::{collections::BTreeSet, sync::Arc};

use k8s_openapi::api::{
    batch::v1::{Job, JobCondition, JobSpec, JobStatus, UncountedTerminatedPods},
    core::v1::Pod,
};
use kube::api::Patch;
use serde_json::json;

use super::pods::{controller_name, is_active, is_ready, owned_by, pod_of};
use crate::{
    component::{Component, Ctx, Next},
    mirror::{Key, Mirror, Seen},
};

const TRACKING: &str = "batch.kubernetes.io/job-tracking";

pub struct Jobs;

impl Component for Jobs {
    type Item = Key;
    const NAME: &'static str = "job-controller";

    fn touched(_: &Mirror, seen: &Seen, items: &mut Vec<Key>) {
        match seen {
            Seen::Job(change) if change.new.is_some() => items.push(change.key.clone()),
            Seen::Pod(change) => {
                let owner = controller_name(&change.either().metadata, "Job");
                items.extend(owner.map(|name| Key::new(&*change.key.namespace, name)));
            }
            _ => {}
        }
    }

    async fn reconcile(&self, ctx: &Ctx, key: &Key) -> Result<Next, kube::Error> {
        let Some(job) = ctx.mirror.jobs.get(key) else {
            return Ok(Next::OnChange);
        };
        let Some(spec) = &job.spec else {
            return Ok(Next::OnChange);
        };
        let pods = owned_by(ctx, &job.metadata);
        let (tally, counted) = tally(&job, &pods);
        ctx.publish(&*job, job.status.as_ref(), &status(ctx, &job, spec, &tally, &pods))
            .await?;
        // Only after the outcome is on record may the pod forget it.
        for pod in counted {
            let finalizers: Vec<_> = pod
                .metadata
                .finalizers
                .iter()
                .flatten()
                .filter(|name| *name != TRACKING)
                .collect();
            let patch = Patch::Merge(json!({ "metadata": { "finalizers": finalizers } }));
            ctx.patch::<Pod>(&Key::of(&pod.metadata), &patch).await?;
        }
        let active: Vec<_> = pods.iter().filter(|pod| is_active(pod)).collect();
        let wanted = if is_over(&tally, spec) || spec.suspend == Some(true) || job.metadata.deletion_timestamp.is_some()
        {
            0
        } else {
            wanted_now(spec, &tally)
        };
        let mut template = pod_of(&*job, &spec.template);
        template
            .metadata
            .finalizers
            .get_or_insert_default()
            .push(TRACKING.into());
        for _ in active.len()..wanted {
            ctx.create(&key.namespace, &template).await?;
        }
        for pod in active.iter().skip(wanted) {
            ctx.delete(&***pod, None).await?;
        }
        Ok(Next::OnChange)
    }
}

#[derive(Debug, Default)]
struct Tally {
    succeeded: i32,
    failed: i32,
    /// Pods whose outcome is in the two numbers and that still carry the finalizer.
    uncounted: UncountedTerminatedPods,
}

/// The outcomes so far, and the pods whose finalizer can go once they are on record.
fn tally<'a>(job: &Job, pods: &'a [Arc<Pod>]) -> (Tally, Vec<&'a Arc<Pod>>) {
    let old = job.status.clone().unwrap_or_default();
    let on_record = old.uncounted_terminated_pods.unwrap_or_default();
    let on_record: BTreeSet<String> = on_record
        .succeeded
        .into_iter()
        .flatten()
        .chain(on_record.failed.into_iter().flatten())
        .collect();
    let mut tally = Tally {
        succeeded: old.succeeded.unwrap_or_default(),
        failed: old.failed.unwrap_or_default(),
        ..Tally::default()
    };
    let mut done = Vec::new();
    for pod in pods
        .iter()
        .filter(|pod| pod.metadata.finalizers.iter().flatten().any(|name| name == TRACKING))
    {
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let new = i32::from(!on_record.contains(&uid));
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        match phase {
            Some("Succeeded") => {
                tally.succeeded += new;
                tally.uncounted.succeeded.get_or_insert_default().push(uid);
            }
            Some("Failed") => {
                tally.failed += new;
                tally.uncounted.failed.get_or_insert_default().push(uid);
            }
            // Deleted before it came to an end: it counts as failed, and its place is taken by another.
            _ if pod.metadata.deletion_grace_period_seconds == Some(0) => {
                tally.failed += new;
                tally.uncounted.failed.get_or_insert_default().push(uid);
            }
            _ => continue,
        }
        done.push(pod);
    }
    (tally, done)
}

fn completions(spec: &JobSpec) -> i32 {
    spec.completions.or(spec.parallelism).unwrap_or(1)
}

fn is_over(tally: &Tally, spec: &JobSpec) -> bool {
    tally.succeeded >= completions(spec)
}

fn wanted_now(spec: &JobSpec, tally: &Tally) -> usize {
    let missing = completions(spec) - tally.succeeded;
    usize::try_from(spec.parallelism.unwrap_or(1).min(missing)).unwrap_or_default()
}

fn status(ctx: &Ctx, job: &Job, spec: &JobSpec, tally: &Tally, pods: &[Arc<Pod>]) -> JobStatus {
    let old = job.status.clone().unwrap_or_default();
    let count = |which: &dyn Fn(&Pod) -> bool| {
        let count = pods.iter().filter(|pod| which(pod)).count();
        Some(i32::try_from(count).unwrap_or(i32::MAX)).filter(|count| *count > 0)
    };
    let over = is_over(tally, spec);
    let complete = JobCondition {
        type_: "Complete".into(),
        status: "True".into(),
        reason: Some("CompletionsReached".into()),
        message: Some("Reached expected number of succeeded pods".into()),
        last_probe_time: Some(ctx.time()),
        last_transition_time: Some(ctx.time()),
    };
    JobStatus {
        active: count(&is_active),
        ready: Some(count(&|pod| is_active(pod) && is_ready(pod)).unwrap_or_default()),
        succeeded: Some(tally.succeeded).filter(|count| *count > 0),
        failed: Some(tally.failed).filter(|count| *count > 0),
        start_time: old.start_time.or_else(|| Some(ctx.time())),
        completion_time: old.completion_time.or_else(|| over.then(|| ctx.time())),
        conditions: old.conditions.or_else(|| over.then(|| vec![complete])),
        uncounted_terminated_pods: Some(tally.uncounted.clone()),
        ..JobStatus::default()
    }
}
