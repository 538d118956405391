//! The hash by which a claim is told to have drifted from its pool.

use api::{
    conditions::{self, HasConditions, node_claim as condition},
    hash::NODE_POOL_VERSION,
    labels::annotations::{NODE_POOL_HASH, NODE_POOL_HASH_VERSION},
    v1::{NodeClaim, NodePool},
};
use kube::ResourceExt;

/// The pool was stamped by a program that hashed otherwise: its claims have to be stamped anew before they are compared.
pub fn is_from_another_version(pool: &NodePool) -> bool {
    pool.annotations()
        .get(NODE_POOL_HASH_VERSION)
        .is_some_and(|version| version != NODE_POOL_VERSION)
}

pub fn stamp(pool: &mut NodePool, hash: &str) {
    let annotations = pool.metadata.annotations.get_or_insert_default();
    annotations.insert(NODE_POOL_HASH.to_owned(), hash.to_owned());
    annotations.insert(NODE_POOL_HASH_VERSION.to_owned(), NODE_POOL_VERSION.to_owned());
}

/// The claim under the present version, unless it is stamped so already. One that has drifted stays drifted: its hash
/// is not made to match.
pub fn restamped(claim: &NodeClaim, hash: &str) -> Option<NodeClaim> {
    if claim
        .annotations()
        .get(NODE_POOL_HASH_VERSION)
        .is_some_and(|version| version == NODE_POOL_VERSION)
    {
        return None;
    }
    let mut stamped = claim.clone();
    let annotations = stamped.metadata.annotations.get_or_insert_default();
    annotations.insert(NODE_POOL_HASH_VERSION.to_owned(), NODE_POOL_VERSION.to_owned());
    if conditions::find(claim.conditions(), condition::DRIFTED).is_none() {
        annotations.insert(NODE_POOL_HASH.to_owned(), hash.to_owned());
    }
    Some(stamped)
}

#[cfg(test)]
mod tests {
    use api::v1::NodeClaimStatus;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

    use super::*;

    fn claim(version: &str, drifted: bool) -> NodeClaim {
        let mut claim = NodeClaim::default();
        claim.metadata.annotations = Some(
            [
                (NODE_POOL_HASH.to_owned(), "old".to_owned()),
                (NODE_POOL_HASH_VERSION.to_owned(), version.to_owned()),
            ]
            .into(),
        );
        let condition = Condition {
            type_: condition::DRIFTED.to_owned(),
            status: conditions::TRUE.to_owned(),
            last_transition_time: Time(jiff::Timestamp::UNIX_EPOCH),
            message: String::new(),
            reason: String::new(),
            observed_generation: None,
        };
        claim.status = drifted.then(|| NodeClaimStatus {
            conditions: Some(vec![condition]),
            ..NodeClaimStatus::default()
        });
        claim
    }

    /// DI-H14.
    #[test]
    fn a_new_version_restamps_claims_but_forgives_no_drift() {
        let hash = |claim: NodeClaim| claim.annotations()[NODE_POOL_HASH].clone();
        assert_eq!(restamped(&claim(NODE_POOL_VERSION, false), "new"), None);
        assert_eq!(restamped(&claim("v1", false), "new").map(hash), Some("new".to_owned()));
        assert_eq!(restamped(&claim("v1", true), "new").map(hash), Some("old".to_owned()));
    }

    #[test]
    fn a_pool_that_was_never_stamped_is_from_no_version() {
        let mut pool = NodePool::default();
        assert!(!is_from_another_version(&pool));
        stamp(&mut pool, "1");
        assert!(!is_from_another_version(&pool));
        pool.metadata.annotations = Some([(NODE_POOL_HASH_VERSION.to_owned(), "v1".to_owned())].into());
        assert!(is_from_another_version(&pool));
    }

    /// DI-H13.
    #[test]
    fn what_does_not_shape_a_node_does_not_count() {
        let pool = |spec: serde_json::Value| -> NodePool {
            let mut whole = serde_json::json!({"template": {"spec": {
                "requirements": [], "nodeClassRef": {"group": "g", "kind": "K", "name": "n"}, "expireAfter": "720h",
            }}});
            if let (Some(whole), serde_json::Value::Object(spec)) = (whole.as_object_mut(), spec) {
                whole.extend(spec);
            }
            serde_json::from_value(serde_json::json!({"metadata": {"name": "p"}, "spec": whole})).expect("a pool")
        };
        let hash = |pool: &NodePool| api::hash::node_pool(pool).expect("a hash");
        let plain = pool(serde_json::json!({}));
        for spec in [
            serde_json::json!({"limits": {"cpu": "10"}}),
            serde_json::json!({"weight": 7}),
            serde_json::json!({"disruption": {"consolidateAfter": "30s", "budgets": [{"nodes": "1"}]}}),
        ] {
            assert_eq!(hash(&pool(spec.clone())), hash(&plain), "{spec}");
        }
        let mut choosy = plain.clone();
        choosy.spec.template.spec.requirements = serde_json::from_value(serde_json::json!([
            {"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]},
        ]))
        .expect("requirements");
        assert_eq!(hash(&choosy), hash(&plain), "requirements");
        let mut other = plain.clone();
        other.spec.template.spec.expire_after = Some("24h".into());
        assert_ne!(hash(&other), hash(&plain));
    }
}
