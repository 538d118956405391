//! One kind of launch: what EC2 checks before it looks for capacity, and what an instance gets.

use std::sync::Arc;

use jiff::Timestamp;

use super::{
    Region, Tags,
    instances::{AttachedInterface, Health, Instance, Joined},
    market::{self, Capacity, Pool},
    reserved::{PlacementGroup, SPREAD_LIMIT},
    templates::{Interface, ProfileRef, TemplateData},
};
use crate::{facts::InstanceType, refusal::Refusal};

/// What is to be launched, with everything that overrides the template already in it.
#[derive(Clone, Debug)]
pub struct Spec {
    pub instance_type: String,
    pub image: Option<String>,
    pub subnet: Option<String>,
    pub zone: Option<String>,
    pub capacity: Capacity,
    pub template: TemplateData,
}

/// Who asked for it.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    pub instance_tags: Tags,
    pub client_token: Option<String>,
    pub template: Option<String>,
    pub fleet: Option<String>,
}

/// A launch that has passed the checks.
#[derive(Clone, Debug)]
pub struct Checked {
    fact: Arc<InstanceType>,
    image: String,
    architecture: String,
    windows: bool,
    subnet: String,
    zone: String,
    profile: Option<(String, String)>,
    groups: Vec<(String, String)>,
    group: Option<PlacementGroup>,
    capacity: Capacity,
    template: TemplateData,
}

impl Checked {
    pub fn pool(&self) -> Pool<'_> {
        Pool {
            instance_type: &self.fact.name,
            zone: &self.zone,
            capacity: self.capacity,
        }
    }
}

impl Region {
    /// Checks a launch as RunInstances does, capacity aside.
    pub fn check(&self, spec: &Spec, now: Timestamp) -> Result<Checked, Refusal> {
        let fact = market::fact(&spec.instance_type)
            .ok_or_else(|| Refusal::bad_value(format!("Invalid value '{}' for InstanceType.", spec.instance_type)))?;
        let template = &spec.template;
        let image = spec
            .image
            .as_ref()
            .or(template.image.as_ref())
            .ok_or_else(|| Refusal::missing("ImageId"))?;
        if !image.starts_with("ami-") {
            let message = format!("Invalid id: \"{image}\" (expecting \"ami-...\")");
            return Err(Refusal::new("InvalidAMIID.Malformed", message));
        }
        let missing = || {
            Refusal::new(
                "InvalidAMIID.NotFound",
                format!("The image id '[{image}]' does not exist"),
            )
        };
        let known = self.images.by_id.get(image).ok_or_else(missing)?;
        if !fact.runs_on(&known.architecture) {
            return Err(Refusal::bad_value(format!(
                "The architecture '{}' of the specified instance type does not match the architecture '{}' of the specified \
                 AMI. Specify an instance type and an AMI that have matching architectures, and try again.",
                fact.architectures.join(","),
                known.architecture
            )));
        }
        let (subnet, zone) = self.place(spec)?;
        if !market::is_sold(fact, &zone) {
            return Err(Refusal::new(
                "Unsupported",
                format!(
                    "Your requested instance type ({}) is not supported in your requested Availability Zone ({zone}).",
                    fact.name
                ),
            ));
        }
        if spec.capacity == Capacity::Spot && !fact.usage_classes.iter().any(|class| class == "spot") {
            let message = format!("The instance type '{}' is not supported for Spot.", fact.name);
            return Err(Refusal::new("Unsupported", message));
        }
        Ok(Checked {
            profile: self.profile_of(template, now)?,
            groups: self.groups_of(template)?,
            group: self.placement_group_of(template, fact)?,
            image: image.clone(),
            architecture: known.architecture.clone(),
            windows: known.windows,
            fact: Arc::clone(fact),
            subnet,
            zone,
            capacity: spec.capacity,
            template: template.clone(),
        })
    }

