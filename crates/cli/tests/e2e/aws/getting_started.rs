//! The class and the pool that the guides print, through the life that they describe.

use std::collections::BTreeSet;

use api::aws::EC2NodeClassStatus;
use serde_json::{Value, json};

use super::region::{CLUSTER, Region};

const BLUEPRINT: &str = include_str!("../../../../../deploy/blueprint/karpenter.yaml");

/// Selectors that find the same in another way change no node.
async fn find_the_same_by_id_and_by_name(region: &Region) {
    let (subnets, group) = region.fake.with(|state, _| {
        let network = &state.region.network;
        let subnets: Vec<Value> = network.subnets.iter().map(|subnet| json!({"id": subnet.id})).collect();
        (subnets, network.groups[0].name.clone())
    });
    let before = region.class().await.status.expect("a status");
    region
        .change_class(&json!({"subnetSelectorTerms": subnets, "securityGroupSelectorTerms": [{"name": group}]}))
        .await;
    region
        .cluster
        .eventually("the class has been looked at again", async || {
            let class = region.class().await;
            let ready = class
                .status
                .clone()
                .and_then(|status| status.conditions)
                .unwrap_or_default();
            let seen = ready.iter().find(|condition| condition.type_ == "Ready");
            let (seen, wanted) = (
                seen.and_then(|seen| seen.observed_generation),
                class.metadata.generation,
            );
            if seen == wanted {
                Ok(())
            } else {
                Err(format!("{seen:?}, not {wanted:?}"))
            }
        })
        .await;
    let after = region.class().await.status.expect("a status");
    // Those with the most free addresses come first, and an instance has taken one since.
    let ids = |status: &EC2NodeClassStatus| -> BTreeSet<String> {
        let subnets = status.subnets.iter().flatten();
        subnets.map(|subnet| subnet.id.clone()).collect()
    };
    assert_eq!(ids(&after), ids(&before));
    assert_eq!(after.security_groups, before.security_groups);
}

/// From nothing to three pods; the same network found by id and by name; another image; another role; and back to nothing.
#[tokio::test]
async fn a_cluster_of_the_getting_started_guide_lives_its_life() {
    let region = Region::start().await;
    let cluster = &region.cluster;
    for object in BLUEPRINT.split("---\n") {
        cluster
            .apply(serde_saphyr::from_str(object).expect("an object in YAML"))
            .await;
    }
    cluster.create_deployment("inflate", "1").await;
    cluster.scale("inflate", 3).await;
    cluster.until_running(3).await;
    let [first] = region.alive().try_into().expect("three pods of one cpu need one node");
    assert_eq!(first.image, region.image("x86_64"));
    assert_eq!(first.tags["karpenter.sh/nodepool"], "default");
    assert_eq!(region.role_of(&first), Some(format!("KarpenterNodeRole-{CLUSTER}")));
    cluster
        .eventually("the instance bears the name of its claim", async || {
            let tags = region.instance(&first.id).tags;
            let claim = cluster.claims().await.remove(0).metadata.name;
            let named = tags.get("karpenter.sh/nodeclaim") == claim.as_ref();
            if named { Ok(()) } else { Err(format!("{tags:?}")) }
        })
        .await;

    find_the_same_by_id_and_by_name(&region).await;
    assert_eq!(
        region.alive()[0].id,
        first.id,
        "the same network is no reason for another node"
    );

    region.order("releases", &json!({"date": "20260401", "bottlerocket": "1.60.0"}));
    region
        .change_class(&json!({"amiSelectorTerms": [{"alias": "al2023@v20260401"}]}))
        .await;
    let second = region.until_replaced(&first.id, 3).await;
    assert_eq!(second.image, region.image("x86_64"), "the image of the new release");
    assert_ne!(second.image, first.image);

    region.order("roles", &json!({"name": "another-role"}));
    region.change_class(&json!({"role": "another-role"})).await;
    let third = region.until_replaced(&second.id, 3).await;
    assert_eq!(region.role_of(&third).as_deref(), Some("another-role"));

    cluster.scale("inflate", 0).await;
    cluster.until_empty().await;
    assert!(region.alive().is_empty(), "no instance outlives its node");
}
