//! What is wrong with a claim and its node.

use std::fmt;

use api::{
    conditions::{HasConditions, is_true, node_claim as condition},
    v1::NodeClaim,
};
use k8s_openapi::api::core::v1::Node;
use model::{ClaimName, Quantity};

use crate::objects::is_deleting;

/// A node that has less than this much of what was expected is not what was paid for. A few percent always go to the
/// hypervisor and the kernel.
const ENOUGH_TENTHS: i64 = 9;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Issue {
    /// The node has much less than its instance promised.
    Short {
        resource: String,
        expected: Quantity,
        found: Quantity,
    },
    /// Two claims cannot have one instance. Neither of them is trusted with its end.
    SharedInstance { instance: String, with: ClaimName },
}

impl fmt::Display for Issue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Issue::Short {
                resource,
                expected,
                found,
            } => write!(f, "expected {expected} of resource {resource}, but found {found}"),
            Issue::SharedInstance { instance, with } => {
                write!(
                    f,
                    "instance {instance} is also claimed by nodeclaim {with}; delete the one that is not its own"
                )
            }
        }
    }
}

/// Resources that were asked for and of which the node has less than was promised. Before a node is initialized its
/// figures are not final, and on the way out they matter to nobody.
pub fn shape(claim: &NodeClaim, node: &Node) -> Vec<Issue> {
    if is_deleting(claim) || !is_true(claim.conditions(), condition::INITIALIZED) {
        return Vec::new();
    }
    let requests = claim.spec.resources.iter().flat_map(|resources| &resources.requests);
    let promised = claim.status.as_ref().and_then(|status| status.capacity.as_ref());
    let reported = node.status.as_ref().and_then(|status| status.capacity.as_ref());
    let short = |resource: &String| {
        let expected = Quantity::parse(&promised?.get(resource)?.0).ok()?;
        let found = reported
            .and_then(|amounts| amounts.get(resource))
            .map_or(Ok(Quantity::ZERO), |amount| Quantity::parse(&amount.0))
            .ok()?;
        is_much_less(found, expected).then(|| Issue::Short {
            resource: resource.clone(),
            expected,
            found,
        })
    };
    requests.flatten().filter_map(|(resource, _)| short(resource)).collect()
}

fn is_much_less(found: Quantity, expected: Quantity) -> bool {
    found.saturating_mul(10) < expected.saturating_mul(ENOUGH_TENTHS)
}

/// Other claims that name the same instance.
pub fn shared(claim: &NodeClaim, instance: &str, claims: &[&std::sync::Arc<NodeClaim>]) -> Vec<Issue> {
    let others = claims.iter().filter(|other| other.metadata.uid != claim.metadata.uid);
    others
        .map(|other| Issue::SharedInstance {
            instance: instance.to_owned(),
            with: other.metadata.name.as_deref().unwrap_or_default().into(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;

    fn claim(initialized: &str) -> NodeClaim {
        let reached = json!({
            "type": "Initialized", "status": initialized, "reason": "x", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        serde_json::from_value(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "c", "uid": "u"},
            "spec": {
                "requirements": [], "nodeClassRef": {"group": "g", "kind": "K", "name": "n"},
                "resources": {"requests": {"memory": "1Gi", "example.com/new": "1"}},
            },
            "status": {"capacity": {"memory": "10Gi", "cpu": "4"}, "conditions": [reached]},
        }))
        .expect("the literal is a claim")
    }

    #[track_caller]
    fn check(initialized: &str, capacity: Value, issues: &[&str]) {
        let node: Node = serde_json::from_value(json!({"status": {"capacity": capacity}})).expect("a node");
        let found: Vec<String> = shape(&claim(initialized), &node)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(found, issues);
    }

    #[test]
    fn a_node_has_nine_tenths_of_what_was_promised_or_is_reported() {
        // LC-Y2
        check("True", json!({"memory": "10Gi", "cpu": "4"}), &[]);
        check("True", json!({"memory": "9Gi"}), &[]);
        // LC-Y3
        check(
            "True",
            json!({"memory": "5Gi"}),
            &["expected 10Gi of resource memory, but found 5Gi"],
        );
        check("True", json!({}), &["expected 10Gi of resource memory, but found 0"]);
        // Not final yet.
        check("Unknown", json!({"memory": "5Gi"}), &[]);
    }

    #[test]
    fn an_instance_with_two_claims_is_reported() {
        let (this, mut other) = (claim("True"), claim("True"));
        other.metadata.name = Some("d".to_owned());
        other.metadata.uid = Some("v".to_owned());
        let (one, two) = (Arc::new(this.clone()), Arc::new(other));
        assert_eq!(shared(&this, "kwok://a", &[&one]), []);
        assert_eq!(
            shared(&this, "kwok://a", &[&one, &two])[0].to_string(),
            "instance kwok://a is also claimed by nodeclaim d; delete the one that is not its own"
        );
    }
}
