//! Launch templates.

use jiff::Timestamp;

use super::{filters, tag_specifications, tags_for, unless_dry, write_tags};
use crate::{
    refusal::Refusal,
    region::{
        Region,
        filter::admitted,
        templates::{Interface, Placement, ProfileRef, ReservationChoice, Template, TemplateData, TemplateRef, Volume},
    },
    wire::{query::Params, query_page, time, xml::Xml},
};

pub fn create(region: &mut Region, params: &Params, now: Timestamp) -> Result<Xml, Refusal> {
    params.only(&[
        "LaunchTemplateName",
        "LaunchTemplateData",
        "TagSpecification",
        "ClientToken",
        "VersionDescription",
    ])?;
    let data = params
        .get("LaunchTemplateData")
        .ok_or_else(|| Refusal::missing("LaunchTemplateData"))?;
    data.only(&[
        "BlockDeviceMapping",
        "CapacityReservationSpecification",
        "CpuOptions",
        "EbsOptimized",
        "EnclaveOptions",
        "IamInstanceProfile",
        "ImageId",
        "InstanceMarketOptions",
        "InstanceType",
        "MetadataOptions",
        "Monitoring",
        "NetworkInterface",
        "Placement",
        "SecurityGroupId",
        "TagSpecification",
        "UserData",
    ])?;
    let data = decode(data)?;
    data.check()?;
    unless_dry(params)?;
    let name = params.required("LaunchTemplateName")?;
    let account = region.plan.account.clone();
    let made = region.create_template(name, data, tags_for(params, "launch-template"), now)?;
    let mut xml = Xml::default();
    xml.node("launchTemplate", |xml| write(xml, made, &account));
    Ok(xml)
}

pub fn describe(region: &Region, params: &Params, now: Timestamp) -> Result<Xml, Refusal> {
    params.only(&[
        "LaunchTemplateId",
        "LaunchTemplateName",
        "Filter",
        "MaxResults",
        "NextToken",
    ])?;
    unless_dry(params)?;
    let ids = params.texts("LaunchTemplateId").into_iter().map(TemplateRef::Id);
    let names = params.texts("LaunchTemplateName").into_iter().map(TemplateRef::Name);
    let asked: Vec<TemplateRef> = ids.chain(names).collect();
    let all: Vec<&Template> = if asked.is_empty() {
        region
            .templates
            .values()
            .filter(|template| template.is_known(now))
            .collect()
    } else {
        let found = asked.iter().map(|named| region.template(named, now));
        found.collect::<Result<_, _>>()?
    };
    let (found, next) = query_page(admitted(all, &filters(params)?)?, params)?;
    let mut xml = Xml::default();
    xml.items("launchTemplates", found, |xml, template| {
        write(xml, template, &region.plan.account);
    });
    xml.maybe("nextToken", next);
    Ok(xml)
}

pub fn delete(region: &mut Region, params: &Params) -> Result<Xml, Refusal> {
    params.only(&["LaunchTemplateId", "LaunchTemplateName"])?;
    let named = reference(params)?;
    unless_dry(params)?;
    let gone = region.delete_template(&named)?;
    let mut xml = Xml::default();
    xml.node("launchTemplate", |xml| write(xml, &gone, &region.plan.account));
    Ok(xml)
}

/// The template that a call names by id or by name.
pub fn reference(params: &Params) -> Result<TemplateRef, Refusal> {
    match (params.text("LaunchTemplateId"), params.text("LaunchTemplateName")) {
        (Some(id), None) => Ok(TemplateRef::Id(id.to_owned())),
        (None, Some(name)) => Ok(TemplateRef::Name(name.to_owned())),
        (None, None) => Err(Refusal::missing("LaunchTemplateName")),
        (Some(_), Some(_)) => Err(Refusal::new(
            "InvalidParameterCombination",
            "A launch template is named by its ID or by its name, not by both",
        )),
    }
}

fn write(xml: &mut Xml, template: &Template, account: &str) {
    xml.leaf("launchTemplateId", &template.id);
    xml.leaf("launchTemplateName", &template.name);
    xml.leaf("createTime", time(template.created));
    xml.leaf(
        "createdBy",
        format!("arn:aws:sts::{account}:assumed-role/karpenter/aws-fake"),
    );
    xml.leaf("defaultVersionNumber", 1);
    xml.leaf("latestVersionNumber", 1);
    write_tags(xml, &template.tags);
}

/// What a template, or a launch without one, gives to instances.
pub fn decode(data: &Params) -> Result<TemplateData, Refusal> {
    let owned = |path: &str| data.text(path).map(str::to_owned);
    let profile_name = owned("IamInstanceProfile.Name").map(ProfileRef::Name);
    let metadata = data.get("MetadataOptions").map(Params::to_json).unwrap_or_default();
    let metadata = metadata.as_object().into_iter().flatten();
    Ok(TemplateData {
        image: owned("ImageId"),
        instance_type: owned("InstanceType"),
        user_data: owned("UserData"),
        profile: profile_name.or_else(|| owned("IamInstanceProfile.Arn").map(ProfileRef::Arn)),
        interfaces: data
            .list("NetworkInterface")
            .into_iter()
            .map(interface)
            .collect::<Result<_, _>>()?,
        groups: data.texts("SecurityGroupId"),
        volumes: data
            .list("BlockDeviceMapping")
            .into_iter()
            .map(volume)
            .collect::<Result<_, _>>()?,
        placement: Placement {
            tenancy: owned("Placement.Tenancy"),
            group_id: owned("Placement.GroupId"),
            group_name: owned("Placement.GroupName"),
            partition: data.number("Placement.PartitionNumber")?,
        },
        reservation: ReservationChoice {
            preference: owned("CapacityReservationSpecification.CapacityReservationPreference"),
            target: owned("CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId"),
        },
        market: owned("InstanceMarketOptions.MarketType"),
        monitoring: data.flag("Monitoring.Enabled"),
        metadata: metadata
            .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
            .collect(),
        tags: tag_specifications(data),
    })
}

fn interface(params: &Params) -> Result<Interface, Refusal> {
    Ok(Interface {
        device: params.number("DeviceIndex")?.unwrap_or(0),
        card: params.number("NetworkCardIndex")?.unwrap_or(0),
        kind: params.text("InterfaceType").unwrap_or("interface").to_owned(),
        groups: params.texts("SecurityGroupId"),
        subnet: params.text("SubnetId").map(str::to_owned),
    })
}

fn volume(params: &Params) -> Result<Volume, Refusal> {
    Ok(Volume {
        device: params.text("DeviceName").unwrap_or_default().to_owned(),
        gibibytes: params.number("Ebs.VolumeSize")?.unwrap_or(8),
        snapshot: params.text("Ebs.SnapshotId").map(str::to_owned),
    })
}
