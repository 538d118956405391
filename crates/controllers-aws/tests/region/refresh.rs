//! What is asked again from time to time, and what is cleared away.

use std::{collections::BTreeMap, sync::Arc};

use api::v1::NodePool;
use jiff::SignedDuration;
use provider_aws::{
    discovery::profile_path,
    options::Options,
    ports::{ClusterInfo, Shift, SpotPrice},
    testing::{fake::FakeProfile, samples},
};
use serde_json::{Value, json};

use crate::cluster::{cluster, cluster_with, minutes};

/// AW24.1.6
#[tokio::test(start_paused = true)]
async fn another_version_of_the_cluster_is_seen() {
    let cluster = cluster_with(|foundation| {
        foundation.options = Arc::new(Options {
            eks_control_plane: true,
            ..samples::options()
        });
    })
    .await;
    let upgraded = ClusterInfo {
        version: "1.34".to_owned(),
        ..ClusterInfo::default()
    };
    cluster.aws.set_cluster(upgraded);
    cluster
        .until("the version is seen", minutes(6), async || {
            cluster.services.version().to_string() == "1.34"
        })
        .await;
}

/// AW24.5.13
#[tokio::test(start_paused = true)]
async fn profiles_that_nobody_uses_go() {
    let cluster = cluster().await;
    let class = cluster.ready_class().await;
    let used = class.status.unwrap().instance_profile.unwrap();
    let forgotten = FakeProfile {
        path: profile_path(samples::REGION, "demo", Some("gone")),
        role: Some("node-role".to_owned()),
        ..FakeProfile::default()
    };
    let foreign = FakeProfile {
        path: profile_path(samples::REGION, "other", None),
        ..FakeProfile::default()
    };
    cluster.aws.add_profile("demo_forgotten", forgotten);
    cluster.aws.add_profile("other_1", foreign);
    tokio::time::sleep(minutes(31)).await;
    let is_there = |name: &str| cluster.aws.profile(name).is_some();
    assert!(is_there("demo_forgotten"), "somebody may just be about to use it");
    cluster
        .until("the forgotten profile is gone", minutes(31), async || {
            cluster.aws.profile("demo_forgotten").is_none()
        })
        .await;
    assert!(cluster.aws.profile(&used).is_some() && cluster.aws.profile("other_1").is_some());
    tokio::time::sleep(minutes(90)).await;
    assert!(cluster.aws.profile(&used).is_some(), "the class uses it");
}

fn pool(name: &str, zones: &[&str]) -> Value {
    let mut requirements =
        vec![json!({"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]})];
    if !zones.is_empty() {
        requirements.push(json!({"key": "topology.kubernetes.io/zone", "operator": "In", "values": zones}));
    }
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name},
        "spec": {"template": {"spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            "requirements": requirements,
        }}},
    })
}

/// AW24.15.8, AW24.10.6
#[tokio::test(start_paused = true)]
async fn pools_are_told_of_zones_that_the_cluster_is_shifted_out_of() {
    let cluster = cluster_with(|foundation| {
        foundation.shifted_cluster = Some("arn".to_owned());
        foundation.options = Arc::new(Options {
            zonal_shift: true,
            ..samples::options()
        });
    })
    .await;
    let class = cluster.ready_class().await;
    cluster.create::<NodePool>(pool("anywhere", &[])).await;
    cluster.create::<NodePool>(pool("elsewhere", &["us-west-2b"])).await;
    let away_from = |zone: &str| Shift {
        away_from: zone.to_owned(),
        expires: cluster.aws.now() + SignedDuration::from_hours(1),
        applied: true,
    };
    cluster
        .aws
        .set_shifts(vec![away_from("id-us-west-2a"), away_from("id-us-west-2z")]);
    let has = async |pool: &str, reason: &str| cluster.told(pool).await.iter().any(|told| told == reason);
    cluster
        .until("the pool is told", minutes(1), async || {
            has("anywhere", "ZonalShiftActive").await
        })
        .await;
    let types = cluster
        .services
        .types(&class, None, &BTreeMap::new())
        .expect("types are known");
    let mut offerings = types.iter().flat_map(|shape| &shape.offerings);
    assert!(!offerings.any(|offering| offering.available && offering.zone.as_str() == "us-west-2a"));
    cluster.aws.set_shifts(vec![]);
    cluster
        .until("the pool is told of the end", minutes(1), async || {
            has("anywhere", "ZonalShiftCleared").await
        })
        .await;
    assert!(
        cluster
            .told("elsewhere")
            .await
            .iter()
            .all(|told| !told.starts_with("ZonalShift"))
    );
    let told = cluster.told("anywhere").await.len();
    tokio::time::sleep(minutes(2)).await;
    assert_eq!(cluster.told("anywhere").await.len(), told, "no change, no news");
}

/// Lists of prices hold for half a day; the price of spot capacity moves with the market.
#[tokio::test(start_paused = true)]
async fn spot_prices_are_asked_for_every_hour_and_others_are_not() {
    let cluster = cluster().await;
    let product = |instance_type: &str| {
        let dimensions = json!({"b": {"pricePerUnit": {"USD": "0.1"}}});
        let terms = json!({"OnDemand": {"a": {"priceDimensions": dimensions}}});
        json!({"product": {"attributes": {"instanceType": instance_type}}, "terms": terms}).to_string()
    };
    let listings = vec![vec![product("m5.large")], vec![product("m5.metal")]];
    cluster.aws.set_products(listings);
    cluster.aws.set_spot_prices(vec![SpotPrice {
        instance_type: "m5.large".to_owned(),
        zone: "us-west-2a".to_owned(),
        price: 0.03,
    }]);
    let catalog = &cluster.services.catalog;
    cluster
        .until("prices are known", minutes(10), async || {
            catalog.on_demand_prices_as_of().is_some() && catalog.spot_prices_as_of().is_some()
        })
        .await;
    let asked = || {
        (
            cluster.aws.calls("DescribeSpotPriceHistory"),
            cluster.aws.calls("GetProducts"),
        )
    };
    let (spot, lists) = asked();
    tokio::time::sleep(minutes(190)).await;
    assert_eq!(asked(), (spot + 3, lists));
}
