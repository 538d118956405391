//! No node is marked for disruption while a pod on it says that it must not be disturbed.

use api::{conditions, conditions::node_claim as condition, v1::NodeClaim};
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Pod;

use super::{Checker, Moment, Verdict};
use crate::mirror::{Change, Seen};

/// A pod that has come so lately may not have been heard of when the decision was made.
const LATENCY: SignedDuration = SignedDuration::from_mins(1);

pub struct ProtectedNodesStay;

impl Checker for ProtectedNodesStay {
    fn name(&self) -> &'static str {
        "protected nodes stay"
    }

    fn saw(&mut self, seen: &Seen, moment: &Moment<'_>) -> Verdict {
        let Seen::NodeClaim(Change {
            old, new: Some(claim), ..
        }) = seen
        else {
            return Ok(());
        };
        // With a grace period a drifted node may go in spite of its pods.
        let graced = claim.spec.termination_grace_period.is_some();
        if graced || !is_marked(claim) || old.as_ref().is_some_and(|old| is_marked(old)) {
            return Ok(());
        }
        let node = claim.status.as_ref().and_then(|status| status.node_name.as_deref());
        let pods = moment.scene.pods.all();
        let held = pods.iter().find(|pod| {
            let bound = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
            bound.is_some() && bound == node && is_protected(pod, moment)
        });
        match held {
            Some(pod) => Err(format!(
                "claim {} is marked for disruption although pod {} is protected",
                claim.metadata.name.as_deref().unwrap_or_default(),
                pod.metadata.name.as_deref().unwrap_or_default()
            )),
            None => Ok(()),
        }
    }
}

fn is_marked(claim: &NodeClaim) -> bool {
    let listed = claim.status.as_ref().and_then(|status| status.conditions.as_deref());
    conditions::find(listed.unwrap_or_default(), condition::DISRUPTION_REASON).is_some()
}

fn is_protected(pod: &Pod, moment: &Moment<'_>) -> bool {
    let annotations = pod.metadata.annotations.as_ref();
    let says = annotations.and_then(|notes| notes.get("karpenter.sh/do-not-disrupt"));
    let status = pod.status.as_ref();
    let running = status.and_then(|status| status.phase.as_deref()) == Some("Running");
    let started = status.and_then(|status| status.start_time.as_ref());
    let long = started.is_some_and(|start| moment.now.duration_since(start.0) > LATENCY);
    says.is_some_and(|says| says == "true") && running && long && pod.metadata.deletion_timestamp.is_none()
}
