//! Node classes: resolved, tried, stamped, let go.

use api::{aws::EC2NodeClass, v1::NodeClaim};
use kube::ResourceExt;
use provider_aws::{error::AwsError, ports::ImageInfo};
use serde_json::json;

use crate::cluster::{class, cluster, condition, minutes, reason};

/// AW24.3.8, AW24.4.3, AW24.4.9, AW24.5.1
#[tokio::test(start_paused = true)]
async fn a_class_becomes_ready_with_all_that_its_selectors_found() {
    let cluster = cluster().await;
    let class = cluster.ready_class().await;
    let status = class.status.clone().expect("a status");
    let ids = |subnets: &[api::aws::Subnet]| subnets.iter().map(|subnet| subnet.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&status.subnets.unwrap()), ["subnet-a", "subnet-b"]);
    assert_eq!(status.security_groups.unwrap()[0].id, "sg-1");
    assert_eq!(status.amis.unwrap()[0].id, "ami-1");
    assert_eq!(status.conditions.unwrap().len(), 8);
    let profile = status.instance_profile.unwrap();
    assert_eq!(
        cluster.aws.profile(&profile).unwrap().role.as_deref(),
        Some("node-role")
    );
    assert_eq!(class.finalizers(), ["karpenter.k8s.aws/termination"]);
    assert_eq!(class.annotations()["karpenter.k8s.aws/ec2nodeclass-hash-version"], "v5");
    assert!(class.annotations().contains_key("karpenter.k8s.aws/ec2nodeclass-hash"));

    let written = class.resource_version();
    tokio::time::sleep(minutes(20)).await;
    let later: EC2NodeClass = cluster.get("default").await;
    assert_eq!(
        later.resource_version(),
        written,
        "a class that is settled is not written again"
    );
    assert_eq!(cluster.aws.calls("RunInstances"), 1, "nor is it tried again");
}

/// AW24.3.10, AW24.4.4, AW24.4.5, AW24.6.1
#[tokio::test(start_paused = true)]
async fn a_class_that_selects_nothing_says_everything_that_is_wrong() {
    let cluster = cluster().await;
    let mut bad = class();
    bad["spec"]["subnetSelectorTerms"] = json!([{"tags": {"team": "b"}}]);
    bad["spec"]["securityGroupSelectorTerms"] = json!([{"name": "other"}]);
    bad["spec"]["amiSelectorTerms"] = json!([{"id": "ami-2"}]);
    cluster.create::<EC2NodeClass>(bad).await;
    let found = async || cluster.get::<EC2NodeClass>("default").await;
    cluster
        .until("the class is not ready", minutes(1), async || {
            condition(&found().await, "Ready") == "False"
        })
        .await;
    let class = found().await;
    assert_eq!(reason(&class, "SubnetsReady"), "SubnetsNotFound");
    assert_eq!(reason(&class, "SecurityGroupsReady"), "SecurityGroupsNotFound");
    assert_eq!(reason(&class, "AMIsReady"), "AMINotFound");
    assert_eq!(reason(&class, "ValidationSucceeded"), "DependenciesNotReady");

    let image = ImageInfo {
        id: "ami-2".to_owned(),
        architecture: "x86_64".to_owned(),
        ..ImageInfo::default()
    };
    cluster.aws.add_image(image, &[]);
    cluster.aws.add_group("sg-2", "other", &[]);
    cluster.aws.add_subnet("subnet-c", "us-west-2a", 1, &[("team", "b")]);
    cluster
        .until("the class finds what came later", minutes(5), async || {
            condition(&found().await, "Ready") == "True"
        })
        .await;
}

/// AW24.6.4: other classes go on.
#[tokio::test(start_paused = true)]
async fn a_permission_that_lacks_is_on_the_class() {
    let cluster = cluster().await;
    cluster
        .aws
        .fail("CreateFleet", AwsError::new("UnauthorizedOperation", "no"));
    cluster.create::<EC2NodeClass>(class()).await;
    let found = async || cluster.get::<EC2NodeClass>("default").await;
    cluster
        .until("the class is refused", minutes(1), async || {
            reason(&found().await, "ValidationSucceeded") == "CreateFleetAuthCheckFailed"
        })
        .await;
    let mut other = class();
    other["metadata"]["name"] = json!("other");
    cluster.create::<EC2NodeClass>(other).await;
    cluster
        .until("the other class is ready", minutes(1), async || {
            condition(&cluster.get::<EC2NodeClass>("other").await, "Ready") == "True"
        })
        .await;
    assert_eq!(condition(&found().await, "Ready"), "False");
    cluster
        .until("EC2 is asked again in time", minutes(45), async || {
            condition(&found().await, "Ready") == "True"
        })
        .await;
}

