//! Launch templates on the wire.

use api::aws::ConnectionTracking;
use aws_sdk_ec2::types::{
    CapacityReservationPreference, CapacityReservationTarget, ConnectionTrackingSpecificationRequest, LaunchTemplate,
    LaunchTemplateBlockDeviceMappingRequest, LaunchTemplateCapacityReservationSpecificationRequest,
    LaunchTemplateCpuOptionsRequest, LaunchTemplateEbsBlockDeviceRequest, LaunchTemplateEnclaveOptionsRequest,
    LaunchTemplateIamInstanceProfileSpecificationRequest, LaunchTemplateInstanceMarketOptionsRequest,
    LaunchTemplateInstanceMetadataOptionsRequest, LaunchTemplateInstanceMetadataTagsState,
    LaunchTemplateInstanceNetworkInterfaceSpecificationRequest, LaunchTemplatePlacementRequest,
    LaunchTemplateTagSpecificationRequest, LaunchTemplatesMonitoringRequest, RequestLaunchTemplateData, ResourceType,
};
use provider_aws::ports::{
    Ebs, Interface, MarketType, Metadata, Placement, ReservationPreference, Tags, Template, TemplateData, Volume,
};

use crate::words::{listed, narrow, tags};

pub(super) fn read(template: LaunchTemplate) -> Template {
    Template {
        id: template.launch_template_id.unwrap_or_default(),
        name: template.launch_template_name.unwrap_or_default(),
    }
}

pub(super) fn data(data: &TemplateData) -> RequestLaunchTemplateData {
    RequestLaunchTemplateData::builder()
        .set_tag_specifications(listed(data.tags.iter().map(resource_tags).collect()))
        .set_block_device_mappings(listed(data.volumes.iter().map(volume).collect()))
        .iam_instance_profile(
            LaunchTemplateIamInstanceProfileSpecificationRequest::builder()
                .name(&data.instance_profile)
                .build(),
        )
        .monitoring(
            LaunchTemplatesMonitoringRequest::builder()
                .enabled(data.detailed_monitoring)
                .build(),
        )
        .image_id(&data.image_id)
        .user_data(&data.user_data)
        .metadata_options(metadata(&data.metadata))
        .set_network_interfaces(listed(data.interfaces.iter().map(interface).collect()))
        .placement(placement(&data.placement))
        .enclave_options(
            LaunchTemplateEnclaveOptionsRequest::builder()
                .enabled(data.enclaves)
                .build(),
        )
        .set_cpu_options(data.nested_virtualization.as_ref().map(|switch| {
            LaunchTemplateCpuOptionsRequest::builder()
                .nested_virtualization(switch.as_str().into())
                .build()
        }))
        .set_capacity_reservation_specification(data.reservation.as_ref().map(reservation))
        .set_instance_market_options(data.market.map(market))
        .build()
}

fn resource_tags((kind, wanted): &(&'static str, Tags)) -> LaunchTemplateTagSpecificationRequest {
    LaunchTemplateTagSpecificationRequest::builder()
        .resource_type(ResourceType::from(*kind))
        .set_tags(tags(wanted))
        .build()
}

fn volume(volume: &Volume) -> LaunchTemplateBlockDeviceMappingRequest {
    LaunchTemplateBlockDeviceMappingRequest::builder()
        .set_device_name(volume.device_name.clone())
        .set_ebs(volume.ebs.as_ref().map(ebs))
        .build()
}

fn ebs(ebs: &Ebs) -> LaunchTemplateEbsBlockDeviceRequest {
    LaunchTemplateEbsBlockDeviceRequest::builder()
        .set_delete_on_termination(ebs.delete_on_termination)
        .set_encrypted(ebs.encrypted)
        .set_iops(ebs.iops.map(narrow))
        .set_throughput(ebs.throughput.map(narrow))
        .set_kms_key_id(ebs.kms_key_id.clone())
        .set_snapshot_id(ebs.snapshot_id.clone())
        .set_volume_initialization_rate(ebs.volume_initialization_rate)
        .set_volume_size(ebs.size_gib.map(narrow))
        .set_volume_type(ebs.volume_type.as_deref().map(Into::into))
        .build()
}

/// Instance tags never show in the metadata: an account may switch that on for everything, and then EC2 refuses our
/// tags, whose keys have slashes in them.
fn metadata(metadata: &Metadata) -> LaunchTemplateInstanceMetadataOptionsRequest {
    LaunchTemplateInstanceMetadataOptionsRequest::builder()
        .set_http_endpoint(metadata.endpoint.as_deref().map(Into::into))
        .set_http_protocol_ipv6(metadata.ipv6.as_deref().map(Into::into))
        .set_http_put_response_hop_limit(metadata.hop_limit.map(narrow))
        .set_http_tokens(metadata.tokens.as_deref().map(Into::into))
        .instance_metadata_tags(LaunchTemplateInstanceMetadataTagsState::Disabled)
        .build()
}

fn interface(interface: &Interface) -> LaunchTemplateInstanceNetworkInterfaceSpecificationRequest {
    LaunchTemplateInstanceNetworkInterfaceSpecificationRequest::builder()
        .set_network_card_index(interface.card)
        .device_index(interface.device)
        .set_interface_type(interface.kind.clone())
        .set_groups(listed(interface.groups.clone()))
        .set_associate_public_ip_address(interface.public_ip)
        .set_ipv4_prefix_count(interface.ipv4_prefixes)
        .set_ipv6_prefix_count(interface.ipv6_prefixes)
        .set_primary_ipv6(interface.primary_ipv6.then_some(true))
        .set_ipv6_address_count(interface.primary_ipv6.then_some(1))
        .set_connection_tracking_specification(interface.connection_tracking.as_ref().map(connection_tracking))
        .build()
}

pub(super) fn connection_tracking(tracking: &ConnectionTracking) -> ConnectionTrackingSpecificationRequest {
    ConnectionTrackingSpecificationRequest::builder()
        .set_tcp_established_timeout(tracking.tcp_established_timeout)
        .set_udp_stream_timeout(tracking.udp_stream_timeout)
        .set_udp_timeout(tracking.udp_timeout)
        .build()
}

fn placement(placement: &Placement) -> LaunchTemplatePlacementRequest {
    LaunchTemplatePlacementRequest::builder()
        .tenancy(placement.tenancy.as_str().into())
        .set_group_id(placement.group_id.clone())
        .set_partition_number(placement.partition.map(|number| narrow(number.into())))
        .build()
}

fn reservation(preference: &ReservationPreference) -> LaunchTemplateCapacityReservationSpecificationRequest {
    let request = LaunchTemplateCapacityReservationSpecificationRequest::builder();
    match preference {
        ReservationPreference::None => request.capacity_reservation_preference(CapacityReservationPreference::None),
        ReservationPreference::Only(id) => request
            .capacity_reservation_preference(CapacityReservationPreference::CapacityReservationsOnly)
            .capacity_reservation_target(CapacityReservationTarget::builder().capacity_reservation_id(id).build()),
    }
    .build()
}

fn market(market: MarketType) -> LaunchTemplateInstanceMarketOptionsRequest {
    LaunchTemplateInstanceMarketOptionsRequest::builder()
        .market_type(market.as_str().into())
        .build()
}
