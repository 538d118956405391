//! The next step of a node that is on its way out.

use jiff::{SignedDuration, Timestamp};

use super::{
    drain::{self, Drain},
    observe::{Drained, View},
};
use crate::objects::is_deleting;

/// A drain lasts at least this long, so that pods that were bound before the taint was seen are drained too.
const SHORTEST_DRAIN: SignedDuration = SignedDuration::from_secs(5);

/// What became of the volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Volumes {
    Detached,
    /// The deadline has passed; the instance goes with its volumes attached.
    GivenUp,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    DeleteClaim,
    Mark,
    Drain(Drain),
    /// Nobody is left; wait for stragglers.
    Linger(SignedDuration),
    AwaitVolumes(Vec<String>),
    Terminate(Volumes),
    Release,
}

pub fn decide(view: &View, now: Timestamp) -> Step {
    if let Some(owner) = &view.owner
        && !is_deleting(&*owner.claim)
    {
        return Step::DeleteClaim;
    }
    // Nobody is there to stop the pods: waiting for them would be waiting for ever.
    if view.vanished {
        return Step::Release;
    }
    if !view.marked {
        return Step::Mark;
    }
    let drain = drain::plan(&view.pods, view.deadline, now);
    if drain.waiting > 0 {
        return Step::Drain(drain);
    }
    let Some(owner) = &view.owner else {
        return Step::Release;
    };
    match owner.drained {
        Drained::Done => {}
        Drained::NotBegun => return Step::Linger(SHORTEST_DRAIN),
        Drained::Since(start) => {
            let left = start
                .saturating_add(SHORTEST_DRAIN)
                .unwrap_or(Timestamp::MAX)
                .duration_since(now);
            if left.is_positive() {
                return Step::Linger(left);
            }
        }
    }
    if view.attached.is_empty() {
        Step::Terminate(Volumes::Detached)
    } else if view.deadline.is_some_and(|due| due < now) {
        Step::Terminate(Volumes::GivenUp)
    } else {
        Step::AwaitVolumes(view.attached.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use api::v1::NodeClaim;
    use k8s_openapi::{api::core::v1::Node, apimachinery::pkg::apis::meta::v1::Time};
    use model::{Pod, samples::pod};

    use super::*;
    use crate::node::termination::observe::Owner;

    fn at(secs: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(secs)
    }

    fn owner(deleting: bool, drained: Drained) -> Option<Owner> {
        let mut claim = NodeClaim::default();
        claim.metadata.deletion_timestamp = deleting.then_some(Time(at(0)));
        Some(Owner {
            claim: Arc::new(claim),
            drained,
        })
    }

    fn view() -> View {
        View {
            node: Arc::new(Node::default()),
            owner: owner(true, Drained::Done),
            vanished: false,
            marked: true,
            deadline: None,
            unreadable_deadline: None,
            pods: Vec::new(),
            attached: Vec::new(),
        }
    }

    fn running() -> Vec<Arc<Pod>> {
        vec![Arc::new(Pod {
            node: Some("n".into()),
            ..pod("p")
        })]
    }

    #[track_caller]
    fn check(view: View, expected: Step) {
        assert_eq!(decide(&view, at(100)), expected);
    }

    #[test]
    fn the_claim_goes_with_its_node() {
        // LC-N4
        check(
            View {
                owner: owner(false, Drained::NotBegun),
                ..view()
            },
            Step::DeleteClaim,
        );
        // LC-N2
        check(View { owner: None, ..view() }, Step::Release);
        check(
            View {
                owner: None,
                marked: false,
                ..view()
            },
            Step::Mark,
        );
    }

    #[test]
    fn a_vanished_node_is_released_at_once_and_a_ready_one_is_drained() {
        // LC-N16
        check(
            View {
                vanished: true,
                pods: running(),
                ..view()
            },
            Step::Release,
        );
        // LC-N17
        assert!(matches!(
            decide(
                &View {
                    pods: running(),
                    ..view()
                },
                at(100)
            ),
            Step::Drain(_)
        ));
    }

    /// LC-N24, LC-N1.
    #[test]
    fn even_an_empty_node_lingers() {
        let five = SignedDuration::from_secs(5);
        check(
            View {
                owner: owner(true, Drained::NotBegun),
                ..view()
            },
            Step::Linger(five),
        );
        let three = SignedDuration::from_secs(3);
        check(
            View {
                owner: owner(true, Drained::Since(at(98))),
                ..view()
            },
            Step::Linger(three),
        );
        check(
            View {
                owner: owner(true, Drained::Since(at(95))),
                ..view()
            },
            Step::Terminate(Volumes::Detached),
        );
        check(view(), Step::Terminate(Volumes::Detached));
    }

    #[test]
    fn volumes_hold_the_instance_until_the_deadline() {
        let attached = vec!["va".to_owned()];
        // LC-N25
        check(
            View {
                attached: attached.clone(),
                ..view()
            },
            Step::AwaitVolumes(attached.clone()),
        );
        check(
            View {
                attached: attached.clone(),
                deadline: Some(at(101)),
                ..view()
            },
            Step::AwaitVolumes(attached.clone()),
        );
        // LC-N27
        check(
            View {
                attached,
                deadline: Some(at(99)),
                ..view()
            },
            Step::Terminate(Volumes::GivenUp),
        );
    }
}
