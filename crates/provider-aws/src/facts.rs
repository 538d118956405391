//! Facts about instance types that EC2's API does not tell, compiled in. Their source is named in `data/README.md`.

use std::{collections::BTreeMap, sync::LazyLock};

/// The network of one type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkFacts {
    /// How many pods can get an interface of their own; `None` where the limits are not known.
    pub branch_interfaces: Option<i64>,
    /// Addresses of one interface; `None` where the limits are not known.
    pub ipv4_per_interface: Option<i64>,
    pub bandwidth_mbps: Option<i64>,
}

static NETWORK: LazyLock<BTreeMap<&'static str, NetworkFacts>> = LazyLock::new(|| {
    let rows = include_str!("../data/network.csv").lines().skip(1);
    rows.map(|row| {
        let mut fields = row.split(',');
        let name = fields.next().expect("a row has a first field");
        let mut number = || fields.next().and_then(|text| text.parse().ok());
        let facts = NetworkFacts {
            branch_interfaces: number(),
            ipv4_per_interface: number(),
            bandwidth_mbps: number(),
        };
        (name, facts)
    })
    .collect()
});

/// What is known about the network of a type; nothing for types that came later.
pub fn network(instance_type: &str) -> NetworkFacts {
    NETWORK.get(instance_type).copied().unwrap_or_default()
}

/// Where regions without a price column of their own look.
const COMMON_REGION: &str = "us-east-1";

/// The on-demand prices that count until the price list has been read.
pub fn on_demand_prices(region: &str) -> BTreeMap<String, f64> {
    let mut rows = include_str!("../data/on-demand-prices.csv").lines();
    let header: Vec<&str> = rows.next().unwrap_or_default().split(',').collect();
    let column = |name: &str| header.iter().position(|field| *field == name);
    let column = column(region)
        .or_else(|| column(COMMON_REGION))
        .expect("the table has a column for the common region");
    rows.filter_map(|row| {
        let fields: Vec<&str> = row.split(',').collect();
        Some((fields[0].to_owned(), fields.get(column)?.parse().ok()?))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_known_for_real_types() {
        let facts = network("m5.large");
        assert_eq!((facts.branch_interfaces, facts.ipv4_per_interface), (Some(9), Some(10)));
        assert_eq!(network("t3.large").branch_interfaces, Some(0));
        assert_eq!(network("x99.large"), NetworkFacts::default());
    }

    #[test]
    fn every_region_has_prices() {
        assert_eq!(on_demand_prices("us-east-1")["m5.large"], 0.096);
        assert_eq!(on_demand_prices("eu-west-3")["m5.large"], 0.096);
        assert_ne!(on_demand_prices("us-gov-west-1")["m5.large"], 0.096);
        assert!(!on_demand_prices("cn-north-1").contains_key("a1.large"));
    }
}
