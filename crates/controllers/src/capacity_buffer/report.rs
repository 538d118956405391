//! What a round came to for each buffer.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    conditions::{self, capacity_buffer as condition},
    v1beta1::CapacityBuffer,
};
use imbl::OrdMap;
use model::{NodeKey, PodKey};
use scheduler::Placement;
use state::View;
use tracing::debug;

use super::{conditions_of, key_of};
use crate::{context::Ctx, error::chain};

/// Whether what a buffer keeps room for has its room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    NotReady,
    Empty,
    Fits,
    NeedsCapacity,
}

/// Tells the buffers and the index where virtual pods were placed. `placements` are those of the round that was made on
/// this view. A status that cannot be written now is written after the next round.
pub async fn report(ctx: &Ctx, view: &View, placements: &[Placement]) {
    let placed = placed(view, placements);
    ctx.index.put_room(room(&placed));
    for buffer in view.buffers.values() {
        let Some(verdict) = verdict(view, buffer, &placed) else {
            continue;
        };
        let mut wanted = CapacityBuffer::clone(buffer);
        let mut conditions = conditions_of(buffer);
        verdict.note(&mut conditions, ctx.clock.now());
        wanted.status.get_or_insert_default().conditions = Some(conditions.into_list());
        if let Err(cause) = ctx.writer.update_namespaced_status(&**buffer, &wanted).await {
            debug!(CapacityBuffer = %key_of(buffer), error = %chain(&cause), "could not tell a buffer about its room");
        }
    }
}

/// Virtual pods that fit onto machines that are there.
fn placed<'a>(view: &View, placements: &'a [Placement]) -> BTreeMap<&'a PodKey, &'a NodeKey> {
    let all = placements
        .iter()
        .flat_map(|placement| placement.pods.iter().map(|pod| (pod, &placement.node)));
    let is_virtual = |key: &PodKey| view.snapshot.pods.get(key).is_some_and(|pod| pod.is_virtual());
    all.filter(|(pod, _)| is_virtual(pod)).collect()
}

fn room(placed: &BTreeMap<&PodKey, &NodeKey>) -> OrdMap<NodeKey, u32> {
    let mut room = OrdMap::new();
    for node in placed.values() {
        *room.entry((*node).clone()).or_insert(0) += 1;
    }
    room
}

/// Nothing for a buffer whose pods were not in the round.
fn verdict(view: &View, buffer: &CapacityBuffer, placed: &BTreeMap<&PodKey, &NodeKey>) -> Option<Verdict> {
    let status = buffer.status.as_ref();
    let listed = status
        .and_then(|status| status.conditions.as_deref())
        .unwrap_or_default();
    if !conditions::is_true(listed, condition::READY_FOR_PROVISIONING) {
        // A buffer that nobody has looked at yet is not refused.
        let judged = conditions::find(listed, condition::READY_FOR_PROVISIONING).is_some();
        return judged.then_some(Verdict::NotReady);
    }
    if status.and_then(|status| status.replicas) == Some(0) {
        return Some(Verdict::Empty);
    }
    let pods = view.virtual_pods.get(&key_of(buffer)).filter(|pods| !pods.is_empty())?;
    let pods: BTreeSet<&PodKey> = pods.iter().collect();
    Some(if pods.iter().all(|pod| placed.contains_key(*pod)) {
        Verdict::Fits
    } else {
        Verdict::NeedsCapacity
    })
}

impl Verdict {
    fn note(self, conditions: &mut conditions::Conditions, now: jiff::Timestamp) {
        let (reason, message) = match self {
            Verdict::NotReady => ("NotReadyForProvisioning", "Buffer is not ready for provisioning"),
            Verdict::Empty => ("BufferEmpty", "Buffer keeps room for no pods"),
            Verdict::Fits => ("FitsExistingCapacity", "All pods of the buffer fit onto existing nodes"),
            Verdict::NeedsCapacity => ("RequiresNewCapacity", "Pods of the buffer need new nodes"),
        };
        if self == Verdict::Fits {
            conditions.set_true_because(condition::PROVISIONING, reason, message, now);
        } else {
            conditions.set_false(condition::PROVISIONING, reason, message, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use model::samples;
    use serde_json::json;
    use state::{Index, Served};

    use super::*;
    use crate::capacity_buffer::virtual_pods::virtual_pods;

    fn buffer(name: &str, ready: Option<&str>, replicas: i32) -> CapacityBuffer {
        let condition = ready.map(|status| {
            json!({
                "type": "ReadyForProvisioning", "status": status, "reason": "r", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            })
        });
        serde_json::from_value(json!({
            "apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer",
            "metadata": {"name": name, "namespace": "default", "uid": name, "resourceVersion": "1"},
            "spec": {}, "status": {"replicas": replicas, "conditions": condition.into_iter().collect::<Vec<_>>()},
        }))
        .expect("the literal is a buffer")
    }

    /// Two pods of the buffer, of which so many fit onto a machine that is there.
    fn judged(ready: Option<&str>, replicas: i32, fitting: usize, seen: bool) -> Option<Verdict> {
        let index = Index::new(Arc::default(), Served::default());
        let buffer = buffer("room", ready, replicas);
        let pods = virtual_pods(&buffer, &Arc::new(samples::pod_shape()), 2);
        let placements = [Placement {
            node: NodeKey::Node("n".into()),
            pods: pods.iter().take(fitting).map(|pod| pod.key.clone()).collect(),
        }];
        if seen {
            index.put_virtual_pods(&key_of(&buffer), pods);
        }
        let view = index.view();
        let placed = placed(&view, &placements);
        verdict(&view, &buffer, &placed)
    }

    /// LC-B13.
    #[test]
    fn a_buffer_has_its_room_when_every_pod_fits() {
        assert_eq!(judged(Some("True"), 2, 2, true), Some(Verdict::Fits));
        assert_eq!(judged(Some("True"), 2, 1, true), Some(Verdict::NeedsCapacity));
        assert_eq!(judged(Some("True"), 2, 0, true), Some(Verdict::NeedsCapacity));
        assert_eq!(judged(Some("False"), 2, 0, false), Some(Verdict::NotReady));
        assert_eq!(judged(Some("True"), 0, 0, false), Some(Verdict::Empty));
        assert_eq!(judged(Some("True"), 2, 0, false), None, "no round has seen it");
        assert_eq!(judged(None, 0, 0, false), None, "nobody has looked at it");
    }

    /// SC15.22.5
    #[test]
    fn only_virtual_pods_hold_room() {
        let index = Index::new(Arc::default(), Served::default());
        let buffer = buffer("room", Some("True"), 2);
        let pods = virtual_pods(&buffer, &Arc::new(samples::pod_shape()), 2);
        let node = NodeKey::Node("n".into());
        let keys = pods.iter().map(|pod| pod.key.clone());
        let placements = [Placement {
            node: node.clone(),
            pods: keys.chain([PodKey::new("default", "real")]).collect(),
        }];
        index.put_virtual_pods(&key_of(&buffer), pods);
        let held = room(&placed(&index.view(), &placements));
        assert_eq!(held, OrdMap::unit(node, 2));
    }
}
