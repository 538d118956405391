//! Instances: described, examined, tagged, ended.

use jiff::{SignedDuration, Timestamp};

use super::{filters, tags, unless_dry, write_tags};
use crate::{
    refusal::Refusal,
    region::{
        Region, Tags,
        filter::{Filtered, admit},
        instances::{Instance, State},
        market::Capacity,
    },
    wire::{query::Params, query_page, time, xml::Xml},
};

pub fn describe(region: &Region, params: &Params, now: Timestamp) -> Result<Xml, Refusal> {
    params.only(&["Filter", "InstanceId", "MaxResults", "NextToken"])?;
    unless_dry(params)?;
    let ids = params.texts("InstanceId");
    if !ids.is_empty() && params.text("MaxResults").is_some() {
        return Err(Refusal::new(
            "InvalidParameterCombination",
            "The parameter instancesSet cannot be used with the parameter maxResults",
        ));
    }
    let found = region.instances(&ids, &filters(params)?, now)?;
    let (found, next) = query_page(found, params)?;
    let mut xml = Xml::default();
    xml.items("reservationSet", found, |xml, instance| {
        xml.leaf("reservationId", &instance.reservation_id);
        xml.leaf("ownerId", &region.plan.account);
        xml.items("instancesSet", [instance], |xml, instance| {
            write_instance(xml, instance, region, now);
        });
    });
    xml.maybe("nextToken", next);
    Ok(xml)
}

fn write_state(xml: &mut Xml, name: &str, state: State) {
    xml.node(name, |xml| {
        xml.leaf("code", state.code());
        xml.leaf("name", state.name());
    });
}

pub fn write_instance(xml: &mut Xml, instance: &Instance, region: &Region, now: Timestamp) {
    let state = instance.state(now);
    let gone = state == State::Terminated;
    xml.leaf("instanceId", &instance.id);
    xml.leaf("imageId", &instance.image);
    write_state(xml, "instanceState", state);
    // What has ended has neither name nor address any more.
    xml.leaf(
        "privateDnsName",
        if gone {
            String::new()
        } else {
            instance.private_dns(&region.plan.region)
        },
    );
    xml.leaf("instanceType", &instance.fact.name);
    xml.leaf("launchTime", time(instance.launched));
    xml.node("placement", |xml| {
        xml.leaf("availabilityZone", &instance.zone);
        xml.leaf("availabilityZoneId", &instance.zone_id);
        xml.leaf(
            "groupName",
            instance.placement_group.as_ref().map_or("", |(_, name)| name.as_str()),
        );
        xml.maybe("groupId", instance.placement_group.as_ref().map(|(id, _)| id));
        xml.maybe("partitionNumber", instance.partition);
        xml.leaf("tenancy", &instance.tenancy);
    });
    xml.node("monitoring", |xml| {
        xml.leaf("state", if instance.monitoring { "enabled" } else { "disabled" });
    });
    if !gone {
        xml.leaf("subnetId", &instance.subnet);
        xml.leaf("vpcId", &instance.vpc);
        xml.leaf("privateIpAddress", &instance.address);
    }
    xml.items("groupSet", &instance.groups, |xml, (id, name)| {
        xml.leaf("groupId", id);
        xml.leaf("groupName", name);
    });
    if let Some(end) = &instance.end {
        xml.node("stateReason", |xml| {
            xml.leaf("code", end.code);
            xml.leaf("message", &end.message);
        });
    }
    xml.leaf("architecture", &instance.architecture);
    xml.maybe("platform", instance.windows.then_some("windows"));
    xml.leaf("rootDeviceType", "ebs");
    xml.items(
        "blockDeviceMapping",
        instance.volumes.iter().filter(|_| !gone),
        |xml, volume| {
            xml.leaf("deviceName", &volume.device);
            xml.node("ebs", |xml| {
                xml.leaf("volumeId", &volume.id);
                xml.leaf("status", "attached");
                xml.leaf("deleteOnTermination", true);
            });
        },
    );
    xml.leaf("virtualizationType", "hvm");
    xml.maybe(
        "instanceLifecycle",
        (instance.capacity != Capacity::OnDemand).then(|| instance.capacity.lifecycle()),
    );
    xml.maybe("spotInstanceRequestId", instance.spot_request.as_ref());
    xml.maybe("clientToken", instance.client_token.as_ref());
    write_tags(xml, &instance.tags);
    xml.maybe("hypervisor", instance.fact.hypervisor.as_ref());
    write_interfaces(xml, instance);
    if let Some((arn, id)) = &instance.profile {
        xml.node("iamInstanceProfile", |xml| {
            xml.leaf("arn", arn);
            xml.leaf("id", id);
        });
    }
    // Instances outlive a reservation that has ended, and are then on-demand.
    let reservation = instance.reservation.as_ref().filter(|id| {
        let known = region.reservations.get(*id);
        known.is_some_and(|reservation| reservation.state(now) == "active")
    });
    xml.maybe("capacityReservationId", reservation);
    xml.node("capacityReservationSpecification", |xml| {
        xml.leaf(
            "capacityReservationPreference",
            instance.reservation_preference.as_deref().unwrap_or("open"),
        );
        if let Some(id) = reservation.filter(|_| instance.reservation_preference.is_some()) {
            xml.node("capacityReservationTarget", |xml| xml.leaf("capacityReservationId", id));
        }
    });
    xml.node("metadataOptions", |xml| {
        xml.leaf("state", "applied");
        for (name, value) in &instance.metadata {
            let (first, rest) = name.split_at(1);
            xml.leaf(&format!("{}{rest}", first.to_lowercase()), value);
        }
    });
}

