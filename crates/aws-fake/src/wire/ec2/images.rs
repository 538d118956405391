//! DescribeImages.

use jiff::Timestamp;

use super::{filters, unless_dry, write_tags};
use crate::{
    refusal::Refusal,
    region::{Region, filter::admitted, images::Image},
    wire::{query::Params, query_page, time, xml::Xml},
};

pub fn describe(region: &Region, params: &Params, now: Timestamp) -> Result<Xml, Refusal> {
    params.only(&[
        "Filter",
        "ImageId",
        "Owner",
        "ExecutableBy",
        "IncludeDeprecated",
        "IncludeDisabled",
        "MaxResults",
        "NextToken",
    ])?;
    unless_dry(params)?;
    let (asked, owners) = (params.texts("ImageId"), params.texts("Owner"));
    if let Some(unknown) = asked.iter().find(|id| !region.images.by_id.contains_key(*id)) {
        let message = format!("The image id '[{unknown}]' does not exist");
        return Err(Refusal::new("InvalidAMIID.NotFound", message));
    }
    let own = |image: &Image, owner: &String| match owner.as_str() {
        "self" => image.owner == region.plan.account,
        alias => image.owner_alias.as_deref() == Some(alias) || image.owner == alias,
    };
    let deprecated = |image: &Image| image.deprecated.is_some_and(|time| time <= now);
    let mut found = admitted(region.images.by_id.values(), &filters(params)?)?;
    found.retain(|image| {
        (asked.is_empty() || asked.contains(&image.id))
            && (owners.is_empty() || owners.iter().any(|owner| own(image, owner)))
            // Owners always see their own.
            && (params.flag("IncludeDeprecated") || !deprecated(image) || image.owner == region.plan.account)
    });
    let (found, next) = query_page(found, params)?;
    let mut xml = Xml::default();
    xml.items("imagesSet", found, |xml, image| {
        xml.leaf("imageId", &image.id);
        xml.leaf("imageLocation", format!("amazon/{}", image.name));
        xml.leaf("imageState", "available");
        xml.leaf("imageOwnerId", &image.owner);
        xml.maybe("imageOwnerAlias", image.owner_alias.as_ref());
        xml.leaf("isPublic", image.owner_alias.is_some());
        xml.leaf("architecture", &image.architecture);
        xml.leaf("imageType", "machine");
        xml.maybe("platform", image.windows.then_some("windows"));
        xml.leaf("name", &image.name);
        xml.leaf("rootDeviceType", "ebs");
        xml.leaf("rootDeviceName", if image.windows { "/dev/sda1" } else { "/dev/xvda" });
        xml.leaf("virtualizationType", "hvm");
        xml.leaf("hypervisor", "xen");
        xml.leaf("enaSupport", true);
        xml.leaf("creationDate", time(image.created));
        xml.maybe("deprecationTime", image.deprecated.map(time));
        write_tags(xml, &image.tags);
    });
    xml.maybe("nextToken", next);
    Ok(xml)
}
