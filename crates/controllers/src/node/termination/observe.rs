//! What the end of a node depends on.

use std::{collections::BTreeSet, sync::Arc};

use api::{
    conditions::{self, HasConditions, node_claim as condition},
    labels,
    v1::NodeClaim,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use model::{NodeName, Pod, ProviderId, pod::PodVolume};
use state::{ObjectKey, Served};

use crate::{
    context::Ctx,
    error::CloudError,
    objects::{instance_under, is_deleting, is_held, is_ready, label, taints_of},
};

/// How far the drain has come, as the claim remembers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    NotBegun,
    Since(Timestamp),
    Done,
}

/// The claim of a node, where there is exactly one.
#[derive(Clone, Debug)]
pub struct Owner {
    pub claim: Arc<NodeClaim>,
    pub drained: Drained,
}

#[derive(Clone, Debug)]
pub struct View {
    pub node: Arc<Node>,
    pub owner: Option<Owner>,
    /// The kubelet is silent and the cloud has no such instance.
    pub vanished: bool,
    pub marked: bool,
    pub deadline: Option<Timestamp>,
    /// What stands where a deadline should, if it is none: better to wait for the pods than to fail for ever.
    pub unreadable_deadline: Option<String>,
    pub pods: Vec<Arc<Pod>>,
    /// Attachments that have to go before the instance may.
    pub attached: Vec<String>,
}

/// `None` for a node that is not ours to take down.
pub async fn observe(ctx: &Ctx, served: &Served, name: &NodeName) -> Result<Option<View>, CloudError> {
    let view = ctx.index.view();
    let Some(node) = view.nodes.named(name.as_str()) else {
        return Ok(None);
    };
    let claims = instance_under(node).map(|id| view.claims_of(id)).unwrap_or_default();
    // A node that somebody took the label off is still ours if a claim of ours names its instance.
    let ours = served.node(node) || !claims.is_empty();
    if !is_deleting(&**node) || !is_held(&**node) || !ours {
        return Ok(None);
    }
    let claim = if let [claim] = claims[..] { Some(claim) } else { None };
    let pods: Vec<_> = view.snapshot.pods_on(name).cloned().collect();
    let now = ctx.clock.now();
    let deadline = claim.and_then(|claim| deadline(claim));
    let (deadline, unreadable_deadline) = match deadline {
        Some(Ok(due)) => (Some(due), None),
        Some(Err(text)) => (None, Some(text)),
        None => (None, None),
    };
    Ok(Some(View {
        vanished: !is_ready(node) && is_gone(ctx, node).await?,
        owner: claim.map(|claim| Owner {
            claim: claim.clone(),
            drained: drained(claim),
        }),
        marked: is_marked(node),
        deadline,
        unreadable_deadline,
        attached: attached(&view, name, &pods, now),
        pods,
        node: node.clone(),
    }))
}

async fn is_gone(ctx: &Ctx, node: &Node) -> Result<bool, CloudError> {
    let Some(id) = instance_under(node) else {
        return Ok(false);
    };
    let found = ctx.cloud.instance(&ProviderId::from(id)).await;
    let action = "look an instance up";
    Ok(found.map_err(|cause| CloudError { action, cause })?.is_none())
}

fn drained(claim: &NodeClaim) -> Drained {
    match conditions::find(claim.conditions(), condition::DRAINED) {
        None => Drained::NotBegun,
        Some(found) if found.status == conditions::TRUE => Drained::Done,
        Some(found) => Drained::Since(found.last_transition_time.0),
    }
}

/// The claim's deadline, or what stands in its place and cannot be read.
fn deadline(claim: &NodeClaim) -> Option<Result<Timestamp, String>> {
    let text = claim.annotations().get(labels::annotations::TERMINATION_TIMESTAMP)?;
    Some(text.parse().map_err(|_| text.clone()))
}

/// Nothing new comes here: the taint keeps pods away, the label load balancers.
pub fn is_marked(node: &Node) -> bool {
    let tainted = taints_of(node)
        .iter()
        .any(|taint| taint.key == labels::taints::DISRUPTED && taint.effect == "NoSchedule");
    tainted && !label(node, super::act::EXCLUDE_FROM_BALANCERS).is_empty()
}

