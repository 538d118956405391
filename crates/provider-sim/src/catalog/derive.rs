//! What upstream's KWOK provider reads out of a shape's name and size: four labels and a fixed overhead.

use api::labels::kwok;
use model::{
    InstanceType, Offering, Overhead, Quantity, Requirement, Requirements, ResourceName, Resources,
    requirement::Values, vocabulary,
};

/// How many pods a node takes unless its shape says otherwise: the kubelet's own default.
pub const DEFAULT_PODS: i64 = 110;

/// What every simulated machine keeps for itself.
pub fn overhead() -> Overhead {
    Overhead {
        kube_reserved: Resources::new()
            .with(ResourceName::CPU, Quantity::from_millis(100))
            .with(ResourceName::MEMORY, Quantity::from_bytes(10 << 20)),
        ..Overhead::default()
    }
}

/// The labels of a shape that gives only its name, architecture, operating systems, size and offerings.
pub fn requirements(
    name: &str,
    architecture: &str,
    operating_systems: &[String],
    capacity: &Resources,
    offerings: &[Offering],
) -> Requirements {
    let amount = |resource: &str| {
        if capacity.lists(resource) {
            capacity.get(resource).to_string()
        } else {
            String::new()
        }
    };
    let zones = offerings.iter().map(|offering| offering.zone.as_str());
    let capacity_types = offerings.iter().map(|offering| offering.capacity_type.as_str());
    let cpu = amount("cpu");
    Requirements::from_iter([
        Requirement::one_of(vocabulary::INSTANCE_TYPE, [name]),
        Requirement::one_of(vocabulary::ARCH, [architecture]),
        Requirement::one_of(vocabulary::OS, operating_systems),
        Requirement::one_of(vocabulary::ZONE, zones),
        Requirement::one_of(vocabulary::CAPACITY_TYPE, capacity_types),
        Requirement::one_of(kwok::INSTANCE_SIZE, [size(name).unwrap_or(&cpu)]),
        Requirement::one_of(kwok::INSTANCE_FAMILY, [family(name)]),
        Requirement::one_of(kwok::INSTANCE_CPU, [cpu.as_str()]),
        Requirement::one_of(kwok::INSTANCE_MEMORY, [amount("memory")]),
    ])
}

/// Architecture and operating systems, if deriving from them gives back exactly this shape's labels and overhead.
/// Such a shape can be written in upstream's short form.
pub fn short_form(shape: &InstanceType) -> Option<(String, Vec<String>)> {
    let architecture = shape.requirements.get(vocabulary::ARCH).single()?.to_string();
    let systems = shape.requirements.get(vocabulary::OS).listed()?;
    let systems: Vec<String> = systems.iter().map(ToString::to_string).collect();
    let derived = requirements(
        shape.name.as_str(),
        &architecture,
        &systems,
        &shape.capacity,
        &shape.offerings,
    );
    let same = derived == shape.requirements && overhead() == shape.overhead && shape.capacity.lists("pods");
    same.then_some((architecture, systems))
}

/// The size after the dot of an EC2 name. Other clouds' names tell the size by their number of cpus.
fn size(name: &str) -> Option<&str> {
    let (family, size) = name.split_once('.')?;
    let word = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let named = matches!(size, "nano" | "micro" | "small" | "medium" | "large" | "metal");
    let counted = size
        .strip_suffix("xlarge")
        .is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()));
    (word(family) && (named || counted)).then_some(size)
}

/// The part before the first dot or dash, as EC2 and GCP name their types; else the first letter, as Azure does.
fn family(name: &str) -> &str {
    match name.split_once(['.', '-']) {
        Some((family, _)) => family,
        None => name.char_indices().nth(1).map_or(name, |(end, _)| &name[..end]),
    }
}

/// Whether an offering pins this label to one value, as zone and capacity type have to be.
pub fn pinned<'a>(requirements: &'a Requirements, key: &str) -> Option<&'a str> {
    match requirements.get(key) {
        Values::Only(set) if set.len() == 1 => set.first().map(AsRef::as_ref),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, expected_family: &str, expected_size: Option<&str>) {
        assert_eq!(family(name), expected_family, "family of {name}");
        assert_eq!(size(name), expected_size, "size of {name}");
    }

    #[test]
    fn family_and_size_are_read_from_the_name_as_upstream_does() {
        check("m5.large", "m5", Some("large"));
        check("m5.xlarge", "m5", Some("xlarge"));
        check("c6gn.16xlarge", "c6gn", Some("16xlarge"));
        check("m5.metal", "m5", Some("metal"));
        check("m7i.metal-24xl", "m7i", None);
        check("c7i-flex.large", "c7i", None);
        check("u-6tb1.112xlarge", "u", None);
        check("c-16x-amd64-linux", "c", None);
        check("n2-standard-8", "n2", None);
        check("Standard_D8_v3", "S", None);
        check("x", "x", None);
        check("", "", None);
    }
}
