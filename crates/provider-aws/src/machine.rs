//! An instance as the rest of Karpenter sees it.

use api::{
    aws::EC2NodeClass,
    labels::{self, aws},
};
use model::{CapacityType, Labels, Requirements};

use crate::{class_view, ports::InstanceInfo, tags};

/// Labels that only instances in a reservation have.
pub const RESERVATION_LABELS: [&str; 3] = [
    aws::CAPACITY_RESERVATION_ID,
    aws::CAPACITY_RESERVATION_TYPE,
    aws::CAPACITY_RESERVATION_INTERRUPTIBLE,
];

/// How an instance's capacity is paid for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purchase {
    OnDemand,
    Spot,
    Reserved {
        reservation: String,
        capacity_block: bool,
        interruptible: bool,
    },
}

impl Purchase {
    pub fn capacity_type(&self) -> CapacityType {
        match self {
            Purchase::OnDemand => CapacityType::OnDemand,
            Purchase::Spot => CapacityType::Spot,
            Purchase::Reserved { .. } => CapacityType::Reserved,
        }
    }

    /// An instance in an open reservation was not launched for it, and is on demand to us. EC2 also says `spot` in words
    /// where it has no request to name.
    pub fn of(instance: &InstanceInfo, reserved_capacity: bool) -> Self {
        if instance.spot_request.is_some() || instance.lifecycle == "spot" {
            return Purchase::Spot;
        }
        match &instance.reservation {
            Some(reservation)
                if reserved_capacity && instance.reservation_preference == "capacity-reservations-only" =>
            {
                Purchase::Reserved {
                    reservation: reservation.clone(),
                    capacity_block: instance.lifecycle == "capacity-block",
                    interruptible: instance.lifecycle == "interruptible-capacity-reservation",
                }
            }
            _ => Purchase::OnDemand,
        }
    }
}

/// Whether the instance is on its way out.
pub fn is_ending(instance: &InstanceInfo) -> bool {
    matches!(instance.state.as_str(), "shutting-down" | "terminated")
}

/// The labels that the instance settles. Type and class are absent where they are not known any more.
pub fn labels(
    instance: &InstanceInfo,
    purchase: &Purchase,
    shape: Option<&Requirements>,
    class: Option<&EC2NodeClass>,
) -> Labels {
    let mut all = shape.map(Requirements::labels).unwrap_or_default();
    for key in RESERVATION_LABELS {
        all.remove(key);
    }
    let mut set = |key: &str, value: &str| {
        all.insert(key.into(), value.into());
    };
    set(labels::INSTANCE_TYPE, &instance.instance_type);
    set(labels::ZONE, &instance.zone);
    set(labels::CAPACITY_TYPE, purchase.capacity_type().as_str());
    let tenancy = if instance.tenancy.is_empty() {
        "default"
    } else {
        &instance.tenancy
    };
    set(aws::INSTANCE_TENANCY, tenancy);
    let zones = class.map(class_view::zones).unwrap_or_default();
    let zone = zones.iter().find(|zone| zone.zone == instance.zone);
    if let Some(id) = zone.and_then(|zone| zone.zone_id.as_deref()) {
        set(aws::ZONE_ID, id);
    }
    if let Purchase::Reserved {
        reservation,
        capacity_block,
        interruptible,
    } = purchase
    {
        set(aws::CAPACITY_RESERVATION_ID, reservation);
        set(
            aws::CAPACITY_RESERVATION_TYPE,
            if *capacity_block { "capacity-block" } else { "default" },
        );
        set(aws::CAPACITY_RESERVATION_INTERRUPTIBLE, &interruptible.to_string());
    }
    if let Some(group) = &instance.placement_group {
        set(aws::PLACEMENT_GROUP_ID, group);
    }
    if let Some(partition) = instance.partition.filter(|partition| *partition > 0) {
        set(aws::PLACEMENT_GROUP_PARTITION, &partition.to_string());
    }
    // Claims that users made by hand belong to no pool, and the tag is empty.
    if let Some(pool) = instance.tags.get(tags::NODE_POOL).filter(|pool| !pool.is_empty()) {
        set(tags::NODE_POOL, pool);
    }
    all
}

