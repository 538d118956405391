//! Asking AWS for prices.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    error::AwsError,
    ports::{Ec2, Filter, PriceList, PriceQuery, SpotPrice},
};

#[derive(Debug, thiserror::Error)]
pub enum RefreshError {
    #[error("prices could not be read")]
    Aws(#[source] AwsError),
    /// Believing it would make every type free of charge or impossible to buy.
    #[error("AWS named no {0} prices")]
    Empty(&'static str),
}

/// The two listings that together hold every on-demand price: virtual machines and bare metal.
pub fn on_demand_queries(region: &str) -> [PriceQuery; 2] {
    let query = |tenancy: &str, family: &str| PriceQuery {
        service: "AmazonEC2",
        filters: [
            ("regionCode", region),
            ("serviceCode", "AmazonEC2"),
            ("preInstalledSw", "NA"),
            ("operatingSystem", "Linux"),
            ("capacitystatus", "Used"),
            ("marketoption", "OnDemand"),
            ("tenancy", tenancy),
            ("productFamily", family),
        ]
        .into_iter()
        .map(|(name, value)| Filter::new(name, [value]))
        .collect(),
    };
    [
        query("Shared", "Compute Instance"),
        query("Dedicated", "Compute Instance (bare metal)"),
    ]
}

/// The on-demand prices of a region. Both listings have to have something.
pub async fn refresh_on_demand(list: &dyn PriceList, region: &str) -> Result<BTreeMap<String, f64>, RefreshError> {
    let [machines, metal] = on_demand_queries(region);
    let (machines, metal) =
        futures::try_join!(list.products(&machines), list.products(&metal)).map_err(RefreshError::Aws)?;
    let currency = if region.starts_with("cn-") { "CNY" } else { "USD" };
    let read = |products: Vec<String>| -> BTreeMap<String, f64> {
        products.iter().filter_map(|product| price(product, currency)).collect()
    };
    let (mut prices, metal) = (read(machines), read(metal));
    if prices.is_empty() || metal.is_empty() {
        return Err(RefreshError::Empty("on-demand"));
    }
    prices.extend(metal);
    Ok(prices)
}

pub async fn refresh_spot(ec2: &dyn Ec2, now: Timestamp) -> Result<Vec<SpotPrice>, RefreshError> {
    let prices = ec2.spot_prices(now).await.map_err(RefreshError::Aws)?;
    if prices.is_empty() {
        return Err(RefreshError::Empty("spot"));
    }
    Ok(prices)
}

/// Type and price of one product. Products without either, or for free, are for other purposes.
fn price(product: &str, currency: &str) -> Option<(String, f64)> {
    let product: Value = serde_json::from_str(product).ok()?;
    let instance_type = product.pointer("/product/attributes/instanceType")?.as_str()?;
    let terms = product.pointer("/terms/OnDemand")?.as_object()?;
    let dimensions = terms
        .values()
        .filter_map(|term| term.get("priceDimensions")?.as_object());
    let mut prices = dimensions
        .flat_map(|dimensions| dimensions.values())
        .filter_map(|dimension| dimension.pointer("/pricePerUnit")?.get(currency)?.as_str())
        .filter_map(|text| text.parse::<f64>().ok());
    let price = prices.find(|price| *price > 0.0)?;
    Some((instance_type.to_owned(), price))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{offering::Prices, testing::fake::FakeAws};

    fn product(instance_type: &str, currency: &str, price: &str) -> String {
        json!({
            "product": {"attributes": {"instanceType": instance_type}},
            "terms": {"OnDemand": {"a": {"priceDimensions": {"b": {"pricePerUnit": {currency: price}}}}}},
        })
        .to_string()
    }

    /// AW24.10.10
    #[tokio::test(start_paused = true)]
    async fn the_price_list_is_read_in_the_regions_currency() {
        let aws = FakeAws::new();
        let metal = || vec![product("m5.metal", "USD", "4.6"), product("m5.metal", "CNY", "30.0")];
        let machines = || {
            vec![
                product("m5.large", "USD", "0.112"),
                product("m5.large", "CNY", "0.7"),
                product("c5.large", "USD", "0.0000000000"),
                product("r5.large", "USD", "not a price"),
                "not json".to_owned(),
            ]
        };
        aws.set_products(vec![machines(), metal(), machines(), metal(), machines(), Vec::new()]);
        let list = aws.ports().prices;
        let read = refresh_on_demand(&*list, "eu-west-1").await.unwrap();
        assert_eq!(
            read,
            [("m5.large".to_owned(), 0.112), ("m5.metal".to_owned(), 4.6)].into()
        );
        let yuan = refresh_on_demand(&*list, "cn-north-1").await.unwrap();
        assert_eq!(yuan["m5.large"], 0.7);
        let half = refresh_on_demand(&*list, "eu-west-1").await;
        assert!(matches!(half, Err(RefreshError::Empty(_))), "half an answer is none");
        aws.fail("GetProducts", AwsError::new("AccessDeniedException", "no"));
        assert!(matches!(
            refresh_on_demand(&*list, "eu-west-1").await,
            Err(RefreshError::Aws(_))
        ));

        let mut prices = Prices::compiled_in("eu-west-1");
        let before = (prices.on_demand("c5.large"), prices.version());
        prices.update_on_demand(read, Timestamp::UNIX_EPOCH);
        assert_eq!(prices.on_demand("m5.large"), Some(0.112));
        assert_eq!(prices.on_demand("c5.large"), before.0, "what was not mentioned stays");
        assert!(prices.version() > before.1 && prices.on_demand_as_of.is_some());
    }

    /// AW24.10.10
    #[tokio::test(start_paused = true)]
    async fn no_spot_prices_are_an_error() {
        let aws = FakeAws::new();
        let ec2 = aws.ports().ec2;
        assert!(matches!(
            refresh_spot(&*ec2, aws.now()).await,
            Err(RefreshError::Empty("spot"))
        ));
        aws.set_spot_prices(vec![SpotPrice {
            instance_type: "m5.large".to_owned(),
            zone: "a".to_owned(),
            price: 0.03,
        }]);
        assert_eq!(refresh_spot(&*ec2, aws.now()).await.unwrap().len(), 1);
    }

    #[test]
    fn machines_and_metal_are_two_listings() {
        let [machines, metal] = on_demand_queries("eu-west-1");
        let value = |query: &PriceQuery, name: &str| {
            let filter = query.filters.iter().find(|filter| filter.name == name);
            filter.map(|filter| filter.values.join(",")).unwrap_or_default()
        };
        assert_eq!(value(&machines, "regionCode"), "eu-west-1");
        assert_eq!(value(&machines, "tenancy"), "Shared");
        assert_eq!(value(&metal, "productFamily"), "Compute Instance (bare metal)");
    }
}
