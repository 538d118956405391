//! Where instances can be: zones, subnets, security groups, reservations, placement groups.

use jiff::Timestamp;

use super::{filters, unless_dry, write_tags};
use crate::{
    refusal::Refusal,
    region::{
        Region,
        filter::{admit, admitted},
        network::{ZONES, zone_id},
        reserved::Standing,
    },
    wire::{query::Params, query_page, time, xml::Xml},
};

pub fn zones(region: &Region, params: &Params) -> Result<Xml, Refusal> {
    params.only(&["ZoneName", "ZoneId", "AllAvailabilityZones"])?;
    unless_dry(params)?;
    let (names, ids) = (params.texts("ZoneName"), params.texts("ZoneId"));
    let name = &region.plan.region;
    let all = ZONES
        .iter()
        .map(|letter| (format!("{name}{letter}"), zone_id(name, *letter)));
    let asked = |(name, id): &(String, String)| {
        (names.is_empty() || names.contains(name)) && (ids.is_empty() || ids.contains(id))
    };
    let mut xml = Xml::default();
    xml.items("availabilityZoneInfo", all.filter(asked), |xml, (zone, id)| {
        xml.leaf("zoneName", zone);
        xml.leaf("zoneId", id);
        xml.leaf("zoneState", "available");
        xml.leaf("regionName", name);
        xml.leaf("groupName", name);
        xml.leaf("networkBorderGroup", name);
        xml.leaf("optInStatus", "opt-in-not-required");
        xml.leaf("zoneType", "availability-zone");
    });
    Ok(xml)
}

pub fn subnets(region: &Region, params: &Params) -> Result<Xml, Refusal> {
    params.only(&["Filter", "SubnetId", "MaxResults", "NextToken"])?;
    unless_dry(params)?;
    let asked = params.texts("SubnetId");
    if let Some(unknown) = asked.iter().find(|id| region.network.subnet(id).is_none()) {
        let message = format!("The subnet ID '{unknown}' does not exist");
        return Err(Refusal::new("InvalidSubnetID.NotFound", message));
    }
    let mut found = admitted(&region.network.subnets, &filters(params)?)?;
    found.retain(|subnet| asked.is_empty() || asked.contains(&subnet.id));
    let (found, next) = query_page(found, params)?;
    let plan = &region.plan;
    let mut xml = Xml::default();
    xml.items("subnetSet", found, |xml, subnet| {
        xml.leaf("subnetId", &subnet.id);
        xml.leaf(
            "subnetArn",
            format!("arn:aws:ec2:{}:{}:subnet/{}", plan.region, plan.account, subnet.id),
        );
        xml.leaf("state", "available");
        xml.leaf("ownerId", &plan.account);
        xml.leaf("vpcId", &subnet.vpc);
        xml.leaf("cidrBlock", &subnet.cidr);
        xml.leaf("availableIpAddressCount", subnet.available);
        xml.leaf("availabilityZone", &subnet.zone);
        xml.leaf("availabilityZoneId", &subnet.zone_id);
        xml.leaf("defaultForAz", false);
        xml.leaf("mapPublicIpOnLaunch", false);
        write_tags(xml, &subnet.tags);
    });
    xml.maybe("nextToken", next);
    Ok(xml)
}

pub fn groups(region: &Region, params: &Params) -> Result<Xml, Refusal> {
    params.only(&["Filter", "GroupId", "GroupName", "MaxResults", "NextToken"])?;
    unless_dry(params)?;
    let (ids, names) = (params.texts("GroupId"), params.texts("GroupName"));
    if let Some(unknown) = ids.iter().find(|id| region.network.group(id).is_none()) {
        let message = format!("The security group '{unknown}' does not exist");
        return Err(Refusal::new("InvalidGroup.NotFound", message));
    }
    let mut found = admitted(&region.network.groups, &filters(params)?)?;
    found.retain(|group| {
        (ids.is_empty() || ids.contains(&group.id)) && (names.is_empty() || names.contains(&group.name))
    });
    let (found, next) = query_page(found, params)?;
    let mut xml = Xml::default();
    xml.items("securityGroupInfo", found, |xml, group| {
        xml.leaf("ownerId", &region.plan.account);
        xml.leaf("groupId", &group.id);
        xml.leaf("groupName", &group.name);
        xml.leaf("groupDescription", &group.description);
        xml.leaf("vpcId", &group.vpc);
        write_tags(xml, &group.tags);
    });
    xml.maybe("nextToken", next);
    Ok(xml)
}