/// How many of its interfaces carry EFA traffic.
pub fn efa_interfaces(instance: &InstanceInfo) -> usize {
    let is_efa = |kind: &&String| matches!(kind.as_str(), "efa" | "efa-only");
    instance.interfaces.iter().filter(is_efa).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::samples;

    fn instance() -> InstanceInfo {
        InstanceInfo {
            id: "i-1".to_owned(),
            state: "running".to_owned(),
            instance_type: "m5.large".to_owned(),
            zone: "us-west-2b".to_owned(),
            tags: [(tags::NODE_POOL.to_owned(), "pool".to_owned())].into(),
            ..InstanceInfo::default()
        }
    }

    /// AW24.11.8
    #[test]
    fn a_purchase_is_told_by_what_ec2_says_of_the_instance() {
        let reserved = |preference: &str, lifecycle: &str| InstanceInfo {
            reservation: Some("cr-1".to_owned()),
            reservation_preference: preference.to_owned(),
            lifecycle: lifecycle.to_owned(),
            ..instance()
        };
        let only = "capacity-reservations-only";
        let kind = |instance: &InstanceInfo| Purchase::of(instance, true).capacity_type();
        assert_eq!(kind(&instance()), CapacityType::OnDemand);
        let spot = InstanceInfo {
            spot_request: Some("sir-1".to_owned()),
            ..instance()
        };
        assert_eq!(kind(&spot), CapacityType::Spot);
        let named = InstanceInfo {
            lifecycle: "spot".to_owned(),
            ..instance()
        };
        assert_eq!(kind(&named), CapacityType::Spot);
        assert_eq!(kind(&reserved(only, "")), CapacityType::Reserved);
        assert_eq!(
            kind(&reserved("open", "")),
            CapacityType::OnDemand,
            "it is there by chance"
        );
        assert_eq!(Purchase::of(&reserved(only, ""), false), Purchase::OnDemand);
        let block = Purchase::of(&reserved(only, "capacity-block"), true);
        assert!(matches!(
            block,
            Purchase::Reserved {
                capacity_block: true,
                interruptible: false,
                ..
            }
        ));
        let lent = Purchase::of(&reserved(only, "interruptible-capacity-reservation"), true);
        assert!(matches!(
            lent,
            Purchase::Reserved {
                capacity_block: false,
                interruptible: true,
                ..
            }
        ));
    }

    /// AW24.11.17, AW24.11.18, AW24.11.20
    #[test]
    fn labels_say_what_the_launch_settled() {
        let mut instance = instance();
        instance.placement_group = Some("pg-1".to_owned());
        instance.partition = Some(0);
        instance.interfaces = ["interface", "efa", "efa-only"].map(str::to_owned).to_vec();
        let purchase = Purchase::Reserved {
            reservation: "cr-1".to_owned(),
            capacity_block: true,
            interruptible: false,
        };
        let class = samples::class();
        let labels = labels(&instance, &purchase, None, Some(&class));
        let shown: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(
            shown,
            [
                "karpenter.k8s.aws/capacity-reservation-id=cr-1",
                "karpenter.k8s.aws/capacity-reservation-interruptible=false",
                "karpenter.k8s.aws/capacity-reservation-type=capacity-block",
                "karpenter.k8s.aws/instance-tenancy=default",
                "karpenter.k8s.aws/placement-group-id=pg-1",
                "karpenter.sh/capacity-type=reserved",
                "karpenter.sh/nodepool=pool",
                "node.kubernetes.io/instance-type=m5.large",
                "topology.k8s.aws/zone-id=usw2-az2",
                "topology.kubernetes.io/zone=us-west-2b",
            ]
        );
        assert_eq!(efa_interfaces(&instance), 2);
        let ended = InstanceInfo {
            state: "shutting-down".to_owned(),
            ..instance.clone()
        };
        assert!(is_ending(&ended) && !is_ending(&instance));
    }
}
