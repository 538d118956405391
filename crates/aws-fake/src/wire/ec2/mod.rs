//! EC2's calls. Each file decodes the calls of one subject and writes their answers.

mod fleet;
mod images;
mod instances;
mod places;
mod prices;
mod templates;
mod types;

use jiff::Timestamp;

use super::{Reply, query::Params, xml::Xml};
use crate::{
    refusal::Refusal,
    region::{Region, Tags, filter::Filter},
};

pub(super) fn carry_out(
    region: &mut Region,
    action: &str,
    params: &Params,
    now: Timestamp,
) -> Result<Option<Reply>, Refusal> {
    let xml = match action {
        "DescribeInstanceTypes" => types::describe(region, params)?,
        "DescribeInstanceTypeOfferings" => types::offerings(region, params)?,
        "DescribeAvailabilityZones" => places::zones(region, params)?,
        "DescribeSubnets" => places::subnets(region, params)?,
        "DescribeSecurityGroups" => places::groups(region, params)?,
        "DescribeCapacityReservations" => places::reservations(region, params, now)?,
        "DescribePlacementGroups" => places::placement_groups(region, params)?,
        "DescribeImages" => images::describe(region, params, now)?,
        "DescribeSpotPriceHistory" => prices::history(region, params, now)?,
        "CreateLaunchTemplate" => templates::create(region, params, now)?,
        "DescribeLaunchTemplates" => templates::describe(region, params, now)?,
        "DeleteLaunchTemplate" => templates::delete(region, params)?,
        "CreateFleet" => fleet::create(region, params, now)?,
        "RunInstances" => fleet::run(region, params, now)?,
        "DescribeInstances" => instances::describe(region, params, now)?,
        "DescribeInstanceStatus" => instances::status(region, params, now)?,
        "TerminateInstances" => instances::terminate(region, params, now)?,
        "CreateTags" => instances::tag(region, params, now)?,
        _ => return Ok(None),
    };
    Ok(Some(Reply::Xml(xml)))
}

/// A dry run ends here: whatever could be checked has been.
fn unless_dry(params: &Params) -> Result<(), Refusal> {
    if params.flag("DryRun") {
        return Err(Refusal::dry_run());
    }
    Ok(())
}

fn filters(params: &Params) -> Result<Vec<Filter>, Refusal> {
    let decode = |filter: &Params| {
        Ok(Filter {
            name: filter.required("Name")?.to_owned(),
            values: filter.texts("Value"),
        })
    };
    params.list("Filter").into_iter().map(decode).collect()
}

pub(crate) fn tags(params: &Params) -> Tags {
    let pair = |tag: &Params| {
        Some((
            tag.text("Key")?.to_owned(),
            tag.text("Value").unwrap_or_default().to_owned(),
        ))
    };
    params.list("Tag").into_iter().filter_map(pair).collect()
}

/// Tags that a call gives to what it makes, by the kind of resource.
pub(crate) fn tag_specifications(params: &Params) -> Vec<(String, Tags)> {
    let decode = |spec: &Params| Some((spec.text("ResourceType")?.to_owned(), tags(spec)));
    params.list("TagSpecification").into_iter().filter_map(decode).collect()
}

fn tags_for(params: &Params, kind: &str) -> Tags {
    let specs = tag_specifications(params).into_iter();
    specs.filter(|(of, _)| of == kind).flat_map(|(_, tags)| tags).collect()
}

fn write_tags(xml: &mut Xml, tags: &Tags) {
    xml.items("tagSet", tags, |xml, (key, value)| {
        xml.leaf("key", key);
        xml.leaf("value", value);
    });
}
