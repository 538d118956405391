//! The price list.

use async_trait::async_trait;
use aws_sdk_pricing::{
    Client,
    types::{Filter, FilterType},
};
use provider_aws::{
    error::AwsError,
    ports::{PriceList, PriceQuery},
};

use crate::words::all;

pub(crate) struct SdkPrices(pub Client);

/// The list of a region's prices is served by few regions, and by none of another partition.
pub(crate) fn region_for(region: &str) -> &'static str {
    match region.split('-').next() {
        Some("ap") => "ap-south-1",
        Some("cn") => "cn-northwest-1",
        Some("eu") => "eu-central-1",
        _ => "us-east-1",
    }
}

#[async_trait]
impl PriceList for SdkPrices {
    async fn products(&self, query: &PriceQuery) -> Result<Vec<String>, AwsError> {
        let one = |field: &str, value: &str| {
            let filter = Filter::builder()
                .r#type(FilterType::TermMatch)
                .field(field)
                .value(value);
            filter.build().expect("type, field and value are given")
        };
        let filters = query
            .filters
            .iter()
            .flat_map(|filter| filter.values.iter().map(|value| one(&filter.name, value)));
        let request = self
            .0
            .get_products()
            .service_code(query.service)
            .set_filters(Some(filters.collect()));
        all(request.into_paginator().page_size(100).items().send(), |product| {
            product
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_asked_for_where_they_are_served() {
        let table = [
            ("us-west-2", "us-east-1"),
            ("eu-north-1", "eu-central-1"),
            ("ap-southeast-2", "ap-south-1"),
            ("cn-north-1", "cn-northwest-1"),
            ("sa-east-1", "us-east-1"),
        ];
        for (region, served_by) in table {
            assert_eq!(region_for(region), served_by, "{region}");
        }
    }
}
