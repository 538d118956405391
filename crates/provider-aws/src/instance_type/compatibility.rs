//! Whether a class can use a type at all.

use api::aws::{AmiFamily, Switch};

use model::Requirements;

use super::Setting;
use crate::{class_view, ports::InstanceTypeInfo};

/// Why a class cannot use a type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Incompatible {
    #[error("the type cannot have the network interfaces of the class")]
    NetworkInterfaces,
    #[error("AL2023 does not run on a1 types")]
    Image,
    #[error("no image of the class runs on the type")]
    NoImage,
    #[error("the type cannot run virtual machines of its own")]
    NestedVirtualization,
    #[error("the type cannot be in a placement group of strategy {0}")]
    PlacementStrategy(String),
    #[error("only nitro types have settable connection tracking")]
    ConnectionTracking,
}

pub(super) fn incompatible(
    info: &InstanceTypeInfo,
    requirements: &Requirements,
    setting: &Setting<'_>,
) -> Option<Incompatible> {
    let spec = &setting.class.spec;
    if !has_interfaces(info, setting) {
        return Some(Incompatible::NetworkInterfaces);
    }
    if class_view::family(setting.class) == AmiFamily::Al2023 && info.name.starts_with("a1.") {
        return Some(Incompatible::Image);
    }
    // Before its images are known, a class is not judged by them.
    let class = setting.class;
    if !class_view::amis(class).is_empty() && class_view::ami_for(class, requirements).is_none() {
        return Some(Incompatible::NoImage);
    }
    let nested = spec
        .cpu_options
        .as_ref()
        .and_then(|options| options.nested_virtualization.as_ref());
    let can_nest = || {
        info.processor_features
            .iter()
            .any(|feature| feature == "nested-virtualization")
    };
    if nested == Some(&Switch::Enabled) && !can_nest() {
        return Some(Incompatible::NestedVirtualization);
    }
    if let Some(group) = setting.placement_group
        && !info.placement_strategies.contains(&group.strategy)
    {
        return Some(Incompatible::PlacementStrategy(group.strategy.clone()));
    }
    (spec.connection_tracking.is_some() && info.hypervisor != "nitro").then_some(Incompatible::ConnectionTracking)
}

fn has_interfaces(info: &InstanceTypeInfo, setting: &Setting<'_>) -> bool {
    let wanted = class_view::interfaces(setting.class);
    if wanted.is_empty() {
        return true;
    }
    let network = &info.network;
    let fits = |interface: &api::aws::NetworkInterface| {
        let card = usize::try_from(interface.network_card_index).ok();
        let card = card.and_then(|index| network.cards.get(index));
        card.is_some_and(|card| i64::from(interface.device_index) < card.max_interfaces)
    };
    let efa_only = class_view::efa_only_interfaces(setting.class) as i64;
    network.ena && efa_only <= network.max_efa_interfaces && wanted.iter().all(fits)
}
