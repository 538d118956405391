//! Bound pods start, jobs finish, deleted pods end gracefully.

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use kube::api::Patch;
use serde_json::{Value, json};

use super::{Machines, is_ready, is_simulated};
use crate::{
    component::{Component, Ctx, Next},
    mirror::{Group, Key, Mirror, Seen, controller_of},
};

/// Image pull and start of the containers.
const STARTUP: (Duration, Duration) = (Duration::from_millis(1200), Duration::from_millis(4000));
/// How long most containers take to end after they were asked to.
const SHUTDOWN: (Duration, Duration) = (Duration::from_millis(200), Duration::from_millis(3000));
/// In so many of a hundred cases a container ignores the signal and has to be killed when its grace is over.
const STUBBORN_PERCENT: u64 = 10;
/// How long the pods of a job work.
const JOB_WORK: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(40));
/// How long a pod works before it succeeds, in seconds: overrides the seeded time, also for pods without a job.
pub const WORK_SECS: &str = "world.karpenter.sh/work-seconds";
/// How long a pod takes to end, in seconds: overrides the seeded time. The pod's grace is the upper bound all the same.
pub const SHUTDOWN_SECS: &str = "world.karpenter.sh/shutdown-seconds";

pub struct Pods {
    machines: Arc<dyn Machines>,
}

impl Pods {
    pub fn new(machines: Arc<dyn Machines>) -> Self {
        Self { machines }
    }
}

/// What a kubelet does next with a pod.
#[derive(Debug, PartialEq)]
enum Step {
    Hold,
    Wait(Timestamp),
    Start,
    Succeed,
    /// Nothing of the pod is left on the machine: the API object can go.
    Finish,
}

impl Component for Pods {
    type Item = Key;
    const NAME: &'static str = "kubelet/pods";

    fn touched(mirror: &Mirror, seen: &Seen, items: &mut Vec<Key>) {
        match seen {
            Seen::Pod(change) if change.new.as_ref().is_some_and(|pod| node_of(pod).is_some()) => {
                items.push(change.key.clone());
            }
            // Pods may be bound before the node is ready; then they start when it is.
            Seen::Node(change) => {
                let was = change.old.as_ref().is_some_and(|node| is_ready(node));
                if change.new.as_ref().is_some_and(|node| is_ready(node)) != was {
                    let pods = mirror.pods.group(&Group::Node(change.key.name.clone()));
                    items.extend(pods.iter().map(|pod| Key::of(&pod.metadata)));
                }
            }
            _ => {}
        }
    }

    async fn reconcile(&self, ctx: &Ctx, key: &Key) -> Result<Next, kube::Error> {
        let Some(pod) = ctx.mirror.pods.get(key) else {
            return Ok(Next::OnChange);
        };
        let node = node_of(&pod).and_then(|name| ctx.mirror.nodes.get(&Key::cluster(name)));
        let Some(node) = node.filter(|node| is_simulated(node)) else {
            return Ok(Next::OnChange);
        };
        if !self.machines.is_running(&node) {
            return Ok(Next::OnChange);
        }
        match decide(&pod, is_ready(&node), ctx) {
            Step::Hold => {}
            Step::Wait(due) => return Ok(Next::at(due, ctx.now())),
            Step::Start => {
                ctx.patch_status::<Pod>(key, &Patch::Strategic(started(&pod, ctx)))
                    .await?;
            }
            Step::Succeed => {
                ctx.patch_status::<Pod>(key, &Patch::Strategic(succeeded(&pod, ctx)))
                    .await?;
            }
            Step::Finish => ctx.delete(&*pod, Some(0)).await?,
        }
        Ok(Next::OnChange)
    }
}

pub fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref().filter(|name| !name.is_empty())
}

