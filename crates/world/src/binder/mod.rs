//! The cluster's scheduler, played: binds pods to nodes by the rules of Kubernetes, and says why when nothing fits.
//!
//! This is no part of Karpenter's decisions and shares no code with them. It reads the same facts by the same conversion
//! and knows the rules on its own, so that a plan that breaks a rule shows up as a pod that does not get bound.
//!
//! * [`board`]: the nodes of one pass, with what is left of each.
//! * [`node_rules`]: selectors, affinity and taints between one pod and one node.
//! * [`spread`], [`neighbours`]: rules that look at other pods.
//! * [`ranking`], [`preferences`]: which of several nodes is taken.
//!
//! It does not preempt, and it knows no volumes.

mod board;
mod filter;
mod neighbours;
pub mod node_rules;
mod preferences;
mod ranking;
mod spread;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::core::v1::{Binding, ObjectReference, Pod},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::api::{Patch, PostParams};
use parking_lot::Mutex;
use serde_json::{Value, json};

pub use self::ranking::Ranking;
use self::{
    board::{Board, Entrant},
    filter::{Refusal, choose},
};
use crate::{
    component::{Component, Ctx, Next},
    kubelet::{collector::is_terminal, is_ready, pods::node_of},
    mirror::{Group, Key, Mirror, Mirrored, Seen},
};

const SCHEDULER: &str = "default-scheduler";
/// A pod that was refused is told another reason no sooner than this, as kube-scheduler would not try it again sooner
/// either. While a thousand pods wait for nodes, every node would otherwise change what all of them are told.
const PATIENCE: SignedDuration = SignedDuration::from_secs(10);

#[derive(Default)]
pub struct Binder {
    ranking: Ranking,
    memory: Mutex<Memory>,
}

impl Binder {
    pub fn new(ranking: Ranking) -> Self {
        Self {
            ranking,
            ..Self::default()
        }
    }
}

#[derive(Default)]
struct Memory {
    /// Pods as they were read last.
    pods: BTreeMap<Key, Entrant>,
    /// Bindings that the mirror does not show yet, by the pods' UIDs.
    assumed: BTreeMap<String, String>,
    /// When these pods were told why they have to wait, by UID.
    told: BTreeMap<String, Timestamp>,
}

/// There is one thing to do: a pass over all pods that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pass;

impl Component for Binder {
    type Item = Pass;
    const NAME: &'static str = "scheduler";

    fn touched(mirror: &Mirror, seen: &Seen, items: &mut Vec<Pass>) {
        let news = match seen {
            Seen::Pod(change) => match (&change.old, &change.new) {
                (_, None) => true,
                (None, Some(_)) => true,
                (Some(old), Some(new)) => {
                    node_of(old) != node_of(new)
                        || is_terminal(old) != is_terminal(new)
                        || old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
                        || old.metadata.labels != new.metadata.labels
                        || (node_of(new).is_none() && old.spec != new.spec)
                }
            },
            Seen::Node(change) => match (&change.old, &change.new) {
                (Some(old), Some(new)) => {
                    let allocatable = |node: &k8s_openapi::api::core::v1::Node| {
                        node.status.as_ref().and_then(|status| status.allocatable.clone())
                    };
                    old.spec != new.spec
                        || old.metadata.labels != new.metadata.labels
                        || allocatable(old) != allocatable(new)
                        || is_ready(old) != is_ready(new)
                }
                _ => true,
            },
            Seen::Namespace(_) => true,
            _ => false,
        };
        if news && mirror.pods.has_members(&Group::Unbound) {
            items.push(Pass);
        }
    }

    async fn reconcile(&self, ctx: &Ctx, _: &Pass) -> Result<Next, kube::Error> {
        let (mut board, waiting) = self.memory.lock().set_up(&ctx.mirror);
        // Equal pods meet equal refusals until something is bound.
        let mut refused: BTreeMap<Arc<str>, Refusal> = BTreeMap::new();
        let mut next: Option<Timestamp> = None;
        for (raw, entrant) in waiting {
            let verdict = match refused.get(&entrant.alike) {
                Some(refusal) => Err(refusal.clone()),
                None => choose(&board, &entrant, self.ranking, ctx.dice),
            };
            match verdict {
                Ok(spot) => {
                    let node = board.node_name(spot).to_owned();
                    if bind(ctx, &raw, &node).await? {
                        let uid = raw.metadata.uid.clone().unwrap_or_default();
                        self.memory.lock().assumed.insert(uid, node);
                        board.place(spot, &entrant);
                        refused.clear();
                    }
                }
                Err(refusal) => {
                    let due = self.memory.lock().may_tell(&raw);
                    if due <= ctx.now() {
                        if report(ctx, &raw, "Unschedulable", &refusal.to_string()).await? {
                            self.memory.lock().has_told(&raw, ctx.now());
                        }
                    } else {
                        next = Some(next.map_or(due, |next| next.min(due)));
                    }
                    refused.insert(Arc::clone(&entrant.alike), refusal);
                }
            }
        }
        Ok(next.map_or(Next::OnChange, |due| Next::at(due, ctx.now())))
    }
}

