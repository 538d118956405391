use std::time::Duration;

use super::*;
use crate::testing::{
    fake::FakeAws,
    samples::{self, REGION},
};

fn profiles(aws: &FakeAws) -> Profiles {
    Profiles::new(aws.ports().iam, aws.clock(), REGION, "demo")
}

fn class(role: &str, uid: &str) -> EC2NodeClass {
    let mut class = samples::class();
    class.spec.role = Some(role.to_owned());
    class.metadata.uid = Some(uid.to_owned());
    class
}

fn tags() -> Tags {
    [("kubernetes.io/cluster/demo".to_owned(), "owned".to_owned())].into()
}

/// AW24.5.1, AW24.5.2, AW24.5.3
#[tokio::test(start_paused = true)]
async fn a_class_gets_a_profile_for_its_role_and_a_new_one_for_a_new_role() {
    let aws = FakeAws::new();
    let profiles = profiles(&aws);
    let first = profiles.ensure(&class("one", "uid"), None, &tags()).await.unwrap();
    assert!(first.starts_with("demo_"));
    let made = aws.profile(&first).unwrap();
    assert_eq!(
        (made.path.as_str(), made.role.as_deref()),
        ("/karpenter/us-west-2/demo/uid/", Some("one"))
    );
    assert_eq!(made.tags, tags());

    tokio::time::advance(Duration::from_secs(120)).await;
    let again = profiles
        .ensure(&class("one", "uid"), Some(&first), &tags())
        .await
        .unwrap();
    assert_eq!(again, first);
    assert_eq!(aws.calls("CreateInstanceProfile"), 1);

    let second = profiles
        .ensure(&class("two", "uid"), Some(&first), &tags())
        .await
        .unwrap();
    assert_ne!(second, first);
    assert_eq!(aws.profile(&second).unwrap().role.as_deref(), Some("two"));
    assert!(profiles.is_protected(&first) && profiles.is_protected(&second));

    aws.change_profile(&second, |profile| profile.role = None);
    tokio::time::advance(Duration::from_secs(16 * 60)).await;
    let third = profiles
        .ensure(&class("two", "uid"), Some(&second), &tags())
        .await
        .unwrap();
    assert_ne!(third, second, "a profile that lost its role is replaced, not changed");
}

/// AW24.5.4, AW24.5.6
#[tokio::test(start_paused = true)]
async fn a_name_that_did_not_reach_the_status_is_used_again() {
    let aws = FakeAws::new();
    let profiles = profiles(&aws);
    let first = profiles.ensure(&class("one", "uid"), None, &tags()).await.unwrap();
    let again = profiles.ensure(&class("one", "uid"), None, &tags()).await.unwrap();
    assert_eq!(again, first);
    tokio::time::advance(Duration::from_millis(1)).await;
    let other_class = profiles.ensure(&class("one", "uid-2"), None, &tags()).await.unwrap();
    let other_role = profiles.ensure(&class("two", "uid"), None, &tags()).await.unwrap();
    assert!(other_class != first && other_role != first && other_class != other_role);
}

/// AW24.5.5
#[tokio::test(start_paused = true)]
async fn a_named_profile_is_taken_as_it_is() {
    let aws = FakeAws::new();
    let profiles = profiles(&aws);
    let mut class = class("one", "uid");
    let own = profiles.ensure(&class, None, &tags()).await.unwrap();
    class.spec.role = None;
    class.spec.instance_profile = Some("named".to_owned());
    let calls = aws.all_calls();
    assert_eq!(profiles.ensure(&class, Some(&own), &tags()).await.unwrap(), "named");
    assert_eq!(aws.all_calls(), calls, "IAM is not asked");
    assert!(profiles.is_protected(&own));
}

/// AW24.5.7, AW24.5.8
#[tokio::test(start_paused = true)]
async fn trouble_with_iam_leaves_nothing_behind() {
    let aws = FakeAws::new();
    let profiles = profiles(&aws);
    aws.fail(
        "GetInstanceProfile",
        AwsError::new("ServiceFailure", "x").with_status(500),
    );
    let unread = profiles.ensure(&class("one", "uid"), Some("demo_1"), &tags()).await;
    assert!(matches!(unread, Err(ProfileError::Iam { verb: "read", .. })));
    assert_eq!(aws.calls("CreateInstanceProfile"), 0);
    aws.fail("AddRoleToInstanceProfile", AwsError::new("LimitExceeded", "x"));
    let halfway = profiles.ensure(&class("one", "uid"), None, &tags()).await;
    assert!(matches!(halfway, Err(ProfileError::Iam { .. })));
    assert_eq!(aws.calls("DeleteInstanceProfile"), 1);
    assert!(aws.profile_names().is_empty());
}

/// AW24.5.9, AW24.5.10
#[tokio::test(start_paused = true)]
async fn roles_may_have_paths_and_missing_ones_are_not_asked_for_again_at_once() {
    let aws = FakeAws::new();
    let profiles = profiles(&aws);
    let name = profiles.ensure(&class("a/b/one", "uid"), None, &tags()).await.unwrap();
    assert_eq!(aws.profile(&name).unwrap().role.as_deref(), Some("one"));
    tokio::time::advance(Duration::from_secs(16 * 60)).await;
    let again = profiles
        .ensure(&class("a/b/one", "uid"), Some(&name), &tags())
        .await
        .unwrap();
    assert_eq!(again, name, "the path does not make it another role");

    aws.fail(
        "AddRoleToInstanceProfile",
        AwsError::new("NoSuchEntity", "The role with name two cannot be found"),
    );
    assert!(profiles.ensure(&class("two", "uid"), None, &tags()).await.is_err());
    let calls = aws.all_calls();
    let soon = profiles.ensure(&class("two", "uid"), None, &tags()).await;
    assert!(matches!(soon, Err(ProfileError::RoleMissing(_))));
    assert_eq!(aws.all_calls(), calls);
    tokio::time::advance(Duration::from_secs(61)).await;
    assert!(profiles.ensure(&class("two", "uid"), None, &tags()).await.is_ok());
}

/// AW24.5.11, AW24.5.12
#[tokio::test(start_paused = true)]
async fn profiles_are_listed_by_path_and_deleted_with_their_role() {
    let aws = FakeAws::new();
    let profiles = profiles(&aws);
    let one = profiles.ensure(&class("one", "uid-1"), None, &tags()).await.unwrap();
    let two = profiles.ensure(&class("one", "uid-2"), None, &tags()).await.unwrap();
    let names = async |uid: Option<&str>| {
        let listed = profiles.list(uid).await.unwrap();
        listed.into_iter().map(|profile| profile.name).collect::<Vec<_>>()
    };
    assert_eq!(names(Some("uid-1")).await, std::slice::from_ref(&one));
    assert_eq!(names(None).await.len(), 2);
    profiles.delete(&one).await.unwrap();
    profiles.delete(&one).await.unwrap();
    assert_eq!(names(None).await, [two]);
    assert!(!profiles.is_protected(&one));
    assert_eq!(path(REGION, "demo", None), "/karpenter/us-west-2/demo/");
    assert_eq!(
        legacy_name("us-west-2", "demo", "default").unwrap(),
        "demo_4067990795380418201"
    );
    assert_eq!(legacy_name("us-west-2", "no spaces", "default"), None);
    assert_eq!(legacy_name("us-west-2", &"x".repeat(128), "default"), None);
}