    fn place(&self, spec: &Spec) -> Result<(String, String), Refusal> {
        let of_interface = || {
            spec.template
                .interfaces
                .iter()
                .find_map(|interface| interface.subnet.as_ref())
        };
        let Some(id) = spec.subnet.as_ref().or_else(of_interface) else {
            let message = "No default subnet for this Availability Zone; the request must name a subnet";
            return Err(Refusal::new("MissingInput", message));
        };
        let missing = || {
            Refusal::new(
                "InvalidSubnetID.NotFound",
                format!("The subnet ID '{id}' does not exist"),
            )
        };
        let subnet = self.network.subnet(id).ok_or_else(missing)?;
        if spec.zone.as_ref().is_some_and(|zone| *zone != subnet.zone) {
            return Err(Refusal::bad_value(format!(
                "The subnet '{id}' is not in the Availability Zone of the request."
            )));
        }
        Ok((subnet.id.clone(), subnet.zone.clone()))
    }

    fn profile_of(&self, template: &TemplateData, now: Timestamp) -> Result<Option<(String, String)>, Refusal> {
        let (asked, found) = match &template.profile {
            None => return Ok(None),
            Some(ProfileRef::Name(name)) => (name, self.identity.profiles.get(name)),
            Some(ProfileRef::Arn(arn)) => {
                let mut profiles = self.identity.profiles.values();
                (arn, profiles.find(|profile| profile.arn == *arn))
            }
        };
        // IAM tells EC2 of new profiles with a delay.
        let found = found.filter(|profile| profile.created + self.timing.propagation <= now);
        let profile = found.ok_or_else(|| {
            Refusal::bad_value(format!(
                "Value ({asked}) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name"
            ))
        })?;
        Ok(Some((profile.arn.clone(), profile.id.clone())))
    }

    fn groups_of(&self, template: &TemplateData) -> Result<Vec<(String, String)>, Refusal> {
        let of_interfaces = template
            .interfaces
            .first()
            .map_or(&[][..], |interface| &interface.groups);
        let ids = if of_interfaces.is_empty() {
            &template.groups[..]
        } else {
            of_interfaces
        };
        ids.iter()
            .map(|id| {
                let missing = || {
                    Refusal::new(
                        "InvalidGroup.NotFound",
                        format!("The security group '{id}' does not exist"),
                    )
                };
                let group = self.network.group(id).ok_or_else(missing)?;
                Ok((group.id.clone(), group.name.clone()))
            })
            .collect()
    }

    fn placement_group_of(
        &self,
        template: &TemplateData,
        fact: &InstanceType,
    ) -> Result<Option<PlacementGroup>, Refusal> {
        let placement = &template.placement;
        let Some(asked) = placement.group_id.as_ref().or(placement.group_name.as_ref()) else {
            return Ok(None);
        };
        let named = |group: &&PlacementGroup| group.id == *asked || group.name == *asked;
        let group = self.placement_groups.values().find(named).ok_or_else(|| {
            Refusal::new(
                "InvalidPlacementGroup.Unknown",
                format!("The Placement Group '{asked}' is unknown."),
            )
        })?;
        if !fact.placement_strategies.contains(&group.strategy) {
            return Err(Refusal::new(
                "Unsupported",
                format!(
                    "The instance type '{}' does not support the placement strategy '{}'.",
                    fact.name, group.strategy
                ),
            ));
        }
        Ok(Some(group.clone()))
    }

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
            same && instance.state(now) < super::instances::State::ShuttingDown
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
            if !fits || reservation.state(now) != "active" || reservation.available == 0 {
                return Err(Refusal::new(
                    "ReservationCapacityExceeded",
                    "The requested reservation does not have sufficient compatible and available capacity for this request.",
                ));
            }
            reservation.available -= 1;
            return Ok(Some(target.clone()));
        }
        let takes_open =
            checked.capacity == Capacity::OnDemand && choice.preference.as_deref().is_none_or(|word| word == "open");
        if !takes_open {
            return Ok(None);
        }
        let open = self.reservations.values_mut().find(|reservation| {
            reservation.match_criteria == "open"
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
        let devices = template.volumes.iter().map(|volume| volume.device.clone());
        let volumes = devices.map(|device| (device, self.ids.ec2("vol"))).collect();
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