fn write_interfaces(xml: &mut Xml, instance: &Instance) {
    let name = |id: &String| {
        let group = instance.groups.iter().find(|(known, _)| known == id);
        group.map_or("", |(_, name)| name.as_str())
    };
    xml.items("networkInterfaceSet", &instance.interfaces, |xml, interface| {
        xml.leaf("networkInterfaceId", &interface.id);
        xml.leaf("subnetId", &instance.subnet);
        xml.leaf("vpcId", &instance.vpc);
        xml.leaf("status", "in-use");
        xml.leaf("interfaceType", &interface.kind);
        if (interface.card, interface.device) == (0, 0) {
            xml.leaf("privateIpAddress", &instance.address);
        }
        xml.items("groupSet", &interface.groups, |xml, id| {
            xml.leaf("groupId", id);
            xml.leaf("groupName", name(id));
        });
        xml.node("attachment", |xml| {
            xml.leaf("deviceIndex", interface.device);
            xml.leaf("networkCardIndex", interface.card);
            xml.leaf("status", "attached");
            xml.leaf("deleteOnTermination", true);
        });
    });
}

pub fn terminate(region: &mut Region, params: &Params, now: Timestamp) -> Result<Xml, Refusal> {
    params.only(&["InstanceId", "Force", "SkipOsShutdown"])?;
    let ids = params.texts("InstanceId");
    if ids.is_empty() {
        return Err(Refusal::missing("InstanceId"));
    }
    let before: Vec<(String, State)> = region
        .known(&ids, now)?
        .into_iter()
        .map(|instance| (instance.id.clone(), instance.state(now)))
        .collect();
    unless_dry(params)?;
    for id in &ids {
        region.terminate(
            id,
            "Client.UserInitiatedShutdown",
            "Client.UserInitiatedShutdown: User initiated shutdown",
            now,
        );
    }
    let mut xml = Xml::default();
    xml.items("instancesSet", before, |xml, (id, previous)| {
        let current = region
            .instances
            .get(&id)
            .map_or(State::Terminated, |instance| instance.state(now));
        xml.leaf("instanceId", id);
        write_state(xml, "currentState", current);
        write_state(xml, "previousState", previous);
    });
    Ok(xml)
}

