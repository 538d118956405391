use super::*;
use crate::testing::{fake::FakeAws, samples};

const CLUSTER: Version = Version { major: 1, minor: 32 };

fn image(id: &str, architecture: &str, created: &str) -> ImageInfo {
    ImageInfo {
        id: id.to_owned(),
        name: format!("name-{id}"),
        architecture: architecture.to_owned(),
        created: format!("{created}T00:00:00.000Z"),
        deprecated_at: None,
    }
}

fn images(aws: &FakeAws) -> Images {
    let parameters = Parameters::new(aws.ports().ssm, aws.clock());
    Images::new(aws.ports().ec2, parameters, aws.clock(), Duration::from_secs(60))
}

fn class_with(term: AmiSelectorTerm) -> EC2NodeClass {
    let mut class = samples::class();
    class.spec.ami_selector_terms = vec![term];
    class
}

fn alias(text: &str) -> AmiSelectorTerm {
    AmiSelectorTerm {
        alias: Some(text.to_owned()),
        ..AmiSelectorTerm::default()
    }
}

/// `id: key operator values, …` per image.
fn shown(amis: &[Ami]) -> String {
    let requirement = |one: &AmiRequirement| {
        let key = one.key.rsplit('/').next().unwrap_or_default();
        let values = one
            .values
            .iter()
            .flatten()
            .map(|value| format!(" {value}"))
            .collect::<String>();
        format!("{key} {}{values}", one.operator)
    };
    let ami = |ami: &Ami| {
        let requirements: Vec<String> = ami.requirements.iter().map(requirement).collect();
        format!("{}: {}", ami.id, requirements.join(", "))
    };
    amis.iter().map(ami).collect::<Vec<_>>().join("\n")
}

fn eks(path: &str) -> String {
    format!("/aws/service/eks/optimized-ami/1.32/{path}/recommended/image_id")
}

/// AW24.3.1, AW24.3.5
#[tokio::test(start_paused = true)]
async fn an_alias_names_one_image_per_flavour() {
    let aws = FakeAws::new();
    for (path, id, arch) in [
        ("amazon-linux-2023/x86_64/standard", "ami-1", "x86_64"),
        ("amazon-linux-2023/x86_64/nvidia", "ami-2", "x86_64"),
        ("amazon-linux-2023/x86_64/neuron", "ami-3", "x86_64"),
        ("amazon-linux-2023/arm64/standard", "ami-4", "arm64"),
        ("amazon-linux-2023/arm64/nvidia", "ami-5", "arm64"),
    ] {
        aws.set_parameter(&eks(path), id);
        aws.add_image(image(id, arch, "2024-01-01"), &[]);
    }
    let found = images(&aws)
        .of(&class_with(alias("al2023@latest")), CLUSTER)
        .await
        .unwrap();
    assert_eq!(
        shown(&found),
        "ami-1: arch In amd64, instance-gpu-count DoesNotExist, instance-accelerator-count DoesNotExist\n\
         ami-2: arch In amd64, instance-gpu-count Exists\n\
         ami-3: arch In amd64, instance-accelerator-count Exists\n\
         ami-4: arch In arm64, instance-gpu-count DoesNotExist, instance-accelerator-count DoesNotExist\n\
         ami-5: arch In arm64, instance-gpu-count Exists"
    );
    aws.remove_parameter(&eks("amazon-linux-2023/x86_64/neuron"));
    let fewer = images(&aws)
        .of(&class_with(alias("al2023@latest")), CLUSTER)
        .await
        .unwrap();
    assert_eq!(fewer.len(), 4);
    let none = images(&FakeAws::new())
        .of(&class_with(alias("al2023@latest")), CLUSTER)
        .await;
    assert!(matches!(none, Err(ImageError::NoParameter(_))));
}

