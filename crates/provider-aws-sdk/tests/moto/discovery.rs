//! What a node class is resolved from, and what can be bought.

use jiff::Timestamp;
use provider_aws::ports::{Filter, ImageQuery};

use crate::region::{CLUSTER, DISCOVERY, Moto, REGION};

#[tokio::test]
async fn subnets_and_groups_are_found_by_tag_key_id_and_name() {
    let moto = Moto::start().await;
    let network = moto.network().await;
    let ec2 = &moto.aws.ec2;
    let ways = [
        Filter::tag(DISCOVERY, CLUSTER),
        Filter::tag(DISCOVERY, "*"),
        Filter::new("subnet-id", network.subnets.clone()),
    ];
    for way in ways {
        let mut found = ec2.subnets(std::slice::from_ref(&way)).await.expect("subnets");
        found.sort_by(|a, b| a.zone.cmp(&b.zone));
        let ids: Vec<&String> = found.iter().map(|subnet| &subnet.id).collect();
        assert_eq!(ids, network.subnets.iter().collect::<Vec<_>>(), "{way:?}");
        let zones: Vec<&str> = found.iter().map(|subnet| subnet.zone.as_str()).collect();
        assert_eq!(zones, ["us-west-2a", "us-west-2b"]);
        assert!(found.iter().all(|subnet| subnet.zone_id.starts_with("usw2-az")));
        // Amazon keeps five of the 4096 addresses for itself.
        assert!(found.iter().all(|subnet| subnet.available_addresses == 4091));
    }
    let ways = [
        Filter::tag(DISCOVERY, CLUSTER),
        Filter::new("group-id", [network.group.clone()]),
        Filter::new("group-name", ["nodes"]),
    ];
    for way in ways {
        let found = ec2.security_groups(std::slice::from_ref(&way)).await.expect("groups");
        let found: Vec<(&str, &str)> = found
            .iter()
            .map(|group| (group.id.as_str(), group.name.as_str()))
            .collect();
        assert_eq!(found, [(network.group.as_str(), "nodes")], "{way:?}");
    }
    assert_eq!(ec2.subnets(&[Filter::tag(DISCOVERY, "other")]).await, Ok(Vec::new()));
}

#[tokio::test]
async fn images_are_found_by_name_owner_and_id() {
    let moto = Moto::start().await;
    let query = |filter: Filter, owners: &[&str]| ImageQuery {
        filters: vec![filter, Filter::new("state", ["available"])],
        owners: owners.iter().map(|owner| (*owner).to_owned()).collect(),
    };
    let by_name = query(Filter::new("name", ["al2023-ami-2023*"]), &["self", "amazon"]);
    let found = moto.aws.ec2.images(&by_name).await.expect("images");
    let first = found.first().expect("moto has Amazon Linux");
    assert!(first.id.starts_with("ami-") && !first.created.is_empty());
    assert!(["x86_64", "arm64"].contains(&first.architecture.as_str()));
    let by_id = query(Filter::new("image-id", [first.id.clone()]), &[]);
    assert_eq!(moto.aws.ec2.images(&by_id).await, Ok(vec![first.clone()]));
}

#[tokio::test]
async fn types_offerings_and_spot_prices_agree() {
    let moto = Moto::start().await;
    let ec2 = &moto.aws.ec2;
    ec2.check_access().await.expect("moto lets everybody in");
    let types = ec2.instance_types().await.expect("types");
    let named = |name: &str| types.iter().find(|info| info.name == name).expect("a well-known type");
    let large = named("m5.large");
    assert_eq!((large.vcpus, large.memory_mib), (2, 8192));
    assert_eq!(large.architectures, ["x86_64"]);
    assert_eq!(large.usage_classes, ["on-demand", "spot"]);
    assert_eq!(
        (large.network.default_interfaces(), large.network.ipv4_per_interface),
        (3, 10)
    );
    assert_eq!(large.ebs_bandwidth_mbps, Some(4750));
    assert_eq!(large.hypervisor, "nitro");
    assert_eq!(named("m6g.large").architectures, ["arm64"]);
    let gpus = &named("p4d.24xlarge").gpus;
    assert_eq!(
        (gpus[0].name.as_str(), gpus[0].manufacturer.as_str(), gpus[0].count),
        ("A100", "NVIDIA", 8)
    );
    assert!(
        named("m5d.large")
            .storage
            .as_ref()
            .is_some_and(|storage| storage.nvme && storage.total_gb == 75)
    );
    assert_eq!(named("p4d.24xlarge").network.max_efa_interfaces, 4);

    let offerings = ec2.type_offerings().await.expect("offerings");
    let zones = offerings.iter().filter(|offering| offering.instance_type == "m5.large");
    assert!(zones.clone().count() >= 3 && zones.clone().all(|offering| offering.zone.starts_with(REGION)));

    let now: Timestamp = "2026-11-16T05:00:00Z".parse().expect("a time");
    let prices = ec2.spot_prices(now).await.expect("prices");
    assert!(
        prices
            .iter()
            .any(|price| price.instance_type == "m5.large" && price.zone == "us-west-2a")
    );
    assert!(prices.iter().all(|price| price.price > 0.0));
}
