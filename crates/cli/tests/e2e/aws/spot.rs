//! Spot instances of both architectures, and the two minutes that they have when EC2 wants one back.

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::region::{CLUSTER, Region};

/// Images and subnets by id, the security group by tag, nothing but spot.
fn spot_only(region: &Region) -> [Value; 2] {
    let subnets: Vec<Value> = region.fake.with(|state, _| {
        let subnets = state.region.network.subnets.iter();
        subnets.take(2).map(|subnet| json!({"id": subnet.id})).collect()
    });
    let images = ["x86_64", "arm64"].map(|architecture| json!({"id": region.image(architecture)}));
    let class = json!({
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "default"},
        "spec": {
            "role": format!("KarpenterNodeRole-{CLUSTER}"), "amiFamily": "AL2023",
            "amiSelectorTerms": images, "subnetSelectorTerms": subnets,
            "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": CLUSTER}}],
        },
    });
    let pool = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"},
        "spec": {
            "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]},
            "template": {"spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                "requirements": [
                    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
                    {"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["c", "m", "r"]},
                ],
            }},
        },
    });
    [class, pool]
}

fn runs_on<'a>(pods: &'a [Pod], deployment: &str) -> Option<&'a str> {
    let of = |pod: &&Pod| {
        pod.metadata
            .labels
            .as_ref()
            .and_then(|labels| labels.get("app"))
            .map(String::as_str)
            == Some(deployment)
    };
    pods.iter().find(of)?.spec.as_ref()?.node_name.as_deref()
}

#[tokio::test]
async fn pods_leave_a_spot_instance_before_ec2_takes_it_back() {
    let region = Region::start().await;
    let cluster = &region.cluster;
    for object in spot_only(&region) {
        cluster.apply(object).await;
    }
    for architecture in ["amd64", "arm64"] {
        let selector = json!({"kubernetes.io/arch": architecture});
        cluster.create_deployment_where(architecture, "1", selector).await;
        cluster.scale(architecture, 1).await;
    }
    cluster.until_running(2).await;
    let mut alive = region.alive();
    alive.sort_by(|one, other| one.architecture.cmp(&other.architecture));
    let [arm, amd] = alive.try_into().expect("a node for each architecture");
    for (instance, architecture) in [(&arm, "arm64"), (&amd, "x86_64")] {
        assert_eq!(instance.image, region.image(architecture));
        assert_eq!(instance.capacity.lifecycle(), "spot");
        assert_ne!(instance.zone, "us-west-2c", "its subnet was not selected");
    }

    region.order("interruptions", &json!({"kind": "spot", "instance": amd.id}));
    cluster
        .eventually("the instance is let go", async || match region.instance(&amd.id).end {
            Some(_) => Ok(()),
            None => Err("it still runs".to_owned()),
        })
        .await;
    cluster.until_running(2).await;
    let warned = region.instance(&amd.id);
    let (end, limit) = (warned.end.expect("an end"), warned.reclaimed_at.expect("a warning"));
    assert!(
        end.shutting_down_at < limit,
        "EC2 took it at {limit}, which is too late for its pods"
    );
    let pods = cluster.pods().await;
    let node = runs_on(&pods, "amd64").expect("it runs");
    let elsewhere = region.alive().into_iter().filter(|one| one.id != arm.id);
    let elsewhere: Vec<String> = elsewhere.map(|one| one.private_dns("us-west-2")).collect();
    assert_eq!(elsewhere, [node], "the pod is on the instance that came instead");

    for architecture in ["amd64", "arm64"] {
        cluster.scale(architecture, 0).await;
    }
    cluster.until_empty().await;
    assert!(region.alive().is_empty(), "no instance outlives its node");
}
