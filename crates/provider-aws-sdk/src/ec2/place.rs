//! Where instances can go and what they are made from: subnets, groups, images, reservations, offerings, prices.

use aws_sdk_ec2::types;
use provider_aws::ports::{
    ImageInfo, PlacementGroupInfo, ReservationInfo, SecurityGroupInfo, SpotPrice, SubnetInfo, TypeOffering,
};

use crate::words::{count, timestamp, word};

pub(super) fn subnet(subnet: types::Subnet) -> SubnetInfo {
    SubnetInfo {
        id: subnet.subnet_id.unwrap_or_default(),
        zone: subnet.availability_zone.unwrap_or_default(),
        zone_id: subnet.availability_zone_id.unwrap_or_default(),
        available_addresses: i64::from(subnet.available_ip_address_count.unwrap_or(0)),
    }
}

pub(super) fn security_group(group: types::SecurityGroup) -> SecurityGroupInfo {
    SecurityGroupInfo {
        id: group.group_id.unwrap_or_default(),
        name: group.group_name.unwrap_or_default(),
    }
}

pub(super) fn image(image: types::Image) -> ImageInfo {
    ImageInfo {
        architecture: word(image.architecture.as_ref()),
        id: image.image_id.unwrap_or_default(),
        name: image.name.unwrap_or_default(),
        created: image.creation_date.unwrap_or_default(),
        deprecated_at: image.deprecation_time.filter(|time| !time.is_empty()),
    }
}

pub(super) fn reservation(reservation: types::CapacityReservation) -> ReservationInfo {
    ReservationInfo {
        match_criteria: word(reservation.instance_match_criteria.as_ref()),
        reservation_type: word(reservation.reservation_type.as_ref()),
        id: reservation.capacity_reservation_id.unwrap_or_default(),
        zone: reservation.availability_zone.unwrap_or_default(),
        instance_type: reservation.instance_type.unwrap_or_default(),
        owner: reservation.owner_id.unwrap_or_default(),
        interruptible: reservation.interruptible.unwrap_or(false),
        ends: reservation.end_date.and_then(timestamp),
        available: count(reservation.available_instance_count),
    }
}

pub(super) fn placement_group(group: types::PlacementGroup) -> PlacementGroupInfo {
    PlacementGroupInfo {
        strategy: word(group.strategy.as_ref()),
        spread_level: group.spread_level.map(|level| level.as_str().to_owned()),
        id: group.group_id.unwrap_or_default(),
        name: group.group_name.unwrap_or_default(),
        partitions: count(group.partition_count),
    }
}

pub(super) fn offering(offering: types::InstanceTypeOffering) -> TypeOffering {
    TypeOffering {
        instance_type: word(offering.instance_type.as_ref()),
        zone: offering.location.unwrap_or_default(),
    }
}

/// A record without a time or a readable price says nothing.
pub(super) fn spot_price(price: types::SpotPrice) -> Option<SpotPrice> {
    price.timestamp?;
    Some(SpotPrice {
        instance_type: word(price.instance_type.as_ref()),
        zone: price.availability_zone?,
        price: price.spot_price?.parse().ok()?,
    })
}
