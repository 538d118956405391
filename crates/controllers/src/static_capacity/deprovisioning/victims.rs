//! Which claims a static pool can do without.

use std::{cmp::Ordering, sync::Arc};

use api::v1::NodeClaim;
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use model::{NodeKey, Snapshot, StateNode};

use crate::objects::instance_of;

/// How much is lost with a claim, least first.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Loss {
    /// There is no machine yet.
    Unlaunched,
    /// Nothing that anybody would miss runs there.
    Empty,
    /// What the pods cost to move, the less the closer the machine is to its end.
    Pods { protected: bool, cost: f64 },
}

impl Loss {
    fn order(&self, other: &Loss) -> Ordering {
        match (self, other) {
            (
                Loss::Pods { protected, cost },
                Loss::Pods {
                    protected: others,
                    cost: others_cost,
                },
            ) => protected.cmp(others).then_with(|| cost.total_cmp(others_cost)),
            _ => self.rank().cmp(&other.rank()),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Loss::Unlaunched => 0,
            Loss::Empty => 1,
            Loss::Pods { .. } => 2,
        }
    }
}

/// The claims to delete, those that cost least first; equals by name.
pub fn victims(snapshot: &Snapshot, active: &[Arc<NodeClaim>], excess: usize, now: Timestamp) -> Vec<Arc<NodeClaim>> {
    let mut ranked: Vec<_> = active.iter().map(|claim| (loss(snapshot, claim, now), claim)).collect();
    ranked.sort_by(|(a, one), (b, other)| {
        let by_name = || one.name_any().cmp(&other.name_any());
        a.order(b).then_with(by_name)
    });
    ranked
        .into_iter()
        .take(excess)
        .map(|(_, claim)| claim.clone())
        .collect()
}

fn loss(snapshot: &Snapshot, claim: &NodeClaim, now: Timestamp) -> Loss {
    if instance_of(claim).is_none() {
        return Loss::Unlaunched;
    }
    let Some(machine) = snapshot.nodes.get(&NodeKey::Claim(claim.name_any().into())) else {
        return Loss::Empty;
    };
    let pods: Vec<_> = snapshot.pods_of(machine).filter(|pod| !pod.is_terminal()).collect();
    let protected = pods.iter().any(|pod| pod.is_protected(now));
    if !protected && pods.iter().all(|pod| pod.is_daemon()) {
        return Loss::Empty;
    }
    let cost: f64 = pods.iter().map(|pod| pod.eviction_cost()).sum();
    Loss::Pods {
        protected,
        cost: cost * life_left(machine, now),
    }
}

/// The share of its life that a machine still has before it; all of it when it never expires.
fn life_left(machine: &StateNode, now: Timestamp) -> f64 {
    let Some(claim) = &machine.claim else { return 1.0 };
    let Some(life) = claim.expire_after.filter(SignedDuration::is_positive) else {
        return 1.0;
    };
    let age = now.duration_since(claim.created).as_secs_f64();
    ((life.as_secs_f64() - age) / life.as_secs_f64()).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use model::{
        Pod,
        pod::{DoNotDisrupt, PodOwner, PodPhase},
        samples,
    };
    use serde_json::json;

    use super::*;
    use crate::static_capacity::census::tests::claim as object;

    /// A machine with its node, or an unlaunched claim.
    fn put(snapshot: &mut Snapshot, name: &str, expire_after: Option<i64>, pods: &[Pod]) -> Arc<NodeClaim> {
        snapshot.put_node(Arc::new(StateNode {
            key: NodeKey::Claim(name.into()),
            claim: Some(model::Claim {
                expire_after: expire_after.map(jiff::SignedDuration::from_secs),
                ..samples::claim(name)
            }),
            node: Some(samples::node(name)),
            nominated_until: None,
            marked_for_deletion: false,
        }));
        for (number, pod) in pods.iter().enumerate() {
            snapshot.put_pod(Arc::new(Pod {
                key: model::PodKey::new("default", &format!("{name}-{number}")),
                node: Some(name.into()),
                phase: PodPhase::Running,
                ..pod.clone()
            }));
        }
        Arc::new(object(
            name,
            "p",
            json!({"status": {"providerID": format!("g://{name}")}}),
        ))
    }

    fn daemon() -> Pod {
        Pod {
            owner: PodOwner::DaemonSet,
            ..samples::pod("daemon")
        }
    }

    fn protected(pod: Pod) -> Pod {
        Pod {
            do_not_disrupt: Some(DoNotDisrupt::Always),
            ..pod
        }
    }

    fn costly(cost: f64) -> Pod {
        Pod {
            deletion_cost: cost,
            ..samples::pod("web")
        }
    }

    /// LC-S10.
    #[test]
    fn what_is_missed_least_goes_first() {
        let mut snapshot = Snapshot::default();
        let dear = f64::from(1 << 28);
        let active = [
            put(&mut snapshot, "a-protected", None, &[protected(samples::pod("web"))]),
            put(&mut snapshot, "b-protected-daemon", None, &[protected(daemon())]),
            put(&mut snapshot, "c-dear", None, &[costly(dear)]),
            put(&mut snapshot, "d-cheap", None, &[samples::pod("web")]),
            put(&mut snapshot, "e-old", Some(100), &[costly(dear)]),
            put(&mut snapshot, "f-daemons", None, &[daemon(), daemon()]),
            put(&mut snapshot, "g-empty", None, &[]),
            Arc::new(object("h-unlaunched", "p", json!({}))),
        ];
        let now = Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_secs(90);
        let names = |excess| {
            let victims = victims(&snapshot, &active, excess, now);
            victims.iter().map(|claim| claim.name_any()).collect::<Vec<_>>()
        };
        assert_eq!(
            names(8),
            [
                "h-unlaunched",
                "f-daemons",
                "g-empty",
                "e-old",
                "d-cheap",
                "c-dear",
                "a-protected",
                "b-protected-daemon",
            ]
        );
        assert_eq!(names(2), ["h-unlaunched", "f-daemons"]);
        assert!(names(0).is_empty());
    }
}
