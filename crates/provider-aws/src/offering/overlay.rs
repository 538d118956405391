//! Prices that users give to types which AWS names none for.

use std::{collections::BTreeMap, sync::Arc};

use api::{
    conditions::{self, HasConditions, node_pool::VALIDATION_SUCCEEDED},
    labels,
    v1::Operator,
    v1alpha1::NodeOverlay,
};

/// The price per hour by type. Only overlays in force count that do nothing but name types and a price: whatever else they
/// select by is judged where overlays are applied, which is after this.
pub fn overlay_prices(overlays: &[Arc<NodeOverlay>]) -> BTreeMap<String, f64> {
    let mut in_force: Vec<&NodeOverlay> = overlays
        .iter()
        .map(AsRef::as_ref)
        .filter(|overlay| conditions::is_true(overlay.conditions(), VALIDATION_SUCCEEDED))
        .collect();
    in_force.sort_by(|one, other| {
        let weight = |overlay: &NodeOverlay| overlay.spec.weight.unwrap_or_default();
        let heavier_first = weight(other).cmp(&weight(one));
        heavier_first.then_with(|| one.metadata.name.cmp(&other.metadata.name))
    });
    let mut prices = BTreeMap::new();
    for overlay in in_force {
        let price = overlay.spec.price.as_deref().and_then(|price| price.parse().ok());
        let (Some(price), Some(types)) = (price, named_types(overlay)) else {
            continue;
        };
        for name in types {
            prices.entry(name.clone()).or_insert(price);
        }
    }
    prices
}

fn named_types(overlay: &NodeOverlay) -> Option<&[String]> {
    match overlay.spec.requirements.as_slice() {
        [only] if only.key == labels::INSTANCE_TYPE && only.operator == Operator::In => only.values.as_deref(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn overlay(name: &str, status: &str, spec: serde_json::Value) -> Arc<NodeOverlay> {
        let written = json!({
            "apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": {"name": name}, "spec": spec,
            "status": {"conditions": [{
                "type": "ValidationSucceeded", "status": status, "reason": "x", "message": "",
                "lastTransitionTime": "2024-01-01T00:00:00Z",
            }]},
        });
        Arc::new(serde_json::from_value(written).expect("an overlay"))
    }

    fn types(names: &[&str]) -> serde_json::Value {
        json!([{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": names}])
    }

    /// AW24.10.8
    #[test]
    fn only_overlays_in_force_that_name_types_and_a_price_count() {
        let other = json!([{"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}]);
        let mut both = types(&["b"]);
        both.as_array_mut().unwrap().extend(other.as_array().unwrap().clone());
        let prices = overlay_prices(&[
            overlay(
                "light",
                "True",
                json!({"requirements": types(&["a", "c"]), "price": "1"}),
            ),
            overlay(
                "heavy",
                "True",
                json!({"requirements": types(&["a"]), "price": "2.5", "weight": 5}),
            ),
            overlay("refused", "False", json!({"requirements": types(&["d"]), "price": "1"})),
            overlay(
                "adjusting",
                "True",
                json!({"requirements": types(&["e"]), "priceAdjustment": "+1"}),
            ),
            overlay("by-arch", "True", json!({"requirements": other, "price": "1"})),
            overlay("by-both", "True", json!({"requirements": both, "price": "1"})),
        ]);
        assert_eq!(prices, BTreeMap::from([("a".to_owned(), 2.5), ("c".to_owned(), 1.0)]));
    }
}
