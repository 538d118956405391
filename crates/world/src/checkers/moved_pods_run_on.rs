//! A pod that ran and had to make room for a disruption runs again, in its workload's next pod, within the time that a new
//! node for it needs.
//!
//! What other trouble takes is not held against the disruption: the clock starts again when a machine fails, is taken back
//! or cannot be had, when the controller dies, and when somebody changes the size of the workload. What could not be had is
//! not on offer for a while, so that the clock starts at the end of it.

use std::{collections::BTreeSet, sync::Arc};

use api::{conditions, conditions::node_claim as condition, v1::NodeClaim};
use http::Method;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::{
    apps::v1::{ReplicaSet, StatefulSet},
    core::v1::Pod,
};
use provider_sim::SHORT_FOR;

use super::{
    Checker, Moment, Verdict,
    deletions_are_gentle::{deleted_pod, evicted_pod},
};
use crate::{
    history::Deed,
    kubelet::{is_ready as is_node_ready, pods::node_of},
    mirror::{Change, Group, Key, Seen, controller_of},
    workloads::{is_active, is_ready},
};

/// Noticing the pod, gathering others, booting to readiness, binding and starting, without the launch itself.
const HANDLING: SignedDuration = SignedDuration::from_secs(75);
/// Requests and calls that fail are made again, at growing distances.
const RETRIES: SignedDuration = SignedDuration::from_mins(5);

#[derive(Default)]
pub struct MovedPodsRunOn {
    owed: Vec<Debt>,
    /// The UIDs of pods that have been asked to go.
    moved: BTreeSet<String>,
    /// Until when something else went wrong.
    trouble: Option<Timestamp>,
}

/// A pod that is missing.
struct Debt {
    owner: String,
    pod: Key,
    since: Timestamp,
}

impl Checker for MovedPodsRunOn {
    fn name(&self) -> &'static str {
        "moved pods run on"
    }

    fn saw(&mut self, seen: &Seen, moment: &Moment<'_>) -> Verdict {
        match seen {
            Seen::Pod(change) => self.pays(change),
            Seen::ReplicaSet(change) => {
                let replicas = |set: &Option<Arc<ReplicaSet>>| set.as_ref().map(|set| set.spec.replicas);
                self.resized(seen, [replicas(&change.old), replicas(&change.new)], moment);
            }
            Seen::StatefulSet(change) => {
                let replicas = |set: &Option<Arc<StatefulSet>>| set.as_ref().map(|set| set.spec.replicas);
                self.resized(seen, [replicas(&change.old), replicas(&change.new)], moment);
            }
            Seen::Node(change) => {
                let ready = |node: &Option<Arc<_>>| node.as_ref().is_some_and(|node| is_node_ready(node));
                let going = change
                    .new
                    .as_ref()
                    .is_none_or(|node| node.metadata.deletion_timestamp.is_some());
                if ready(&change.old) && !ready(&change.new) && !going {
                    self.trouble = self.trouble.max(Some(moment.now));
                }
            }
            Seen::NodeClaim(change) if fails(change) => {
                let short = if is_short(change, moment) {
                    SHORT_FOR
                } else {
                    SignedDuration::ZERO
                };
                self.trouble = self.trouble.max(Some(moment.now + short));
            }
            _ => {}
        }
        self.overdue(moment)
    }

    fn called(&mut self, deed: &Deed, moment: &Moment<'_>) -> Verdict {
        if let Deed::Request {
            method,
            path,
            code: 200..300,
            ..
        } = deed
        {
            self.moves(method, path, moment);
        }
        self.overdue(moment)
    }

    fn noted(&mut self, subject: &str, moment: &Moment<'_>) {
        if subject == "controller" {
            self.trouble = self.trouble.max(Some(moment.now));
        }
    }
}

