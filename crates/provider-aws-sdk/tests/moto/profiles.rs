//! Instance profiles in IAM.

use provider_aws::ports::{ProfileInfo, Tags};

use crate::region::Moto;

#[tokio::test]
async fn a_profile_is_made_given_a_role_and_deleted() {
    let moto = Moto::start().await;
    let client = aws_sdk_iam::Client::new(&moto.config);
    let request = client
        .create_role()
        .role_name("NodeRole")
        .assume_role_policy_document("{}");
    request.send().await.expect("a role");

    let iam = &moto.aws.iam;
    assert!(iam.profile("demo_1").await.expect_err("no profile yet").is_not_found());
    let tags = Tags::from([("topology.kubernetes.io/region".to_owned(), "us-west-2".to_owned())]);
    let path = "/karpenter/us-west-2/demo/uid/";
    assert_eq!(iam.create_profile("demo_1", path, &tags).await, Ok(()));
    let taken = iam.create_profile("demo_1", path, &tags).await;
    assert!(taken.expect_err("the name is taken").is_already_there());
    let unknown = iam.add_role("demo_1", "OtherRole").await.expect_err("no such role");
    assert!(unknown.is_role_unknown(), "{unknown}");
    assert_eq!(iam.add_role("demo_1", "NodeRole").await, Ok(()));
    let profile = ProfileInfo {
        name: "demo_1".to_owned(),
        roles: vec!["NodeRole".to_owned()],
    };
    assert_eq!(iam.profile("demo_1").await, Ok(profile.clone()));
    assert_eq!(iam.profiles(path).await, Ok(vec![profile]));
    assert!(
        iam.delete_profile("demo_1").await.is_err(),
        "a profile with a role stays"
    );
    assert_eq!(iam.remove_role("demo_1", "NodeRole").await, Ok(()));
    assert_eq!(iam.delete_profile("demo_1").await, Ok(()));
    assert!(iam.profile("demo_1").await.expect_err("deleted").is_not_found());
}
