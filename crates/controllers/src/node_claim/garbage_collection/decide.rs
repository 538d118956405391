//! What has lost its other half.

use std::{collections::BTreeSet, sync::Arc};

use api::{
    conditions::{self, HasConditions, node_claim as condition},
    labels,
    v1::NodeClaim,
};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use model::ProviderId;
use provider::Instance;
use state::View;

use crate::objects::{created_at, instance_of, is_deleting, is_ready, pool_of};

/// A launch is recorded within seconds; an instance that young may still find its claim.
const FRESH: SignedDuration = SignedDuration::from_secs(30);
/// How far the clocks of the cloud and of the API server may be apart.
const SKEW: SignedDuration = SignedDuration::from_secs(5);

/// Claims that had lost their instance before the list was asked for and have not found it since.
pub fn lost_claims(before: &View, now: &View, listed: &[Instance]) -> Vec<Arc<NodeClaim>> {
    let alive: BTreeSet<&ProviderId> = listed.iter().map(|instance| &instance.provider_id).collect();
    let lost = before
        .claims
        .values()
        .filter(|claim| has_lost_its_instance(claim, before, &alive));
    let known = lost.filter_map(|claim| now.claims.named(&claim.name_any()));
    let lost = known.filter(|claim| has_lost_its_instance(claim, now, &alive));
    lost.cloned().collect()
}

/// Instances that nobody claims.
pub fn unclaimed(listed: Vec<Instance>, view: &View, now: Timestamp) -> Vec<Instance> {
    let unclaimed = listed.into_iter().filter(|instance| is_unclaimed(instance, view, now));
    unclaimed.collect()
}

/// A registered claim whose instance the cloud no longer has. A node that reports itself ready is believed more than
/// the cloud's list; a claim that never registered is left to its deadline.
fn has_lost_its_instance(claim: &NodeClaim, view: &View, alive: &BTreeSet<&ProviderId>) -> bool {
    let Some(id) = instance_of(claim) else { return false };
    let kubelet_lives = matches!(view.nodes_of(id)[..], [node] if is_ready(node));
    conditions::is_true(claim.conditions(), condition::REGISTERED)
        && !is_deleting(claim)
        && !alive.contains(&ProviderId::from(id))
        && !kubelet_lives
}

/// An instance that no claim names and that was not launched just now for a claim that is still waiting.
fn is_unclaimed(instance: &Instance, view: &View, now: Timestamp) -> bool {
    let launching = instance
        .claim
        .as_ref()
        .and_then(|name| view.claims.named(name.as_str()))
        .is_some_and(|claim| may_own(claim, instance));
    let young = now.duration_since(instance.launched) < FRESH;
    !young
        && !launching
        && !may_be_inherited(instance, view)
        && view.claims_of(instance.provider_id.as_str()).is_empty()
}

/// An instance of which the cloud does not know whom it was launched for may be that of any claim of its pool that is older
/// and still waits: the process that launched it died before it could write that down. Claims do not wait for long.
fn may_be_inherited(instance: &Instance, view: &View) -> bool {
    let pool = instance.labels.get(labels::NODE_POOL).map_or("", AsRef::as_ref);
    let may_own = |claim: &NodeClaim| {
        let is_older = created_at(claim).is_some_and(|created| created <= instance.launched + SKEW);
        instance_of(claim).is_none() && !is_deleting(claim) && pool_of(claim) == pool && is_older
    };
    instance.claim.is_none() && view.claims.values().any(|claim| may_own(claim))
}

/// Whether the claim has this instance, or may yet get it.
pub fn may_own(claim: &NodeClaim, instance: &Instance) -> bool {
    instance_of(claim).is_none_or(|id| instance.provider_id == id)
}

#[cfg(test)]
mod tests {
    use model::Labels;
    use serde_json::json;
    use state::{Index, Served};

    use super::*;

