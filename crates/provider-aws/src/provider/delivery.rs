//! From what a fleet delivered to what the claim is told.

use std::collections::BTreeMap;

use api::{
    aws::EC2NodeClass,
    labels::{annotations, aws as labels},
};
use model::{CapacityType, Labels, Resources};
use provider::Launched;

use super::{AwsProvider, launch::Launch};
use crate::{
    class_hash, class_view,
    instance_type::EFA,
    launch::{self, outcome::Delivery},
    machine::{self, Purchase},
    ports::{InstanceInfo, Market},
    provider_id,
};

impl AwsProvider {
    pub(super) fn delivered(&self, launch: &Launch<'_>, info: InstanceInfo) -> Launched {
        let purchase = Purchase::of(&info, self.services.reserved_capacity);
        if let Purchase::Reserved { reservation, .. } = &purchase {
            self.services.resolver.reservations.launched(reservation);
        }
        let shape = launch
            .types
            .iter()
            .find(|shape| shape.name.as_str() == info.instance_type);
        let efa = machine::efa_interfaces(&info);
        let held = |all: &Resources| {
            let mut all = all.clone().without_zeros();
            if efa == 0 {
                all.remove(EFA);
            }
            all
        };
        let mut labels = machine::labels(
            &info,
            &purchase,
            shape.map(|shape| &shape.requirements),
            Some(launch.class),
        );
        if launch.is_partitioned() {
            // EC2 chooses the partition; the label is filled in when the node registers.
            labels
                .entry(labels::PLACEMENT_GROUP_PARTITION.into())
                .or_insert_with(|| "".into());
        }
        let launched = Launched {
            provider_id: provider_id::of(&info.zone, &info.id),
            image_id: Some(info.image_id.clone()),
            capacity: shape.map(|shape| held(&shape.capacity)).unwrap_or_default(),
            allocatable: shape.map(|shape| held(shape.allocatable())).unwrap_or_default(),
            labels,
            annotations: self.stamps(launch.class),
        };
        self.services.instances.launched(info);
        launched
    }

    /// What the class was when the instance was launched, so that later changes can be told.
    fn stamps(&self, class: &EC2NodeClass) -> Labels {
        let ca_bundle = self.services.cluster().ca_bundle.unwrap_or_default();
        let mut stamps = BTreeMap::new();
        if let Ok(hash) = class_hash::hash(&class.spec, &ca_bundle) {
            stamps.insert(annotations::EC2_NODE_CLASS_HASH, hash);
            stamps.insert(
                annotations::EC2_NODE_CLASS_HASH_VERSION,
                class_hash::VERSION.as_str().to_owned(),
            );
        }
        if let Some(profile) = class_view::instance_profile(class) {
            stamps.insert(annotations::INSTANCE_PROFILE_NAME, profile.to_owned());
        }
        stamps
            .into_iter()
            .map(|(key, value)| (key.into(), value.into()))
            .collect()
    }

    /// The instance as EC2 will describe it in a moment.
    pub(super) fn instance_of(&self, launch: &Launch<'_>, delivery: &Delivery, market: Market) -> InstanceInfo {
        let chosen = &delivery.group.chosen;
        let zone = chosen.zone.clone().filter(|zone| !zone.is_empty());
        let zone = zone.or_else(|| {
            let subnets = class_view::subnets(launch.class).iter();
            subnets
                .filter(|subnet| subnet.id == chosen.subnet)
                .map(|subnet| subnet.zone.clone())
                .next()
        });
        let zone = zone.unwrap_or_default();
        let instance_type = &delivery.group.instance_type;
        let reservation = launch.reservation(instance_type, &zone);
        let lifecycle = match market {
            Market::CapacityBlock => "capacity-block",
            Market::InterruptibleReservation => "interruptible-capacity-reservation",
            Market::Spot(_) => "spot",
            Market::OnDemand(_) => "",
        };
        InstanceInfo {
            id: delivery.id.clone(),
            private_dns: String::new(),
            state: "pending".to_owned(),
            instance_type: instance_type.clone(),
            image_id: chosen.image_id.clone().unwrap_or_default(),
            subnet: chosen.subnet.clone(),
            security_groups: class_view::security_groups(launch.class),
            tags: launch.tags.clone(),
            launched: Some(self.services.clock.now()),
            spot_request: None,
            lifecycle: lifecycle.to_owned(),
            reservation_preference: reservation
                .as_ref()
                .map_or("", |_| "capacity-reservations-only")
                .to_owned(),
            reservation,
            tenancy: launch::tenancy(&launch.request.requirements).to_owned(),
            placement_group: launch.group.as_ref().map(|group| group.id.clone()),
            partition: launch.partition,
            interfaces: launch.efa_interfaces(instance_type),
            zone,
        }
    }
}

impl Launch<'_> {
    /// The reservation behind the one reserved offering that the type has left in the zone.
    pub fn reservation(&self, instance_type: &str, zone: &str) -> Option<String> {
        if self.capacity_type != CapacityType::Reserved {
            return None;
        }
        let shape = self.types.iter().find(|shape| shape.name.as_str() == instance_type)?;
        let mut offerings = shape.offerings_within(&self.request.requirements);
        let offering = offerings
            .find(|offering| offering.capacity_type == CapacityType::Reserved && offering.zone.as_str() == zone)?;
        launch::label(offering, labels::CAPACITY_RESERVATION_ID).map(str::to_owned)
    }

    fn is_partitioned(&self) -> bool {
        self.group.as_ref().is_some_and(|group| group.strategy == "partition")
    }

    /// Interfaces for EFA are there when the claim asks for them or the class lists its interfaces.
    fn efa_interfaces(&self, instance_type: &str) -> Vec<String> {
        let is_wanted = !self.request.requests.get(EFA).is_zero() || !class_view::interfaces(self.class).is_empty();
        let shape = self.types.iter().find(|shape| shape.name.as_str() == instance_type);
        let count = shape.map_or(0, |shape| shape.capacity.get(EFA).value_ceil());
        let count = usize::try_from(count).unwrap_or(0);
        vec!["efa".to_owned(); if is_wanted { count } else { 0 }]
    }
}