/// Attachments of volumes that no pod keeps here. A pod that is not drained keeps its volumes, and we do not wait for
/// what will not happen.
fn attached(view: &state::View, node: &NodeName, pods: &[Arc<Pod>], now: Timestamp) -> Vec<String> {
    let kept: BTreeSet<String> = pods
        .iter()
        .filter(|pod| stays(pod, now))
        .flat_map(|pod| volumes_of(view, pod))
        .collect();
    let waited_for = |volume: &Option<String>| volume.as_ref().is_some_and(|name| !kept.contains(name));
    let attachments = view.attachments_to(node.as_str()).into_iter();
    attachments
        .filter(|attachment| waited_for(&attachment.spec.source.persistent_volume_name))
        .map(|a| a.name_any())
        .collect()
}

/// A drain neither evicts it nor waits for it.
fn stays(pod: &Pod, now: Timestamp) -> bool {
    pod.tolerates_disruption() || pod.is_mirror() || pod.is_stuck_terminating(now)
}

fn volumes_of(view: &state::View, pod: &Pod) -> Vec<String> {
    let claim = |volume: &PodVolume| match volume {
        PodVolume::Claim(name) => name.clone(),
        PodVolume::Ephemeral { volume, .. } => format!("{}-{volume}", pod.key.name),
    };
    let claims = pod.shape.volumes.iter().map(claim);
    let bound = |name: String| {
        let claims = &view.snapshot.volume_claims;
        let claim = claims.get(&ObjectKey::new(&pod.key.namespace, &name))?;
        claim.volume.as_ref().map(ToString::to_string)
    };
    claims.filter_map(bound).collect()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::{core::v1::PersistentVolumeClaim, storage::v1::VolumeAttachment};
    use serde_json::{Value, json};
    use state::Index;

    use super::*;

    fn parse<K: serde::de::DeserializeOwned>(value: Value) -> K {
        serde_json::from_value(value).expect("the literal is an object of its kind")
    }

    fn meta(name: &str) -> Value {
        let created = "2026-01-01T00:00:00Z";
        json!({"name": name, "namespace": "default", "uid": name, "resourceVersion": "1", "creationTimestamp": created})
    }

    fn pod(name: &str, tolerations: Value) -> k8s_openapi::api::core::v1::Pod {
        let volume = json!({"name": "v", "persistentVolumeClaim": {"claimName": name}});
        parse(json!({
            "metadata": meta(name), "status": {"phase": "Running"},
            "spec": {"nodeName": "n", "containers": [], "volumes": [volume], "tolerations": tolerations},
        }))
    }

    /// LC-N26: a volume that a pod keeps is not waited for, and neither is an attachment that names no volume.
    #[test]
    fn volumes_of_pods_that_stay_are_not_waited_for() {
        let index = Index::new(Arc::default(), Served::default());
        let stays = json!([{"key": "karpenter.sh/disrupted", "operator": "Exists"}]);
        for (name, tolerations) in [("stays", stays), ("goes", json!([]))] {
            index.apply(pod(name, tolerations));
            let claim: PersistentVolumeClaim =
                parse(json!({"metadata": meta(name), "spec": {"volumeName": format!("pv-{name}")}}));
            index.apply(claim);
        }
        for (name, source) in [
            ("a-stays", json!({"persistentVolumeName": "pv-stays"})),
            ("a-goes", json!({"persistentVolumeName": "pv-goes"})),
            ("a-inline", json!({})),
        ] {
            let spec = json!({"attacher": "csi", "nodeName": "n", "source": source});
            let mut meta = meta(name);
            meta["namespace"] = Value::Null;
            index.apply(parse::<VolumeAttachment>(json!({"metadata": meta, "spec": spec})));
        }
        let view = index.view();
        let name = NodeName::from("n");
        let pods: Vec<_> = view.snapshot.pods_on(&name).cloned().collect();
        assert_eq!(attached(&view, &name, &pods, Timestamp::UNIX_EPOCH), ["a-goes"]);
    }

    #[test]
    fn a_deadline_that_cannot_be_read_is_none_and_reported() {
        let mut claim = NodeClaim::default();
        assert_eq!(deadline(&claim), None);
        let mut written = |text: &str| {
            let annotations = claim.metadata.annotations.get_or_insert_default();
            annotations.insert(labels::annotations::TERMINATION_TIMESTAMP.to_owned(), text.to_owned());
            deadline(&claim)
        };
        assert_eq!(written("1970-01-01T00:00:00Z"), Some(Ok(Timestamp::UNIX_EPOCH)));
        assert_eq!(written("tomorrow"), Some(Err("tomorrow".to_owned())));
    }
}
