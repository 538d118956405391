//! What is wrong is said where users look, with what would help, and whatever is not concerned goes on.

use std::time::Duration;

use api::v1::NodeClaim;
use serde_json::{Value, json};

use crate::stage::{Stage, class, conditions, minutes, pool};

/// A class that works, with a pool, beside those that do not.
async fn with_a_good_class() -> Stage {
    let mut stage = Stage::new().await;
    stage.apply(class("good")).await;
    stage.apply(pool("good", &["m5.large"])).await;
    stage.until_ready("good", minutes(5)).await;
    stage
}

/// Waits until the class, by a condition or an event about it, says all of these words.
async fn until_class_says(stage: &mut Stage, name: &str, words: &[&str]) {
    let what = format!("{name} to say {words:?}");
    let told = async |stage: &Stage| {
        let mut told = stage.told("EC2NodeClass", Some(name)).await;
        told.push(conditions(&stage.class(name).await));
        said(&told, words)
    };
    stage.until(&what, minutes(12), told).await;
}

/// Waits until some claim says all of these words.
async fn until_a_claim_says(stage: &mut Stage, words: &[&str]) {
    let what = format!("a claim to say {words:?}");
    let told = async |stage: &Stage| {
        let mut told = stage.told("NodeClaim", None).await;
        told.extend(stage.list::<NodeClaim>().await.iter().map(conditions));
        said(&told, words)
    };
    stage.until(&what, minutes(12), told).await;
}

fn said(told: &[String], words: &[&str]) -> Result<(), String> {
    let says_all = |text: &String| words.iter().all(|word| text.contains(word));
    if told.iter().any(says_all) {
        Ok(())
    } else {
        Err(format!("{told:#?}"))
    }
}

fn policy_without(action: &str) -> Value {
    json!({"document": {"Version": "2012-10-17", "Statement": [
        {"Effect": "Allow", "Action": "*", "Resource": "*"},
        {"Effect": "Deny", "Action": action, "Resource": "*"},
    ]}})
}