impl MovedPodsRunOn {
    fn moves(&mut self, method: &Method, path: &str, moment: &Moment<'_>) {
        let key = evicted_pod(method, path).or_else(|| deleted_pod(method, path));
        let Some(pod) = key.and_then(|key| moment.scene.pods.get(&key)) else {
            return;
        };
        let Some(owner) = controller_of(&pod.metadata).filter(|owner| owner.kind != "DaemonSet" && owner.kind != "Job")
        else {
            return;
        };
        if !self.moved.insert(pod.metadata.uid.clone().unwrap_or_default())
            || !is_ready(&pod)
            || !is_disrupted(&pod, moment)
        {
            return;
        }
        // A stateful set waits for the end of a pod before it makes the next.
        let grace = pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds);
        self.owed.push(Debt {
            owner: owner.uid.clone(),
            pod: Key::of(&pod.metadata),
            since: moment.now + SignedDuration::from_secs(grace.unwrap_or(30)),
        });
    }

    /// A pod that has become ready stands for the one that has been missing for longest.
    fn pays(&mut self, change: &Change<Pod>) {
        let runs = |pod: &Option<Arc<Pod>>| pod.as_ref().is_some_and(|pod| is_active(pod) && is_ready(pod));
        if runs(&change.old) || !runs(&change.new) {
            return;
        }
        let owner = controller_of(&change.either().metadata).map(|owner| &owner.uid);
        if let Some(at) = self.owed.iter().position(|debt| Some(&debt.owner) == owner) {
            self.owed.remove(at);
        }
    }

    /// `replicas` are those before and after, with nothing where there is no such workload.
    fn resized(&mut self, seen: &Seen, replicas: [Option<Option<i32>>; 2], moment: &Moment<'_>) {
        let uid = seen.meta().uid.clone().unwrap_or_default();
        let [before, after] = replicas;
        if before == after || self.owed.iter().all(|debt| debt.owner != uid) {
            return;
        }
        let pods = moment.scene.pods.group(&Group::Controller(uid.clone()));
        let running = pods.iter().filter(|pod| is_active(pod) && is_ready(pod)).count();
        let missing = usize::try_from(after.flatten().unwrap_or(0))
            .unwrap_or(0)
            .saturating_sub(running);
        let (of_it, others): (Vec<Debt>, Vec<Debt>) = self.owed.drain(..).partition(|debt| debt.owner == uid);
        let of_it = of_it.into_iter().take(missing).map(|debt| Debt {
            since: debt.since.max(moment.now),
            ..debt
        });
        self.owed = others.into_iter().chain(of_it).collect();
    }

    fn overdue(&mut self, moment: &Moment<'_>) -> Verdict {
        if self.owed.is_empty() {
            return Ok(());
        }
        let patience = patience(moment);
        let start = |debt: &Debt| self.trouble.map_or(debt.since, |trouble| debt.since.max(trouble));
        let late = |debt: &&Debt| moment.now.duration_since(start(debt)) > patience;
        let Some(debt) = self.owed.iter().find(late) else {
            return Ok(());
        };
        if is_hindered(moment) {
            self.trouble = Some(moment.now);
            return Ok(());
        }
        Err(format!(
            "pod {} had to make room for a disruption at {} and its workload still misses a pod",
            debt.pod, debt.since
        ))
    }
}

/// How long a new node may take.
fn patience(moment: &Moment<'_>) -> SignedDuration {
    let faults = moment.cloud.faults();
    let flawed = faults.unanswered + faults.lost_answer + faults.launch_failure > 0.0;
    let retries = if flawed { RETRIES } else { SignedDuration::ZERO };
    faults.launch_latency.at_most + HANDLING + retries
}

/// The node of the pod goes because of a command.
fn is_disrupted(pod: &Pod, moment: &Moment<'_>) -> bool {
    let node = node_of(pod);
    let claims = moment.scene.node_claims.all();
    let its = claims.iter().find(|claim| {
        let name = claim.status.as_ref().and_then(|status| status.node_name.as_deref());
        name.is_some() && name == node
    });
    its.is_some_and(|claim| is_marked(claim))
}

fn is_marked(claim: &NodeClaim) -> bool {
    conditions::find(listed(claim), condition::DISRUPTION_REASON).is_some()
}

fn listed(claim: &NodeClaim) -> &[k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition] {
    let status = claim.status.as_ref();
    status
        .and_then(|status| status.conditions.as_deref())
        .unwrap_or_default()
}

/// A claim goes that was never of use, or that no command has sent away.
fn fails(change: &Change<NodeClaim>) -> bool {
    let leaves = |claim: &Option<Arc<NodeClaim>>| {
        claim
            .as_ref()
            .is_none_or(|claim| claim.metadata.deletion_timestamp.is_some())
    };
    let Some(old) = &change.old else { return false };
    let useful = conditions::is_true(listed(old), condition::INITIALIZED) && is_marked(old);
    leaves(&change.new) && !leaves(&change.old) && !useful
}

/// A claim that goes got no machine, in a cloud that is not able to sell everything at any time.
fn is_short(change: &Change<NodeClaim>, moment: &Moment<'_>) -> bool {
    let faults = moment.cloud.faults();
    let sells_out = faults.market.is_some_and(|market| market.sold_out > 0.0);
    let launched = |claim: &Arc<NodeClaim>| conditions::is_true(listed(claim), condition::LAUNCHED);
    (sells_out || !faults.shortages.is_empty()) && !change.old.as_ref().is_some_and(launched)
}

/// Something stands in the way of new nodes that is nobody's mistake: limits, or a machine that never joins.
fn is_hindered(moment: &Moment<'_>) -> bool {
    let limited = |pool: &Arc<api::v1::NodePool>| pool.spec.limits.as_ref().is_some_and(|limits| !limits.is_empty());
    let stuck = |claim: &Arc<NodeClaim>| {
        let id = claim.status.as_ref().and_then(|status| status.provider_id.as_deref());
        let machine = id.and_then(|id| moment.cloud.machine(&id.into()));
        machine.is_some_and(|machine| machine.joins.is_none() && machine.is_live(moment.now))
    };
    moment.scene.node_pools.all().iter().any(limited) || moment.scene.node_claims.all().iter().any(stuck)
}
