//! Whether an instance still is what its class asks for.

use std::collections::BTreeSet;

use api::{aws::EC2NodeClass, labels::annotations};
use model::{Labels, Requirements};

use crate::{
    class_view,
    machine::Purchase,
    ports::{InstanceInfo, PlacementGroupInfo},
};

/// Why an instance should be replaced. The words are conditions' reasons, which users and dashboards know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    NodeClass,
    Ami,
    SecurityGroup,
    Subnet,
    CapacityReservation,
    PlacementGroup,
}

impl Reason {
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::NodeClass => "NodeClassDrift",
            Reason::Ami => "AMIDrift",
            Reason::SecurityGroup => "SecurityGroupDrift",
            Reason::Subnet => "SubnetDrift",
            Reason::CapacityReservation => "CapacityReservationDrift",
            Reason::PlacementGroup => "PlacementGroupDrift",
        }
    }
}

/// Why drift cannot be judged. An unknown state replaces no node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undecided {
    #[error("the node class has no {0} in its status")]
    EmptyStatus(&'static str),
    #[error("the instance type {0} is not known")]
    UnknownType(String),
    #[error("the claim does not say which image its instance runs")]
    NoImage,
}

/// Whether the static fields of a class changed since a claim was launched. Hashes of different versions say nothing.
pub fn of_hash(class: &Labels, claim: &Labels) -> Option<Reason> {
    let get = |object: &Labels, key: &str| object.get(key).cloned();
    let hashes = [class, claim].map(|object| get(object, annotations::EC2_NODE_CLASS_HASH));
    let versions = [class, claim].map(|object| get(object, annotations::EC2_NODE_CLASS_HASH_VERSION));
    let ([Some(class_hash), Some(claim_hash)], [Some(class_version), Some(claim_version)]) = (hashes, versions) else {
        return None;
    };
    (class_version == claim_version && class_hash != claim_hash).then_some(Reason::NodeClass)
}

/// Whether the image is still the one that its type would get.
pub fn of_image(
    class: &EC2NodeClass,
    shape: Option<&Requirements>,
    instance: &InstanceInfo,
) -> Result<Option<Reason>, Undecided> {
    if class_view::amis(class).is_empty() {
        return Err(Undecided::EmptyStatus("images"));
    }
    if instance.image_id.is_empty() {
        return Err(Undecided::NoImage);
    }
    let shape = shape.ok_or_else(|| Undecided::UnknownType(instance.instance_type.clone()))?;
    let current = class_view::ami_for(class, shape);
    let is_current = current.is_some_and(|ami| ami.id == instance.image_id);
    Ok((!is_current).then_some(Reason::Ami))
}

/// Whether the places of the instance are still selected. `group` is absent while the placement group is not known.
pub fn of_place(
    class: &EC2NodeClass,
    instance: &InstanceInfo,
    purchase: &Purchase,
    group: Option<Option<&PlacementGroupInfo>>,
) -> Result<Option<Reason>, Undecided> {
    let wanted: BTreeSet<String> = class_view::security_groups(class).into_iter().collect();
    if wanted.is_empty() {
        return Err(Undecided::EmptyStatus("security groups"));
    }
    let subnets = class_view::subnets(class);
    if subnets.is_empty() {
        return Err(Undecided::EmptyStatus("subnets"));
    }
    if wanted != instance.security_groups.iter().cloned().collect() {
        return Ok(Some(Reason::SecurityGroup));
    }
    if !subnets.iter().any(|subnet| subnet.id == instance.subnet) {
        return Ok(Some(Reason::Subnet));
    }
    if let Purchase::Reserved { reservation, .. } = purchase {
        let is_selected = |known: &api::aws::CapacityReservation| known.id == *reservation;
        if !class_view::reservations(class).iter().any(is_selected) {
            return Ok(Some(Reason::CapacityReservation));
        }
    }
    let Some(group) = group else { return Ok(None) };
    let is_same = instance.placement_group.as_deref() == group.map(|group| group.id.as_str());
    Ok((!is_same).then_some(Reason::PlacementGroup))
}

#[cfg(test)]
mod tests {
    use api::aws::EC2NodeClassStatus;
    use model::Requirement;

    use super::*;
    use crate::testing::samples;

