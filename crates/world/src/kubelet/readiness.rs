//! A node becomes Ready once its kubelet is up, and Unknown once its kubelet has been silent for too long.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{api::core::v1::Node, apimachinery::pkg::apis::meta::v1::Time};
use kube::api::Patch;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{Machines, is_ready, is_simulated, ready_condition};
use crate::{
    component::{Component, Ctx, Next},
    mirror::{Key, Mirror, Seen},
};

/// Container runtime and network take a moment on a machine that has just joined.
const STARTUP: (Duration, Duration) = (Duration::from_millis(1200), Duration::from_millis(4500));
/// A cluster takes a kubelet that has said nothing for this long to be gone.
const SILENCE: SignedDuration = SignedDuration::from_secs(40);
/// How often silence is looked for.
const MONITOR: Duration = Duration::from_secs(5);

pub struct Readiness {
    machines: Arc<dyn Machines>,
    /// Since when the machines of these nodes are known to be off, by the nodes' UIDs.
    silent: Mutex<BTreeMap<String, Timestamp>>,
}

impl Readiness {
    pub fn new(machines: Arc<dyn Machines>) -> Self {
        Self {
            machines,
            silent: Mutex::default(),
        }
    }
}

impl Component for Readiness {
    type Item = Key;
    const NAME: &'static str = "kubelet/readiness";

    fn touched(_: &Mirror, seen: &Seen, items: &mut Vec<Key>) {
        if let Seen::Node(change) = seen
            && change.new.as_ref().is_some_and(|node| is_simulated(node))
        {
            items.push(change.key.clone());
        }
    }

    async fn reconcile(&self, ctx: &Ctx, key: &Key) -> Result<Next, kube::Error> {
        let Some(node) = ctx.mirror.nodes.get(key) else {
            return Ok(Next::OnChange);
        };
        let uid = node.metadata.uid.as_deref().unwrap_or_default();
        if !self.machines.is_running(&node) {
            let since = *self.silent.lock().entry(uid.to_owned()).or_insert(ctx.now());
            return fall_silent(ctx, key, &node, since).await;
        }
        self.silent.lock().remove(uid);
        if is_ready(&node) {
            return Ok(Next::After(MONITOR));
        }
        let created = node
            .metadata
            .creation_timestamp
            .as_ref()
            .map_or(ctx.now(), |time| time.0);
        let due = created + ctx.delay(STARTUP, &["node-ready", &key.name]);
        if ctx.now() < due {
            return Ok(Next::at(due, ctx.now()));
        }
        ctx.patch_status::<Node>(
            key,
            &Patch::Strategic(ready_status(&ctx.time(), &ctx.address("node", &key.name))),
        )
        .await?;
        Ok(Next::After(MONITOR))
    }
}

async fn fall_silent(ctx: &Ctx, key: &Key, node: &Node, since: Timestamp) -> Result<Next, kube::Error> {
    let due = since + SILENCE;
    if ready_condition(node).is_none_or(|condition| condition.status == "Unknown") {
        return Ok(Next::After(MONITOR));
    }
    if ctx.now() < due {
        return Ok(Next::at(due, ctx.now()));
    }
    let unknown = json!({ "status": { "conditions": [{
        "type": "Ready",
        "status": "Unknown",
        "reason": "NodeStatusUnknown",
        "message": "Kubelet stopped posting node status.",
        "lastTransitionTime": ctx.time(),
    }] } });
    ctx.patch_status::<Node>(key, &Patch::Strategic(unknown)).await?;
    Ok(Next::After(MONITOR))
}

fn ready_status(now: &Time, address: &str) -> Value {
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        })
    };
    json!({ "status": {
        "addresses": [{ "type": "InternalIP", "address": address }],
        "conditions": [
            condition("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
            condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
            condition("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
            condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
        ],
    } })
}