fn decide(pod: &Pod, node_ready: bool, ctx: &Ctx) -> Step {
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref())
        .unwrap_or("Pending");
    let is_terminal = matches!(phase, "Succeeded" | "Failed");
    if let Some(deletion) = &pod.metadata.deletion_timestamp {
        if pod.metadata.deletion_grace_period_seconds == Some(0) {
            // Finished already; somebody's finalizer keeps the object.
            return Step::Hold;
        }
        let due = if is_terminal || phase == "Pending" {
            ctx.now()
        } else {
            end_of(pod, deletion.0, ctx)
        };
        return if due <= ctx.now() {
            Step::Finish
        } else {
            Step::Wait(due)
        };
    }
    if is_terminal || !node_ready {
        return Step::Hold;
    }
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    if phase == "Pending" {
        let due = bound_at(pod).unwrap_or(ctx.now()) + ctx.delay(STARTUP, &["pod-start", uid]);
        return if due <= ctx.now() { Step::Start } else { Step::Wait(due) };
    }
    let Some(work) = work_of(pod, ctx) else {
        return Step::Hold;
    };
    let start = pod
        .status
        .as_ref()
        .and_then(|status| status.start_time.as_ref())
        .map_or(ctx.now(), |time| time.0);
    if start + work <= ctx.now() {
        Step::Succeed
    } else {
        Step::Wait(start + work)
    }
}

/// When the containers of a pod that was asked to end will have ended.
fn end_of(pod: &Pod, deletion: Timestamp, ctx: &Ctx) -> Timestamp {
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    let grace = SignedDuration::from_secs(pod.metadata.deletion_grace_period_seconds.unwrap_or_default());
    let shutdown = match seconds(pod, SHUTDOWN_SECS) {
        Some(shutdown) => shutdown,
        None if ctx.dice.percent(STUBBORN_PERCENT, &["pod-stubborn", uid]) => grace,
        None => ctx.delay(SHUTDOWN, &["pod-end", uid]),
    };
    (deletion - grace) + shutdown.min(grace)
}

/// How long the pod works until it has succeeded; servers work forever.
fn work_of(pod: &Pod, ctx: &Ctx) -> Option<SignedDuration> {
    let of_job = controller_of(&pod.metadata).is_some_and(|owner| owner.kind == "Job");
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    seconds(pod, WORK_SECS).or_else(|| of_job.then(|| ctx.delay(JOB_WORK, &["job-work", uid])))
}

fn seconds(pod: &Pod, annotation: &str) -> Option<SignedDuration> {
    let text = pod.metadata.annotations.as_ref()?.get(annotation)?;
    text.parse().ok().map(SignedDuration::from_secs)
}

fn bound_at(pod: &Pod) -> Option<Timestamp> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let scheduled = conditions.iter().find(|condition| condition.type_ == "PodScheduled")?;
    (scheduled.status == "True").then_some(scheduled.last_transition_time.as_ref()?.0)
}

fn started(pod: &Pod, ctx: &Ctx) -> Value {
    let now = ctx.time();
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    let address = ctx.address("pod", uid);
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let statuses: Vec<Value> = containers
        .map(|container| {
            json!({
                "name": container.name,
                "image": container.image,
                "imageID": container.image,
                "containerID": format!("simulated://{uid}/{}", container.name),
                "ready": true,
                "started": true,
                "restartCount": 0,
                "state": { "running": { "startedAt": now } },
            })
        })
        .collect();
    let condition = |kind: &str| json!({ "type": kind, "status": "True", "lastTransitionTime": now });
    json!({ "status": {
        "phase": "Running",
        "startTime": now,
        "hostIP": ctx.address("node", node_of(pod).unwrap_or_default()),
        "podIP": address,
        "podIPs": [{ "ip": address }],
        "conditions": [
            condition("PodReadyToStartContainers"),
            condition("Initialized"),
            condition("Ready"),
            condition("ContainersReady"),
        ],
        "containerStatuses": statuses,
    } })
}

fn succeeded(pod: &Pod, ctx: &Ctx) -> Value {
    let now = ctx.time();
    let start = pod
        .status
        .as_ref()
        .and_then(|status| status.start_time.clone())
        .unwrap_or_else(|| now.clone());
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let statuses: Vec<Value> = containers
        .map(|container| {
            let ended = json!({ "exitCode": 0, "reason": "Completed", "startedAt": start, "finishedAt": now });
            json!({
                "name": container.name, "image": container.image, "imageID": container.image,
                "ready": false, "started": false, "restartCount": 0, "state": { "terminated": ended },
            })
        })
        .collect();
    let condition =
        |kind: &str| json!({ "type": kind, "status": "False", "reason": "PodCompleted", "lastTransitionTime": now });
    json!({ "status": {
        "phase": "Succeeded",
        "conditions": [condition("Ready"), condition("ContainersReady")],
        "containerStatuses": statuses,
    } })
}
