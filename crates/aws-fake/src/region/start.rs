//! The second half of a launch: capacity is taken, and the instance comes into being.

use std::sync::Arc;

use jiff::Timestamp;

use super::{
    Region,
    instances::{AttachedInterface, AttachedVolume, Health, Instance, Joined, State},
    launch::{Checked, Origin},
    market::{Capacity, Pool},
    reserved::SPREAD_LIMIT,
    templates::{Interface, Volume},
};
use crate::refusal::Refusal;

impl Region {
    /// Launches one instance, or says what is lacking.
    pub fn launch(&mut self, checked: &Checked, origin: &Origin, now: Timestamp) -> Result<String, Refusal> {
        let subnet = self.network.subnet(&checked.subnet);
        if subnet.is_none_or(|subnet| subnet.available == 0) {
            return Err(Refusal::new(
                "InsufficientFreeAddressesInSubnet",
                format!(
                    "There are not enough free addresses in subnet '{}' to satisfy the requested number of instances.",
                    checked.subnet
                ),
            ));
        }
        let partition = self.room_in_group(checked, now)?;
        let reservation = self.take_reservation(checked, now)?;
        if reservation.is_none() {
            if let Some(shortage) = self
                .market
                .shortage(checked.pool())
                .filter(|shortage| shortage.left == 0)
            {
                let message = shortage
                    .message
                    .clone()
                    .unwrap_or_else(|| shortage_text(checked.pool()));
                return Err(Refusal::new(shortage.code.clone(), message));
            }
            self.market.take(checked.pool());
        }
        let instance = self.made(checked, origin, (partition, reservation), now);
        let id = instance.id.clone();
        self.instances.insert(id.clone(), instance);
        Ok(id)
    }

    /// The partition of the new instance, where its group has partitions.
    fn room_in_group(&self, checked: &Checked, now: Timestamp) -> Result<Option<u32>, Refusal> {
        let Some(group) = &checked.group else { return Ok(None) };
        let member = |instance: &&Instance| {
            let same = instance.placement_group.as_ref().is_some_and(|(id, _)| *id == group.id);
            same && instance.state(now) < State::ShuttingDown
        };
        let members = self.instances.values().filter(member);
        match group.strategy.as_str() {
            "spread" => {
                let neighbours = members.filter(|instance| instance.zone == checked.zone).count();
                if neighbours >= SPREAD_LIMIT {
                    return Err(Refusal::new(
                        "InsufficientInstanceCapacity",
                        "You have reached the limit of instances in this spread placement group for this Availability Zone.",
                    ));
                }
                Ok(None)
            }
            "partition" => {
                let next = u32::try_from(members.count()).unwrap_or(0) % group.partitions.max(1) + 1;
                Ok(Some(checked.template.placement.partition.unwrap_or(next)))
            }
            _ => Ok(None),
        }
    }

    fn take_reservation(&mut self, checked: &Checked, now: Timestamp) -> Result<Option<String>, Refusal> {
        let choice = &checked.template.reservation;
        if let Some(target) = &choice.target {
            let missing = || {
                let message = format!("The capacity reservation ID '{target}' does not exist");
                Refusal::new("InvalidCapacityReservationId.NotFound", message)
            };
            let reservation = self.reservations.get_mut(target).ok_or_else(missing)?;
            let fits = reservation.instance_type == checked.fact.name && reservation.zone == checked.zone;
            let serves = fits && reservation.serves(checked.capacity) && reservation.state(now) == "active";
            if !serves || reservation.available == 0 {
                return Err(Refusal::new(
                    "ReservationCapacityExceeded",
                    "The requested reservation does not have sufficient compatible and available capacity for this request.",
                ));
            }
            reservation.available -= 1;
            return Ok(Some(target.clone()));
        }
        match checked.capacity {
            Capacity::CapacityBlock | Capacity::Interruptible => {
                let message = "The launch template names no capacity reservation to launch into.";
                return Err(Refusal::new("InvalidFleetConfig", message));
            }
            Capacity::OnDemand if choice.preference.as_deref().is_none_or(|word| word == "open") => {}
            Capacity::OnDemand | Capacity::Spot => return Ok(None),
        }
        let open = self.reservations.values_mut().find(|reservation| {
            reservation.match_criteria == "open"
                && reservation.serves(checked.capacity)
                && reservation.instance_type == checked.fact.name
                && reservation.zone == checked.zone
                && reservation.available > 0
                && reservation.state(now) == "active"
        });
        Ok(open.map(|reservation| {
            reservation.available -= 1;
            reservation.id.clone()
        }))
    }

