//! The next step of a claim that is on its way out.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use model::ProviderId;
use std::sync::Arc;

use super::observe::View;
use crate::objects::is_deleting;

#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Somebody else's finalizer is all that is left.
    Hold,
    SetDeadline(Timestamp),
    DeleteNodes(Vec<Arc<Node>>),
    /// A node is on its way out; its end will be told.
    AwaitNodes,
    Terminate(ProviderId),
    Release,
}

pub fn decide(view: &View) -> Step {
    if !view.held {
        return Step::Hold;
    }
    // The deadline comes first: the drain that the next step starts must know it.
    if let (Some(grace), Some(deleted), false) = (view.grace, view.deleted_at, view.has_deadline) {
        return Step::SetDeadline(deleted.saturating_add(grace).unwrap_or(Timestamp::MAX));
    }
    // A node that never registered has no finalizer of ours; the cloud's controller removes it with its instance.
    if view.registered && !view.nodes.is_empty() {
        let live: Vec<_> = view
            .nodes
            .iter()
            .filter(|node| !is_deleting(&***node))
            .cloned()
            .collect();
        return if live.is_empty() {
            Step::AwaitNodes
        } else {
            Step::DeleteNodes(live)
        };
    }
    match &view.instance {
        Some(id) => Step::Terminate(id.clone()),
        None => Step::Release,
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    fn node(name: &str, deleting: bool) -> Arc<Node> {
        let mut node = Node::default();
        node.metadata.name = Some(name.to_owned());
        node.metadata.deletion_timestamp = deleting.then_some(Time(Timestamp::UNIX_EPOCH));
        Arc::new(node)
    }

    fn claim() -> View {
        View {
            held: true,
            deleted_at: Some(Timestamp::UNIX_EPOCH),
            grace: None,
            has_deadline: false,
            registered: true,
            instance: Some("kwok://a".into()),
            nodes: Vec::new(),
        }
    }

    #[track_caller]
    fn check(view: View, expected: Step) {
        assert_eq!(decide(&view), expected);
    }

    /// LC-T1, LC-T6, LC-T7.
    #[test]
    fn nodes_go_before_the_instance() {
        let nodes = vec![node("a", false), node("b", false)];
        check(
            View {
                nodes: nodes.clone(),
                ..claim()
            },
            Step::DeleteNodes(nodes),
        );
        let nodes = vec![node("a", true), node("b", false)];
        check(View { nodes, ..claim() }, Step::DeleteNodes(vec![node("b", false)]));
        check(
            View {
                nodes: vec![node("a", true)],
                ..claim()
            },
            Step::AwaitNodes,
        );
        check(claim(), Step::Terminate("kwok://a".into()));
    }

    /// LC-T8: no provider call. LC-T10: the node is left alone.
    #[test]
    fn what_never_came_to_be_is_not_taken_down() {
        check(
            View {
                instance: None,
                registered: false,
                ..claim()
            },
            Step::Release,
        );
        let nodes = vec![node("a", false)];
        check(
            View {
                registered: false,
                nodes,
                ..claim()
            },
            Step::Terminate("kwok://a".into()),
        );
    }

    /// LC-T9.
    #[test]
    fn a_deadline_is_set_once_and_before_anything_else() {
        let grace = Some(SignedDuration::from_mins(5));
        let due = Timestamp::UNIX_EPOCH + SignedDuration::from_mins(5);
        let nodes = vec![node("a", true)];
        check(
            View {
                grace,
                nodes: nodes.clone(),
                ..claim()
            },
            Step::SetDeadline(due),
        );
        check(
            View {
                grace,
                nodes,
                has_deadline: true,
                ..claim()
            },
            Step::AwaitNodes,
        );
    }

    #[test]
    fn without_our_finalizer_there_is_nothing_to_do() {
        check(View { held: false, ..claim() }, Step::Hold);
    }
}
