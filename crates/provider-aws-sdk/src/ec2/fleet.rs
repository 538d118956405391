//! Fleets on the wire, and the launch that is only tried.

use aws_sdk_ec2::{
    operation::{
        create_fleet::{CreateFleetOutput, builders::CreateFleetFluentBuilder},
        run_instances::builders::RunInstancesFluentBuilder,
    },
    types::{
        CreateFleetError, CreateFleetInstance, FleetLaunchTemplateConfigRequest, FleetLaunchTemplateOverrides,
        FleetLaunchTemplateOverridesRequest, FleetLaunchTemplateSpecificationRequest, FleetReservationType, FleetType,
        InstanceNetworkInterfaceSpecification, LaunchTemplateAndOverridesResponse, LaunchTemplateSpecification,
        OnDemandOptionsRequest, ReservedCapacityOptionsRequest, ResourceType, SpotOptionsRequest,
        TargetCapacitySpecificationRequest,
    },
};
use provider_aws::{
    error::AwsError,
    ports::{
        DryLaunch, FleetAnswer, FleetError, FleetGroup, FleetInstances, FleetOverride, FleetRequest, Interface, Market,
    },
};

use super::template::connection_tracking;
use crate::words::{listed, narrow, tagged, word};

/// Of a template, whatever its version is by then.
const LATEST: &str = "$Latest";

pub(super) fn request(call: CreateFleetFluentBuilder, request: &FleetRequest) -> CreateFleetFluentBuilder {
    let target = TargetCapacitySpecificationRequest::builder()
        .total_target_capacity(narrow(request.count.into()))
        .default_target_capacity_type(request.market.target().into());
    let call = call
        .r#type(FleetType::Instant)
        .set_dry_run(request.dry_run.then_some(true))
        .set_context(request.context.clone())
        .set_client_token(request.client_token.clone())
        .set_launch_template_configs(Some(request.groups.iter().map(group).collect()))
        .target_capacity_specification(target.build())
        .set_tag_specifications(tagged(
            &[ResourceType::Instance, ResourceType::Volume, ResourceType::Fleet],
            &request.tags,
        ));
    let strategy = request.market.strategy();
    match request.market {
        Market::Spot(_) => call.spot_options(
            SpotOptionsRequest::builder()
                .set_allocation_strategy(strategy.map(Into::into))
                .build(),
        ),
        Market::OnDemand(_) => call.on_demand_options(
            OnDemandOptionsRequest::builder()
                .set_allocation_strategy(strategy.map(Into::into))
                .build(),
        ),
        Market::CapacityBlock => call,
        Market::InterruptibleReservation => call.reserved_capacity_options(
            ReservedCapacityOptionsRequest::builder()
                .reservation_types(FleetReservationType::InterruptibleCapacityReservation)
                .build(),
        ),
    }
}

fn group(group: &FleetGroup) -> FleetLaunchTemplateConfigRequest {
    let template = FleetLaunchTemplateSpecificationRequest::builder()
        .launch_template_name(&group.template_name)
        .version(group.version.as_deref().unwrap_or(LATEST));
    FleetLaunchTemplateConfigRequest::builder()
        .launch_template_specification(template.build())
        .set_overrides(Some(group.overrides.iter().map(write_override).collect()))
        .build()
}

fn write_override(wanted: &FleetOverride) -> FleetLaunchTemplateOverridesRequest {
    FleetLaunchTemplateOverridesRequest::builder()
        .instance_type(wanted.instance_type.as_str().into())
        .subnet_id(&wanted.subnet)
        .set_availability_zone(wanted.zone.clone())
        .set_image_id(wanted.image_id.clone())
        .set_priority(wanted.priority)
        .build()
}

pub(super) fn answer(answer: CreateFleetOutput) -> FleetAnswer {
    FleetAnswer {
        instances: answer.instances.into_iter().flatten().map(instances).collect(),
        errors: answer.errors.into_iter().flatten().map(error).collect(),
    }
}

/// Zone and subnet are read from the instances themselves where EC2 does not echo the override that it chose.
fn instances(group: CreateFleetInstance) -> FleetInstances {
    let mut chosen = group.launch_template_and_overrides.and_then(echo).unwrap_or_default();
    chosen.zone = chosen.zone.or(group.availability_zone);
    if chosen.subnet.is_empty() {
        chosen.subnet = group.subnet_id.unwrap_or_default();
    }
    FleetInstances {
        ids: group.instance_ids.unwrap_or_default(),
        instance_type: word(group.instance_type.as_ref()),
        lifecycle: word(group.lifecycle.as_ref()),
        chosen,
    }
}

fn error(error: CreateFleetError) -> FleetError {
    FleetError {
        error: AwsError::new(
            error.error_code.as_deref().unwrap_or_default(),
            error.error_message.as_deref().unwrap_or_default(),
        ),
        failed: error.launch_template_and_overrides.and_then(echo),
    }
}

fn echo(response: LaunchTemplateAndOverridesResponse) -> Option<FleetOverride> {
    response.overrides.map(read_override)
}

fn read_override(echoed: FleetLaunchTemplateOverrides) -> FleetOverride {
    FleetOverride {
        instance_type: word(echoed.instance_type.as_ref()),
        subnet: echoed.subnet_id.unwrap_or_default(),
        zone: echoed.availability_zone,
        image_id: echoed.image_id,
        priority: echoed.priority,
    }
}

pub(super) fn dry_launch(call: RunInstancesFluentBuilder, request: &DryLaunch) -> RunInstancesFluentBuilder {
    let template = LaunchTemplateSpecification::builder()
        .launch_template_name(&request.template_name)
        .version(LATEST);
    let interfaces = request
        .interfaces
        .iter()
        .map(|wanted| interface(wanted, &request.subnet));
    call.dry_run(true)
        .min_count(1)
        .max_count(1)
        .launch_template(template.build())
        .instance_type(request.instance_type.as_str().into())
        .set_network_interfaces(Some(interfaces.collect()))
        .set_tag_specifications(tagged(
            &[
                ResourceType::Instance,
                ResourceType::Volume,
                ResourceType::NetworkInterface,
            ],
            &request.tags,
        ))
}

fn interface(interface: &Interface, subnet: &str) -> InstanceNetworkInterfaceSpecification {
    InstanceNetworkInterfaceSpecification::builder()
        .set_network_card_index(interface.card)
        .device_index(interface.device)
        .set_interface_type(interface.kind.clone())
        .subnet_id(subnet)
        .set_groups(listed(interface.groups.clone()))
        .set_associate_public_ip_address(interface.public_ip)
        .set_ipv4_prefix_count(interface.ipv4_prefixes)
        .set_ipv6_prefix_count(interface.ipv6_prefixes)
        .set_primary_ipv6(interface.primary_ipv6.then_some(true))
        .set_ipv6_address_count(interface.primary_ipv6.then_some(1))
        .set_connection_tracking_specification(interface.connection_tracking.as_ref().map(connection_tracking))
        .build()
}