pub fn tag(region: &mut Region, params: &Params, now: Timestamp) -> Result<Xml, Refusal> {
    params.only(&["ResourceId", "Tag"])?;
    let (ids, tags) = (params.texts("ResourceId"), tags(params));
    if tags.is_empty() {
        return Err(Refusal::missing("Tag"));
    }
    if let Some(reserved) = tags.keys().find(|key| key.starts_with("aws:")) {
        return Err(Refusal::bad_value(format!(
            "Tag keys starting with 'aws:' are reserved for internal use: {reserved}"
        )));
    }
    for id in &ids {
        region.tags_mut(id, now)?;
    }
    unless_dry(params)?;
    for id in &ids {
        region.tags_mut(id, now)?.extend(tags.clone());
    }
    let mut xml = Xml::default();
    xml.leaf("return", true);
    Ok(xml)
}

/// The status of an instance as filters see it.
struct Status<'a> {
    instance: &'a Instance,
    state: State,
}

impl Filtered for Status<'_> {
    fn tags(&self) -> &Tags {
        &self.instance.tags
    }

    fn field(&self, name: &str) -> Option<Vec<String>> {
        let health = &self.instance.health;
        Some(match name {
            "instance-status.status" => vec![word(health.instance_impaired_since).to_owned()],
            "system-status.status" => vec![word(health.system_impaired_since).to_owned()],
            "event.code" => health.events.iter().map(|event| event.code.clone()).collect(),
            "instance-state-name" => vec![self.state.name().to_owned()],
            "availability-zone" => vec![self.instance.zone.clone()],
            _ => return None,
        })
    }
}

fn word(impaired_since: Option<Timestamp>) -> &'static str {
    if impaired_since.is_some() { "impaired" } else { "ok" }
}

pub fn status(region: &Region, params: &Params, now: Timestamp) -> Result<Xml, Refusal> {
    params.only(&["Filter", "InstanceId", "IncludeAllInstances", "MaxResults", "NextToken"])?;
    unless_dry(params)?;
    let filters = filters(params)?;
    let mut found = Vec::new();
    for instance in region.instances(&params.texts("InstanceId"), &[], now)? {
        let state = instance.state(now);
        let shown = state == State::Running || params.flag("IncludeAllInstances");
        if shown && admit(&Status { instance, state }, &filters)? {
            found.push((instance, state));
        }
    }
    let (found, next) = query_page(found, params)?;
    let mut xml = Xml::default();
    xml.items("instanceStatusSet", found, |xml, (instance, state)| {
        xml.leaf("instanceId", &instance.id);
        xml.leaf("availabilityZone", &instance.zone);
        xml.leaf("availabilityZoneId", &instance.zone_id);
        if !instance.health.events.is_empty() {
            xml.items("eventsSet", &instance.health.events, |xml, event| {
                xml.leaf("instanceEventId", &event.id);
                xml.leaf("code", &event.code);
                xml.leaf("description", &event.description);
                xml.leaf("notBefore", time(event.not_before));
                xml.leaf("notAfter", time(event.not_before + SignedDuration::from_hours(1)));
            });
        }
        write_state(xml, "instanceState", state);
        write_health(xml, "systemStatus", instance.health.system_impaired_since);
        write_health(xml, "instanceStatus", instance.health.instance_impaired_since);
    });
    xml.maybe("nextToken", next);
    Ok(xml)
}

fn write_health(xml: &mut Xml, name: &str, impaired_since: Option<Timestamp>) {
    xml.node(name, |xml| {
        xml.leaf("status", word(impaired_since));
        xml.items("details", [impaired_since], |xml, since| {
            xml.leaf("name", "reachability");
            xml.leaf("status", if since.is_some() { "failed" } else { "passed" });
            xml.maybe("impairedSince", since.map(time));
        });
    });
}
