//! The pods that a buffer keeps room for, as rounds see them.

use std::{collections::BTreeMap, sync::Arc};

use api::v1beta1::CapacityBuffer;
use jiff::Timestamp;
use model::{
    Pod, PodKey,
    pod::{PodOwner, PodPhase, PodShape},
};

use super::key_of;
use crate::objects::created_at;

/// So many pods of one shape. Names and UIDs follow from the buffer, so that a pod is the same one in every round.
pub fn virtual_pods(buffer: &CapacityBuffer, shape: &Arc<PodShape>, replicas: i32) -> Vec<Pod> {
    let key = key_of(buffer);
    let uid = buffer.metadata.uid.as_deref().unwrap_or_default();
    let pod = |number: i32| Pod {
        key: PodKey::new(&key.namespace, &format!("capacity-buffer-{}-{number}", key.name)),
        uid: format!("{uid}-{number}").into(),
        shape: shape.clone(),
        owner: PodOwner::CapacityBuffer,
        controller: None,
        phase: PodPhase::Pending,
        ready: false,
        node: None,
        nominated_node: None,
        created: created_at(buffer).unwrap_or(Timestamp::UNIX_EPOCH),
        started: None,
        deletion: None,
        unschedulable: true,
        scheduling_gated: false,
        do_not_disrupt: None,
        deletion_cost: 0.0,
        generated_claims: BTreeMap::new(),
    };
    (1..=replicas).map(pod).collect()
}

#[cfg(test)]
mod tests {
    use model::samples;

    use super::*;

    /// LC-B12: count, names, stable UIDs; LC-B17: the same name in another namespace is another buffer.
    #[test]
    fn pods_are_the_same_in_every_round() {
        let buffer = |namespace: &str| {
            let mut buffer = CapacityBuffer::new("room", Default::default());
            buffer.metadata.namespace = Some(namespace.to_owned());
            buffer.metadata.uid = Some(format!("uid-{namespace}"));
            buffer
        };
        let shape = Arc::new(samples::pod_shape());
        let pods = virtual_pods(&buffer("a"), &shape, 2);
        let shown: Vec<_> = pods.iter().map(|pod| format!("{} {}", pod.key, pod.uid)).collect();
        assert_eq!(
            shown,
            ["a/capacity-buffer-room-1 uid-a-1", "a/capacity-buffer-room-2 uid-a-2"]
        );
        assert_eq!(pods, virtual_pods(&buffer("a"), &shape, 2));
        assert_ne!(pods[0].key, virtual_pods(&buffer("b"), &shape, 1)[0].key);
        assert!(pods.iter().all(|pod| pod.is_virtual() && pod.is_provisionable()));
    }
}