    fn made(
        &mut self,
        checked: &Checked,
        origin: &Origin,
        (partition, reservation): (Option<u32>, Option<String>),
        now: Timestamp,
    ) -> Instance {
        let template = &checked.template;
        let mut tags = origin.instance_tags.clone();
        let of_template = template.tags.iter().filter(|(kind, _)| kind == "instance");
        for (key, value) in of_template.flat_map(|(_, own)| own) {
            tags.entry(key.clone()).or_insert_with(|| value.clone());
        }
        if let Some(template) = &origin.template {
            tags.insert("aws:ec2launchtemplate:id".to_owned(), template.clone());
            tags.insert("aws:ec2launchtemplate:version".to_owned(), "1".to_owned());
        }
        if let Some(fleet) = &origin.fleet {
            tags.insert("aws:ec2:fleet-id".to_owned(), fleet.clone());
        }
        let subnet = self.network.subnet(&checked.subnet);
        let (vpc, zone_id) =
            subnet.map_or_else(Default::default, |subnet| (subnet.vpc.clone(), subnet.zone_id.clone()));
        let first = Interface {
            kind: "interface".to_owned(),
            groups: checked.groups.iter().map(|(id, _)| id.clone()).collect(),
            ..Interface::default()
        };
        let wanted = if template.interfaces.is_empty() {
            std::slice::from_ref(&first)
        } else {
            &template.interfaces[..]
        };
        let interfaces = wanted
            .iter()
            .map(|interface| AttachedInterface {
                id: self.ids.ec2("eni"),
                device: interface.device,
                card: interface.card,
                kind: interface.kind.clone(),
                groups: interface.groups.clone(),
            })
            .collect();
        let attached = |volume: &Volume| AttachedVolume {
            id: self.ids.ec2("vol"),
            device: volume.device.clone(),
            gibibytes: volume.gibibytes,
        };
        let volumes = template.volumes.iter().map(attached).collect();
        let running_at = now + self.timing.boot;
        Instance {
            id: self.ids.ec2("i"),
            reservation_id: self.ids.ec2("r"),
            fact: Arc::clone(&checked.fact),
            image: checked.image.clone(),
            architecture: checked.architecture.clone(),
            windows: checked.windows,
            vpc,
            subnet: checked.subnet.clone(),
            zone: checked.zone.clone(),
            zone_id,
            address: self.network.take_address(&checked.subnet),
            capacity: checked.capacity,
            spot_request: (checked.capacity == Capacity::Spot).then(|| self.ids.ec2("sir")),
            tags,
            profile: checked.profile.clone(),
            groups: checked.groups.clone(),
            interfaces,
            volumes,
            monitoring: template.monitoring,
            metadata: template.metadata.clone(),
            user_data: template.user_data.clone(),
            tenancy: template
                .placement
                .tenancy
                .clone()
                .unwrap_or_else(|| "default".to_owned()),
            placement_group: checked
                .group
                .as_ref()
                .map(|group| (group.id.clone(), group.name.clone())),
            partition,
            reservation,
            reservation_preference: template.reservation.preference.clone(),
            client_token: origin.client_token.clone(),
            launched: now,
            running_at,
            visible_at: now + self.timing.propagation,
            reclaimed_at: None,
            end: None,
            health: Health::default(),
            joined: Joined::NotYet,
            told: None,
        }
    }
}

fn shortage_text(pool: Pool<'_>) -> String {
    match pool.capacity {
        Capacity::Spot => "There is no Spot capacity available that matches your request.".to_owned(),
        Capacity::OnDemand | Capacity::CapacityBlock | Capacity::Interruptible => format!(
            "We currently do not have sufficient {} capacity in the Availability Zone you requested ({}). Our system will be \
             working on provisioning additional capacity. You can currently get {} capacity by not specifying an Availability \
             Zone in your request or choosing other zones.",
            pool.instance_type, pool.zone, pool.instance_type
        ),
    }
}
