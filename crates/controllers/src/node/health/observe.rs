//! How ill a node is, and how its neighbours are.

use std::sync::Arc;

use api::v1::NodeClaim;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use model::NodeName;
use provider::RepairPolicy;

use super::conditions_of;
use crate::{
    context::Ctx,
    objects::{instance_under, pool_of},
};

/// Something that the provider does not expect to pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Illness {
    pub condition: String,
    pub status: String,
    /// From then on it is not tolerated any more.
    pub due: Timestamp,
}

/// The nodes that are looked at together: those of one pool, or all where there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ward {
    pub pool: Option<String>,
    pub nodes: usize,
    pub ill: usize,
}

#[derive(Clone, Debug)]
pub struct View {
    pub node: Arc<Node>,
    pub claim: Arc<NodeClaim>,
    pub illness: Illness,
    pub ward: Ward,
}

/// `None` for a node that is well, or that is not exactly one claim's.
pub fn observe(ctx: &Ctx, name: &NodeName) -> Option<View> {
    let view = ctx.index.view();
    let node = view.nodes.named(name.as_str())?;
    let [claim] = instance_under(node).map(|id| view.claims_of(id)).unwrap_or_default()[..] else {
        return None;
    };
    let policies = ctx.cloud.repair_policies();
    let illness = worst(node, policies)?;
    let pool = Some(pool_of(&**node)).filter(|pool| !pool.is_empty());
    Some(View {
        ward: ward(pool, view.nodes.values(), policies),
        node: node.clone(),
        claim: claim.clone(),
        illness,
    })
}

/// The illness that is due first.
pub fn worst(node: &Node, policies: &[RepairPolicy]) -> Option<Illness> {
    let illnesses = conditions_of(node).iter().flat_map(|condition| {
        let named = |policy: &&RepairPolicy| policy.condition == condition.type_ && policy.status == condition.status;
        policies.iter().filter(named).map(|policy| {
            let since = condition
                .last_transition_time
                .as_ref()
                .map_or(Timestamp::MIN, |time| time.0);
            Illness {
                condition: condition.type_.clone(),
                status: condition.status.clone(),
                due: since.saturating_add(policy.toleration).unwrap_or(Timestamp::MAX),
            }
        })
    });
    illnesses.min_by_key(|illness| illness.due)
}

/// A node counts as ill from the first moment on, whatever is tolerated: rather too careful than too late.
pub fn ward<'a>(pool: Option<&str>, nodes: impl Iterator<Item = &'a Arc<Node>>, policies: &[RepairPolicy]) -> Ward {
    let inside = |node: &&Arc<Node>| pool.is_none_or(|pool| pool_of(&***node) == pool);
    let mut ward = Ward {
        pool: pool.map(str::to_owned),
        nodes: 0,
        ill: 0,
    };
    for node in nodes.filter(inside) {
        ward.nodes += 1;
        ward.ill += usize::from(worst(node, policies).is_some());
    }
    ward
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use serde_json::{Value, json};

    use super::*;

    fn policy(condition: &str, status: &str, mins: i64) -> RepairPolicy {
        RepairPolicy {
            condition: condition.to_owned(),
            status: status.to_owned(),
            toleration: SignedDuration::from_mins(mins),
        }
    }

    fn node(pool: &str, conditions: Value) -> Arc<Node> {
        let labels = json!({"karpenter.sh/nodepool": pool});
        let node = json!({"metadata": {"name": "n", "labels": labels}, "status": {"conditions": conditions}});
        Arc::new(serde_json::from_value(node).expect("the literal is a node"))
    }

    fn since(condition: &str, status: &str, minute: u8) -> Value {
        json!({"type": condition, "status": status, "lastTransitionTime": format!("2026-01-01T00:{minute:02}:00Z")})
    }

    #[track_caller]
    fn check(conditions: Value, expected: Option<(&str, &str)>) {
        let policies = [
            policy("Ready", "False", 30),
            policy("Ready", "Unknown", 30),
            policy("DiskSick", "True", 10),
        ];
        let found = worst(&node("p", conditions), &policies);
        let found = found.map(|illness| (illness.condition, illness.due.to_string()));
        assert_eq!(found, expected.map(|(name, due)| (name.to_owned(), due.to_owned())));
    }

    #[test]
    fn the_illness_that_is_due_first_counts() {
        // LC-H2: another type, another status
        check(json!([since("Ready", "True", 0), since("DiskSick", "False", 0)]), None);
        check(json!([since("MemoryPressure", "True", 0)]), None);
        // LC-H8
        check(
            json!([since("Ready", "False", 5)]),
            Some(("Ready", "2026-01-01T00:35:00Z")),
        );
        check(
            json!([since("Ready", "Unknown", 5)]),
            Some(("Ready", "2026-01-01T00:35:00Z")),
        );
        // LC-H3
        check(
            json!([since("Ready", "False", 0), since("DiskSick", "True", 19)]),
            Some(("DiskSick", "2026-01-01T00:29:00Z")),
        );
        check(
            json!([since("Ready", "False", 0), since("DiskSick", "True", 21)]),
            Some(("Ready", "2026-01-01T00:30:00Z")),
        );
    }

    #[test]
    fn a_ward_is_the_pool_or_the_whole_cluster() {
        let policies = [policy("Ready", "False", 30)];
        let (well, ill) = (json!([since("Ready", "True", 0)]), json!([since("Ready", "False", 0)]));
        let nodes = [node("a", well), node("a", ill.clone()), node("b", ill)];
        let counts = |pool| {
            let ward = ward(pool, nodes.iter(), &policies);
            (ward.nodes, ward.ill)
        };
        assert_eq!(counts(Some("a")), (2, 1));
        assert_eq!(counts(None), (3, 2));
    }
}
