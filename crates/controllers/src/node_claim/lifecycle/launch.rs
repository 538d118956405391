//! The first step: an instance for the claim.

use std::collections::BTreeMap;

use api::{conditions::node_claim as condition, v1::Quantities};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use model::{Claim, Labels, Resources};
use provider::{LaunchRequest, Launched, ProviderError, Reason};

use crate::{error::chain, node_claim::Draft, outbox::cut};

/// A condition's message is for people; the log has the rest.
const LONGEST_MESSAGE: usize = 300;

/// What the cloud is asked for. The claim's UID is the token: asking twice gives the same instance.
pub fn request(claim: &Claim) -> LaunchRequest {
    LaunchRequest {
        claim: claim.name.clone(),
        token: claim.uid.clone(),
        pool: claim.pool.clone(),
        class: claim.class.clone(),
        requirements: claim.requirements.clone(),
        requests: claim.requests.clone(),
        labels: claim.labels.clone(),
        annotations: claim.annotations.clone(),
        taints: claim.taints.clone(),
        startup_taints: claim.startup_taints.clone(),
    }
}

/// Labels that the claim has win over the cloud's; annotations that the cloud gives win over the claim's.
pub fn record(draft: &mut Draft, launched: Launched, now: Timestamp) {
    let meta = &mut draft.claim.metadata;
    let mut labels = plain(launched.labels);
    labels.append(meta.labels.get_or_insert_default());
    meta.labels = Some(labels);
    meta.annotations
        .get_or_insert_default()
        .extend(plain(launched.annotations));

    let status = draft.status();
    status.provider_id = Some(launched.provider_id.to_string());
    status.image_id = launched.image_id;
    status.capacity = Some(quantities(&launched.capacity));
    status.allocatable = Some(quantities(&launched.allocatable));
    draft.conditions.set_true(condition::LAUNCHED, now);
}

pub fn record_failure(draft: &mut Draft, cause: &ProviderError, now: Timestamp) {
    let reason = match cause.reason() {
        Reason::Provider(reason) => reason,
        Reason::LaunchFailed
        | Reason::InsufficientCapacity
        | Reason::NodeClassNotReady
        | Reason::Gone
        | Reason::Unavailable => "LaunchFailed".to_owned(),
    };
    let message = cut(&chain(cause).to_string(), LONGEST_MESSAGE);
    draft
        .conditions
        .set_unknown(condition::LAUNCHED, &reason, &message, now);
}

fn plain(labels: Labels) -> BTreeMap<String, String> {
    labels
        .into_iter()
        .map(|(key, value)| (key.to_string(), value.to_string()))
        .collect()
}

fn quantities(resources: &Resources) -> Quantities {
    let present = resources.iter().filter(|(_, amount)| !amount.is_zero());
    present
        .map(|(name, amount)| (name.to_string(), Quantity(amount.to_string())))
        .collect()
}

#[cfg(test)]
mod tests {
    use api::v1::NodeClaim;

    use super::*;

    fn draft(labels: &[(&str, &str)]) -> Draft {
        let mut claim = NodeClaim::default();
        claim.metadata.labels = Some(labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect());
        Draft::of(&claim, Timestamp::UNIX_EPOCH)
    }

    fn launched(labels: &[(&str, &str)]) -> Launched {
        Launched {
            provider_id: "kwok://a".into(),
            image_id: None,
            capacity: Resources::default().with("cpu".into(), model::Quantity::from_int(4)),
            allocatable: Resources::default().with("example.com/gpu".into(), model::Quantity::ZERO),
            labels: labels.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect(),
            annotations: Labels::default(),
        }
    }

    /// LC-L1: provider ID set, `Launched` True.
    #[test]
    fn a_launch_is_recorded_and_the_claims_labels_win() {
        let mut draft = draft(&[("team", "blue"), ("zone", "mine")]);
        record(
            &mut draft,
            launched(&[("zone", "theirs"), ("type", "m5.large")]),
            Timestamp::UNIX_EPOCH,
        );
        assert!(draft.reaches(condition::LAUNCHED));
        let labels = draft.claim.metadata.labels.clone().expect("labels are there");
        assert_eq!(
            labels.into_iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>(),
            ["team=blue", "type=m5.large", "zone=mine"]
        );
        let status = draft.status();
        assert_eq!(status.provider_id.as_deref(), Some("kwok://a"));
        assert_eq!(
            status.capacity.as_ref().map(|c| c["cpu"].0.clone()),
            Some("4".to_owned())
        );
        assert_eq!(
            status.allocatable.as_ref().map(BTreeMap::len),
            Some(0),
            "zero quantities are dropped"
        );
    }

    /// LC-L4: the provider's reason and message, or `LaunchFailed` and a message of bearable length.
    #[test]
    fn a_failure_leaves_the_condition_unknown_with_a_reason() {
        let mut failed = draft(&[]);
        let refused = ProviderError::Refused {
            reason: "Unauthorized".into(),
            message: "no permission to launch".into(),
        };
        record_failure(&mut failed, &refused, Timestamp::UNIX_EPOCH);
        let found = failed
            .conditions
            .get(condition::LAUNCHED)
            .expect("the condition is there");
        assert_eq!(
            (&*found.status, &*found.reason, &*found.message),
            ("Unknown", "Unauthorized", "no permission to launch")
        );

        let mut failed = draft(&[]);
        record_failure(
            &mut failed,
            &ProviderError::Unavailable {
                cause: "x".repeat(999).into(),
            },
            Timestamp::UNIX_EPOCH,
        );
        let found = failed
            .conditions
            .get(condition::LAUNCHED)
            .expect("the condition is there");
        assert_eq!((&*found.reason, found.message.len()), ("LaunchFailed", 303));
    }
}
