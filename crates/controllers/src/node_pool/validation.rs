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