/// AW24.3.2, AW24.3.3, AW24.3.4
#[tokio::test(start_paused = true)]
async fn some_images_serve_two_flavours() {
    let aws = FakeAws::new();
    for (name, id, arch) in [
        (eks("amazon-linux-2"), "ami-1", "x86_64"),
        (eks("amazon-linux-2-arm64"), "ami-2", "arm64"),
        (eks("amazon-linux-2-gpu"), "ami-3", "x86_64"),
        (
            "/aws/service/bottlerocket/aws-k8s-1.32/x86_64/latest/image_id".to_owned(),
            "ami-4",
            "x86_64",
        ),
        (
            "/aws/service/bottlerocket/aws-k8s-1.32-nvidia/arm64/latest/image_id".to_owned(),
            "ami-5",
            "arm64",
        ),
        (
            "/aws/service/ami-windows-latest/Windows_Server-2022-English-Core-EKS_Optimized-1.32/image_id".to_owned(),
            "ami-6",
            "x86_64",
        ),
    ] {
        aws.set_parameter(&name, id);
        aws.add_image(image(id, arch, "2024-01-01"), &[]);
    }
    let images = images(&aws);
    let of = async |text: &str| shown(&images.of(&class_with(alias(text)), CLUSTER).await.unwrap());
    assert_eq!(
        of("al2@latest").await,
        "ami-1: arch In amd64, instance-gpu-count DoesNotExist, instance-accelerator-count DoesNotExist\n\
         ami-2: arch In arm64, instance-gpu-count DoesNotExist, instance-accelerator-count DoesNotExist\n\
         ami-3: arch In amd64, instance-accelerator-count Exists\n\
         ami-3: arch In amd64, instance-gpu-count Exists"
    );
    assert_eq!(
        of("bottlerocket@latest").await,
        "ami-4: arch In amd64, instance-gpu-count DoesNotExist, instance-accelerator-count DoesNotExist\n\
         ami-4: arch In amd64, instance-accelerator-count Exists\n\
         ami-5: arch In arm64, instance-gpu-count Exists"
    );
    assert_eq!(
        of("windows2022@latest").await,
        "ami-6: os In windows, arch In amd64, windows-build In 10.0.20348"
    );
}

/// AW24.3.8, AW24.3.14, AW24.3.15
#[test]
fn terms_become_queries_with_the_owners_that_they_need() {
    let term = |name: Option<&str>, tags: &[(&str, &str)], owner: Option<&str>| AmiSelectorTerm {
        name: name.map(str::to_owned),
        tags: (!tags.is_empty()).then(|| {
            tags.iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect()
        }),
        owner: owner.map(str::to_owned),
        ..AmiSelectorTerm::default()
    };
    let shown = |query: &ImageQuery| {
        let filters: Vec<String> = query
            .filters
            .iter()
            .map(|filter| format!("{}={}", filter.name, filter.values.join("+")))
            .collect();
        format!("{} by {}", filters.join(" "), query.owners.join("+"))
    };
    let table = [
        (
            term(None, &[("a", "b"), ("c", "*")], None),
            "tag:a=b tag-key=c state=available by ",
        ),
        (term(Some("n"), &[], None), "name=n state=available by self+amazon"),
        (term(Some("n"), &[], Some("123")), "name=n state=available by 123"),
        (term(None, &[], Some("123")), "state=available by 123"),
        (term(None, &[("a", "b")], Some("123")), "tag:a=b state=available by 123"),
    ];
    for (term, expected) in table {
        assert_eq!(shown(&query_of(&term)), expected);
    }
    assert_eq!(
        shown(&by_id(["ami-1".to_owned(), "ami-2".to_owned()])),
        "image-id=ami-1+ami-2 state=available by "
    );
}

