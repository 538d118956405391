//! The user's word on a whole node. Only the literal `true` counts: durations are for pods.

use model::StateNode;

use super::Blocked;

const DO_NOT_DISRUPT: &str = "karpenter.sh/do-not-disrupt";

pub(super) fn check(node: &StateNode) -> Result<(), Blocked> {
    match node.annotations().get(DO_NOT_DISRUPT) {
        Some(value) if *value == "true" => Err(Blocked::NodeProtected),
        _ => Ok(()),
    }
}