/// Every permission that a class needs, withheld from one class after the other.
#[tokio::test(start_paused = true)]
async fn a_permission_that_lacks_is_named_and_other_classes_go_on() {
    let mut stage = with_a_good_class().await;
    let actions = [
        ("ec2:DescribeImages", "ec2:DescribeImages"),
        ("ec2:DescribeSubnets", "ec2:DescribeSubnets"),
        ("ec2:DescribeSecurityGroups", "ec2:DescribeSecurityGroups"),
        ("iam:CreateInstanceProfile", "iam:CreateInstanceProfile"),
        ("iam:AddRoleToInstanceProfile", "iam:AddRoleToInstanceProfile"),
        ("ec2:CreateLaunchTemplate", "ec2:CreateLaunchTemplate"),
        ("ec2:CreateFleet", "ec2:CreateFleet"),
        // A fleet launches by RunInstances, so that its own trial is refused before that of an instance.
        ("ec2:RunInstances", "ec2:CreateFleet"),
    ];
    let mut denied = Vec::new();
    for (number, (action, named)) in actions.into_iter().enumerate() {
        let name = format!("denied-{number}");
        stage.order("policy", &policy_without(action));
        let mut own = class(&name);
        // Nothing that was found for another class answers for this one.
        own["spec"]["tags"] = json!({"number": number.to_string()});
        stage.apply(own).await;
        until_class_says(&mut stage, &name, &[named, "polic"]).await;
        stage.until_ready("good", minutes(5)).await;
        denied.push(name);
    }
    stage.order("policy", &json!({}));
    stage.scale("good", 1).await;
    stage.until_running("good", 1, minutes(1)).await;
    for name in &denied {
        // EC2's word on a class counts for half an hour.
        stage.until_ready(name, minutes(45)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_role_that_does_not_exist_is_named() {
    let mut stage = with_a_good_class().await;
    let mut bad = class("bad");
    bad["spec"]["role"] = json!("no-such-role");
    stage.apply(bad).await;
    until_class_says(
        &mut stage,
        "bad",
        &["no-such-role", "create the role, or correct spec.role"],
    )
    .await;
    stage.scale("good", 1).await;
    stage.until_running("good", 1, minutes(1)).await;
    stage.order("roles", &json!({"name": "no-such-role"}));
    stage.until_ready("bad", minutes(5)).await;
}

/// What is full or gone is left for what is not; when nothing is left, that is said.
#[tokio::test(start_paused = true)]
async fn subnets_that_are_full_or_gone_are_left_for_others() {
    let mut stage = with_a_good_class().await;
    stage.order("subnets", &json!({"subnet": "us-west-2a", "remove": true}));
    stage.order("subnets", &json!({"subnet": "us-west-2b", "available": 0}));
    stage.scale("good", 2).await;
    stage.until_running("good", 2, minutes(2)).await;
    let zones: Vec<String> = stage.alive().into_iter().map(|instance| instance.zone).collect();
    assert_eq!(zones, ["us-west-2c", "us-west-2c"]);

    stage.order("subnets", &json!({"subnet": "us-west-2c", "available": 0}));
    stage.scale("good", 3).await;
    until_a_claim_says(&mut stage, &["InsufficientFreeAddressesInSubnet"]).await;
    stage.order("subnets", &json!({"subnet": "us-west-2b", "available": 100}));
    stage.until_running("good", 3, minutes(15)).await;

    for zone in ["us-west-2b", "us-west-2c"] {
        stage.order("subnets", &json!({"subnet": zone, "remove": true}));
    }
    until_class_says(&mut stage, "good", &["SubnetsNotFound", "subnetSelectorTerms"]).await;
}

#[tokio::test(start_paused = true)]
async fn user_data_that_cannot_be_read_is_told_on_the_class() {
    let mut stage = with_a_good_class().await;
    let table = [
        (
            "bottlerocket",
            json!({"alias": "bottlerocket@latest"}),
            "[settings\nnot toml",
        ),
        (
            "mime",
            json!({"alias": "al2023@latest"}),
            "MIME-Version: 1.0\nContent-Type: multipart/mixed\n\nno boundary",
        ),
    ];
    for (name, image, text) in table {
        let mut bad = class(name);
        bad["spec"]["amiSelectorTerms"] = json!([image]);
        bad["spec"]["userData"] = json!(text);
        stage.apply(bad).await;
        until_class_says(&mut stage, name, &["user data"]).await;
    }
    stage.scale("good", 1).await;
    stage.until_running("good", 1, minutes(1)).await;
}

/// An image that no type of a pool can boot: nothing is launched, whether or not other pools can use the class.
#[tokio::test(start_paused = true)]
async fn an_image_of_the_wrong_architecture_is_named() {
    let mut stage = with_a_good_class().await;
    let image = stage.order("images", &json!({"name": "mine", "architecture": "arm64"}));
    let image = image["id"].as_str().expect("an id").to_owned();
    let words = [image.as_str(), "is for arm64", "amiSelectorTerms"];
    for name in ["useless", "half"] {
        let mut own = class(name);
        own["spec"]["amiFamily"] = json!("AL2023");
        own["spec"]["amiSelectorTerms"] = json!([{"id": image}]);
        stage.apply(pool(name, &["m5.large"])).await;
        stage.apply(own).await;
        stage.scale(name, 1).await;
    }
    let mut fitting = pool("fitting", &["m6g.large"]);
    fitting["spec"]["template"]["spec"]["nodeClassRef"]["name"] = json!("half");
    stage.apply(fitting).await;
    until_class_says(&mut stage, "useless", &words).await;
    until_class_says(&mut stage, "half", &["NodePool half", words[0], words[1], words[2]]).await;
    stage.until_ready("half", minutes(15)).await;
    for name in ["fitting", "good"] {
        stage.scale(name, 1).await;
        stage.until_running(name, 1, minutes(1)).await;
    }
    assert_eq!(stage.list::<NodeClaim>().await.len(), 2, "nothing else is tried");
}

/// Nothing that lies in the queue keeps a message behind it from being read.
#[tokio::test(start_paused = true)]
async fn messages_that_make_no_sense_hold_nobody_up() {
    let mut stage = with_a_good_class().await;
    stage.scale("good", 1).await;
    stage.until_running("good", 1, minutes(1)).await;
    let doomed = stage.alive().remove(0).id;
    for body in [
        json!("garbage"),
        json!({}),
        json!([1, 2]),
        json!({"detail-type": 7}),
        json!({"source": "aws.ec2", "detail-type": "EC2 Spot Instance Interruption Warning"}),
    ] {
        stage.order("messages", &json!({ "body": body }));
    }
    stage.order(
        "interruptions",
        &json!({"kind": "scheduled-change", "instance": doomed}),
    );
    stage
        .until("another instance in its place", minutes(3), async |stage: &Stage| {
            let alive: Vec<String> = stage.alive().into_iter().map(|instance| instance.id).collect();
            let depth = stage.fake.with(|state, _| state.region.queue.depth());
            if alive.len() == 1 && alive[0] != doomed && depth == 0 {
                Ok(())
            } else {
                Err(format!("{alive:?}, {depth} messages"))
            }
        })
        .await;
    stage.until_running("good", 1, minutes(2)).await;
}

/// While AWS knows nobody who asks, everything waits; when it knows us again, everything goes on.
#[tokio::test(start_paused = true)]
async fn credentials_that_have_run_out_are_named_and_renewed() {
    let mut stage = with_a_good_class().await;
    stage.order(
        "faults",
        &json!({"action": "*", "code": "ExpiredToken", "message": "The security token is expired"}),
    );
    stage.apply(class("late")).await;
    stage.scale("good", 1).await;
    until_class_says(&mut stage, "late", &["ExpiredToken", "renew the credentials"]).await;
    stage
        .until(
            "the claim says why it has no instance",
            minutes(5),
            async |stage: &Stage| {
                let claims = stage.list::<api::v1::NodeClaim>().await;
                let told: Vec<String> = claims.iter().map(conditions).collect();
                let says = |text: &String| text.contains("credentials of the controller have run out");
                if told.iter().any(says) {
                    Ok(())
                } else {
                    Err(format!("{told:?}"))
                }
            },
        )
        .await;
    stage.order("clear-faults", &json!({}));
    stage.until_running("good", 1, minutes(10)).await;
    stage.until_ready("late", minutes(5)).await;
}

/// One call that never comes back: its class is told so, the others are served.
#[tokio::test(start_paused = true)]
async fn an_endpoint_that_hangs_holds_up_nothing_else() {
    let mut stage = with_a_good_class().await;
    stage.hang("DescribeSecurityGroups");
    stage.apply(class("late")).await;
    stage.scale("good", 1).await;
    stage.until_running("good", 1, minutes(1)).await;
    until_class_says(&mut stage, "late", &["security groups", "endpoint can be reached"]).await;
    stage.hang("");
    stage.until_ready("late", minutes(15)).await;
}

/// What one zone or one type cannot give is taken elsewhere in the same round, and sought there again later.
#[tokio::test(start_paused = true)]
async fn a_shortage_delays_nobody_who_can_go_elsewhere() {
    let mut stage = with_a_good_class().await;
    stage.apply(pool("good", &["m5.large", "c5.large"])).await;
    for (kind, zone) in [
        ("c5.large", "*"),
        ("m5.large", "us-west-2a"),
        ("m5.large", "us-west-2b"),
    ] {
        stage.order("capacity", &json!({"instanceType": kind, "zone": zone, "available": 0}));
    }
    stage.scale("good", 2).await;
    stage.until_running("good", 2, Duration::from_secs(60)).await;
    let found: Vec<(String, String)> = stage
        .alive()
        .into_iter()
        .map(|one| (one.fact.name.clone(), one.zone))
        .collect();
    let expected = ("m5.large".to_owned(), "us-west-2c".to_owned());
    assert_eq!(found, [expected.clone(), expected]);

    stage.order(
        "capacity",
        &json!({"instanceType": "m5.large", "zone": "us-west-2c", "available": 0}),
    );
    stage.scale("good", 3).await;
    until_a_claim_says(&mut stage, &["m5.large", "InsufficientInstanceCapacity"]).await;
    for (kind, zone) in [
        ("c5.large", "*"),
        ("m5.large", "us-west-2a"),
        ("m5.large", "us-west-2b"),
        ("m5.large", "us-west-2c"),
    ] {
        stage.order(
            "capacity",
            &json!({"instanceType": kind, "zone": zone, "available": null}),
        );
    }
    stage.until_running("good", 3, minutes(10)).await;
}