pub fn reservations(region: &Region, params: &Params, now: Timestamp) -> Result<Xml, Refusal> {
    params.only(&["Filter", "CapacityReservationId", "MaxResults", "NextToken"])?;
    unless_dry(params)?;
    let asked = params.texts("CapacityReservationId");
    if let Some(unknown) = asked.iter().find(|id| !region.reservations.contains_key(*id)) {
        let message = format!("The capacity reservation ID '{unknown}' does not exist");
        return Err(Refusal::new("InvalidCapacityReservationId.NotFound", message));
    }
    let filters = filters(params)?;
    let mut found = Vec::new();
    for reservation in region.reservations.values() {
        let wanted = asked.is_empty() || asked.contains(&reservation.id);
        if wanted && admit(&Standing { reservation, now }, &filters)? {
            found.push(reservation);
        }
    }
    let (found, next) = query_page(found, params)?;
    let mut xml = Xml::default();
    xml.items("capacityReservationSet", found, |xml, reservation| {
        xml.leaf("capacityReservationId", &reservation.id);
        xml.leaf("capacityReservationArn", &reservation.arn);
        xml.leaf("ownerId", &reservation.owner);
        xml.leaf("instanceType", &reservation.instance_type);
        xml.leaf("instancePlatform", "Linux/UNIX");
        xml.leaf("availabilityZone", &reservation.zone);
        xml.leaf("availabilityZoneId", &reservation.zone_id);
        xml.leaf("tenancy", "default");
        xml.leaf("totalInstanceCount", reservation.total);
        xml.leaf("availableInstanceCount", reservation.available);
        xml.leaf("ebsOptimized", false);
        xml.leaf("ephemeralStorage", false);
        xml.leaf("state", reservation.state(now));
        xml.leaf("startDate", time(reservation.started));
        xml.maybe("endDate", reservation.ends.map(time));
        xml.leaf(
            "endDateType",
            if reservation.ends.is_some() {
                "limited"
            } else {
                "unlimited"
            },
        );
        xml.leaf("instanceMatchCriteria", &reservation.match_criteria);
        xml.leaf("createDate", time(reservation.started));
        xml.leaf("reservationType", &reservation.kind);
        xml.leaf("interruptible", reservation.interruptible);
        write_tags(xml, &reservation.tags);
    });
    xml.maybe("nextToken", next);
    Ok(xml)
}

pub fn placement_groups(region: &Region, params: &Params) -> Result<Xml, Refusal> {
    params.only(&["Filter", "GroupId", "GroupName"])?;
    unless_dry(params)?;
    let (ids, names) = (params.texts("GroupId"), params.texts("GroupName"));
    let groups = || region.placement_groups.values();
    let unknown = ids.iter().find(|id| !region.placement_groups.contains_key(*id));
    let unknown = unknown.or_else(|| names.iter().find(|name| groups().all(|group| group.name != **name)));
    if let Some(unknown) = unknown {
        let message = format!("The Placement Group '{unknown}' is unknown.");
        return Err(Refusal::new("InvalidPlacementGroup.Unknown", message));
    }
    let mut found = admitted(groups(), &filters(params)?)?;
    found.retain(|group| {
        (ids.is_empty() || ids.contains(&group.id)) && (names.is_empty() || names.contains(&group.name))
    });
    let mut xml = Xml::default();
    xml.items("placementGroupSet", found, |xml, group| {
        xml.leaf("groupId", &group.id);
        xml.leaf("groupName", &group.name);
        xml.leaf("strategy", &group.strategy);
        xml.leaf("state", "available");
        if group.strategy == "partition" {
            xml.leaf("partitionCount", group.partitions);
        }
        xml.maybe("spreadLevel", group.spread_level.as_ref());
        write_tags(xml, &group.tags);
    });
    Ok(xml)
}
