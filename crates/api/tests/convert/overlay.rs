use api::convert;
use api::v1alpha1::NodeOverlay;
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::object;

#[track_caller]
fn check(spec: Value, expected: Expect) {
    let written: NodeOverlay = object(json!({
        "apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": { "name": "o" }, "spec": spec,
    }));
    let text = match convert::overlay(&written).strict() {
        Ok(read) => format!(
            "{} | {:?} | {} | {}",
            read.requirements, read.price, read.capacity, read.weight
        ),
        Err(errors) => api::joined(&errors),
    };
    expected.assert_eq(&text);
}

#[test]
fn an_overlay_is_read_or_its_bad_field_is_named() {
    check(
        json!({ "requirements": [{ "key": "a", "operator": "In", "values": ["b"] }], "price": "0.5", "weight": 3 }),
        expect!["a In [b] | Some(Absolute(0.5)) | nothing | 3"],
    );
    check(
        json!({ "requirements": [], "priceAdjustment": "-10%", "capacity": { "fuse": "2" } }),
        expect![" | Some(Percent(-10.0)) | fuse=2 | 0"],
    );
    check(
        json!({ "requirements": [{ "key": "a", "operator": "Is" }], "price": "+1" }),
        expect![[
            r#"spec.requirements[0].operator: "Is" is not an operator: use In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte or Lte; spec.price: "+1" must not have a sign: it replaces the provider's price"#
        ]],
    );
    check(
        json!({ "requirements": [], "priceAdjustment": "1" }),
        expect![[r#"spec.priceAdjustment: "1" needs a sign: it is added to the provider's price"#]],
    );
    check(
        json!({ "requirements": [], "priceAdjustment": "+1", "price": "1" }),
        expect!["spec: price and priceAdjustment cannot both be set"],
    );
}
