//! What must not be disturbed is not: no node is marked for disruption while it, or a pod on it, says so, and no such pod is
//! evicted, whatever its node goes for.

use std::sync::Arc;

use api::{conditions, conditions::node_claim as condition, labels::annotations::DO_NOT_DISRUPT, v1::NodeClaim};
use jiff::SignedDuration;
use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::ObjectMeta};

use super::{Checker, Moment, Verdict, deletions_are_gentle::evicted_pod};
use crate::{
    history::Deed,
    kubelet::pods::node_of,
    mirror::{Change, Group, Key, Seen},
};

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
        let Some(reason) = reason(claim).filter(|_| old.as_ref().is_none_or(|old| reason(old).is_none())) else {
            return Ok(());
        };
        let name = claim.metadata.name.as_deref().unwrap_or_default();
        let node = claim.status.as_ref().and_then(|status| status.node_name.clone());
        let node = node.unwrap_or_default();
        let stored = moment.scene.nodes.get(&Key::cluster(&*node));
        if stored.is_some_and(|node| says(&node.metadata) == Some("true")) {
            return Err(format!(
                "claim {name} is marked for disruption although its node is protected"
            ));
        }
        // With a grace period a drifted node may go in spite of its pods.
        if reason == "Drifted" && claim.spec.termination_grace_period.is_some() {
            return Ok(());
        }
        let pods = moment.scene.pods.group(&Group::Node(node));
        let held = |pod: &&Arc<Pod>| pod.metadata.deletion_timestamp.is_none() && is_protected(pod, moment);
        match pods.iter().find(held) {
            Some(pod) => Err(format!(
                "claim {name} is marked for disruption although pod {} is protected",
                pod.metadata.name.as_deref().unwrap_or_default()
            )),
            None => Ok(()),
        }
    }

    fn called(&mut self, deed: &Deed, moment: &Moment<'_>) -> Verdict {
        let Deed::Request {
            method,
            path,
            code: 200..300,
            ..
        } = deed
        else {
            return Ok(());
        };
        let pod = evicted_pod(method, path).and_then(|key| moment.scene.pods.get(&key));
        match pod.filter(|pod| is_protected(pod, moment) && leaves_now(pod, moment)) {
            Some(pod) => Err(format!(
                "pod {} was evicted from {} although it is protected",
                Key::of(&pod.metadata),
                node_of(&pod).unwrap_or_default()
            )),
            None => Ok(()),
        }
    }
}

fn reason(claim: &NodeClaim) -> Option<&str> {
    let listed = claim.status.as_ref().and_then(|status| status.conditions.as_deref());
    let found = conditions::find(listed.unwrap_or_default(), condition::DISRUPTION_REASON);
    found.map(|found| found.reason.as_str())
}

fn says(meta: &ObjectMeta) -> Option<&str> {
    meta.annotations.as_ref()?.get(DO_NOT_DISRUPT).map(String::as_str)
}

/// For ever, or for some time since it started.
fn is_protected(pod: &Pod, moment: &Moment<'_>) -> bool {
    let status = pod.status.as_ref();
    let running = status.and_then(|status| status.phase.as_deref()) == Some("Running");
    let started = status.and_then(|status| status.start_time.as_ref());
    let Some(age) = started.map(|started| moment.now.duration_since(started.0)) else {
        return false;
    };
    let protects = |says: &str| says == "true" || says.parse::<SignedDuration>().is_ok_and(|time| age < time);
    running && age > LATENCY && says(&pod.metadata).is_some_and(protects)
}

/// Whoever was on its way out already may be asked to go once more.
fn leaves_now(pod: &Pod, moment: &Moment<'_>) -> bool {
    let Some(end) = &pod.metadata.deletion_timestamp else {
        return true;
    };
    let grace = SignedDuration::from_secs(pod.metadata.deletion_grace_period_seconds.unwrap_or_default());
    moment.now.duration_since(end.0 - grace) <= SignedDuration::from_secs(1)
}
