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

pub(super) fn pods(info: &InstanceTypeInfo, setting: &Setting<'_>) -> i64 {
    let ami_family = class_view::family(setting.class);
    let kubelet = setting.class.spec.kubelet.as_ref();
    let bound = match kubelet.and_then(|kubelet| kubelet.max_pods) {
        Some(pods) => i64::from(pods),
        None if family::pods_bounded_by_interfaces(&ami_family) => {
            interface_pods(info, setting.class, setting.options.reserved_enis)
        }
        None => DEFAULT_PODS,
    };
    match kubelet.and_then(|kubelet| kubelet.pods_per_core) {
        Some(per_core) if per_core > 0 && family::honours_pods_per_core(&ami_family) => {
            bound.min(i64::from(per_core) * info.vcpus)
        }
        _ => bound,
    }
}