/// AW24.3.11, AW24.3.12, AW24.3.13
#[test]
fn of_equal_images_the_best_is_taken() {
    let now: Timestamp = "2025-01-01T00:00:00Z".parse().unwrap();
    let deprecated = |mut image: ImageInfo| {
        image.deprecated_at = Some("2024-06-01T00:00:00Z".to_owned());
        image
    };
    let chosen = |images: &[ImageInfo]| {
        let amis = selected(images.to_vec(), &Uses::new(), now);
        assert_eq!(amis.len(), 1);
        (amis[0].id.clone(), amis[0].deprecated)
    };
    let (old, new) = (
        image("ami-old", "x86_64", "2023-01-01"),
        image("ami-new", "x86_64", "2024-01-01"),
    );
    assert_eq!(chosen(&[old.clone(), new.clone()]), ("ami-new".to_owned(), None));
    assert_eq!(
        chosen(&[old.clone(), deprecated(new.clone())]),
        ("ami-old".to_owned(), None)
    );
    assert_eq!(
        chosen(&[deprecated(old.clone()), deprecated(new.clone())]),
        ("ami-new".to_owned(), Some(true))
    );
    let twin = image("ami-z", "x86_64", "2024-01-01");
    assert_eq!(
        chosen(&[new.clone(), twin.clone()]).0,
        "ami-z",
        "names decide between equal dates"
    );
    assert_eq!(chosen(&[twin, new.clone()]).0, "ami-z");
    let undated = ImageInfo {
        created: "yesterday".to_owned(),
        ..new
    };
    assert_eq!(
        chosen(&[undated, old]).0,
        "ami-old",
        "a date that cannot be read is the oldest"
    );
    let several = [
        image("ami-b", "arm64", "2024-01-01"),
        image("ami-a", "x86_64", "2024-01-01"),
        image("ami-other", "i386", "2024-01-01"),
    ];
    let order: Vec<String> = selected(several.to_vec(), &Uses::new(), now)
        .into_iter()
        .map(|ami| ami.id)
        .collect();
    assert_eq!(order, ["ami-a", "ami-b"]);
}

/// AW24.3.16
#[tokio::test(start_paused = true)]
async fn parameters_of_the_user_name_images() {
    let aws = FakeAws::new();
    aws.set_parameter("/mine", "ami-1");
    aws.set_parameter("/other", "not-an-image");
    aws.add_image(image("ami-1", "x86_64", "2024-01-01"), &[]);
    let images = images(&aws);
    let of = async |name: &str| {
        let term = AmiSelectorTerm {
            ssm_parameter: Some(name.to_owned()),
            ..AmiSelectorTerm::default()
        };
        images.of(&class_with(term), CLUSTER).await
    };
    assert_eq!(shown(&of("/mine").await.unwrap()), "ami-1: arch In amd64");
    assert!(of("/other").await.unwrap().is_empty());
    assert!(of("/missing").await.unwrap().is_empty());
    aws.fail("GetParameter", AwsError::new("AccessDeniedException", "no"));
    assert!(matches!(of("/denied").await, Err(ImageError::Parameter { .. })));
}

/// AW24.3.9, AW24.3.17, AW24.3.18
#[tokio::test(start_paused = true)]
async fn answers_are_remembered_until_they_are_old_or_deprecated() {
    let aws = FakeAws::new();
    aws.set_parameter(&eks("amazon-linux-2023/x86_64/standard"), "ami-1");
    aws.add_image(image("ami-1", "x86_64", "2024-01-01"), &[]);
    let images = images(&aws);
    let class = class_with(alias("al2023@latest"));
    for _ in 0..3 {
        images.of(&class, CLUSTER).await.unwrap();
    }
    assert_eq!(aws.calls("DescribeImages"), 1);
    let mut edited = class.clone();
    edited.metadata.generation = Some(2);
    images.of(&edited, CLUSTER).await.unwrap();
    assert_eq!(aws.calls("DescribeImages"), 2, "an edit is seen at once");

    images.forget_deprecated().await.unwrap();
    let before = aws.calls("GetParameter");
    aws.set_parameter(&eks("amazon-linux-2023/x86_64/standard"), "ami-2");
    aws.add_image(image("ami-2", "x86_64", "2024-02-01"), &[]);
    assert_eq!(images.of(&class, CLUSTER).await.unwrap()[0].id, "ami-1");
    aws.change_image("ami-1", |image| {
        image.deprecated_at = Some("1970-01-01T00:00:00Z".to_owned());
    });
    images.forget_deprecated().await.unwrap();
    assert_eq!(images.of(&class, CLUSTER).await.unwrap()[0].id, "ami-2");
    assert!(aws.calls("GetParameter") > before);

    aws.fail("DescribeImages", AwsError::new("InternalError", "x"));
    tokio::time::advance(Duration::from_secs(61)).await;
    assert!(matches!(images.of(&class, CLUSTER).await, Err(ImageError::List(_))));
}
