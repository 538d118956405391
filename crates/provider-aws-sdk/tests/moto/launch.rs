//! From a launch template to an instance and back to nothing.

use provider_aws::ports::{
    Allocation, DryLaunch, Ebs, Filter, FleetGroup, FleetOverride, FleetRequest, ImageQuery, InstanceQuery, Interface,
    Market, Metadata, Placement, ReservationPreference, StatusQuery, Tags, TemplateData, TemplateKey, TemplateQuery,
    Volume,
};

use crate::region::{CLUSTER, Moto, Network};

const TEMPLATE: &str = "karpenter.k8s.aws/1234567890";

fn tags() -> Tags {
    Tags::from([
        ("eks:eks-cluster-name".to_owned(), CLUSTER.to_owned()),
        ("karpenter.sh/nodepool".to_owned(), "default".to_owned()),
        (format!("kubernetes.io/cluster/{CLUSTER}"), "owned".to_owned()),
    ])
}

fn template(image: &str, network: &Network) -> TemplateData {
    TemplateData {
        tags: vec![("network-interface", tags()), ("spot-instances-request", tags())],
        volumes: vec![Volume {
            device_name: Some("/dev/xvda".to_owned()),
            ebs: Some(Ebs {
                encrypted: Some(true),
                delete_on_termination: Some(true),
                size_gib: Some(20),
                volume_type: Some("gp3".to_owned()),
                ..Ebs::default()
            }),
        }],
        instance_profile: "demo_1".to_owned(),
        detailed_monitoring: false,
        image_id: image.to_owned(),
        user_data: "aGVsbG8=".to_owned(),
        metadata: Metadata {
            endpoint: Some("enabled".to_owned()),
            ipv6: Some("disabled".to_owned()),
            hop_limit: Some(1),
            tokens: Some("required".to_owned()),
        },
        interfaces: vec![Interface {
            groups: vec![network.group.clone()],
            ..Interface::default()
        }],
        placement: Placement {
            tenancy: "default".to_owned(),
            ..Placement::default()
        },
        enclaves: false,
        nested_virtualization: None,
        reservation: Some(ReservationPreference::None),
        market: None,
    }
}

fn fleet(image: &str, network: &Network, market: Market) -> FleetRequest {
    let wanted = |zone: &str, subnet: &str| FleetOverride {
        instance_type: "m5.large".to_owned(),
        subnet: subnet.to_owned(),
        zone: Some(zone.to_owned()),
        image_id: Some(image.to_owned()),
        priority: Some(0.096),
    };
    FleetRequest {
        dry_run: false,
        context: None,
        groups: vec![FleetGroup {
            template_name: TEMPLATE.to_owned(),
            version: None,
            overrides: vec![
                wanted("us-west-2a", &network.subnets[0]),
                wanted("us-west-2b", &network.subnets[1]),
            ],
        }],
        market,
        client_token: Some("token-1".to_owned()),
        tags: tags(),
        count: 1,
    }
}

async fn an_image(moto: &Moto) -> String {
    let query = ImageQuery {
        filters: vec![Filter::new("name", ["al2023-ami-2023*x86_64"])],
        owners: vec!["amazon".to_owned()],
    };
    let found = moto.aws.ec2.images(&query).await.expect("images");
    found.first().expect("moto has Amazon Linux").id.clone()
}

#[tokio::test]
async fn templates_are_made_found_and_deleted() {
    let moto = Moto::start().await;
    let network = moto.network().await;
    let image = an_image(&moto).await;
    let ec2 = &moto.aws.ec2;
    let by_name = TemplateQuery::Name(TEMPLATE.to_owned());
    let missing = ec2.launch_templates(&by_name).await.expect_err("no template yet");
    assert!(missing.is_not_found(), "{missing}");
    let data = template(&image, &network);
    let made = ec2
        .create_launch_template(TEMPLATE, &tags(), &data)
        .await
        .expect("a template");
    let again = ec2.create_launch_template(TEMPLATE, &tags(), &data).await;
    assert!(again.expect_err("the name is taken").is_already_there());
    assert_eq!(ec2.launch_templates(&by_name).await, Ok(vec![made.clone()]));
    let of_cluster = |name| TemplateQuery::Matching(vec![Filter::tag("eks:eks-cluster-name", name)]);
    assert_eq!(ec2.launch_templates(&of_cluster(CLUSTER)).await, Ok(vec![made.clone()]));
    assert_eq!(ec2.launch_templates(&of_cluster("other")).await, Ok(Vec::new()));
    assert_eq!(ec2.delete_launch_template(&TemplateKey::Id(made.id)).await, Ok(()));
    assert!(ec2.launch_templates(&by_name).await.is_err());
}

