//! Removes pods of nodes that are no more: nobody else would ever finish them.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::api::Patch;
use parking_lot::Mutex;
use serde_json::json;

use super::pods::node_of;
use crate::{
    component::{Component, Ctx, Next},
    mirror::{Group, Key, Mirror, Seen},
};

/// A node that is missing might only not have been seen yet; a cluster waits this long before it believes it.
const QUARANTINE: Duration = Duration::from_secs(40);

#[derive(Default)]
pub struct Collector {
    /// Since when the nodes of these pods are missing, by the pods' UIDs.
    orphaned: Mutex<BTreeMap<String, Timestamp>>,
}

impl Component for Collector {
    type Item = Key;
    const NAME: &'static str = "pod-garbage-collector";

    fn touched(mirror: &Mirror, seen: &Seen, items: &mut Vec<Key>) {
        match seen {
            Seen::Node(change) if change.new.is_none() => {
                let pods = mirror.pods.group(&Group::Node(change.key.name.clone()));
                items.extend(pods.iter().map(|pod| Key::of(&pod.metadata)));
            }
            Seen::Pod(change) => {
                let node = change.new.as_ref().and_then(|pod| node_of(pod));
                if node.is_some_and(|node| !mirror.nodes.contains(&Key::cluster(node))) {
                    items.push(change.key.clone());
                }
            }
            _ => {}
        }
    }

    async fn reconcile(&self, ctx: &Ctx, key: &Key) -> Result<Next, kube::Error> {
        let Some(pod) = ctx.mirror.pods.get(key) else {
            return Ok(Next::OnChange);
        };
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        if node_of(&pod).is_none_or(|node| ctx.mirror.nodes.contains(&Key::cluster(node))) {
            self.orphaned.lock().remove(&uid);
            return Ok(Next::OnChange);
        }
        let since = *self.orphaned.lock().entry(uid.clone()).or_insert(ctx.now());
        let due = since + QUARANTINE;
        if ctx.now() < due {
            return Ok(Next::at(due, ctx.now()));
        }
        if !is_terminal(&pod) {
            let failed = json!({ "status": { "phase": "Failed" } });
            ctx.patch_status::<Pod>(key, &Patch::Strategic(failed)).await?;
        }
        ctx.delete(&*pod, Some(0)).await?;
        self.orphaned.lock().remove(&uid);
        Ok(Next::OnChange)
    }
}

pub fn is_terminal(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}
