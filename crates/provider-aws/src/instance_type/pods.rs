//! How many pods fit on an instance.

use api::aws::EC2NodeClass;

use super::Setting;
use crate::{class_view, family, ports::InstanceTypeInfo};

/// Where neither interfaces nor the class bound the number.
const DEFAULT_PODS: i64 = 110;

/// How many pods the interfaces have addresses for, when `reserved` of them are kept from pods. Interfaces that only carry
/// EFA traffic have no addresses.
pub fn interface_pods(info: &InstanceTypeInfo, class: &EC2NodeClass, reserved: u32) -> i64 {
    let efa_only = class_view::interfaces(class)
        .iter()
        .filter(|interface| interface.network_card_index == 0 && class_view::is_efa_only(interface))
        .count();
    let interfaces = info.network.default_interfaces() - i64::from(reserved) - efa_only as i64;
    if interfaces <= 0 {
        return 0;
    }
    // Each interface keeps its first address; kube-proxy and the network plugin need none.
    interfaces * (info.network.ipv4_per_interface - 1) + 2
}

/// The bound of a class that sets none.
pub(super) fn default_pods(info: &InstanceTypeInfo, setting: &Setting<'_>) -> i64 {
    match family::pods_bounded_by_interfaces(&class_view::family(setting.class)) {
        true => interface_pods(info, setting.class, setting.options.reserved_enis),
        false => DEFAULT_PODS,
    }
}

/// The bound, or what `podsPerCore` leaves of it.
pub(super) fn bounded_by_cores(bound: i64, info: &InstanceTypeInfo, class: &EC2NodeClass) -> i64 {
    match class.spec.kubelet.as_ref().and_then(|kubelet| kubelet.pods_per_core) {
        Some(per_core) if per_core > 0 && family::honours_pods_per_core(&class_view::family(class)) => {
            bound.min(i64::from(per_core) * info.vcpus)
        }
        _ => bound,
    }
}
