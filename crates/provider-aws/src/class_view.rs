//! An EC2NodeClass as the rest of the crate reads it.

use api::{
    aws::{Ami, AmiFamily, CapacityReservation, EC2NodeClass, InterfaceType, NetworkInterface},
    labels,
};
use model::{Operator, Requirement, Requirements};

/// A zone that the class has subnets in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ZoneInfo {
    pub zone: String,
    /// Absent in classes whose status an older controller wrote.
    pub zone_id: Option<String>,
    pub subnets: Vec<String>,
}

/// The zones of the class's subnets, in the order of the status.
pub fn zones(class: &EC2NodeClass) -> Vec<ZoneInfo> {
    let mut zones: Vec<ZoneInfo> = Vec::new();
    for subnet in class.status.iter().flat_map(|status| status.subnets.iter().flatten()) {
        let zone_id = subnet.zone_id.clone().filter(|id| !id.is_empty());
        // Subnets without a zone id belong together when their zones have one name, and not because both lack an id.
        let same = |known: &&mut ZoneInfo| match &zone_id {
            Some(id) => known.zone_id.as_ref() == Some(id),
            None => known.zone_id.is_none() && known.zone == subnet.zone,
        };
        match zones.iter_mut().find(same) {
            Some(zone) => zone.subnets.push(subnet.id.clone()),
            None => zones.push(ZoneInfo {
                zone: subnet.zone.clone(),
                zone_id,
                subnets: vec![subnet.id.clone()],
            }),
        }
    }
    zones
}

pub fn family(class: &EC2NodeClass) -> AmiFamily {
    api::hash::ami_family(&class.spec)
}

pub fn amis(class: &EC2NodeClass) -> &[Ami] {
    class
        .status
        .as_ref()
        .and_then(|status| status.amis.as_deref())
        .unwrap_or_default()
}

pub fn reservations(class: &EC2NodeClass) -> &[CapacityReservation] {
    class
        .status
        .as_ref()
        .and_then(|status| status.capacity_reservations.as_deref())
        .unwrap_or_default()
}

pub fn security_groups(class: &EC2NodeClass) -> Vec<String> {
    let groups = class
        .status
        .iter()
        .flat_map(|status| status.security_groups.iter().flatten());
    groups.map(|group| group.id.clone()).collect()
}

pub fn subnets(class: &EC2NodeClass) -> &[api::aws::Subnet] {
    class
        .status
        .as_ref()
        .and_then(|status| status.subnets.as_deref())
        .unwrap_or_default()
}

pub fn instance_profile(class: &EC2NodeClass) -> Option<&str> {
    class
        .status
        .as_ref()
        .and_then(|status| status.instance_profile.as_deref())
}

pub fn interfaces(class: &EC2NodeClass) -> &[NetworkInterface] {
    class.spec.network_interfaces.as_deref().unwrap_or_default()
}

pub fn is_efa_only(interface: &NetworkInterface) -> bool {
    interface.interface_type == InterfaceType::EfaOnly
}

pub fn efa_only_interfaces(class: &EC2NodeClass) -> usize {
    interfaces(class)
        .iter()
        .filter(|interface| is_efa_only(interface))
        .count()
}

/// What an image asks of instance types. An entry that cannot be read asks for what no type has.
pub fn ami_requirements(ami: &Ami) -> Requirements {
    let read = |written: &api::aws::AmiRequirement| {
        let values = written.values.iter().flatten().map(|value| value.as_str().into());
        let operator: Option<Operator> = written.operator.parse().ok();
        operator
            .and_then(|operator| Requirement::new(&written.key, operator, values).ok())
            .unwrap_or_else(|| Requirement::one_of(&written.key, ["unreadable"]))
    };
    ami.requirements.iter().map(read).collect()
}

/// The images of the class with what they are made for, as a sentence about none of them fitting names them.
pub fn images_named(class: &EC2NodeClass) -> String {
    const SHOWN: usize = 5;
    let named = |ami: &Ami| {
        let arch = ami.requirements.iter().find(|entry| entry.key == labels::ARCH);
        let values = arch.and_then(|entry| entry.values.as_deref()).unwrap_or_default();
        format!("{} is for {}", ami.id, values.join(" and "))
    };
    let images = amis(class);
    let mut named: Vec<String> = images.iter().take(SHOWN).map(named).collect();
    if images.len() > SHOWN {
        named.push(format!("{} more do not fit either", images.len() - SHOWN));
    }
    named.join(", ")
}

/// The image that a type gets: the first of the status whose requirements it meets.
pub fn ami_for<'a>(class: &'a EC2NodeClass, requirements: &Requirements) -> Option<&'a Ami> {
    amis(class)
        .iter()
        .find(|ami| requirements.overlaps(&ami_requirements(ami)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::aws::{AmiRequirement, EC2NodeClassStatus, Subnet};

    #[test]
    fn subnets_are_grouped_by_zone_id_and_those_without_by_zone() {
        let subnet = |id: &str, zone: &str, zone_id: &str| Subnet {
            id: id.into(),
            zone: zone.into(),
            zone_id: Some(zone_id.into()),
        };
        let class = EC2NodeClass {
            status: Some(EC2NodeClassStatus {
                subnets: Some(vec![
                    subnet("s1", "a", "az1"),
                    subnet("s2", "b", "az2"),
                    subnet("s3", "a", "az1"),
                    subnet("s4", "c", ""),
                    subnet("s5", "d", ""),
                ]),
                ..EC2NodeClassStatus::default()
            }),
            ..EC2NodeClass::default()
        };
        let found = zones(&class);
        let shown: Vec<String> = found
            .iter()
            .map(|zone| format!("{} {}", zone.zone, zone.subnets.join("+")))
            .collect();
        assert_eq!(shown, ["a s1+s3", "b s2", "c s4", "d s5"]);
    }

    #[test]
    fn the_first_image_that_fits_is_taken() {
        let ami = |id: &str, key: &str, operator: &str, values: &[&str]| Ami {
            id: id.into(),
            requirements: vec![AmiRequirement {
                key: key.into(),
                operator: operator.into(),
                values: Some(values.iter().map(|value| (*value).to_owned()).collect()),
            }],
            ..Ami::default()
        };
        let class = EC2NodeClass {
            status: Some(EC2NodeClassStatus {
                amis: Some(vec![
                    ami("ami-broken", "kubernetes.io/arch", "Is", &["arm64"]),
                    ami("ami-arm", "kubernetes.io/arch", "In", &["arm64"]),
                    ami("ami-amd", "kubernetes.io/arch", "In", &["amd64"]),
                ]),
                ..EC2NodeClassStatus::default()
            }),
            ..EC2NodeClass::default()
        };
        let arch = |value: &str| {
            [Requirement::one_of("kubernetes.io/arch", [value])]
                .into_iter()
                .collect()
        };
        assert_eq!(ami_for(&class, &arch("arm64")).unwrap().id, "ami-arm");
        assert_eq!(ami_for(&class, &arch("amd64")).unwrap().id, "ami-amd");
        assert!(ami_for(&class, &arch("riscv64")).is_none());
        assert_eq!(
            images_named(&class),
            "ami-broken is for arm64, ami-arm is for arm64, ami-amd is for amd64"
        );
    }
}
