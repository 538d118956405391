mod expressions;

use api::aws::{AmiSelectorTerm, InterfaceType, NetworkInterface};
use model::Requirement;

use super::*;
use crate::{
    options::Options,
    testing::{
        fake::FakeAws,
        samples::{self, ami},
    },
};

async fn stocked(change: impl FnOnce(&mut crate::Foundation)) -> (FakeAws, Validator) {
    let aws = FakeAws::new();
    samples::stocked(&aws);
    let mut foundation = samples::foundation(&aws);
    change(&mut foundation);
    let services = Arc::new(Services::new(foundation));
    services.catalog.refresh_types().await.unwrap();
    (aws, Validator::new(services))
}

fn reason(judged: &Judged) -> Option<&str> {
    match &judged.verdict {
        Some(Verdict::Invalid { reason, .. } | Verdict::Open { reason, .. }) => Some(reason),
        Some(Verdict::Valid) => Some("Valid"),
        None => None,
    }
}

fn message(judged: &Judged) -> &str {
    match &judged.verdict {
        Some(Verdict::Invalid { message, .. } | Verdict::Open { message, .. }) => message,
        _ => "",
    }
}

fn one_of(key: &str, values: &[&str]) -> Requirements {
    [Requirement::one_of(key, values.iter().copied())].into_iter().collect()
}

/// AW24.6.1
#[tokio::test(start_paused = true)]
async fn what_is_not_resolved_is_not_tried() {
    let (aws, validator) = stocked(|_| ()).await;
    let mut class = samples::class();
    let open = validator.judge(&class, &[]).await;
    assert!(matches!(open.verdict, Some(Verdict::Open { .. })));
    assert_eq!(reason(&open), Some("DependenciesNotReady"));
    class = samples::ready_class();
    let mut conditions = api::conditions::Conditions::of(&class, aws.now());
    conditions.set_false(condition::SUBNETS_READY, "SubnetsNotFound", "none", aws.now());
    class.status.as_mut().unwrap().conditions = Some(conditions.into_list());
    let failed = validator.judge(&class, &[]).await;
    assert!(matches!(failed.verdict, Some(Verdict::Invalid { .. })));
    assert_eq!(message(&failed), "not ready: SubnetsReady");
    assert_eq!(aws.calls("CreateLaunchTemplate"), 0);
}

/// AW24.6.2
#[tokio::test(start_paused = true)]
async fn only_al2023_needs_to_know_the_addresses_of_services() {
    let unknown = |foundation: &mut crate::Foundation| foundation.cluster.service_cidr = None;
    let (aws, validator) = stocked(unknown).await;
    let mut class = samples::ready_class();
    class.spec.ami_selector_terms = vec![AmiSelectorTerm {
        alias: Some("bottlerocket@latest".to_owned()),
        ..AmiSelectorTerm::default()
    }];
    assert_eq!(reason(&validator.judge(&class, &[]).await), Some("Valid"));
    assert_eq!(aws.calls("DescribeCluster"), 0);

    let class = samples::ready_class();
    aws.fail("DescribeCluster", AwsError::new("AccessDenied", "no"));
    let failed = validator.judge(&class, &[]).await;
    assert_eq!(reason(&failed), Some("ClusterCIDRResolutionFailed"));
    assert!(failed.failure.is_some(), "it is tried again");
    aws.fail(
        "DescribeCluster",
        AwsError::new("ServerException", "x").with_status(500),
    );
    let failed = validator.judge(&class, &[]).await;
    assert!(failed.verdict.is_none() && failed.failure.is_some());
    for (v4, v6, expected) in [
        (Some("10.0.0.0/16"), Some("fd00::/108"), "10.0.0.0/16"),
        (None, Some("fd00::/108"), "fd00::/108"),
    ] {
        let (aws, validator) = stocked(unknown).await;
        aws.set_cluster(crate::ports::ClusterInfo {
            service_cidr_v4: v4.map(str::to_owned),
            service_cidr_v6: v6.map(str::to_owned),
            ..crate::ports::ClusterInfo::default()
        });
        assert_eq!(reason(&validator.judge(&class, &[]).await), Some("Valid"));
        validator.judge(&class, &[]).await;
        assert_eq!(validator.services.cluster().service_cidr.as_deref(), Some(expected));
        assert_eq!(aws.calls("DescribeCluster"), 1, "it is asked once");
    }
}

