//! Instances and their health.

use aws_sdk_ec2::types;
use provider_aws::ports::{EventInfo, InstanceInfo, InstanceStatusInfo, StateChange, StatusDetail};

use crate::words::{read_tags, timestamp, word};

pub(super) fn read(instance: types::Instance) -> InstanceInfo {
    let placement = instance.placement.as_ref();
    let reservation = instance.capacity_reservation_specification.as_ref();
    let groups = instance.security_groups.iter().flatten();
    let interfaces = instance.network_interfaces.iter().flatten();
    InstanceInfo {
        state: state(instance.state.as_ref()),
        instance_type: word(instance.instance_type.as_ref()),
        zone: placement
            .and_then(|placement| placement.availability_zone.clone())
            .unwrap_or_default(),
        security_groups: groups.filter_map(|group| group.group_id.clone()).collect(),
        launched: instance.launch_time.and_then(timestamp),
        lifecycle: word(instance.instance_lifecycle.as_ref()),
        reservation_preference: word(
            reservation.and_then(|reservation| reservation.capacity_reservation_preference.as_ref()),
        ),
        tenancy: word(placement.and_then(|placement| placement.tenancy.as_ref())),
        placement_group: placement
            .and_then(|placement| placement.group_id.clone())
            .filter(|id| !id.is_empty()),
        // Partitions count from 1; EC2 writes 0 for none.
        partition: placement
            .and_then(|placement| placement.partition_number)
            .and_then(|number| u32::try_from(number).ok())
            .filter(|number| *number > 0),
        interfaces: interfaces
            .filter_map(|interface| interface.interface_type.clone())
            .collect(),
        id: instance.instance_id.unwrap_or_default(),
        private_dns: instance.private_dns_name.unwrap_or_default(),
        image_id: instance.image_id.unwrap_or_default(),
        subnet: instance.subnet_id.unwrap_or_default(),
        tags: read_tags(instance.tags),
        spot_request: instance.spot_instance_request_id.filter(|id| !id.is_empty()),
        reservation: instance.capacity_reservation_id.filter(|id| !id.is_empty()),
    }
}

fn state(state: Option<&types::InstanceState>) -> String {
    word(state.and_then(|state| state.name.as_ref()))
}

pub(super) fn state_change(change: types::InstanceStateChange) -> StateChange {
    StateChange {
        state: state(change.current_state.as_ref()),
        id: change.instance_id.unwrap_or_default(),
    }
}

pub(super) fn status(status: types::InstanceStatus) -> InstanceStatusInfo {
    let events = status.events.into_iter().flatten();
    InstanceStatusInfo {
        id: status.instance_id.unwrap_or_default(),
        instance: details(status.instance_status),
        system: details(status.system_status),
        events: events
            .map(|event| EventInfo {
                code: word(event.code.as_ref()),
            })
            .collect(),
    }
}

fn details(summary: Option<types::InstanceStatusSummary>) -> Vec<StatusDetail> {
    let details = summary.and_then(|summary| summary.details).into_iter().flatten();
    details
        .map(|detail| StatusDetail {
            status: word(detail.status.as_ref()),
            impaired_since: detail.impaired_since.and_then(timestamp),
        })
        .collect()
}
