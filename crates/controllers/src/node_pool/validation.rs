//! Whether a pool means something, beyond what its schema can check.

use api::{
    FieldError,
    conditions::{Conditions, node_pool as condition},
    joined,
    v1::NodePool,
    validate,
};
use jiff::Timestamp;
use model::Vocabulary;

/// What is wrong with a pool; nothing, if all is well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict(Vec<FieldError>);

pub fn check(pool: &NodePool, vocabulary: &Vocabulary) -> Verdict {
    Verdict(validate::node_pool(pool, vocabulary))
}

impl Verdict {
    pub fn note(&self, conditions: &mut Conditions, now: Timestamp) {
        if self.0.is_empty() {
            conditions.set_true(condition::VALIDATION_SUCCEEDED, now);
        } else {
            let message = joined(&self.0);
            conditions.set_false(
                condition::VALIDATION_SUCCEEDED,
                "NodePoolValidationFailed",
                &message,
                now,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// LC-P9.
    #[test]
    fn one_capacity_type_that_exists_is_enough() {
        let passes = |values: &[&str]| {
            let pool: NodePool = serde_json::from_value(json!({
                "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "p"},
                "spec": {"template": {"spec": {
                    "requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": values}],
                    "nodeClassRef": {"group": "g", "kind": "K", "name": "d"},
                }}},
            }))
            .expect("the literal is a pool");
            check(&pool, &Vocabulary::core()).0.is_empty()
        };
        assert!(passes(&["spot", "on-demand", "reserved"]));
        assert!(!passes(&["cheap"]));
        assert!(passes(&["cheap", "spot"]), "it may be a word of another release");
    }
}
