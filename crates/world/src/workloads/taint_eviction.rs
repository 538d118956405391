//! Pods leave a node with a `NoExecute` taint that they do not tolerate, at once or when their tolerance runs out.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node, PodSpec, Taint};
use parking_lot::Mutex;

use crate::{
    binder::node_rules::toleration_covers,
    component::{Component, Ctx, Next},
    kubelet::{collector::is_terminal, pods::node_of},
    mirror::{Group, Key, Mirror, Seen},
};

#[derive(Default)]
pub struct TaintEviction {
    /// Since when these pods are seen beside a taint that tells no time of its own, by the pods' UIDs.
    since: Mutex<BTreeMap<String, Timestamp>>,
}

impl Component for TaintEviction {
    type Item = Key;
    const NAME: &'static str = "taint-eviction-controller";

    fn touched(mirror: &Mirror, seen: &Seen, items: &mut Vec<Key>) {
        match seen {
            Seen::Node(change) if change.new.as_ref().is_some_and(|node| evicting(node).next().is_some()) => {
                let pods = mirror.pods.group(&Group::Node(change.key.name.clone()));
                items.extend(pods.iter().map(|pod| Key::of(&pod.metadata)));
            }
            Seen::Pod(change) => {
                let bound = change.old.as_ref().is_none_or(|pod| node_of(pod).is_none());
                if bound && change.new.as_ref().is_some_and(|pod| node_of(pod).is_some()) {
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
        if pod.metadata.deletion_timestamp.is_some() || is_terminal(&pod) {
            return Ok(Next::OnChange);
        }
        let node = node_of(&pod).and_then(|name| ctx.mirror.nodes.get(&Key::cluster(name)));
        let (Some(node), Some(spec)) = (node, &pod.spec) else {
            return Ok(Next::OnChange);
        };
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let seen = *self.since.lock().entry(uid.clone()).or_insert(ctx.now());
        match evicting(&node).filter_map(|taint| leaves_at(spec, taint, seen)).min() {
            None => {
                self.since.lock().remove(&uid);
                Ok(Next::OnChange)
            }
            Some(due) if ctx.now() < due => Ok(Next::at(due, ctx.now())),
            Some(_) => {
                ctx.delete(&*pod, None).await?;
                self.since.lock().remove(&uid);
                Ok(Next::OnChange)
            }
        }
    }
}

fn evicting(node: &Node) -> impl Iterator<Item = &Taint> {
    node.spec
        .iter()
        .flat_map(|spec| spec.taints.iter().flatten())
        .filter(|taint| taint.effect == "NoExecute")
}

/// When this taint drives the pod away; never, if it is tolerated without limit.
fn leaves_at(spec: &PodSpec, taint: &Taint, seen: Timestamp) -> Option<Timestamp> {
    let since = taint.time_added.as_ref().map_or(seen, |time| time.0);
    let mut covering = spec
        .tolerations
        .iter()
        .flatten()
        .filter(|toleration| toleration_covers(toleration, taint))
        .peekable();
    if covering.peek().is_none() {
        return Some(since.min(seen));
    }
    let least = covering.filter_map(|toleration| toleration.toleration_seconds).min()?;
    Some(since + SignedDuration::from_secs(least.max(0)))
}
