//! DescribeSpotPriceHistory: the present price of each pool, as the newest entry of its history.

use jiff::{SignedDuration, Timestamp};

use super::unless_dry;
use crate::{
    refusal::Refusal,
    region::Region,
    wire::{page, query::Params, time, xml::Xml},
};

const PRODUCT: &str = "Linux/UNIX";
/// The most that EC2 gives at once.
const PAGE: usize = 1000;

pub fn history(region: &Region, params: &Params, now: Timestamp) -> Result<Xml, Refusal> {
    params.only(&[
        "InstanceType",
        "ProductDescription",
        "AvailabilityZone",
        "StartTime",
        "EndTime",
        "MaxResults",
        "NextToken",
    ])?;
    unless_dry(params)?;
    let (types, products) = (params.texts("InstanceType"), params.texts("ProductDescription"));
    let zone_asked = params.text("AvailabilityZone");
    let linux = products.is_empty() || products.iter().any(|product| product.starts_with(PRODUCT));
    // The price that counts at any moment was set some time before it.
    let since = time(now - SignedDuration::from_mins(30));
    let mut found = Vec::new();
    for fact in region.types().filter(|_| linux) {
        let spot = fact.usage_classes.iter().any(|class| class == "spot");
        if !spot || !(types.is_empty() || types.contains(&fact.name)) {
            continue;
        }
        for letter in fact.zones.chars() {
            let zone = format!("{}{letter}", region.plan.region);
            if zone_asked.is_none_or(|asked| asked == zone) {
                found.push((fact, zone));
            }
        }
    }
    let size = params.number::<usize>("MaxResults")?.unwrap_or(PAGE).min(PAGE);
    let (found, next) = page(found, params.text("NextToken"), size)?;
    let mut xml = Xml::default();
    xml.items("spotPriceHistorySet", found, |xml, (fact, zone)| {
        xml.leaf("instanceType", &fact.name);
        xml.leaf("productDescription", PRODUCT);
        xml.leaf("spotPrice", format!("{:.6}", region.market.spot_price(fact, &zone)));
        xml.leaf("timestamp", &since);
        xml.leaf("availabilityZone", zone);
    });
    // EC2 ends its pages with an empty token.
    xml.leaf("nextToken", next.unwrap_or_default());
    Ok(xml)
}