/// AW24.6.3
#[tokio::test(start_paused = true)]
async fn tags_of_karpenters_own_are_refused() {
    let (_, validator) = stocked(|_| ()).await;
    let mut class = samples::ready_class();
    class.spec.tags = Some([("karpenter.sh/nodepool".to_owned(), "x".to_owned())].into());
    assert_eq!(reason(&validator.judge(&class, &[]).await), Some("TagValidationFailed"));
    class.spec.tags = Some([("team".to_owned(), "a".to_owned())].into());
    assert_eq!(reason(&validator.judge(&class, &[]).await), Some("Valid"));
}

/// AW24.6.4
#[tokio::test(start_paused = true)]
async fn a_permission_that_lacks_is_named_and_remembered() {
    let table = [
        (
            "CreateLaunchTemplate",
            "CreateLaunchTemplateAuthCheckFailed",
            "",
            "identity policy",
        ),
        (
            "CreateFleet",
            "CreateFleetAuthCheckFailed",
            "with an explicit deny in a permissions boundary",
            "boundary",
        ),
        (
            "RunInstances",
            "RunInstancesAuthCheckFailed",
            "with an explicit deny in a service control policy",
            "service control policy",
        ),
    ];
    for (action, expected, text, hint) in table {
        let (aws, validator) = stocked(|_| ()).await;
        let class = samples::ready_class();
        for _ in 0..2 {
            aws.fail(action, AwsError::new("UnauthorizedOperation", text));
        }
        let denied = validator.judge(&class, &[]).await;
        assert_eq!(reason(&denied), Some(expected));
        assert!(message(&denied).contains(&format!("ec2:{action}")) && message(&denied).contains(hint));
        let calls = aws.all_calls();
        assert_eq!(reason(&validator.judge(&class, &[]).await), Some(expected));
        assert_eq!(aws.all_calls(), calls, "EC2 is not asked twice");
        validator.forget("default");
        aws.forget_failures();
        assert_eq!(reason(&validator.judge(&class, &[]).await), Some("Valid"));
    }
}

/// AW24.6.4, AW24.6.7
#[tokio::test(start_paused = true)]
async fn what_passes_by_itself_leaves_the_condition_alone() {
    for action in ["CreateLaunchTemplate", "CreateFleet", "DescribeLaunchTemplates"] {
        for code in ["RequestLimitExceeded", "InternalError", "SomethingNew"] {
            let (aws, validator) = stocked(|_| ()).await;
            aws.fail(action, AwsError::new(code, "x"));
            let failed = validator.judge(&samples::ready_class(), &[]).await;
            assert!(failed.verdict.is_none() && failed.failure.is_some(), "{action} {code}");
            assert_eq!(
                reason(&validator.judge(&samples::ready_class(), &[]).await),
                Some("Valid")
            );
        }
    }
}

/// AW24.6.5
#[tokio::test(start_paused = true)]
async fn one_subnet_that_works_is_enough() {
    let (aws, validator) = stocked(|_| ()).await;
    aws.fail("RunInstances", AwsError::new("InternalError", "x").with_status(500));
    assert_eq!(
        reason(&validator.judge(&samples::ready_class(), &[]).await),
        Some("Valid")
    );
    assert_eq!(aws.calls("RunInstances"), 2);
}

