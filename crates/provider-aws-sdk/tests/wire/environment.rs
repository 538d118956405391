//! Region, credentials and endpoints come from the environment, for every service.

use std::{env, process::Stdio};

use provider_aws::ports::PriceQuery;
use provider_aws_sdk::{ConnectError, Connection};
use serde_json::json;
use tokio::process::Command;

use crate::script::{Script, Seen, iam, json};

/// Set in the process that this test starts: what it is to do there.
const PART: &str = "PROVIDER_AWS_SDK_TEST_PART";

/// A program cannot change its own environment safely, so this test runs itself again in one that it has made.
fn again(test: &str, part: &str) -> Command {
    let mut command = Command::new(env::current_exe().expect("a running program has a path"));
    command.args(["--exact", test, "--nocapture"]);
    let foreign = env::vars_os().filter(|(name, _)| {
        let name = name.to_string_lossy().to_uppercase();
        name.starts_with("AWS_") || name.ends_with("_PROXY")
    });
    for (name, _) in foreign {
        command.env_remove(name);
    }
    command.env(PART, part).stdin(Stdio::null()).kill_on_drop(true);
    command
}

fn part() -> Option<String> {
    env::var(PART).ok()
}

#[tokio::test]
async fn the_environment_says_where_to_call() {
    if part().is_some() {
        return call_everything().await;
    }
    let one = Script::of([]).await;
    let other = Script::of([]).await;
    let status = again("environment::the_environment_says_where_to_call", "call")
        .env("AWS_REGION", "eu-north-1")
        .env("AWS_ACCESS_KEY_ID", "key")
        .env("AWS_SECRET_ACCESS_KEY", "secret")
        .env("AWS_ENDPOINT_URL", &one.endpoint)
        .env("AWS_ENDPOINT_URL_SQS", &other.endpoint)
        .status()
        .await
        .expect("the test program runs");
    assert!(status.success());
    let scopes = |script: &Script| script.seen().iter().map(Seen::scope).collect::<Vec<_>>();
    assert_eq!(
        scopes(&one),
        [
            "eu-north-1/ec2",
            // IAM is one for all regions, but who names an endpoint is taken at their word.
            "eu-north-1/iam",
            "eu-north-1/ssm",
            "eu-north-1/eks",
            // The price list is not served in every region.
            "eu-central-1/pricing",
            "eu-north-1/arc-zonal-shift",
        ]
    );
    assert_eq!(scopes(&other), ["eu-north-1/sqs"]);
}

async fn call_everything() {
    let connected = provider_aws_sdk::connect(&Connection::default())
        .await
        .expect("the environment names a region");
    assert_eq!(connected.region, "eu-north-1");
    let query = PriceQuery {
        service: "AmazonEC2",
        filters: Vec::new(),
    };
    let aws = connected.aws;
    let refusals = [
        aws.ec2.check_access().await.err(),
        aws.iam.profile("demo").await.err(),
        aws.ssm.parameter("/a").await.err(),
        aws.eks.cluster("demo").await.err(),
        aws.prices.products(&query).await.err(),
        aws.queue.url("demo").await.err(),
        aws.zonal_shift.shifts("arn").await.err(),
    ];
    for refusal in refusals {
        assert_eq!(refusal.expect("the script is over").status, Some(410));
    }
}

#[tokio::test]
async fn without_a_region_there_is_no_connection_and_without_credentials_no_call() {
    match part().as_deref() {
        None => {
            let home = tempfile::tempdir().expect("a folder");
            for (part, region) in [("nowhere", None), ("nobody", Some("us-west-2"))] {
                let mut command = again(
                    "environment::without_a_region_there_is_no_connection_and_without_credentials_no_call",
                    part,
                );
                command
                    .env("HOME", home.path())
                    .env("AWS_EC2_METADATA_DISABLED", "true");
                if let Some(region) = region {
                    command.env("AWS_REGION", region);
                }
                assert!(
                    command.status().await.expect("the test program runs").success(),
                    "{part}"
                );
            }
        }
        Some("nowhere") => {
            let refused = provider_aws_sdk::connect(&Connection::default()).await.err();
            assert!(matches!(refused, Some(ConnectError::NoRegion)));
        }
        Some(_) => {
            let connected = provider_aws_sdk::connect(&Connection::default())
                .await
                .expect("a region");
            let refusal = connected.aws.ec2.check_access().await.expect_err("nobody may call");
            assert_eq!(refusal.code, "NoCredentials");
            assert!(!refusal.is_transient(), "{refusal}");
        }
    }
}

/// What EKS puts into a pod: for Pod Identity the address of its agent, for IRSA a role, and for both a file with a token.
#[tokio::test]
async fn a_pod_calls_with_the_credentials_of_its_role() {
    const OWN: &str = "environment::a_pod_calls_with_the_credentials_of_its_role";
    if part().is_some() {
        let connected = provider_aws_sdk::connect(&Connection::default())
            .await
            .expect("a region");
        let refusal = connected.aws.ec2.check_access().await.expect_err("the script is over");
        assert_eq!(refusal.status, Some(410), "{refusal}");
        return;
    }
    let home = tempfile::tempdir().expect("a folder");
    let token = home.path().join("token");
    std::fs::write(&token, "token-of-the-pod").expect("a file");
    let called = async |variables: &[(&str, &str)]| {
        let ec2 = Script::of([]).await;
        let status = again(OWN, "call")
            .env("HOME", home.path())
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .env("AWS_REGION", "eu-north-1")
            .env("AWS_ENDPOINT_URL_EC2", &ec2.endpoint)
            .envs(variables.iter().copied())
            .status()
            .await
            .expect("the test program runs");
        assert!(status.success(), "{variables:?}");
        let [seen] = ec2.seen().try_into().expect("one call");
        seen
    };
    let token = token.to_string_lossy();

    let agent = Script::of([json(
        200,
        &json!({"AccessKeyId": "POD", "SecretAccessKey": "secret", "Token": "of-pod", "Expiration": "2099-01-01T00:00:00Z"}),
    )])
    .await;
    let uri = format!("{}/v1/credentials", agent.endpoint);
    let seen = called(&[
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", &uri),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", &token),
    ])
    .await;
    assert!(seen.header("authorization").contains("Credential=POD/"), "{seen:?}");
    assert_eq!(seen.header("x-amz-security-token"), "of-pod");
    assert_eq!(agent.seen()[0].header("authorization"), "token-of-the-pod");

    let sts = Script::of([iam(
        "AssumeRoleWithWebIdentity",
        "<Credentials><AccessKeyId>IRSA</AccessKeyId><SecretAccessKey>secret</SecretAccessKey>\
         <SessionToken>of-irsa</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration></Credentials>",
    )])
    .await;
    let role = "arn:aws:iam::123456789012:role/KarpenterControllerRole-demo";
    let seen = called(&[
        ("AWS_ROLE_ARN", role),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", &token),
        ("AWS_ENDPOINT_URL_STS", &sts.endpoint),
    ])
    .await;
    assert!(seen.header("authorization").contains("Credential=IRSA/"), "{seen:?}");
    assert_eq!(seen.header("x-amz-security-token"), "of-irsa");
    let asked = sts.seen()[0].form();
    assert_eq!(
        (&*asked["RoleArn"], &*asked["WebIdentityToken"]),
        (role, "token-of-the-pod")
    );
}
