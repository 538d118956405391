//! A node before its kubelet has said a word: the object is made as soon as its instance is known, and pods may be bound
//! to it before anybody else sees room there. Behind feature gates; early releases did nothing else.
//!
//! ```text
//!   launched ──► Node object (taints, provider id, finalizer) ──► pods bound ──► kubelet reports ──► registration
//! ```
//!
//! A kubelet that finds its node there takes it as it is, with our taints, and only adds what it reports.

use std::{collections::BTreeMap, sync::Arc};

use api::{
    labels::{self, compatibility},
    v1::NodeClaim,
};
use futures::{StreamExt, stream};
use k8s_openapi::{
    api::core::v1::{Node, NodeSpec, Taint},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::ResourceExt;
use model::{Effect, NodeKey, NodeName, Pod, PodKey, Snapshot, pod::PodVolume};
use tracing::{info, warn};

use super::registration;
use crate::{context::Ctx, error::chain, objects::instance_of, writer::ApiFailure};

/// How many pods are bound at once.
const PARALLEL: usize = 20;

/// Whether a node is one that we made and whose kubelet has not reported yet.
pub fn is_silent(node: &Node) -> bool {
    let made = node.annotations().contains_key(compatibility::PRE_REGISTERED);
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    made && conditions.is_none_or(Vec::is_empty)
}

/// The node without the taint that kept everybody else away, once it can take pods from anybody.
pub fn opened(node: &Node) -> Node {
    let mut opened = node.clone();
    let spec = opened.spec.get_or_insert_default();
    if let Some(taints) = &mut spec.taints {
        taints.retain(|taint| taint.key != labels::taints::NOT_READY);
    }
    spec.taints = spec.taints.take().filter(|taints| !taints.is_empty());
    opened
}

/// Makes the node of an instance that was just launched, and binds the pods that it was planned for. What cannot be done
/// is left to kubelet and scheduler, as without the gate.
pub async fn announce(ctx: &Ctx, claim: &NodeClaim) {
    let features = ctx.knobs.features;
    let promised = ctx.promises.take(&claim.name_any());
    let instance = instance_of(claim).unwrap_or_default();
    let name = match ctx.cloud.node_name(&instance.into()).await {
        Ok(Some(name)) => name,
        Ok(None) => return,
        Err(cause) => {
            warn!(NodeClaim = %claim.name_any(), error = %chain(&cause), "the name of the node is not known");
            return;
        }
    };
    let node = object(claim, &name, instance, features.proactive_binding);
    match ctx.writer.create(&node).await {
        Ok(_) => info!(NodeClaim = %claim.name_any(), Node = %name, "pre-registered node"),
        // The kubelet was faster. Its node has taints of its own, and nobody but the scheduler binds to it.
        Err(error) if error.failure == ApiFailure::AlreadyExists => return,
        Err(error) => {
            warn!(NodeClaim = %claim.name_any(), Node = %name, error = %chain(&error), "could not pre-register node");
            return;
        }
    }
    if features.proactive_binding {
        bind(ctx, claim, &name, &promised).await;
    }
}

/// With pods to come, the taint that keeps others away must not drive those pods away again: `unregistered` would, because
/// it is a NoExecute taint.
fn object(claim: &NodeClaim, name: &NodeName, instance: &str, takes_pods: bool) -> Node {
    let (key, effect) = if takes_pods {
        (labels::taints::NOT_READY, Effect::NoSchedule)
    } else {
        (labels::taints::UNREGISTERED, Effect::NoExecute)
    };
    let mut labels: BTreeMap<String, String> = claim.labels().clone();
    labels
        .entry(labels::HOSTNAME.to_owned())
        .or_insert_with(|| name.to_string());
    let bare = Node {
        metadata: ObjectMeta {
            name: Some(name.to_string()),
            labels: Some(labels),
            annotations: Some([(compatibility::PRE_REGISTERED.to_owned(), "true".to_owned())].into()),
            ..ObjectMeta::default()
        },
        spec: Some(NodeSpec {
            provider_id: Some(instance.to_owned()),
            taints: Some(vec![Taint {
                key: key.to_owned(),
                effect: effect.to_string(),
                ..Taint::default()
            }]),
            ..NodeSpec::default()
        }),
        status: None,
    };
    registration::synced(claim, &bare)
}

/// Binds the promised pods, for as long as the node holds them. A pod that somebody else was faster to bind, or that has
/// changed its mind, is passed over.
async fn bind(ctx: &Ctx, claim: &NodeClaim, node: &NodeName, promised: &[PodKey]) {
    let view = ctx.index.view();
    let machine = view.snapshot.nodes.get(&NodeKey::Claim(claim.name_any().into()));
    let Some(facts) = machine.and_then(|machine| machine.claim.as_ref()) else {
        return;
    };
    let mut left = facts.allocatable.clone();
    let mut chosen: Vec<Arc<Pod>> = Vec::new();
    for pod in promised.iter().filter_map(|key| view.snapshot.pods.get(key)) {
        let repels = |taint: &model::Taint| taint.effect != Effect::PreferNoSchedule && !pod.shape.tolerates(taint);
        let goes = is_bindable(pod, &view.snapshot) && !facts.taints.iter().any(repels);
        if goes && pod.shape.requests.fits(&left) {
            left.sub_assign(&pod.shape.requests);
            chosen.push(pod.clone());
        }
    }
    let outcomes = stream::iter(chosen).map(|pod| async move {
        let bound = ctx.writer.bind(&pod.key, &pod.uid, node.as_str()).await;
        if let Err(error) = &bound {
            warn!(Pod = %pod.key, Node = %node, error = %chain(error), "could not bind pod");
        }
        bound.is_ok()
    });
    let outcomes: Vec<bool> = outcomes.buffered(PARALLEL).collect().await;
    let pods = outcomes.into_iter().filter(|bound| *bound).count();
    info!(NodeClaim = %claim.name_any(), Node = %node, pods, "bound pods to forthcoming node");
}

/// Waits for a node, and nobody but the scheduler would have anything to do for it first.
fn is_bindable(pod: &Pod, snapshot: &Snapshot) -> bool {
    pod.is_provisionable() && !pod.is_virtual() && !pod.shape.claims_devices() && has_its_volumes(pod, snapshot)
}

fn has_its_volumes(pod: &Pod, snapshot: &Snapshot) -> bool {
    pod.shape.volumes.iter().all(|volume| match volume {
        PodVolume::Claim(name) => {
            let claim = snapshot.volume_claims.get(&PodKey::new(&pod.key.namespace, name));
            claim.is_some_and(|claim| claim.bind_completed)
        }
        PodVolume::Ephemeral { .. } => false,
    })
}
