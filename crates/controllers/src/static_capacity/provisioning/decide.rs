//! How many claims a static pool lacks.

use api::v1::NodePool;
use kube::ResourceExt;
use model::Pool;

use crate::static_capacity::Census;

/// What a pool asks for, if it may have anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Want {
    pub missing: u64,
    /// `limits.nodes`, rounded up as the counter does.
    pub limit: Option<u64>,
}

/// Nothing for a pool that is not static, not ready or on its way out, and for one that has enough. Claims that wait
/// for their replacement still count: their replacement is on its way.
pub fn want(pool: &Pool, census: &Census) -> Option<Want> {
    let replicas = pool
        .replicas
        .filter(|_| pool.ready && pool.deleting.is_none())
        .and_then(|replicas| u64::try_from(replicas).ok())?;
    let there = (census.active.len() + census.pending.len()) as u64;
    let missing = replicas.checked_sub(there).filter(|missing| *missing > 0)?;
    Some(Want {
        missing,
        limit: pool.node_limit(),
    })
}

/// Whether a change of a pool is a reason to look at its size: it is new, its size was changed, or it may be used from
/// now on.
pub fn is_news(old: Option<&NodePool>, new: &NodePool) -> bool {
    let Some(old) = old else { return true };
    old.spec.replicas != new.spec.replicas || old.uid() != new.uid() || (!is_ready(old) && is_ready(new))
}

fn is_ready(pool: &NodePool) -> bool {
    use api::conditions::{HasConditions as _, READY, is_true};
    is_true(pool.conditions(), READY)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use api::v1::NodeClaim;
    use model::{Quantity, Resources, samples};
    use serde_json::json;

    use super::*;

    fn census(active: usize, pending: usize, deleting: usize) -> Census {
        let claims = |count: usize| (0..count).map(|_| Arc::new(NodeClaim::default())).collect();
        Census {
            active: claims(active),
            pending: claims(pending),
            deleting: claims(deleting),
        }
    }

    fn pool(replicas: i64) -> Pool {
        Pool {
            replicas: Some(replicas),
            ..samples::pool("p")
        }
    }

    #[track_caller]
    fn check(pool: &Pool, census: &Census, missing: Option<u64>) {
        assert_eq!(want(pool, census).map(|want| want.missing), missing);
    }

    /// LC-S1, LC-S3, LC-S7; SC15.21.1, SC15.21.2.
    #[test]
    fn the_difference_to_the_replicas_is_missing() {
        check(&pool(5), &census(0, 0, 0), Some(5));
        check(&pool(5), &census(2, 1, 0), Some(2));
        check(&pool(5), &census(4, 1, 3), None);
        check(&pool(5), &census(3, 0, 9), Some(2));
        check(&pool(5), &census(7, 0, 0), None);
        check(&pool(0), &census(0, 0, 0), None);
        check(&pool(1000), &census(0, 0, 0), Some(1000));
    }

    /// LC-S2; SC15.21.1.
    #[test]
    fn a_pool_that_may_not_be_used_gets_nothing() {
        let none = census(0, 0, 0);
        check(&samples::pool("dynamic"), &none, None);
        check(
            &Pool {
                ready: false,
                ..pool(3)
            },
            &none,
            None,
        );
        let going = Pool {
            deleting: Some(jiff::Timestamp::UNIX_EPOCH),
            ..pool(3)
        };
        check(&going, &none, None);
    }

    #[test]
    fn only_a_limit_on_nodes_is_a_limit_here() {
        let limited = |name: &str| Pool {
            limits: Resources::default().with(name.into(), Quantity::from_int(2)),
            ..pool(3)
        };
        let limit = |pool: &Pool| want(pool, &census(0, 0, 0)).expect("three are missing").limit;
        assert_eq!(limit(&limited("nodes")), Some(2));
        assert_eq!(limit(&limited("cpu")), None);
    }

    /// LC-S8.
    #[test]
    fn a_new_size_and_new_readiness_are_news() {
        let pool = |replicas: i64, ready: &str, weight: i64| -> NodePool {
            serde_json::from_value(json!({
                "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "p", "uid": "u"},
                "spec": {
                    "replicas": replicas, "weight": weight,
                    "template": {"spec": {"requirements": [], "nodeClassRef": {"group": "g", "kind": "K", "name": "d"}}},
                },
                "status": {"conditions": [{
                    "type": "Ready", "status": ready, "reason": "r", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
                }]},
            }))
            .expect("the literal is a pool")
        };
        let before = pool(3, "True", 1);
        assert!(is_news(None, &before));
        assert!(is_news(Some(&before), &pool(4, "True", 1)));
        assert!(is_news(Some(&pool(3, "False", 1)), &before));
        assert!(!is_news(Some(&before), &pool(3, "True", 2)));
        assert!(!is_news(Some(&before), &pool(3, "False", 1)));
    }
}
