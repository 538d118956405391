//! The claims of one pool, by what is to become of them.

use std::sync::Arc;

use api::{
    conditions::{self, HasConditions, node_claim as condition},
    v1::NodeClaim,
};
use kube::ResourceExt;
use model::{NodeKey, PoolName};
use state::View;

use crate::objects::{is_deleting, pool_of};

/// Every claim of a pool is in one of the three lists, from its creation on, launched or not.
#[derive(Clone, Debug, Default)]
pub struct Census {
    pub active: Vec<Arc<NodeClaim>>,
    /// A disruption has chosen them and waits for their replacements.
    pub pending: Vec<Arc<NodeClaim>>,
    pub deleting: Vec<Arc<NodeClaim>>,
}

impl Census {
    pub fn of(view: &View, pool: &PoolName) -> Self {
        let mut census = Self::default();
        for claim in view.claims.values().filter(|claim| pool_of(&***claim) == pool.as_str()) {
            let list = if is_leaving(view, claim) {
                &mut census.deleting
            } else if conditions::is_true(claim.conditions(), condition::DISRUPTION_REASON) {
                &mut census.pending
            } else {
                &mut census.active
            };
            list.push(claim.clone());
        }
        census
    }

    /// What counts against a limit on nodes: machines that are on their way out are still there.
    pub fn total(&self) -> u64 {
        (self.active.len() + self.pending.len() + self.deleting.len()) as u64
    }
}

fn is_leaving(view: &View, claim: &NodeClaim) -> bool {
    let key = NodeKey::Claim(claim.name_any().into());
    let machine = view.snapshot.nodes.get(&key);
    is_deleting(claim) || machine.is_some_and(|machine| machine.is_leaving())
}

#[cfg(test)]
pub(crate) mod tests {
    use api::labels::NODE_POOL;
    use serde_json::json;
    use state::{Index, Served};

    use super::*;

    pub fn index() -> Index {
        Index::new(Arc::default(), Served::new([("g".to_owned(), "K".to_owned())]))
    }

    /// A claim of a pool, changed by a merge of this value.
    pub fn claim(name: &str, pool: &str, more: serde_json::Value) -> NodeClaim {
        let mut claim = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {"name": name, "uid": name, "resourceVersion": "1", "labels": {NODE_POOL: pool}},
            "spec": {"requirements": [], "nodeClassRef": {"group": "g", "kind": "K", "name": "default"}},
        });
        merge(&mut claim, more);
        serde_json::from_value(claim).expect("the literal is a claim")
    }

    fn merge(into: &mut serde_json::Value, more: serde_json::Value) {
        match more {
            serde_json::Value::Object(fields) => {
                for (key, value) in fields {
                    merge(&mut into[key], value);
                }
            }
            value => *into = value,
        }
    }

    pub fn condition(type_: &str) -> serde_json::Value {
        json!({"status": {"conditions": [{
            "type": type_, "status": "True", "reason": "Drifted", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]}})
    }

    /// LC-S3: unlaunched claims count; LC-S9: deleting ones are apart.
    #[test]
    fn every_claim_counts_in_one_place() {
        let index = index();
        index.apply(claim("young", "p", json!({})));
        index.apply(claim("ready", "p", json!({"status": {"providerID": "g://ready"}})));
        index.apply(claim("chosen", "p", condition("DisruptionReason")));
        index.apply(claim(
            "going",
            "p",
            json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["karpenter.sh/termination"]}}),
        ));
        index.apply(claim("marked", "p", json!({"status": {"providerID": "g://marked"}})));
        index.apply(claim("other", "q", json!({})));
        index.mark_for_deletion([&NodeKey::Claim("marked".into())]);

        let census = Census::of(&index.view(), &"p".into());
        let names = |list: &[Arc<NodeClaim>]| list.iter().map(|claim| claim.name_any()).collect::<Vec<_>>();
        assert_eq!(names(&census.active), ["ready", "young"]);
        assert_eq!(names(&census.pending), ["chosen"]);
        assert_eq!(names(&census.deleting), ["going", "marked"]);
        assert_eq!(census.total(), 5);
    }

    /// LC-U19.
    #[test]
    fn the_lists_follow_their_claims() {
        let index = index();
        let key = NodeKey::Claim("c".into());
        let sizes = || {
            let census = Census::of(&index.view(), &"p".into());
            [census.active.len(), census.pending.len(), census.deleting.len()]
        };
        let apply = |version: &str, more: serde_json::Value| {
            let mut claim = claim("c", "p", more);
            claim.metadata.resource_version = Some(version.to_owned());
            index.apply(claim);
        };
        index.apply(claim("of-no-pool", "", json!({"metadata": {"labels": null}})));
        assert_eq!(sizes(), [0, 0, 0]);
        apply("2", json!({}));
        assert_eq!(sizes(), [1, 0, 0], "created without an instance");
        for (version, instance) in [("3", "g://one"), ("4", "g://two")] {
            apply(version, json!({"status": {"providerID": instance}}));
            assert_eq!(sizes(), [1, 0, 0], "launched, and its instance replaced");
        }
        index.mark_for_deletion([&key]);
        assert_eq!(sizes(), [0, 0, 1]);
        index.unmark_for_deletion([&key]);
        assert_eq!(sizes(), [1, 0, 0]);
        apply("5", condition("DisruptionReason"));
        assert_eq!(sizes(), [0, 1, 0]);
        let going = json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["karpenter.sh/termination"]});
        apply("6", json!({"metadata": going}));
        assert_eq!(sizes(), [0, 0, 1]);
        index.delete(&claim("c", "p", json!({"metadata": {"resourceVersion": "7"}})));
        assert_eq!(sizes(), [0, 0, 0]);
    }
}