    fn instance() -> InstanceInfo {
        InstanceInfo {
            instance_type: "m5.large".to_owned(),
            image_id: "ami-amd".to_owned(),
            subnet: "subnet-a".to_owned(),
            security_groups: vec!["sg-1".to_owned()],
            ..InstanceInfo::default()
        }
    }

    fn shape(arch: &str) -> Requirements {
        [Requirement::one_of(api::labels::ARCH, [arch])].into_iter().collect()
    }

    /// AW24.14.4
    #[test]
    fn a_changed_hash_of_the_same_version_is_drift() {
        let object = |hash: Option<&str>, version: Option<&str>| -> Labels {
            let pair = |(key, value): (&str, Option<&str>)| Some((key.into(), value?.into()));
            [
                (annotations::EC2_NODE_CLASS_HASH, hash),
                (annotations::EC2_NODE_CLASS_HASH_VERSION, version),
            ]
            .into_iter()
            .filter_map(pair)
            .collect()
        };
        let class = object(Some("1"), Some("v5"));
        assert_eq!(of_hash(&class, &object(Some("1"), Some("v5"))), None);
        assert_eq!(of_hash(&class, &object(Some("2"), Some("v5"))), Some(Reason::NodeClass));
        assert_eq!(of_hash(&class, &object(Some("2"), Some("v4"))), None);
        assert_eq!(of_hash(&class, &object(None, Some("v5"))), None);
        assert_eq!(of_hash(&object(Some("1"), None), &object(Some("2"), Some("v5"))), None);
    }

    /// AW24.14.4
    #[test]
    fn an_image_that_the_type_would_not_get_is_drift() {
        let class = samples::class();
        let amd = shape("amd64");
        assert_eq!(of_image(&class, Some(&amd), &instance()), Ok(None));
        assert_eq!(
            of_image(&class, Some(&shape("arm64")), &instance()),
            Ok(Some(Reason::Ami))
        );
        assert_eq!(
            of_image(&class, Some(&shape("riscv64")), &instance()),
            Ok(Some(Reason::Ami))
        );
        assert_eq!(
            of_image(&class, None, &instance()),
            Err(Undecided::UnknownType("m5.large".to_owned()))
        );
        let bare = InstanceInfo::default();
        assert_eq!(of_image(&class, Some(&amd), &bare), Err(Undecided::NoImage));
        let mut empty = class;
        empty.status = Some(EC2NodeClassStatus::default());
        assert_eq!(
            of_image(&empty, Some(&amd), &instance()),
            Err(Undecided::EmptyStatus("images"))
        );
    }

    /// AW24.14.4
    #[test]
    fn places_that_are_not_selected_any_more_are_drift() {
        let class = samples::class();
        let on_demand = Purchase::OnDemand;
        let place = |change: fn(&mut InstanceInfo), purchase: &Purchase, group| {
            let mut instance = instance();
            change(&mut instance);
            of_place(&class, &instance, purchase, group)
        };
        let none = Some(None);
        assert_eq!(place(|_| (), &on_demand, none), Ok(None));
        type Change = fn(&mut InstanceInfo);
        let table: [(Change, Reason); 4] = [
            (|one| one.security_groups.push("sg-2".to_owned()), Reason::SecurityGroup),
            (|one| one.security_groups.clear(), Reason::SecurityGroup),
            (|one| one.subnet = "subnet-z".to_owned(), Reason::Subnet),
            (
                |one| one.placement_group = Some("pg-1".to_owned()),
                Reason::PlacementGroup,
            ),
        ];
        for (change, reason) in table {
            assert_eq!(place(change, &on_demand, none), Ok(Some(reason)));
        }
        let unknown = place(|one| one.placement_group = Some("pg-1".to_owned()), &on_demand, None);
        assert_eq!(unknown, Ok(None), "a failed lookup replaces nothing");
        let reserved = Purchase::Reserved {
            reservation: "cr-1".to_owned(),
            capacity_block: false,
            interruptible: false,
        };
        assert_eq!(place(|_| (), &reserved, none), Ok(Some(Reason::CapacityReservation)));
        let mut empty = samples::class();
        empty.status.as_mut().unwrap().security_groups = None;
        assert!(of_place(&empty, &instance(), &on_demand, none).is_err());
        let mut empty = samples::class();
        empty.status.as_mut().unwrap().subnets = None;
        assert!(of_place(&empty, &instance(), &on_demand, none).is_err());
    }
}
