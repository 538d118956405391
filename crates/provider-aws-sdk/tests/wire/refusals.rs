//! What is not answered, or answered with a refusal; and what is tried again.

use std::time::Duration;

use expect_test::expect;
use provider_aws::{error::AwsError, ports::Filter};
use provider_aws_sdk::{ConnectError, Connection, Patience};
use serde_json::json;

use crate::script::{Answer, Script, ec2, ec2_error, iam_error, json};

#[tokio::test]
async fn every_protocol_has_its_codes() {
    let script = Script::of([
        ec2_error(400, "InvalidInstanceID.NotFound", "no such instance"),
        iam_error(404, "NoSuchEntity", "no such role"),
        json(400, &json!({"__type": "ParameterNotFound"})),
        json(
            400,
            &json!({"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "no such queue"}),
        ),
        json(
            403,
            &json!({"__type": "AccessDeniedException", "message": "not allowed"}),
        ),
        json(
            404,
            &json!({"__type": "ResourceNotFoundException", "message": "no such resource"}),
        ),
        json(
            400,
            &json!({"__type": "ExpiredNextTokenException", "message": "too late"}),
        ),
    ])
    .await;
    let aws = script.aws();
    let refusal = |code: &str, message: &str, status| Err(AwsError::new(code, message).with_status(status));
    let query = provider_aws::ports::PriceQuery {
        service: "AmazonEC2",
        filters: Vec::new(),
    };
    assert_eq!(
        aws.ec2.terminate_instances(&["i-1".to_owned()]).await,
        refusal("InvalidInstanceID.NotFound", "no such instance", 400).map(|()| Vec::new())
    );
    assert_eq!(
        aws.iam.add_role("demo_1", "role").await,
        refusal("NoSuchEntity", "no such role", 404)
    );
    assert_eq!(
        aws.ssm.parameter("/a").await,
        refusal("ParameterNotFound", "", 400).map(|()| String::new())
    );
    assert_eq!(
        aws.queue.delete("https://queue", "r-1").await,
        refusal("QueueDoesNotExist", "no such queue", 400)
    );
    let denied = aws.eks.cluster("demo").await.expect_err("denied");
    assert_eq!(denied.to_string(), "AccessDeniedException: not allowed");
    let unmanaged = aws.zonal_shift.shifts("arn").await.expect_err("not managed");
    assert_eq!(unmanaged.code, "ResourceNotFoundException");
    let late = aws.prices.products(&query).await.expect_err("late");
    assert_eq!(late.code, "ExpiredNextTokenException");
}

#[tokio::test]
async fn what_is_not_aws_is_told_by_its_status() {
    let page = |status| Answer::Text {
        status,
        kind: "text/html",
        body: "<html>no".to_owned(),
    };
    let script = Script::of([page(403), page(200)]).await;
    let ec2 = &script.aws().ec2;
    let denied = ec2.subnets(&[]).await.expect_err("a proxy that says no");
    assert_eq!((denied.code.as_str(), denied.status), ("HTTP 403", Some(403)));
    assert!(!denied.is_transient(), "{denied}");
    let strange = ec2.subnets(&[]).await.expect_err("a page that is no answer");
    assert_eq!((strange.code.as_str(), strange.status), ("HTTP 200", Some(200)));
}

#[tokio::test]
async fn throttled_calls_are_repeated_and_counted() {
    let throttled = || ec2_error(503, "RequestLimitExceeded", "slow down");
    let connection = Connection {
        version: "1.2.3".to_owned(),
        ..Connection::default()
    };
    let answers = [throttled(), throttled(), ec2("DescribeSubnets", "<subnetSet/>")];
    let script = Script::with(answers, &connection).await;
    let found = script.aws().ec2.subnets(&[Filter::tag("a", "b")]).await;
    assert_eq!(found, Ok(Vec::new()));
    let seen = script.seen();
    assert_eq!(seen.len(), 3);
    assert!(
        seen.iter()
            .all(|request| request.header("user-agent").ends_with(" karpenter.sh-1.2.3"))
    );
    let encoded = script.connected.calls.encoded();
    let mut counted: Vec<String> = encoded
        .lines()
        .filter(|line| line.contains("_total{") || line.contains("retry_count_sum{"))
        .map(|line| format!("{line}\n"))
        .collect();
    counted.sort();
    expect![[r#"
        aws_sdk_go_request_attempt_total{action="DescribeSubnets",code="200",service="EC2"} 1
        aws_sdk_go_request_attempt_total{action="DescribeSubnets",code="503",service="EC2"} 2
        aws_sdk_go_request_retry_count_sum{action="DescribeSubnets",code="200",service="EC2"} 2.0
        aws_sdk_go_request_total{action="DescribeSubnets",code="200",service="EC2"} 1
    "#]]
    .assert_eq(&counted.concat());
}

#[tokio::test]
async fn a_refusal_outlives_its_repetitions() {
    let script = Script::of([0, 1, 2].map(|_| ec2_error(503, "RequestLimitExceeded", "slow down"))).await;
    let refusal = script.aws().ec2.subnets(&[]).await.expect_err("throttled three times");
    assert_eq!(
        refusal,
        AwsError::new("RequestLimitExceeded", "slow down").with_status(503)
    );
    assert_eq!(script.seen().len(), 3);
}

#[tokio::test]
async fn an_endpoint_that_hangs_is_given_up() {
    let connection = Connection {
        patience: Patience {
            attempt: Duration::from_millis(50),
            ..Patience::default()
        },
        ..Connection::default()
    };
    let script = Script::with([Answer::Silence, Answer::Silence, Answer::Silence], &connection).await;
    let refusal = script.aws().ec2.subnets(&[]).await.expect_err("silence");
    assert!(refusal.code.is_empty() && refusal.is_transient(), "{refusal}");
    assert!(
        refusal.message.contains("timed out") || refusal.message.contains("timeout"),
        "{refusal}"
    );
}

#[tokio::test]
async fn a_call_that_hangs_too_often_is_given_up_as_a_whole() {
    let connection = Connection {
        patience: Patience {
            call: Duration::from_millis(20),
            ..Patience::default()
        },
        ..Connection::default()
    };
    let script = Script::with([Answer::Silence], &connection).await;
    let refusal = script.aws().ec2.subnets(&[]).await.expect_err("silence");
    assert!(refusal.is_transient(), "{refusal}");
    assert!(script.seen().len() <= 1);
}

#[tokio::test]
async fn a_version_that_would_break_the_header_is_refused() {
    let connection = Connection {
        version: "1.2.3 (dirty)".to_owned(),
        ..Connection::default()
    };
    let config = aws_config::SdkConfig::builder()
        .region(aws_config::Region::new("us-west-2"))
        .build();
    let refused = provider_aws_sdk::over(&config, &connection).err();
    assert!(matches!(refused, Some(ConnectError::BadVersion(_))));
    let nowhere = provider_aws_sdk::over(&aws_config::SdkConfig::builder().build(), &Connection::default()).err();
    assert!(matches!(nowhere, Some(ConnectError::NoRegion)));
}
