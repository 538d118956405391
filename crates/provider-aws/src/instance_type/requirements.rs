//! The labels of a type.

use api::labels::{self, aws};
use model::Requirement;
use model::Requirements;

use super::{Setting, has_reservation};
use crate::{class_view, facts, family, ports::InstanceTypeInfo};

/// Every label that nodes of the type may have; those that they never have as well, so that a demand for one is seen to
/// be in vain.
pub(super) fn requirements(
    info: &InstanceTypeInfo,
    zones: &[String],
    usage_classes: &[String],
    setting: &Setting<'_>,
) -> Requirements {
    let mut all = Requirements::new();
    for requirement in place(info, zones, usage_classes, setting)
        .into_iter()
        .chain(machine(info))
        .chain(accelerators(info))
        .chain(reservations(info, setting))
        .chain(placement(setting))
    {
        all.add(requirement);
    }
    all
}

/// `key In values`, or the label's absence when there are none.
fn known<V: Into<model::LabelValue>>(key: &str, values: impl IntoIterator<Item = V>) -> Requirement {
    Requirement::one_of(key, values)
}

fn place(
    info: &InstanceTypeInfo,
    zones: &[String],
    usage_classes: &[String],
    setting: &Setting<'_>,
) -> Vec<Requirement> {
    let arch = architecture(info);
    let ami_family = class_view::family(setting.class);
    // Windows does not run on arm64: the empty set is a label that no pod can ask for.
    let os = match (family::is_windows(&ami_family), arch) {
        (false, _) => Some("linux"),
        (true, Some("amd64")) => Some("windows"),
        (true, _) => None,
    };
    let reserved = has_reservation(setting.class, &info.name).then(|| "reserved".to_owned());
    let mut all = vec![
        known(labels::INSTANCE_TYPE, [info.name.as_str()]),
        known(labels::ARCH, arch),
        known(labels::OS, os),
        known(labels::ZONE, zones.iter().map(String::as_str)),
        known(labels::REGION, [setting.region]),
        known(labels::WINDOWS_BUILD, family::windows_build(&ami_family)),
        known(labels::CAPACITY_TYPE, usage_classes.iter().cloned().chain(reserved)),
    ];
    let ids = setting.zones.iter().filter(|zone| zones.contains(&zone.zone));
    let ids: Vec<&str> = ids.filter_map(|zone| zone.zone_id.as_deref()).collect();
    if !ids.is_empty() {
        all.push(known(aws::ZONE_ID, ids));
    }
    all
}

fn architecture(info: &InstanceTypeInfo) -> Option<&'static str> {
    info.architectures.iter().find_map(|word| kubernetes_architecture(word))
}

/// Kubernetes' word for an architecture of EC2's.
pub(crate) fn kubernetes_architecture(word: &str) -> Option<&'static str> {
    match word {
        "x86_64" => Some("amd64"),
        "arm64" => Some("arm64"),
        _ => None,
    }
}

fn machine(info: &InstanceTypeInfo) -> Vec<Requirement> {
    let number = |value: Option<i64>| value.map(|value| value.to_string());
    let (category, generation) = category_and_generation(&info.name).unzip();
    let (family, size) = family_and_size(&info.name).unzip();
    let flex = family.map(|family| family.contains("-flex").to_string());
    let clock = (info.clock_ghz.unwrap_or(0.0) * 1000.0).round() as i64;
    let nvme = info.storage.as_ref().filter(|storage| storage.nvme);
    vec![
        known(aws::INSTANCE_CPU, [info.vcpus.to_string()]),
        known(aws::INSTANCE_CPU_MANUFACTURER, info.manufacturer.as_deref().map(kebab)),
        known(aws::INSTANCE_CPU_CLOCK_SPEED, [clock.to_string()]),
        known(aws::INSTANCE_MEMORY, [info.memory_mib.to_string()]),
        known(aws::INSTANCE_EBS_BANDWIDTH, number(info.ebs_bandwidth_mbps)),
        known(
            aws::INSTANCE_NETWORK_BANDWIDTH,
            number(facts::network(&info.name).bandwidth_mbps),
        ),
        known(aws::INSTANCE_CATEGORY, category),
        known(aws::INSTANCE_GENERATION, generation),
        known(aws::INSTANCE_FAMILY, family),
        known(aws::INSTANCE_SIZE, size),
        known(aws::INSTANCE_CAPABILITY_FLEX, flex),
        known(aws::INSTANCE_LOCAL_NVME, number(nvme.map(|storage| storage.total_gb))),
        known(aws::INSTANCE_HYPERVISOR, [info.hypervisor.as_str()]),
        known(
            aws::INSTANCE_ENCRYPTION_IN_TRANSIT,
            [info.network.encryption_in_transit.to_string()],
        ),
        known(aws::NITRO_SANDBOX, [info.nitro_enclaves.to_string()]),
        known(aws::INSTANCE_TENANCY, aws::TENANCIES.iter().copied()),
    ]
}

