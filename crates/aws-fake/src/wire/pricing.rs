//! The price list: a product per instance type, filtered by its attributes.

use serde_json::{Value, json};

use super::{Reply, page};
use crate::{facts::InstanceType, refusal::Refusal, region::Region};

/// The most that the price list gives at once.
const PAGE: usize = 100;

pub(super) fn carry_out(region: &Region, action: &str, params: &Value) -> Result<Option<Reply>, Refusal> {
    if action != "GetProducts" {
        return Ok(None);
    }
    let service = super::text(params, "ServiceCode")?;
    if service != "AmazonEC2" {
        let message = format!("Invalid service code {service}");
        return Err(Refusal::new("NotFoundException", message));
    }
    let filters = params["Filters"].as_array().map_or(&[][..], Vec::as_slice);
    for filter in filters {
        let kind = filter["Type"].as_str().unwrap_or_default();
        if kind != "TERM_MATCH" && kind != "EQUALS" {
            return Err(Refusal::new(
                "InvalidParameterException",
                format!("Invalid filter type {kind}"),
            ));
        }
    }
    let mut found = Vec::new();
    for fact in region.types() {
        let product = product(region, fact);
        let attributes = &product["product"]["attributes"];
        let admits = |filter: &Value| match filter["Field"].as_str() {
            // The one field that is no attribute.
            Some("productFamily") => filter["Value"] == product["product"]["productFamily"],
            Some("serviceCode") => filter["Value"] == product["serviceCode"],
            Some(field) => filter["Value"] == attributes[field],
            None => false,
        };
        if filters.iter().all(admits) {
            found.push(product.to_string());
        }
    }
    let size = params["MaxResults"]
        .as_u64()
        .and_then(|size| usize::try_from(size).ok());
    let (found, next) = page(found, params["NextToken"].as_str(), size.unwrap_or(PAGE).min(PAGE))?;
    let mut answer = json!({"FormatVersion": "aws_v1", "PriceList": found});
    if let Some(next) = next {
        answer["NextToken"] = Value::String(next);
    }
    Ok(Some(Reply::Json(answer)))
}

fn product(region: &Region, fact: &InstanceType) -> Value {
    let price = region.market.on_demand_price(fact);
    // Karpenter asks for metal as dedicated and for all else as shared, as AWS sells them.
    let (tenancy, family) = if fact.bare_metal {
        ("Dedicated", "Compute Instance (bare metal)")
    } else {
        ("Shared", "Compute Instance")
    };
    let sku = fact.name.replace('.', "").to_uppercase();
    json!({
        "serviceCode": "AmazonEC2",
        "product": {
            "sku": sku,
            "productFamily": family,
            "attributes": {
                "instanceType": fact.name,
                "regionCode": region.plan.region,
                "servicecode": "AmazonEC2",
                "operatingSystem": "Linux",
                "preInstalledSw": "NA",
                "capacitystatus": "Used",
                "marketoption": "OnDemand",
                "tenancy": tenancy,
                "vcpu": fact.vcpus.to_string(),
                "memory": format!("{} GiB", fact.memory_mib / 1024),
            },
        },
        "terms": {"OnDemand": {format!("{sku}.JRTCKXETXF"): {
            "sku": sku,
            "priceDimensions": {format!("{sku}.JRTCKXETXF.6YS6EN2CT7"): {
                "unit": "Hrs",
                "pricePerUnit": {"USD": format!("{price:.10}")},
            }},
        }}},
    })
}
