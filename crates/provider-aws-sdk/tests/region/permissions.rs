//! The published policies allow all that the program asks for, and nothing of them can be taken away.

use std::{collections::BTreeSet, path::Path};

use api::aws::EC2NodeClass;
use aws_fake::iam::{Ask, Policy, Verdict};
use serde_json::{Value, json};

use crate::stage::{CLUSTER, REGION, Stage, class, minutes, pool};

const ACCOUNT: &str = "123456789012";
const PUBLISHED: [&str; 6] = [
    "iam/node-lifecycle",
    "iam/iam-integration",
    "iam/eks-integration",
    "iam/interruption",
    "iam/zonal-shift",
    "iam/resource-discovery",
];

/// The statements of a document under `deploy/aws`, with this account's names in it.
fn statements(document: &str) -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/aws");
    let mut text = std::fs::read_to_string(folder.join(format!("{document}.json"))).expect("the document is there");
    for (parameter, value) in [
        ("Partition", "aws".to_owned()),
        ("Region", REGION.to_owned()),
        ("AccountId", ACCOUNT.to_owned()),
        ("ClusterName", CLUSTER.to_owned()),
        (
            "NodeRoleArn",
            format!("arn:aws:iam::{ACCOUNT}:role/KarpenterNodeRole-{CLUSTER}"),
        ),
        ("QueueArn", format!("arn:aws:sqs:{REGION}:{ACCOUNT}:{CLUSTER}")),
    ] {
        text = text.replace(&format!("${{{parameter}}}"), &value);
    }
    let document: Value = serde_json::from_str(&text).expect("JSON");
    document["Statement"].as_array().expect("statements").clone()
}

fn published() -> Vec<Value> {
    PUBLISHED.into_iter().flat_map(statements).collect()
}

fn policy(statements: &[Value]) -> Policy {
    Policy::parse(&json!({ "Statement": statements })).expect("a policy")
}

fn refused<'a>(policy: &Policy, needed: impl IntoIterator<Item = &'a Ask>) -> Vec<&'a Ask> {
    let is_refused = |ask: &&Ask| policy.verdict(ask) != Verdict::Allowed;
    needed.into_iter().filter(is_refused).collect()
}

/// Every policy that has one action or one resource less than these, with what it lacks.
fn lessened(statements: &[Value]) -> Vec<(String, Vec<Value>)> {
    let mut all = Vec::new();
    for (place, statement) in statements.iter().enumerate() {
        for list in ["Action", "Resource"] {
            let words = match &statement[list] {
                Value::Array(words) => words.clone(),
                word => vec![word.clone()],
            };
            for word in &words {
                let left: Vec<&Value> = words.iter().filter(|other| *other != word).collect();
                let mut less = statements.to_vec();
                if left.is_empty() {
                    less.remove(place);
                } else {
                    less[place][list] = json!(left);
                }
                let sid = statement["Sid"].as_str().unwrap_or_default();
                all.push((format!("{sid} {}", word.as_str().unwrap_or_default()), less));
            }
        }
    }
    all
}

/// A pool that buys in this way.
fn bought_as(mut pool: Value, capacity_type: &str) -> Value {
    pool["spec"]["template"]["spec"]["requirements"][0]["values"] = json!([capacity_type]);
    pool
}