/// AW24.3.9, AW24.5.7: what could not be asked leaves the condition as it was, and is asked again.
#[tokio::test(start_paused = true)]
async fn a_class_does_not_stop_working_because_of_a_failed_request() {
    let cluster = cluster().await;
    cluster.ready_class().await;
    for _ in 0..3 {
        cluster
            .aws
            .fail("DescribeSubnets", AwsError::new("RequestLimitExceeded", "slow down"));
        cluster.aws.fail("DescribeImages", AwsError::new("InternalError", "x"));
    }
    tokio::time::sleep(minutes(6)).await;
    let class: EC2NodeClass = cluster.get("default").await;
    assert_eq!(condition(&class, "Ready"), "True");
    assert!(cluster.aws.calls("DescribeSubnets") > 4, "it was asked again");
}

/// AW24.8.1, AW24.8.2, AW24.8.3
#[tokio::test(start_paused = true)]
async fn a_class_stays_while_it_is_used_and_cleans_up_when_it_goes() {
    let cluster = cluster().await;
    cluster.ready_class().await;
    cluster.launched("one", "m5.large", "on-demand").await;
    assert!(!cluster.aws.template_names().is_empty() && !cluster.aws.profile_names().is_empty());
    cluster.delete::<EC2NodeClass>("default").await;
    tokio::time::sleep(minutes(1)).await;
    assert!(
        cluster.find::<EC2NodeClass>("default").await.is_some(),
        "a claim refers to it"
    );
    assert!(
        cluster
            .told("default")
            .await
            .contains(&"WaitingOnNodeClaimTermination".to_owned())
    );

    cluster
        .aws
        .fail("DeleteLaunchTemplate", AwsError::new("InternalError", "x"));
    cluster.delete::<NodeClaim>("one").await;
    cluster
        .until("the claim is gone", minutes(5), async || {
            cluster.aws.let_time_pass();
            cluster.find::<NodeClaim>("one").await.is_none()
        })
        .await;
    cluster
        .until("the class is gone", minutes(5), async || {
            cluster.find::<EC2NodeClass>("default").await.is_none()
        })
        .await;
    assert!(cluster.aws.template_names().is_empty() && cluster.aws.profile_names().is_empty());
}

/// AW24.8.6
#[tokio::test(start_paused = true)]
async fn stamps_of_another_version_are_renewed_on_class_and_claims() {
    let cluster = cluster().await;
    cluster.ready_class().await;
    let (claim, _) = cluster.launched("one", "m5.large", "on-demand").await;
    let hash = claim.annotations()["karpenter.k8s.aws/ec2nodeclass-hash"].clone();
    let old = json!({"metadata": {"annotations": {
        "karpenter.k8s.aws/ec2nodeclass-hash": "1", "karpenter.k8s.aws/ec2nodeclass-hash-version": "v4",
    }}});
    cluster.patch::<NodeClaim>("one", old.clone()).await;
    tokio::time::sleep(minutes(1)).await;
    let claim: NodeClaim = cluster.get("one").await;
    assert_eq!(
        claim.annotations()["karpenter.k8s.aws/ec2nodeclass-hash"],
        "1",
        "a class of this version leaves its claims alone"
    );
    cluster.patch::<EC2NodeClass>("default", old).await;
    cluster
        .until("both are stamped", minutes(1), async || {
            let version = "karpenter.k8s.aws/ec2nodeclass-hash-version";
            cluster.get::<NodeClaim>("one").await.annotations()[version] == "v5"
                && cluster.get::<EC2NodeClass>("default").await.annotations()[version] == "v5"
        })
        .await;
    let claim: NodeClaim = cluster.get("one").await;
    assert_eq!(claim.annotations()["karpenter.k8s.aws/ec2nodeclass-hash"], hash);
}
