//! CreateFleet and RunInstances.

use jiff::Timestamp;

use super::{
    instances::write_instance,
    tags_for,
    templates::{decode, reference},
    unless_dry,
};
use crate::{
    refusal::Refusal,
    region::{
        Region,
        fleet::{Choice, FleetAnswer, FleetGroup, FleetRequest, Override, Strategy, Target},
        launch::{Origin, Spec},
        market::Capacity,
        templates::TemplateData,
    },
    wire::{query::Params, xml::Xml},
};

pub fn create(region: &mut Region, params: &Params, now: Timestamp) -> Result<Xml, Refusal> {
    params.only(&[
        "ClientToken",
        "Context",
        "LaunchTemplateConfigs",
        "OnDemandOptions",
        "ReservedCapacityOptions",
        "SpotOptions",
        "TagSpecification",
        "TargetCapacitySpecification",
        "Type",
    ])?;
    let kind = params.text("Type").unwrap_or("maintain");
    if kind != "instant" {
        return Err(Refusal::bad_value(format!(
            "aws-fake runs fleets of type instant only, not '{kind}'"
        )));
    }
    let request = request(params)?;
    for group in &request.groups {
        region.template(&group.template, now)?;
    }
    unless_dry(params)?;
    Ok(write(&region.create_fleet(&request, now)?))
}

fn request(params: &Params) -> Result<FleetRequest, Refusal> {
    let group = |config: &Params| {
        let template = config.get("LaunchTemplateSpecification");
        let template = template.ok_or_else(|| Refusal::missing("LaunchTemplateSpecification"))?;
        Ok(FleetGroup {
            template: reference(template)?,
            overrides: config
                .list("Overrides")
                .into_iter()
                .map(over)
                .collect::<Result<_, _>>()?,
        })
    };
    let groups: Vec<FleetGroup> = params
        .list("LaunchTemplateConfigs")
        .into_iter()
        .map(group)
        .collect::<Result<_, Refusal>>()?;
    if groups.is_empty() {
        return Err(Refusal::missing("LaunchTemplateConfigs"));
    }
    Ok(FleetRequest {
        groups,
        targets: targets(params)?,
        instance_tags: tags_for(params, "instance"),
        client_token: params.text("ClientToken").map(str::to_owned),
    })
}

fn over(params: &Params) -> Result<Override, Refusal> {
    params.only(&["InstanceType", "SubnetId", "AvailabilityZone", "ImageId", "Priority"])?;
    let owned = |name: &str| params.text(name).map(str::to_owned);
    Ok(Override {
        instance_type: owned("InstanceType"),
        subnet: owned("SubnetId"),
        zone: owned("AvailabilityZone"),
        image: owned("ImageId"),
        priority: owned("Priority"),
    })
}

fn targets(params: &Params) -> Result<Vec<Target>, Refusal> {
    for options in ["OnDemandOptions", "SpotOptions"] {
        params
            .get(options)
            .map_or(Ok(()), |options| options.only(&["AllocationStrategy"]))?;
    }
    let number = |name: &str| params.number::<u32>(&format!("TargetCapacitySpecification.{name}"));
    let total = number("TotalTargetCapacity")?
        .ok_or_else(|| Refusal::missing("TargetCapacitySpecification.TotalTargetCapacity"))?;
    let on_demand = Strategy::for_on_demand(params.text("OnDemandOptions.AllocationStrategy"))?;
    let spot = Strategy::for_spot(params.text("SpotOptions.AllocationStrategy"))?;
    let of = |capacity, count| Target {
        capacity,
        count,
        strategy: if capacity == Capacity::Spot { spot } else { on_demand },
    };
    let fixed = [
        of(Capacity::OnDemand, number("OnDemandTargetCapacity")?.unwrap_or(0)),
        of(Capacity::Spot, number("SpotTargetCapacity")?.unwrap_or(0)),
    ];
    let rest = total.saturating_sub(fixed.iter().map(|target| target.count).sum());
    let capacity = match params.text("TargetCapacitySpecification.DefaultTargetCapacityType") {
        None | Some("on-demand") => Capacity::OnDemand,
        Some("spot") => Capacity::Spot,
        Some("capacity-block") => Capacity::CapacityBlock,
        Some("reserved-capacity") => Capacity::Interruptible,
        Some(other) => {
            let message = format!("Invalid value '{other}' for DefaultTargetCapacityType");
            return Err(Refusal::bad_value(message));
        }
    };
    let all = fixed.into_iter().chain([of(capacity, rest)]);
    Ok(all.filter(|target| target.count > 0).collect())
}

fn write(answer: &FleetAnswer) -> Xml {
    let mut xml = Xml::default();
    xml.leaf("fleetId", &answer.id);
    xml.items("errorSet", &answer.errors, |xml, error| {
        write_choice(xml, &error.choice);
        xml.leaf("lifecycle", error.choice.capacity.lifecycle());
        xml.leaf("errorCode", &error.refusal.code);
        xml.leaf("errorMessage", &error.refusal.message);
    });
    xml.items("fleetInstanceSet", &answer.instances, |xml, group| {
        write_choice(xml, &group.choice);
        xml.leaf("lifecycle", group.choice.capacity.lifecycle());
        xml.words("instanceIds", &group.ids);
        xml.leaf("instanceType", &group.instance_type);
    });
    xml
}