/// Everything that the program ever asks AWS for: all ways to buy, an interruption, the end of nodes and of classes.
async fn needed_by_everything() -> BTreeSet<Ask> {
    let mut stage = Stage::in_a_region(|fake| {
        let published = policy(&published());
        fake.with(|state, _| state.policy = Some(published));
    })
    .await;
    stage.order("placement-groups", &json!({"name": "together", "strategy": "cluster"}));
    let reservation = json!({"instanceType": "m5.large", "zone": "us-west-2a", "count": 1});
    let reservation = stage.order("reservations", &reservation)["id"].clone();

    let mut restored = class("restored");
    restored["spec"]["blockDeviceMappings"] = json!([{
        "deviceName": "/dev/xvda", "ebs": {"snapshotID": "snap-0123456789abcdef0", "volumeSize": "20Gi"},
    }]);
    let mut together = class("together");
    together["spec"]["placementGroupSelector"] = json!({"name": "together"});
    let mut reserved = class("reserved");
    reserved["spec"]["capacityReservationSelectorTerms"] = json!([{"id": reservation}]);
    let stories = [
        (restored, "on-demand"),
        (together, "on-demand"),
        (reserved, "reserved"),
        (class("spot"), "spot"),
    ];
    let names = stories.each_ref().map(|(class, _)| {
        let name = class["metadata"]["name"].as_str().expect("a name");
        name.to_owned()
    });
    for ((class, capacity_type), name) in stories.into_iter().zip(&names) {
        stage.apply(class).await;
        stage.apply(bought_as(pool(name, &["m5.large"]), capacity_type)).await;
        stage.until_ready(name, minutes(5)).await;
        stage.scale(name, 1).await;
        stage.until_running(name, 1, minutes(5)).await;
    }

    let is_spot = |instance: &aws_fake::region::instances::Instance| instance.spot_request.is_some();
    let spot = stage.alive().into_iter().find(is_spot).expect("a spot instance").id;
    stage.order("interruptions", &json!({"kind": "spot", "instance": spot}));
    // Until it has gone, its tags have been written and the health of the others has been asked for.
    tokio::time::sleep(minutes(5)).await;
    stage.until_running("spot", 1, minutes(5)).await;

    for name in &names {
        stage.scale(name, 0).await;
    }
    let is_empty = async |stage: &Stage| match stage.alive().len() + stage.nodes().await {
        0 => Ok(()),
        left => Err(format!("{left} left")),
    };
    stage.until("nothing runs", minutes(10), is_empty).await;
    for name in &names {
        stage.delete_class(name).await;
    }
    let no_class = async |stage: &Stage| match stage.list::<EC2NodeClass>().await.len() {
        0 => Ok(()),
        left => Err(format!("{left} left")),
    };
    stage.until("no class is left", minutes(15), no_class).await;
    stage.needed()
}

/// The policy of the migration guide, with the commas that it lacks in print.
fn of_the_guide() -> Vec<Value> {
    json!([
        {
            "Effect": "Allow",
            "Action": [
                "ssm:GetParameter", "ec2:DescribeImages", "ec2:RunInstances", "ec2:DescribeSubnets",
                "ec2:DescribeSecurityGroups", "ec2:DescribeLaunchTemplates", "ec2:DescribeInstances",
                "ec2:DescribeInstanceTypes", "ec2:DescribeInstanceTypeOfferings", "ec2:DeleteLaunchTemplate",
                "ec2:CreateTags", "ec2:CreateLaunchTemplate", "ec2:CreateFleet", "ec2:*", "ec2:DescribeSpotPriceHistory",
                "pricing:GetProducts", "iam:*",
            ],
            "Resource": "*",
        },
        {
            "Effect": "Allow", "Action": "ec2:TerminateInstances", "Resource": "*",
            "Condition": {"StringLike": {"ec2:ResourceTag/karpenter.sh/nodepool": "*"}},
        },
        {
            "Effect": "Allow", "Action": "iam:PassRole",
            "Resource": format!("arn:aws:iam::{ACCOUNT}:role/KarpenterNodeRole-{CLUSTER}"),
        },
        {
            "Effect": "Allow", "Action": "eks:DescribeCluster",
            "Resource": format!("arn:aws:eks:{REGION}:{ACCOUNT}:cluster/{CLUSTER}"),
        },
    ])
    .as_array()
    .expect("a list")
    .clone()
}

#[tokio::test(start_paused = true)]
async fn every_part_of_the_published_policies_is_needed_and_no_other() {
    let needed = needed_by_everything().await;
    let published = published();
    assert_eq!(refused(&policy(&published), &needed), Vec::<&Ask>::new());
    let needless: Vec<String> = lessened(&published)
        .into_iter()
        .filter(|(_, less)| refused(&policy(less), &needed).is_empty())
        .map(|(part, _)| part)
        .collect();
    assert_eq!(needless, Vec::<String>::new(), "nothing fails without these");

    // The simpler policies are for clusters that have neither a queue nor zonal shifts.
    let is_plain = |ask: &&Ask| !ask.action.starts_with("sqs:") && !ask.action.starts_with("arc-zonal-shift:");
    let plain: Vec<&Ask> = needed.iter().filter(is_plain).collect();
    assert!(plain.len() < needed.len());
    for simpler in [statements("iam-simplified"), of_the_guide()] {
        assert_eq!(refused(&policy(&simpler), plain.iter().copied()), Vec::<&Ask>::new());
    }
}