impl Memory {
    /// The board of this pass, and the pods that wait in the order in which they are served: by priority, then by age.
    fn set_up(&mut self, mirror: &Mirror) -> (Board, Vec<(Arc<Pod>, Entrant)>) {
        let mut board = Board::of(mirror);
        let mut waiting = Vec::new();
        let mut kept = BTreeMap::new();
        for raw in mirror.pods.all() {
            let key = Key::of(&raw.metadata);
            let known = self.pods.remove(&key).filter(|known| Arc::ptr_eq(&known.raw, &raw));
            let entrant = known.unwrap_or_else(|| Entrant::of(Arc::clone(&raw)));
            kept.insert(key, entrant.clone());
            let uid = raw.metadata.uid.as_deref().unwrap_or_default();
            match node_of(&raw)
                .map(str::to_owned)
                .or_else(|| self.assumed.get(uid).cloned())
            {
                Some(node) => board.put(&node, &entrant),
                None if is_waiting(&raw) => waiting.push((raw, entrant)),
                None => {}
            }
        }
        self.pods = kept;
        let unbound = mirror.pods.group(&Group::Unbound);
        let unbound: BTreeSet<&str> = unbound.iter().filter_map(|pod| pod.metadata.uid.as_deref()).collect();
        self.assumed.retain(|uid, _| unbound.contains(uid.as_str()));
        self.told.retain(|uid, _| unbound.contains(uid.as_str()));
        waiting.sort_by_cached_key(|(raw, entrant)| {
            (
                Reverse(entrant.pod.shape.priority),
                raw.metadata.creation_timestamp.clone(),
                Key::of(&raw.metadata),
            )
        });
        (board, waiting)
    }

    /// From when on the pod may be told why it waits.
    fn may_tell(&self, pod: &Pod) -> Timestamp {
        let told = pod.metadata.uid.as_ref().and_then(|uid| self.told.get(uid));
        told.map_or(Timestamp::MIN, |told| *told + PATIENCE)
    }

    fn has_told(&mut self, pod: &Pod, now: Timestamp) {
        self.told.insert(pod.metadata.uid.clone().unwrap_or_default(), now);
    }
}

fn is_waiting(pod: &Pod) -> bool {
    let spec = pod.spec.as_ref();
    pod.metadata.deletion_timestamp.is_none()
        && !is_terminal(pod)
        && spec.is_some_and(|spec| spec.scheduler_name.as_deref().unwrap_or(SCHEDULER) == SCHEDULER)
        && spec.is_some_and(|spec| spec.scheduling_gates.as_ref().is_none_or(Vec::is_empty))
}

/// Whether the pod is bound now. It is not when it changed or went away under our hands.
async fn bind(ctx: &Ctx, pod: &Pod, node: &str) -> Result<bool, kube::Error> {
    let key = Key::of(&pod.metadata);
    let binding = Binding {
        metadata: ObjectMeta {
            name: Some(key.name.clone()),
            namespace: Some(key.namespace.clone()),
            uid: pod.metadata.uid.clone(),
            ..ObjectMeta::default()
        },
        target: ObjectReference {
            api_version: Some("v1".into()),
            kind: Some("Node".into()),
            name: Some(node.to_owned()),
            ..ObjectReference::default()
        },
    };
    let api = Pod::api(&ctx.client, &key.namespace);
    match api
        .create_subresource::<_, Value>("binding", &key.name, &PostParams::default(), &binding)
        .await
    {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Says on the pod why it is not bound, unless it says so already. Karpenter acts on this.
async fn report(ctx: &Ctx, pod: &Pod, reason: &str, message: &str) -> Result<bool, kube::Error> {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let mut scheduled = conditions.filter(|condition| condition.type_ == "PodScheduled");
    let old = scheduled.next();
    if old.is_some_and(|old| old.reason.as_deref() == Some(reason) && old.message.as_deref() == Some(message)) {
        return Ok(false);
    }
    let since = old
        .filter(|old| old.status == "False")
        .and_then(|old| old.last_transition_time.clone());
    let condition = json!({
        "type": "PodScheduled",
        "status": "False",
        "reason": reason,
        "message": message,
        "lastTransitionTime": since.unwrap_or_else(|| ctx.time()),
    });
    let patch = Patch::Strategic(json!({ "status": { "conditions": [condition] } }));
    match ctx.patch_status::<Pod>(&Key::of(&pod.metadata), &patch).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
        other => other.map(|()| true),
    }
}
