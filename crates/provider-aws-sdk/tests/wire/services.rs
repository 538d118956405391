//! The services beside EC2: IAM, SSM, EKS, the price list, the queue, the zonal shift.

use expect_test::expect;
use provider_aws::ports::{AccessEntryInfo, ClusterInfo, Filter, Message, PriceQuery, ProfileInfo, Shift, Tags};
use serde_json::json;

use crate::script::{Script, iam, json};

fn profile(name: &str, role: Option<&str>) -> String {
    let role = role.map_or_else(String::new, |role| {
        format!(
            "<member><Path>/team/</Path><RoleName>{role}</RoleName><RoleId>r</RoleId><Arn>arn:aws:iam::1:role/team/{role}</Arn>\
             <CreateDate>2026-01-01T00:00:00Z</CreateDate></member>"
        )
    });
    format!(
        "<Path>/karpenter/</Path><InstanceProfileName>{name}</InstanceProfileName><InstanceProfileId>p</InstanceProfileId>\
         <Arn>arn:aws:iam::1:instance-profile/{name}</Arn><CreateDate>2026-01-01T00:00:00Z</CreateDate><Roles>{role}</Roles>"
    )
}

#[tokio::test]
async fn profiles_live_their_life() {
    let one = |name: &str, role| format!("<InstanceProfile>{}</InstanceProfile>", profile(name, role));
    let page = |name: &str, more: &str| {
        let member = profile(name, None);
        iam(
            "ListInstanceProfiles",
            &format!("<InstanceProfiles><member>{member}</member></InstanceProfiles>{more}"),
        )
    };
    let script = Script::of([
        iam("GetInstanceProfile", &one("demo_1", Some("NodeRole"))),
        iam("CreateInstanceProfile", &one("demo_1", None)),
        iam("CreateInstanceProfile", &one("demo_1", None)),
        iam("AddRoleToInstanceProfile", ""),
        iam("RemoveRoleFromInstanceProfile", ""),
        iam("DeleteInstanceProfile", ""),
        page("demo_1", "<IsTruncated>true</IsTruncated><Marker>more</Marker>"),
        page("demo_2", "<IsTruncated>false</IsTruncated>"),
    ])
    .await;
    let iam = &script.aws().iam;
    let tags = Tags::from([("team".to_owned(), "web".to_owned())]);
    let known = |name: &str, roles: &[&str]| ProfileInfo {
        name: name.to_owned(),
        roles: roles.iter().map(|role| (*role).to_owned()).collect(),
    };
    assert_eq!(iam.profile("demo_1").await, Ok(known("demo_1", &["NodeRole"])));
    assert_eq!(
        iam.create_profile("demo_1", "/karpenter/us-west-2/demo/uid/", &tags)
            .await,
        Ok(())
    );
    assert_eq!(iam.create_profile("demo_1", "", &Tags::new()).await, Ok(()));
    assert_eq!(iam.add_role("demo_1", "NodeRole").await, Ok(()));
    assert_eq!(iam.remove_role("demo_1", "NodeRole").await, Ok(()));
    assert_eq!(iam.delete_profile("demo_1").await, Ok(()));
    assert_eq!(
        iam.profiles("/karpenter/us-west-2/demo/").await,
        Ok(vec![known("demo_1", &[]), known("demo_2", &[])])
    );
    script.check(&expect![[r#"
        us-west-2/iam GetInstanceProfile
          InstanceProfileName=demo_1

        us-west-2/iam CreateInstanceProfile
          InstanceProfileName=demo_1
          Path=/karpenter/us-west-2/demo/uid/
          Tags.member.1.Key=team
          Tags.member.1.Value=web

        us-west-2/iam CreateInstanceProfile
          InstanceProfileName=demo_1

        us-west-2/iam AddRoleToInstanceProfile
          InstanceProfileName=demo_1
          RoleName=NodeRole

        us-west-2/iam RemoveRoleFromInstanceProfile
          InstanceProfileName=demo_1
          RoleName=NodeRole

        us-west-2/iam DeleteInstanceProfile
          InstanceProfileName=demo_1

        us-west-2/iam ListInstanceProfiles
          PathPrefix=/karpenter/us-west-2/demo/

        us-west-2/iam ListInstanceProfiles
          Marker=more
          PathPrefix=/karpenter/us-west-2/demo/
    "#]]);
}

#[tokio::test]
async fn a_parameter_is_read_without_decryption() {
    let answer = json!({"Parameter": {"Name": "/a/b", "Type": "String", "Value": "ami-1", "Version": 1}});
    let script = Script::of([json(200, &answer)]).await;
    assert_eq!(script.aws().ssm.parameter("/a/b").await, Ok("ami-1".to_owned()));
    script.check(&expect![[r#"
        us-west-2/ssm AmazonSSM.GetParameter
        {
          "Name": "/a/b"
        }
    "#]]);
}

#[tokio::test]
async fn a_cluster_is_described() {
    let answer = json!({"cluster": {
        "arn": "arn:aws:eks:us-west-2:1:cluster/demo",
        "endpoint": "https://demo.example",
        "version": "1.35",
        "kubernetesNetworkConfig": {"serviceIpv4Cidr": "10.100.0.0/16", "ipFamily": "ipv4"},
        "accessConfig": {"authenticationMode": "API_AND_CONFIG_MAP"},
    }});
    let script = Script::of([json(200, &answer), json(200, &json!({}))]).await;
    let cluster = ClusterInfo {
        arn: "arn:aws:eks:us-west-2:1:cluster/demo".to_owned(),
        endpoint: "https://demo.example".to_owned(),
        version: "1.35".to_owned(),
        service_cidr_v4: Some("10.100.0.0/16".to_owned()),
        service_cidr_v6: None,
        authentication_mode: Some("API_AND_CONFIG_MAP".to_owned()),
    };
    assert_eq!(script.aws().eks.cluster("demo").await, Ok(cluster));
    let refusal = script
        .aws()
        .eks
        .cluster("demo")
        .await
        .expect_err("an answer without a cluster");
    assert_eq!(refusal.code, "IncompleteAnswer");
    script.check(&expect![[r#"
        us-west-2/eks GET /clusters/demo

        us-west-2/eks GET /clusters/demo
    "#]]);
}

#[tokio::test]
async fn access_entries_are_listed_to_the_last_page_and_described_one_by_one() {
    let role = "arn:aws:iam::1:role/team/KarpenterNodeRole-demo";
    let entry = json!({"accessEntry": {"clusterName": "demo", "principalArn": role, "type": "EC2_LINUX",
        "username": "system:node:{{EC2PrivateDNSName}}", "kubernetesGroups": ["system:nodes"]}});
    let script = Script::of([
        json(
            200,
            &json!({"accessEntries": ["arn:aws:iam::1:user/a"], "nextToken": "more"}),
        ),
        json(200, &json!({"accessEntries": [role]})),
        json(200, &entry),
    ])
    .await;
    let aws = script.aws();
    let listed = aws.eks.access_entries("demo").await;
    assert_eq!(listed, Ok(vec!["arn:aws:iam::1:user/a".to_owned(), role.to_owned()]));
    let described = AccessEntryInfo {
        kind: "EC2_LINUX".to_owned(),
        groups: vec!["system:nodes".to_owned()],
    };
    assert_eq!(aws.eks.access_entry("demo", role).await, Ok(described));
    script.check(&expect![[r#"
        us-west-2/eks GET /clusters/demo/access-entries

        us-west-2/eks GET /clusters/demo/access-entries?nextToken=more

        us-west-2/eks GET /clusters/demo/access-entries/arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fteam%2FKarpenterNodeRole-demo
    "#]]);
}

#[tokio::test]
async fn products_are_matched_exactly_and_come_as_they_are() {
    let script = Script::of([
        json(
            200,
            &json!({"FormatVersion": "aws_v1", "PriceList": ["{\"a\":1}"], "NextToken": "more"}),
        ),
        json(200, &json!({"FormatVersion": "aws_v1", "PriceList": ["{\"b\":2}"]})),
    ])
    .await;
    let query = PriceQuery {
        service: "AmazonEC2",
        filters: vec![
            Filter::new("regionCode", ["us-west-2"]),
            Filter::new("tenancy", ["Shared"]),
        ],
    };
    let found = script.aws().prices.products(&query).await;
    assert_eq!(found, Ok(vec!["{\"a\":1}".to_owned(), "{\"b\":2}".to_owned()]));
    script.check(&expect![[r#"
        us-east-1/pricing AWSPriceListService.GetProducts
        {
          "Filters": [
            {
              "Field": "regionCode",
              "Type": "TERM_MATCH",
              "Value": "us-west-2"
            },
            {
              "Field": "tenancy",
              "Type": "TERM_MATCH",
              "Value": "Shared"
            }
          ],
          "MaxResults": 100,
          "ServiceCode": "AmazonEC2"
        }

        us-east-1/pricing AWSPriceListService.GetProducts
        {
          "Filters": [
            {
              "Field": "regionCode",
              "Type": "TERM_MATCH",
              "Value": "us-west-2"
            },
            {
              "Field": "tenancy",
              "Type": "TERM_MATCH",
              "Value": "Shared"
            }
          ],
          "MaxResults": 100,
          "NextToken": "more",
          "ServiceCode": "AmazonEC2"
        }
    "#]]);
}

#[tokio::test]
async fn messages_are_received_and_deleted() {
    let url = "https://sqs.us-west-2.amazonaws.com/1/demo";
    let message = json!({"Messages": [
        {"MessageId": "m-1", "ReceiptHandle": "r-1", "Body": "{}", "Attributes": {"SentTimestamp": "1794800000123"}},
        {"MessageId": "m-2", "ReceiptHandle": "r-2", "Body": "not JSON"},
    ]});
    let script = Script::of([
        json(200, &json!({"QueueUrl": url})),
        json(200, &message),
        json(200, &json!({})),
        json(200, &json!({})),
    ])
    .await;
    let queue = &script.aws().queue;
    assert_eq!(queue.url("demo").await, Ok(url.to_owned()));
    let received = |body: &str, receipt: &str, sent: Option<&str>| Message {
        body: body.to_owned(),
        receipt: receipt.to_owned(),
        sent: sent.map(|sent| sent.parse().expect("a time")),
    };
    let expected = vec![
        received("{}", "r-1", Some("2026-11-16T03:33:20.123Z")),
        received("not JSON", "r-2", None),
    ];
    assert_eq!(queue.receive(url).await, Ok(expected));
    assert_eq!(queue.receive(url).await, Ok(Vec::new()));
    assert_eq!(queue.delete(url, "r-1").await, Ok(()));
    script.check(&expect![[r#"
        us-west-2/sqs AmazonSQS.GetQueueUrl
        {
          "QueueName": "demo"
        }

        us-west-2/sqs AmazonSQS.ReceiveMessage
        {
          "AttributeNames": [
            "SentTimestamp"
          ],
          "MaxNumberOfMessages": 10,
          "MessageAttributeNames": [
            "All"
          ],
          "QueueUrl": "https://sqs.us-west-2.amazonaws.com/1/demo",
          "VisibilityTimeout": 20,
          "WaitTimeSeconds": 20
        }

        us-west-2/sqs AmazonSQS.ReceiveMessage
        {
          "AttributeNames": [
            "SentTimestamp"
          ],
          "MaxNumberOfMessages": 10,
          "MessageAttributeNames": [
            "All"
          ],
          "QueueUrl": "https://sqs.us-west-2.amazonaws.com/1/demo",
          "VisibilityTimeout": 20,
          "WaitTimeSeconds": 20
        }

        us-west-2/sqs AmazonSQS.DeleteMessage
        {
          "QueueUrl": "https://sqs.us-west-2.amazonaws.com/1/demo",
          "ReceiptHandle": "r-1"
        }
    "#]]);
}

#[tokio::test]
async fn shifts_of_the_cluster_are_told_with_their_end() {
    let shift = |zone: &str, status: &str| {
        json!({
            "appliedStatus": status, "awayFrom": zone, "comment": "", "expiryTime": 1_794_803_600,
            "startTime": 1_794_800_000, "resourceIdentifier": "arn", "zonalShiftId": zone,
        })
    };
    let answer = json!({
        "arn": "arn", "appliedWeights": {},
        "zonalShifts": [shift("usw2-az1", "APPLIED"), shift("usw2-az2", "NOT_APPLIED")],
    });
    let script = Script::of([json(200, &answer)]).await;
    let found = script
        .aws()
        .zonal_shift
        .shifts("arn:aws:eks:us-west-2:1:cluster/demo")
        .await;
    let expected = |zone: &str, applied| Shift {
        away_from: zone.to_owned(),
        expires: "2026-11-16T04:33:20Z".parse().expect("a time"),
        applied,
    };
    assert_eq!(found, Ok(vec![expected("usw2-az1", true), expected("usw2-az2", false)]));
    script.check(&expect![[r#"
        us-west-2/arc-zonal-shift GET /managedresources/arn%3Aaws%3Aeks%3Aus-west-2%3A1%3Acluster%2Fdemo
    "#]]);
}