fn write_choice(xml: &mut Xml, choice: &Choice) {
    xml.node("launchTemplateAndOverrides", |xml| {
        xml.node("launchTemplateSpecification", |xml| {
            xml.leaf("launchTemplateId", &choice.template_id);
            xml.leaf("version", 1);
        });
        xml.node("overrides", |xml| {
            xml.maybe("instanceType", choice.over.instance_type.as_ref());
            xml.maybe("subnetId", choice.over.subnet.as_ref());
            xml.maybe("availabilityZone", choice.over.zone.as_ref());
            xml.maybe("imageId", choice.over.image.as_ref());
            xml.maybe("priority", choice.over.priority.as_ref());
        });
    });
}

pub fn run(region: &mut Region, params: &Params, now: Timestamp) -> Result<Xml, Refusal> {
    params.only(&[
        "BlockDeviceMapping",
        "CapacityReservationSpecification",
        "ClientToken",
        "IamInstanceProfile",
        "ImageId",
        "InstanceMarketOptions",
        "InstanceType",
        "LaunchTemplate",
        "MaxCount",
        "MetadataOptions",
        "MinCount",
        "Monitoring",
        "NetworkInterface",
        "Placement",
        "SecurityGroupId",
        "SubnetId",
        "TagSpecification",
        "UserData",
    ])?;
    let own = decode(params)?;
    own.check()?;
    let named = params.get("LaunchTemplate").map(reference).transpose()?;
    let template = named.as_ref().map(|named| region.template(named, now)).transpose()?;
    let template_id = template.map(|template| template.id.clone());
    let data = overlaid(template.map(|template| template.data.clone()).unwrap_or_default(), own);
    let spec = Spec {
        instance_type: data
            .instance_type
            .clone()
            .ok_or_else(|| Refusal::missing("InstanceType"))?,
        image: None,
        subnet: params.text("SubnetId").map(str::to_owned),
        zone: None,
        capacity: if data.market.as_deref() == Some("spot") {
            Capacity::Spot
        } else {
            Capacity::OnDemand
        },
        template: data,
    };
    let checked = region.check(&spec, now)?;
    let least = params
        .number::<u32>("MinCount")?
        .ok_or_else(|| Refusal::missing("MinCount"))?;
    let most = params
        .number::<u32>("MaxCount")?
        .ok_or_else(|| Refusal::missing("MaxCount"))?;
    unless_dry(params)?;
    let origin = Origin {
        instance_tags: tags_for(params, "instance"),
        client_token: params.text("ClientToken").map(str::to_owned),
        template: template_id,
        fleet: None,
    };
    let mut ids: Vec<String> = Vec::new();
    while ids.len() < most as usize {
        match region.launch(&checked, &origin, now) {
            Ok(id) => ids.push(id),
            Err(_) if ids.len() >= least as usize => break,
            Err(refusal) => {
                // All or nothing: EC2 takes back what it began.
                for id in ids {
                    region.terminate(&id, "Client.InternalError", "The launch was taken back.", now);
                }
                return Err(refusal);
            }
        }
    }
    let mut xml = Xml::default();
    let launched = ids.iter().filter_map(|id| region.instances.get(id));
    xml.maybe(
        "reservationId",
        launched.clone().next().map(|instance| &instance.reservation_id),
    );
    xml.leaf("ownerId", &region.plan.account);
    xml.items("instancesSet", launched, |xml, instance| {
        write_instance(xml, instance, region, now);
    });
    Ok(xml)
}

/// What the call itself says counts more than what the template says.
fn overlaid(template: TemplateData, own: TemplateData) -> TemplateData {
    let mut interfaces = own.interfaces;
    for interface in &mut interfaces {
        // An interface of the call is the template's with the same place, changed.
        let same = template
            .interfaces
            .iter()
            .find(|old| (old.card, old.device) == (interface.card, interface.device));
        if let Some(old) = same.filter(|_| interface.groups.is_empty()) {
            interface.groups.clone_from(&old.groups);
        }
    }
    TemplateData {
        image: own.image.or(template.image),
        instance_type: own.instance_type.or(template.instance_type),
        user_data: own.user_data.or(template.user_data),
        profile: own.profile.or(template.profile),
        interfaces: if interfaces.is_empty() {
            template.interfaces
        } else {
            interfaces
        },
        groups: if own.groups.is_empty() {
            template.groups
        } else {
            own.groups
        },
        volumes: if own.volumes.is_empty() {
            template.volumes
        } else {
            own.volumes
        },
        market: own.market.or(template.market),
        monitoring: own.monitoring || template.monitoring,
        ..template
    }
}