/// AW24.6.6
#[tokio::test(start_paused = true)]
async fn a_profile_that_ec2_does_not_know_is_the_users_mistake_or_ours_to_wait_for() {
    let unknown = || {
        AwsError::new(
            "InvalidParameterValue",
            "Value (p) for x is invalid. Invalid IAM Instance Profile name",
        )
    };
    for (named, expected) in [(Some("mine"), Some("InstanceProfileNotFound")), (None, None)] {
        let (aws, validator) = stocked(|_| ()).await;
        let mut class = samples::ready_class();
        class.spec.instance_profile = named.map(str::to_owned);
        for _ in 0..2 {
            aws.fail("RunInstances", unknown());
        }
        let failed = validator.judge(&class, &[]).await;
        assert_eq!(reason(&failed), expected);
        assert!(failed.failure.is_some());
        assert_eq!(message(&failed).contains("mine"), named.is_some());
        assert_eq!(
            reason(&validator.judge(&class, &[]).await),
            Some("Valid"),
            "it was not remembered"
        );
    }
}

/// AW24.6.7
#[tokio::test(start_paused = true)]
async fn user_data_that_is_too_long_is_told_from_other_trouble_with_it() {
    let (aws, validator) = stocked(|_| ()).await;
    aws.fail(
        "CreateLaunchTemplate",
        AwsError::new("InvalidUserData.Malformed", "User data is limited to 16384 bytes"),
    );
    assert_eq!(
        reason(&validator.judge(&samples::ready_class(), &[]).await),
        Some("UserDataSizeLimitExceeded")
    );
    let (aws, validator) = stocked(|_| ()).await;
    aws.fail(
        "CreateLaunchTemplate",
        AwsError::new("InvalidUserData.Malformed", "not base64"),
    );
    let failed = validator.judge(&samples::ready_class(), &[]).await;
    assert!(failed.verdict.is_none() && failed.failure.is_some());
}

/// The type that the class was tried with, and its image.
async fn tried(class: &EC2NodeClass, pools: &[Requirements]) -> (String, String) {
    let (aws, validator) = stocked(|_| ()).await;
    assert_eq!(reason(&validator.judge(class, pools).await), Some("Valid"));
    (
        aws.dry_launches()[0].instance_type.clone(),
        aws.templates()[0].image_id.clone(),
    )
}

/// AW24.6.8
#[tokio::test(start_paused = true)]
async fn a_class_is_tried_with_a_type_that_it_can_use() {
    let class = samples::ready_class();
    assert_eq!(tried(&class, &[]).await.0, "m5.large");
    let mut windows = class.clone();
    windows.spec.ami_family = Some(AmiFamily::Windows2022);
    let pool = one_of(api::labels::INSTANCE_TYPE, &["t3.large"]);
    assert_eq!(tried(&windows, std::slice::from_ref(&pool)).await.0, "m5.large");
    assert_eq!(tried(&class, &[pool]).await.0, "t3.large");
    let only_a1 = one_of(api::labels::INSTANCE_TYPE, &["a1.large"]);
    assert_eq!(
        tried(&class, &[only_a1]).await.0,
        "m5.large",
        "AL2023 does not run on a1"
    );
    let mut efa = class;
    let interface = |card: i32, interface_type| NetworkInterface {
        network_card_index: card,
        device_index: 0,
        interface_type,
    };
    efa.spec.network_interfaces = Some(vec![
        interface(0, InterfaceType::Interface),
        interface(1, InterfaceType::EfaOnly),
    ]);
    assert_eq!(tried(&efa, &[]).await.0, "m6idn.32xlarge");
}