fn accelerators(info: &InstanceTypeInfo) -> Vec<Requirement> {
    // Types with several kinds of GPU get no label: it could name only one of them.
    let gpu = match info.gpus.as_slice() {
        [gpu] => Some(gpu),
        _ => None,
    };
    let accelerator = match (info.inference_accelerators.as_slice(), info.neuron.as_slice()) {
        (_, [neuron]) => Some((kebab(&neuron.name), "aws".to_owned(), neuron.count)),
        ([one], []) => Some((kebab(&one.name), kebab(&one.manufacturer), one.count)),
        _ => None,
    };
    vec![
        known(aws::INSTANCE_GPU_NAME, gpu.map(|gpu| kebab(&gpu.name))),
        known(aws::INSTANCE_GPU_MANUFACTURER, gpu.map(|gpu| kebab(&gpu.manufacturer))),
        known(aws::INSTANCE_GPU_COUNT, gpu.map(|gpu| gpu.count.to_string())),
        known(aws::INSTANCE_GPU_MEMORY, gpu.map(|gpu| gpu.memory_mib.to_string())),
        known(
            aws::INSTANCE_ACCELERATOR_NAME,
            accelerator.as_ref().map(|(name, ..)| name.clone()),
        ),
        known(
            aws::INSTANCE_ACCELERATOR_MANUFACTURER,
            accelerator.as_ref().map(|(_, manufacturer, _)| manufacturer.clone()),
        ),
        known(
            aws::INSTANCE_ACCELERATOR_COUNT,
            accelerator.as_ref().map(|(.., count)| count.to_string()),
        ),
    ]
}

fn reservations(info: &InstanceTypeInfo, setting: &Setting<'_>) -> Vec<Requirement> {
    let own = || {
        class_view::reservations(setting.class)
            .iter()
            .filter(|reservation| reservation.instance_type == info.name)
    };
    let kind = |reservation: &api::aws::CapacityReservation| {
        let kind = reservation.reservation_type.as_ref();
        kind.map_or("default", |kind| kind.as_str()).to_owned()
    };
    vec![
        known(
            aws::CAPACITY_RESERVATION_ID,
            own().map(|reservation| reservation.id.as_str()),
        ),
        known(aws::CAPACITY_RESERVATION_TYPE, own().map(kind)),
        known(
            aws::CAPACITY_RESERVATION_INTERRUPTIBLE,
            own().map(|reservation| reservation.interruptible.unwrap_or(false).to_string()),
        ),
    ]
}

fn placement(setting: &Setting<'_>) -> Vec<Requirement> {
    let Some(group) = setting.placement_group else {
        return Vec::new();
    };
    let mut all = vec![known(aws::PLACEMENT_GROUP_ID, [group.id.as_str()])];
    if group.strategy == "partition" && group.partitions > 0 {
        let partitions = (1..=group.partitions).map(|partition| partition.to_string());
        all.push(known(aws::PLACEMENT_GROUP_PARTITION, partitions));
    }
    all
}

/// `m`, `5` of `m5.large`; `u`, `1` of `u-6tb1.metal`.
fn category_and_generation(name: &str) -> Option<(&str, &str)> {
    let (family, _) = name.rsplit_once('.')?;
    let letters = family.bytes().take_while(u8::is_ascii_lowercase).count();
    let (category, rest) = family.split_at(letters);
    let rest = after_memory_size(rest).unwrap_or(rest);
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    (letters > 0 && digits > 0).then(|| (category, &rest[..digits]))
}

/// What follows `-6tb` in `-6tb1`.
fn after_memory_size(text: &str) -> Option<&str> {
    let text = text.strip_prefix('-')?;
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    (digits > 0).then(|| text[digits..].strip_prefix("tb")).flatten()
}

fn family_and_size(name: &str) -> Option<(&str, &str)> {
    name.split_once('.').filter(|(_, size)| !size.contains('.'))
}

fn kebab(text: &str) -> String {
    text.to_lowercase().replace(' ', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_category_and_generation() {
        let table = [
            ("m5.large", Some(("m", "5"))),
            ("u-6tb1.metal", Some(("u", "1"))),
            ("u7i-12tb.224xlarge", Some(("u", "7"))),
            ("hpc7g.4xlarge", Some(("hpc", "7"))),
            ("m7i-flex.large", Some(("m", "7"))),
            ("mac2-m2pro.metal", Some(("mac", "2"))),
            ("odd.large", None),
            ("m5", None),
        ];
        for (name, expected) in table {
            assert_eq!(category_and_generation(name), expected, "{name}");
        }
    }
}
