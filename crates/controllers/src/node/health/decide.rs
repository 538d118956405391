//! Whether an ill node is let go.

use jiff::{SignedDuration, Timestamp};

use super::observe::{View, Ward};
use crate::objects::is_deleting;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It is on its way out already.
    Leave,
    /// Still tolerated; look again after this time.
    Tolerate(SignedDuration),
    /// Too many are ill at once.
    Block,
    Repair,
}

pub fn decide(view: &View, now: Timestamp) -> Step {
    if is_deleting(&*view.claim) {
        return Step::Leave;
    }
    let left = view.illness.due.duration_since(now);
    if left.is_positive() {
        Step::Tolerate(left)
    } else if is_overcrowded(&view.ward) {
        Step::Block
    } else {
        Step::Repair
    }
}

/// More than a fifth, rounded up, so that one node of three can be repaired.
fn is_overcrowded(ward: &Ward) -> bool {
    ward.ill > ward.nodes.div_ceil(5)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use api::v1::NodeClaim;
    use k8s_openapi::{api::core::v1::Node, apimachinery::pkg::apis::meta::v1::Time};

    use super::*;
    use crate::node::health::observe::Illness;

    fn at(secs: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(secs)
    }

    /// A node whose illness is tolerated until second 100, looked at in second 100.
    fn view(ill: usize, nodes: usize) -> View {
        View {
            node: Arc::new(Node::default()),
            claim: Arc::new(NodeClaim::default()),
            illness: Illness {
                condition: "Ready".to_owned(),
                status: "False".to_owned(),
                due: at(100),
            },
            ward: Ward { pool: None, nodes, ill },
        }
    }

    #[test]
    fn a_node_is_let_go_when_it_is_due_and_few_are_ill() {
        // LC-H1
        assert_eq!(decide(&view(1, 10), at(100)), Step::Repair);
        // LC-H2
        assert_eq!(
            decide(&view(1, 10), at(70)),
            Step::Tolerate(SignedDuration::from_secs(30))
        );
        // LC-H6
        assert_eq!(decide(&view(3, 10), at(100)), Step::Block);
        assert_eq!(decide(&view(2, 10), at(100)), Step::Repair);
        // LC-H7
        assert_eq!(decide(&view(1, 3), at(100)), Step::Repair);
        assert_eq!(decide(&view(2, 3), at(100)), Step::Block);
    }

    #[test]
    fn a_node_that_is_going_is_left_alone() {
        let mut going = view(1, 10);
        let mut claim = NodeClaim::default();
        claim.metadata.deletion_timestamp = Some(Time(at(0)));
        going.claim = Arc::new(claim);
        assert_eq!(decide(&going, at(100)), Step::Leave);
    }
}