/// AW24.6.8
#[tokio::test(start_paused = true)]
async fn a_trial_says_of_its_interfaces_only_where_they_sit_and_of_which_kind_they_are() {
    let mut class = samples::ready_class();
    class.spec.associate_public_ip_address = Some(true);
    class.spec.network_interfaces = Some(vec![NetworkInterface {
        network_card_index: 0,
        device_index: 0,
        interface_type: InterfaceType::Interface,
    }]);
    let (aws, validator) = stocked(|_| ()).await;
    validator.judge(&class, &[]).await;
    let expected = Interface {
        card: Some(0),
        kind: Some("interface".to_owned()),
        ..Interface::default()
    };
    assert_eq!(aws.dry_launches()[0].interfaces, [expected]);
    assert_eq!(aws.templates()[0].interfaces[0].public_ip, Some(true));
}

/// AW24.6.9
#[tokio::test(start_paused = true)]
async fn plain_images_are_tried_before_those_for_accelerators() {
    let mut class = samples::ready_class();
    let with = |id: &str, arch: &str, operator: &str| {
        let mut image = ami(id, arch);
        image.requirements.push(api::aws::AmiRequirement {
            key: api::labels::aws::INSTANCE_GPU_COUNT.to_owned(),
            operator: operator.to_owned(),
            values: None,
        });
        image
    };
    class.status.as_mut().unwrap().amis = Some(vec![
        with("ami-nvidia", "amd64", "Exists"),
        with("ami-standard", "arm64", "DoesNotExist"),
    ]);
    let family = |names: &[&str]| one_of(api::labels::aws::INSTANCE_FAMILY, names);
    let both = tried(&class, &[family(&["c6g", "g4dn"])]).await;
    assert_eq!(both, ("c6g.large".to_owned(), "ami-standard".to_owned()));
    let gpu = tried(&class, &[family(&["g4dn"])]).await;
    assert_eq!(gpu, ("g4dn.8xlarge".to_owned(), "ami-nvidia".to_owned()));
    class.status.as_mut().unwrap().amis = Some(vec![ami("ami-amd", "amd64"), ami("ami-arm", "arm64")]);
    let first = tried(&class, &[family(&["c6g", "m5"])]).await;
    assert_eq!(
        first.1, "ami-amd",
        "the first image of the status decides, not the first type"
    );
}

/// AW24.6.10
#[test]
fn dedicated_hardware_is_tried_when_a_pool_may_use_it() {
    let pool = |values: &[&str]| vec![one_of(TENANCY_KEY, values)];
    assert_eq!(tenancy(&[]), "default");
    assert_eq!(tenancy(&[Requirements::new()]), "default");
    assert_eq!(tenancy(&pool(&["default"])), "default");
    assert_eq!(tenancy(&pool(&["dedicated"])), "dedicated");
    assert_eq!(tenancy(&pool(&["default", "dedicated"])), "dedicated");
}

/// AW24.6.11
#[tokio::test(start_paused = true)]
async fn a_verdict_counts_until_something_about_the_class_changes() {
    let (aws, validator) = stocked(|_| ()).await;
    let mut class = samples::ready_class();
    let tries = async |class: &EC2NodeClass| {
        assert_eq!(reason(&validator.judge(class, &[]).await), Some("Valid"));
        aws.calls("RunInstances")
    };
    assert_eq!((tries(&class).await, tries(&class).await), (1, 1));
    let annotations = class.metadata.annotations.get_or_insert_default();
    annotations.insert(annotations::EC2_NODE_CLASS_HASH.to_owned(), "1".to_owned());
    assert_eq!(tries(&class).await, 1, "our own stamps change nothing");
    class
        .metadata
        .annotations
        .get_or_insert_default()
        .insert("try".to_owned(), "again".to_owned());
    assert_eq!(tries(&class).await, 2);
    validator.forget("default");
    assert_eq!(tries(&class).await, 3);

    let (aws, trusting) = stocked(|foundation| {
        foundation.options = Arc::new(Options {
            dry_run: false,
            ..samples::options()
        });
    })
    .await;
    let before = aws.all_calls();
    assert_eq!(reason(&trusting.judge(&class, &[]).await), Some("Valid"));
    assert_eq!(aws.all_calls(), before);
    assert_eq!(trusting.known.live().len(), 1);
}