#[tokio::test]
async fn dry_runs_launch_nothing() {
    let moto = Moto::start().await;
    let network = moto.network().await;
    let image = an_image(&moto).await;
    let ec2 = &moto.aws.ec2;
    let data = template(&image, &network);
    ec2.create_launch_template(TEMPLATE, &tags(), &data)
        .await
        .expect("a template");
    let trial = FleetRequest {
        dry_run: true,
        ..fleet(&image, &network, Market::OnDemand(Allocation::Price))
    };
    assert!(
        ec2.create_fleet(&trial)
            .await
            .expect_err("a dry run")
            .is_passed_dry_run()
    );
    let trial = DryLaunch {
        template_name: TEMPLATE.to_owned(),
        instance_type: "m5.large".to_owned(),
        interfaces: vec![Interface::default()],
        subnet: network.subnets[0].clone(),
        tags: tags(),
    };
    assert!(ec2.try_launch(&trial).await.expect_err("a dry run").is_passed_dry_run());
    assert_eq!(ec2.instances(&InstanceQuery::default()).await, Ok(Vec::new()));
}

#[tokio::test]
async fn an_instance_lives_from_fleet_to_termination() {
    let moto = Moto::start().await;
    let network = moto.network().await;
    let image = an_image(&moto).await;
    let ec2 = &moto.aws.ec2;
    let on_demand = fleet(&image, &network, Market::OnDemand(Allocation::Price));
    let refusal = ec2.create_fleet(&on_demand).await.expect_err("no template yet");
    assert!(refusal.is_template_gone(), "{refusal}");
    let data = template(&image, &network);
    ec2.create_launch_template(TEMPLATE, &tags(), &data)
        .await
        .expect("a template");

    let answer = ec2.create_fleet(&on_demand).await.expect("a fleet");
    assert_eq!(answer.errors, Vec::new());
    let [group] = answer.instances.as_slice() else {
        panic!("one group of instances: {answer:?}");
    };
    assert_eq!(group.instance_type, "m5.large");
    let [id] = group.ids.as_slice() else {
        panic!("one instance: {group:?}");
    };
    let states = Filter::new("instance-state-name", ["pending", "running"]);
    let by_id = InstanceQuery {
        ids: vec![id.clone()],
        filters: vec![states.clone()],
    };
    let found = ec2.instances(&by_id).await.expect("the instance");
    let [instance] = found.as_slice() else {
        panic!("one instance: {found:?}");
    };
    assert_eq!(
        (instance.zone.as_str(), &instance.subnet),
        ("us-west-2a", &network.subnets[0])
    );
    assert_eq!(
        instance.tags.get("karpenter.sh/nodepool").map(String::as_str),
        Some("default")
    );
    assert!(instance.launched.is_some() && instance.image_id == image);

    let name = Tags::from([("Name".to_owned(), "node-1".to_owned())]);
    assert_eq!(ec2.create_tags(id, &name).await, Ok(()));
    let owned = InstanceQuery {
        ids: Vec::new(),
        filters: vec![
            Filter::tag("karpenter.sh/nodepool", "*"),
            Filter::tag("Name", "node-1"),
            states,
        ],
    };
    assert_eq!(ec2.instances(&owned).await.expect("the instance").len(), 1);
    let health = ec2.instance_status(&StatusQuery::default()).await.expect("health");
    assert_eq!(health.iter().map(|status| &status.id).collect::<Vec<_>>(), [id]);

    let changes = ec2.terminate_instances(std::slice::from_ref(id)).await.expect("an end");
    assert_eq!(changes[0].id, *id);
    assert!(["shutting-down", "terminated"].contains(&changes[0].state.as_str()));
    assert_eq!(ec2.instances(&owned).await, Ok(Vec::new()));
    let unknown = ec2.terminate_instances(&["i-0123456789abcdef0".to_owned()]).await;
    assert!(unknown.expect_err("no such instance").is_not_found());
}

#[tokio::test]
async fn spot_instances_say_so() {
    let moto = Moto::start().await;
    let network = moto.network().await;
    let image = an_image(&moto).await;
    let ec2 = &moto.aws.ec2;
    let data = template(&image, &network);
    ec2.create_launch_template(TEMPLATE, &tags(), &data)
        .await
        .expect("a template");
    let spot = FleetRequest {
        count: 2,
        ..fleet(&image, &network, Market::Spot(Allocation::Price))
    };
    let answer = ec2.create_fleet(&spot).await.expect("a fleet");
    let ids: Vec<String> = answer.instances.iter().flat_map(|group| group.ids.clone()).collect();
    assert_eq!(ids.len(), 2);
    let by_id = InstanceQuery {
        ids,
        filters: Vec::new(),
    };
    let found = ec2.instances(&by_id).await.expect("the instances");
    assert!(found.iter().all(|instance| instance.lifecycle == "spot"), "{found:?}");
}
