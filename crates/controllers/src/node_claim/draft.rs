//! A claim being changed: conditions are computed here and written once.

use api::{
    conditions::{self, Conditions, HasConditions},
    v1::{NodeClaim, NodeClaimStatus},
};
use jiff::Timestamp;

use crate::writer::{ApiError, Writer};

/// A claim as it is stored, and as it is to be.
#[derive(Clone, Debug)]
pub struct Draft {
    stored: NodeClaim,
    pub claim: NodeClaim,
    pub conditions: Conditions,
}

impl Draft {
    /// Conditions that were reached are kept current with the claim's generation, which a deletion raises too.
    pub fn of(claim: &NodeClaim, now: Timestamp) -> Self {
        use conditions::node_claim::{INITIALIZED, LAUNCHED, REGISTERED};
        let mut conditions = Conditions::of(claim, now);
        for reached in [LAUNCHED, REGISTERED, INITIALIZED] {
            if conditions.is_true(reached) {
                conditions.set_true(reached, now);
            }
        }
        Self {
            stored: claim.clone(),
            claim: claim.clone(),
            conditions,
        }
    }

    pub fn status(&mut self) -> &mut NodeClaimStatus {
        self.claim.status.get_or_insert_default()
    }

    pub fn is_true(&self, condition: &str) -> bool {
        self.conditions.is_true(condition)
    }

    /// Whether this draft is what first makes the condition True.
    pub fn reaches(&self, condition: &str) -> bool {
        self.is_true(condition) && !conditions::is_true(self.stored.conditions(), condition)
    }

    /// Writes what has changed: metadata first, because a status without its labels would mislead readers for good if
    /// we died in between, while labels without a status are written again.
    pub async fn write(self, writer: &Writer) -> Result<NodeClaim, ApiError> {
        let Draft {
            stored,
            mut claim,
            conditions,
        } = self;
        let mut status = claim.status.take().unwrap_or_default();
        status.conditions = Some(conditions.into_list());
        claim.status.clone_from(&stored.status);
        let stored = writer.update(&stored, &claim).await?;
        let wanted = NodeClaim {
            status: Some(status),
            ..stored.clone()
        };
        writer.update_status(&stored, &wanted).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conditions::node_claim::{DRAINED, INITIALIZED, INSTANCE_TERMINATING, LAUNCHED, REGISTERED};

    fn ready(generation: i64) -> NodeClaim {
        let mut claim = NodeClaim::default();
        claim.metadata.generation = Some(generation);
        let mut conditions = Conditions::of(&claim, Timestamp::UNIX_EPOCH);
        for reached in [LAUNCHED, REGISTERED, INITIALIZED] {
            conditions.set_true(reached, Timestamp::UNIX_EPOCH);
        }
        claim.status.get_or_insert_default().conditions = Some(conditions.into_list());
        claim
    }

    /// LC-L5: a change of the spec and a deletion both raise the generation.
    #[test]
    fn what_was_reached_stays_reached_when_the_generation_rises() {
        let mut claim = ready(1);
        claim.metadata.generation = Some(2);
        let draft = Draft::of(&claim, Timestamp::UNIX_EPOCH);
        for reached in [LAUNCHED, REGISTERED, INITIALIZED, conditions::READY] {
            let condition = draft.conditions.get(reached).expect("it was reached before");
            assert_eq!((&*condition.status, condition.observed_generation), ("True", Some(2)));
        }
    }

    /// LC-T2.
    #[test]
    fn the_way_out_says_nothing_about_readiness() {
        let mut draft = Draft::of(&ready(1), Timestamp::UNIX_EPOCH);
        draft.conditions.set_true(INSTANCE_TERMINATING, Timestamp::UNIX_EPOCH);
        draft
            .conditions
            .set_unknown(DRAINED, "Draining", "", Timestamp::UNIX_EPOCH);
        assert!(draft.is_true(conditions::READY));
    }
}
