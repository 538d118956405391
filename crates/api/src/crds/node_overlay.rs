//! NodeOverlay, `karpenter.sh/v1alpha1`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use super::Variant;
use super::blocks::{self, Holder};
use super::columns::{age, condition, integer, wide};
use super::schema::{Schema, cel, maximum, minimum, pattern, required};
use crate::v1alpha1::NodeOverlay;

const PRICE: &str = r"^\d+(\.\d+)?$";

const PRICE_ADJUSTMENT: &str = r"^(([+-]{1}(\d*\.?\d+))|(\+{1}\d*\.?\d+%)|(^(-\d{1,2}(\.\d+)?%)$)|(-100%))$";

pub fn crd(variant: Variant) -> CustomResourceDefinition {
    let schema = Schema::of::<NodeOverlay>()
        .columns([condition("Ready"), age(), wide(integer("Weight", ".spec.weight"))])
        .at("", [required(&["spec"])])
        .at(
            "spec",
            [cel(
                "!has(self.price) || !has(self.priceAdjustment)",
                "cannot set both 'price' and 'priceAdjustment'",
            )],
        )
        .at("spec.price", [pattern(PRICE)])
        .at("spec.priceAdjustment", [pattern(PRICE_ADJUSTMENT)])
        .at(
            "spec.capacity",
            [cel(
                "self.all(x, !(x in ['cpu', 'memory', 'ephemeral-storage', 'pods']))",
                "invalid resource restricted",
            )],
        )
        .at("spec.weight", [minimum(1), maximum(10_000)]);
    let schema = blocks::requirements(schema, "spec.requirements", Holder::Overlay, variant);
    blocks::strict_conditions(schema, "status.conditions").into_crd()
}
