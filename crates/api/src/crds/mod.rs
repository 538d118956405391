//! The manifests of the custom resources.
//!
//! `kube` derives names, columns and plain types from the Rust types. Each file here then adds, as
//! a table of paths and facts, what a type cannot say: defaults, bounds, list types, CEL rules.
//! [`schema`] is the machinery behind the tables; start reading at [`node_pool`].
//!
//! Where upstream's release and its main branch differ, the manifests admit what works with either (decision record 0006).
//!
//! Three variants exist because a provider reserves a label domain of its own, and the API server
//! enforces that in every kind that holds label keys.

mod blocks;
mod capacity_buffer;
mod columns;
mod ec2_kubelet;
mod ec2_node_class;
mod ec2_selectors;
mod kwok_node_class;
mod legacy;
mod node_claim;
mod node_overlay;
mod node_pool;
mod patterns;
mod schema;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

/// Whose label domain the manifests reserve, and whose node class they include.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Variant {
    /// No provider: the kinds that every build shares.
    Core,
    /// `karpenter.k8s.aws` is reserved; EC2NodeClass is included. This is what the charts install.
    Aws,
    /// `karpenter.kwok.sh` is reserved; KWOKNodeClass is included. This is what the playground
    /// installs.
    Kwok,
}

/// The kinds before v1, for clusters that still have objects of them. No variant includes them.
pub fn legacy() -> Vec<CustomResourceDefinition> {
    vec![legacy::provisioner(), legacy::node_template(), legacy::machine()]
}

/// Every manifest of a variant, with the NodePool first.
pub fn all(variant: Variant) -> Vec<CustomResourceDefinition> {
    let mut crds = vec![
        node_pool::crd(variant),
        node_claim::crd(variant),
        node_overlay::crd(variant),
        capacity_buffer::crd(),
    ];
    match variant {
        Variant::Core => {}
        Variant::Aws => crds.push(ec2_node_class::crd()),
        Variant::Kwok => crds.push(kwok_node_class::crd()),
    }
    crds
}

#[cfg(test)]
mod tests;
