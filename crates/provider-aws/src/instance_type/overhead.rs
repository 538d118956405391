//! What the machine keeps for itself.

use std::collections::BTreeMap;

use model::{Overhead, Quantity, ResourceName, Resources};

use super::{Setting, Unreadable, kubelet::Reserved, pods::interface_pods, quantity, unreadable};
use crate::{class_view, family, ports::InstanceTypeInfo};

const MIB: i64 = 1 << 20;
const EVICTION_MEMORY: Quantity = Quantity::from_bytes(100 * MIB);
const KUBE_RESERVED_STORAGE: Quantity = Quantity::from_bytes(1 << 30);

pub(super) fn overhead(
    info: &InstanceTypeInfo,
    capacity: &Resources,
    own: &Reserved,
    setting: &Setting<'_>,
) -> Result<Overhead, Unreadable> {
    let kubelet = setting.class.spec.kubelet.as_ref();
    let pods = match family::reserves_by_interfaces(&class_view::family(setting.class)) {
        true => interface_pods(info, setting.class, 0),
        false => capacity.get("pods").value_ceil(),
    };
    let mut kube_reserved = Resources::new()
        .with(
            ResourceName::CPU,
            Quantity::from_millis(kube_reserved_millis(info.vcpus)),
        )
        .with(ResourceName::MEMORY, Quantity::from_bytes((11 * pods + 255) * MIB))
        .with(ResourceName::EPHEMERAL_STORAGE, KUBE_RESERVED_STORAGE);
    for (name, amount) in reserved("kubelet.kubeReserved", &own.kube)? {
        kube_reserved.set(name, amount);
    }
    let system_reserved = reserved("kubelet.systemReserved", &own.system)?.into_iter().collect();
    let hard = kubelet.and_then(|kubelet| kubelet.eviction_hard.as_ref());
    let storage = capacity.get("ephemeral-storage");
    let eviction_threshold = Resources::new()
        .with(
            ResourceName::MEMORY,
            threshold(hard, "memory.available", capacity.get("memory"))?.unwrap_or(EVICTION_MEMORY),
        )
        .with(
            ResourceName::EPHEMERAL_STORAGE,
            threshold(hard, "nodefs.available", storage)?.unwrap_or_else(|| share(storage, 10.0)),
        );
    Ok(Overhead {
        kube_reserved,
        system_reserved,
        eviction_threshold,
    })
}

/// The kubelet's share of the cores: less and less of each further one.
fn kube_reserved_millis(vcpus: i64) -> i64 {
    const BANDS: [(i64, i64, i64); 4] = [
        (0, 1000, 600),
        (1000, 2000, 100),
        (2000, 4000, 50),
        (4000, i64::MAX, 25),
    ];
    let millis = vcpus * 1000;
    let in_band = |&(from, to, parts): &(i64, i64, i64)| (millis.min(to) - from).max(0) * parts / 10_000;
    BANDS.iter().map(in_band).sum()
}

fn reserved(field: &str, amounts: &BTreeMap<String, String>) -> Result<Vec<(ResourceName, Quantity)>, Unreadable> {
    let read = |(name, text): (&String, &String)| {
        Ok((
            ResourceName::from(name.as_str()),
            quantity(&format!("{field}.{name}"), text)?,
        ))
    };
    amounts.iter().map(read).collect()
}

/// A hard threshold as an amount: written as one, or as a part of the capacity. All of it means that nothing is kept.
fn threshold(
    hard: Option<&BTreeMap<String, String>>,
    signal: &str,
    capacity: Quantity,
) -> Result<Option<Quantity>, Unreadable> {
    let Some(text) = hard.and_then(|hard| hard.get(signal)) else {
        return Ok(None);
    };
    let field = format!("kubelet.evictionHard.{signal}");
    let Some(percent) = text.strip_suffix('%') else {
        return quantity(&field, text).map(Some);
    };
    let percent: f64 = percent.parse().map_err(|_| unreadable(&field, text))?;
    Ok(Some(match percent >= 100.0 {
        true => Quantity::ZERO,
        false => share(capacity, percent),
    }))
}

fn share(capacity: Quantity, percent: f64) -> Quantity {
    Quantity::from_bytes((capacity.as_f64() / 100.0 * percent).ceil() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kubelets_share_shrinks_with_each_core() {
        for (vcpus, millis) in [(1, 60), (2, 70), (4, 80), (8, 90), (96, 310)] {
            assert_eq!(kube_reserved_millis(vcpus), millis, "{vcpus}");
        }
    }
}