    fn view(node_ready: Option<bool>, registered: bool) -> (std::sync::Arc<View>, std::sync::Arc<NodeClaim>) {
        let index = Index::new(
            std::sync::Arc::default(),
            Served::new([("g".to_owned(), "K".to_owned())]),
        );
        let status = if registered { "True" } else { "Unknown" };
        let claim: NodeClaim = serde_json::from_value(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {"name": "c", "uid": "u", "resourceVersion": "1", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"requirements": [], "nodeClassRef": {"group": "g", "kind": "K", "name": "n"}},
            "status": {"providerID": "kwok://a", "conditions": [
                {"type": "Registered", "status": status, "reason": "x", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
            ]},
        }))
        .expect("the literal is a claim");
        index.apply(claim);
        if let Some(ready) = node_ready {
            let ready = if ready { "True" } else { "False" };
            index.apply(
                serde_json::from_value::<k8s_openapi::api::core::v1::Node>(json!({
                    "metadata": {"name": "n", "uid": "n", "resourceVersion": "2", "creationTimestamp": "2026-01-01T00:00:00Z"},
                    "spec": {"providerID": "kwok://a"},
                    "status": {"conditions": [{"type": "Ready", "status": ready}]},
                }))
                .expect("the literal is a node"),
            );
        }
        let view = index.view();
        let claim = view.claims.named("c").cloned().expect("it was just put in");
        (view, claim)
    }

    #[track_caller]
    fn check_claim(node_ready: Option<bool>, registered: bool, instance_lives: bool, lost: bool) {
        let (view, claim) = view(node_ready, registered);
        let id = ProviderId::from("kwok://a");
        let alive = if instance_lives {
            BTreeSet::from([&id])
        } else {
            BTreeSet::new()
        };
        assert_eq!(has_lost_its_instance(&claim, &view, &alive), lost);
    }

    #[test]
    fn a_claim_goes_with_its_instance_unless_the_kubelet_still_reports() {
        check_claim(Some(false), true, false, true); // LC-C1
        check_claim(Some(true), true, false, false); // LC-C2
        check_claim(None, false, false, false); // LC-C3
        check_claim(None, true, true, false); // LC-C4
    }

    #[test]
    fn an_instance_goes_when_no_claim_names_it_and_it_is_not_fresh() {
        let (view, _) = view(None, true);
        let now = Timestamp::UNIX_EPOCH + SignedDuration::from_mins(10);
        let instance = |id: &str, claim: Option<&str>, age: i64| Instance {
            provider_id: id.into(),
            claim: claim.map(Into::into),
            launched: now - SignedDuration::from_secs(age),
            labels: Labels::default(),
        };
        assert!(!is_unclaimed(&instance("kwok://a", None, 600), &view, now));
        assert!(
            is_unclaimed(&instance("kwok://b", Some("c"), 600), &view, now),
            "its claim has another"
        );
        assert!(!is_unclaimed(&instance("kwok://b", Some("gone"), 10), &view, now));
        assert!(is_unclaimed(&instance("kwok://b", Some("gone"), 600), &view, now));
        assert!(is_unclaimed(&instance("kwok://b", None, 600), &view, now));
    }

    /// A claim that waits may be whom an instance without a name on it was launched for.
    #[test]
    fn an_instance_of_nobody_knows_whom_waits_for_the_claims_of_its_pool() {
        let index = Index::new(
            std::sync::Arc::default(),
            Served::new([("g".to_owned(), "K".to_owned())]),
        );
        let created: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
        let waiting: NodeClaim = serde_json::from_value(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {
                "name": "c", "uid": "u", "resourceVersion": "1", "creationTimestamp": created.to_string(),
                "labels": {"karpenter.sh/nodepool": "web"},
            },
            "spec": {"requirements": [], "nodeClassRef": {"group": "g", "kind": "K", "name": "n"}},
        }))
        .expect("the literal is a claim");
        index.apply(waiting);
        let view = index.view();
        let now = created + SignedDuration::from_mins(10);
        let instance = |claim: Option<&str>, pool: &str, after: i64| Instance {
            provider_id: "aws:///a/i-1".into(),
            claim: claim.map(Into::into),
            launched: created + SignedDuration::from_secs(after),
            labels: [("karpenter.sh/nodepool".into(), pool.into())].into_iter().collect(),
        };
        let table = [
            (instance(None, "web", 1), false),
            (instance(None, "api", 1), true),
            (instance(None, "web", -60), true),
            (instance(Some("gone"), "web", 1), true),
        ];
        for (instance, unclaimed) in table {
            assert_eq!(is_unclaimed(&instance, &view, now), unclaimed, "{instance:?}");
        }
    }
}
