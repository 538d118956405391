mod afterwards;
mod expressions;
mod inheritance;
mod own_prices;
mod partitions;
mod waves;

use std::{collections::BTreeSet, time::Duration};

use ::provider::{
    NoticeKind,
    conformance::{self, Subject},
};
use api::{
    aws::{CapacityReservation, InstanceMatchCriteria, PlacementGroupSelector, ReservationType},
    conditions::{self, Conditions, ec2_node_class as condition},
    labels::{self, aws as aws_labels},
    v1alpha1::NodeOverlay,
};
use model::{
    CapacityType, InstanceType, Offering, Quantity, Requirement, Requirements, Resources,
    pool::{ConsolidationPolicy, Disruption, Template},
};
use parking_lot::Mutex;
use serde_json::json;

use super::*;
use crate::{
    Inherited,
    error::AwsError,
    options::Options,
    ports::{FleetAnswer, FleetError, FleetOverride, Market},
    testing::{fake::FakeAws, samples},
};

/// The class of the tests, and what claims were stamped with.
struct Known {
    class: Mutex<Option<Arc<EC2NodeClass>>>,
    stamps: Mutex<Labels>,
    overlays: Mutex<Vec<Arc<NodeOverlay>>>,
    claimed: Mutex<BTreeSet<ProviderId>>,
    inherited: Mutex<BTreeMap<ClaimName, Inherited>>,
}

impl Objects for Known {
    fn class(&self, name: &str) -> Option<Arc<EC2NodeClass>> {
        self.class.lock().clone().filter(|_| name == "default")
    }

    fn claim_annotations(&self, _: &ProviderId) -> Option<Labels> {
        Some(self.stamps.lock().clone())
    }

    fn is_claimed(&self, instance: &ProviderId) -> bool {
        self.claimed.lock().contains(instance)
    }

    fn inherited(&self, claim: &ClaimName) -> Option<Inherited> {
        self.inherited.lock().get(claim).copied()
    }

    fn overlays(&self) -> Vec<Arc<NodeOverlay>> {
        self.overlays.lock().clone()
    }
}

struct Scene {
    aws: FakeAws,
    services: Arc<Services>,
    provider: AwsProvider,
    objects: Arc<Known>,
}

async fn scene_with(change: impl FnOnce(&mut crate::Foundation)) -> Scene {
    let aws = FakeAws::new();
    samples::stocked(&aws);
    let mut foundation = samples::foundation(&aws);
    change(&mut foundation);
    let services = Arc::new(Services::new(foundation));
    services.catalog.refresh_types().await.unwrap();
    let runner = services.clone();
    tokio::spawn(async move { runner.run().await });
    let objects = Arc::new(Known {
        class: Mutex::new(Some(Arc::new(samples::ready_class()))),
        stamps: Mutex::default(),
        overlays: Mutex::default(),
        claimed: Mutex::default(),
        inherited: Mutex::default(),
    });
    Scene {
        provider: AwsProvider::new(services.clone(), objects.clone()),
        aws,
        services,
        objects,
    }
}

async fn scene() -> Scene {
    scene_with(|_| ()).await
}

impl Scene {
    fn change_class(&self, change: impl FnOnce(&mut EC2NodeClass)) {
        let mut class = samples::ready_class();
        change(&mut class);
        *self.objects.class.lock() = Some(Arc::new(class));
    }

    async fn launch(&self, request: &LaunchRequest) -> Result<Launched, ProviderError> {
        self.provider.launch(request).await
    }

    async fn launched(&self, request: &LaunchRequest) -> Launched {
        self.launch(request).await.expect("it can be launched")
    }

    fn info(&self, launched: &Launched) -> InstanceInfo {
        let id = provider_id::instance_id(&launched.provider_id).expect("an id of EC2's");
        self.aws.instance(id).expect("EC2 has it")
    }
}

fn request(token: &str, requirements: impl IntoIterator<Item = Requirement>) -> LaunchRequest {
    LaunchRequest {
        claim: format!("claim-{token}").into(),
        token: token.to_owned(),
        pool: Some("general".into()),
        class: pool().template.class,
        requirements: requirements.into_iter().collect(),
        requests: Resources::new().with("cpu".into(), Quantity::from_int(1)),
        labels: Labels::new(),
        annotations: Labels::new(),
        taints: Vec::new(),
        startup_taints: Vec::new(),
    }
}

fn on_demand(instance_type: &str) -> Vec<Requirement> {
    vec![
        Requirement::one_of(labels::INSTANCE_TYPE, [instance_type]),
        Requirement::one_of(labels::CAPACITY_TYPE, ["on-demand"]),
    ]
}

fn pool() -> Pool {
    Pool {
        name: "general".into(),
        uid: "pool-uid".to_owned(),
        hash: String::new(),
        template: Template {
            labels: Labels::new(),
            annotations: Labels::new(),
            requirements: Requirements::new(),
            taints: Vec::new(),
            startup_taints: Vec::new(),
            class: NodeClassRef {
                group: NODE_CLASS.group.to_owned(),
                kind: NODE_CLASS.kind.to_owned(),
                name: "default".to_owned(),
            },
            expire_after: None,
            termination_grace: None,
        },
        disruption: Disruption {
            policy: ConsolidationPolicy::WhenEmpty,
            consolidate_after: None,
            budgets: Ok(Vec::new()),
        },
        limits: Resources::new(),
        weight: 0,
        replicas: None,
        ready: true,
        deleting: None,
    }
}

#[async_trait]
impl Subject for Scene {
    fn provider(&self) -> &dyn CloudProvider {
        &self.provider
    }

    fn pool(&self) -> Pool {
        pool()
    }

    async fn wait(&self) {
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.aws.let_time_pass();
    }

    async fn exhaust(&self, shape: &InstanceType, offering: &Offering) {
        let (zone, target) = (offering.zone.as_str(), offering.capacity_type.as_str());
        self.aws.exhaust(shape.name.as_str(), zone, target);
    }
}

#[tokio::test(start_paused = true)]
async fn every_promise_of_a_provider_is_kept() {
    conformance::check_all(&scene().await).await;
}

/// AW24.11.19
#[tokio::test(start_paused = true)]
async fn a_class_that_is_not_ready_launches_nothing() {
    let scene = scene().await;
    let now = scene.aws.now();
    let with = |change: &dyn Fn(&mut Conditions)| {
        scene.change_class(|class| {
            let mut conditions = Conditions::of(class, now);
            change(&mut conditions);
            class.status.as_mut().unwrap().conditions = Some(conditions.into_list());
        });
    };
    let reason = async || scene.launch(&request("t", [])).await.unwrap_err().reason();
    use ::provider::Reason;
    with(&|conditions| {
        conditions.set_false(condition::AMIS_READY, "AMINotFound", "none", now);
    });
    assert_eq!(reason().await, Reason::NodeClassNotReady);
    with(&|conditions| {
        conditions.set_unknown(condition::AMIS_READY, "x", "y", now);
    });
    assert_eq!(reason().await, Reason::Provider("NodeClassReadinessUnknown".to_owned()));
    scene.change_class(|class| class.metadata.generation = Some(2));
    assert_eq!(reason().await, Reason::NodeClassNotReady);
    scene.change_class(|class| class.spec.tags = Some([("karpenter.sh/nodepool".to_owned(), "x".to_owned())].into()));
    assert_eq!(reason().await, Reason::NodeClassNotReady);
    scene.change_class(|class| {
        class.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now));
    });
    assert_eq!(reason().await, Reason::InsufficientCapacity);
    *scene.objects.class.lock() = None;
    assert_eq!(reason().await, Reason::InsufficientCapacity);
    assert!(scene.provider.catalog(&pool()).await.unwrap().is_empty());
    assert!(scene.aws.fleets().is_empty());
    assert!(conditions::is_true(
        samples::ready_class().status.unwrap().conditions.as_deref().unwrap(),
        "Ready"
    ));
}

/// AW24.11.14, AW24.11.20, AW24.12.17
#[tokio::test(start_paused = true)]
async fn a_launch_tells_what_it_settled_and_what_the_class_was() {
    let scene = scene().await;
    let launched = scene.launched(&request("t", on_demand("m5.large"))).await;
    let info = scene.info(&launched);
    assert_eq!(launched.image_id.as_deref(), Some("ami-amd"));
    assert_eq!(
        launched.provider_id.as_str(),
        format!("aws:///{}/{}", info.zone, info.id)
    );
    let label = |key: &str| launched.labels.get(key).map(AsRef::as_ref);
    assert_eq!(label(labels::INSTANCE_TYPE), Some("m5.large"));
    assert_eq!(label(labels::CAPACITY_TYPE), Some("on-demand"));
    assert_eq!(label(labels::NODE_POOL), Some("general"));
    assert!(label(aws_labels::ZONE_ID).is_some_and(|id| id.starts_with("usw2-")));
    let stamped: Vec<&str> = launched.annotations.keys().map(AsRef::as_ref).collect();
    assert_eq!(
        stamped,
        [
            "karpenter.k8s.aws/ec2nodeclass-hash",
            "karpenter.k8s.aws/ec2nodeclass-hash-version",
            "karpenter.k8s.aws/instance-profile-name"
        ]
    );
    assert!(!launched.capacity.lists("vpc.amazonaws.com/efa"));
    assert!(
        scene
            .services
            .metrics
            .encoded()
            .contains("userdata_bytes{nodeclass=\"default\"}")
    );
    let catalog = scene.provider.catalog(&pool()).await.unwrap();
    let shape = catalog.iter().find(|shape| shape.name == "m5.large").unwrap();
    assert_eq!(launched.allocatable, shape.allocatable().clone().without_zeros());
}

/// AW24.11.2, AW24.11.6, AW24.10.3
#[tokio::test(start_paused = true)]
async fn what_is_short_is_avoided_and_told() {
    let scene = scene().await;
    let anywhere = |token: &str| request(token, [Requirement::one_of(labels::INSTANCE_TYPE, ["m5.large"])]);
    for zone in ["us-west-2a", "us-west-2b"] {
        scene.aws.exhaust("m5.large", zone, "spot");
    }
    let refused = scene.launch(&anywhere("one")).await.unwrap_err();
    assert!(matches!(refused, ProviderError::InsufficientCapacity { .. }));
    let launched = scene.launched(&anywhere("two")).await;
    assert_eq!(launched.labels[labels::CAPACITY_TYPE].as_str(), "on-demand");
    for zone in ["us-west-2a", "us-west-2b"] {
        scene.aws.exhaust("m5.large", zone, "on-demand");
    }
    assert!(scene.launch(&anywhere("three")).await.is_err());
    let fleets = scene.aws.fleets().len();
    assert!(scene.launch(&anywhere("four")).await.is_err());
    assert_eq!(
        scene.aws.fleets().len(),
        fleets,
        "EC2 is not asked for what it does not have"
    );
    let failures = scene.services.metrics.encoded();
    let expected = "zone=\"us-west-2a\",zone_id=\"usw2-az1\",capacity_type=\"spot\",reason=\"LaunchFailed\"";
    assert!(failures.contains(expected), "{failures}");
}

/// AW24.11.3
#[tokio::test(start_paused = true)]
async fn without_the_spot_role_only_spot_is_given_up() {
    let scene = scene().await;
    let error = AwsError::new("AuthFailure.ServiceLinkedRoleCreationNotPermitted", "no");
    let errors = vec![FleetError { error, failed: None }];
    let instances = Vec::new();
    scene.aws.answer_fleet(FleetAnswer { instances, errors });
    let refused = scene.launch(&request("one", [])).await.unwrap_err();
    assert!(matches!(refused, ProviderError::InsufficientCapacity { .. }));
    let launched = scene.launched(&request("two", [])).await;
    assert_eq!(launched.labels[labels::CAPACITY_TYPE].as_str(), "on-demand");
}

/// AW24.11.7, AW24.11.22
#[tokio::test(start_paused = true)]
async fn a_full_subnet_is_left_for_the_other_of_its_zone() {
    let scene = scene().await;
    scene.aws.add_subnet("subnet-a", "us-west-2a", 100, &[("team", "a")]);
    scene.aws.add_subnet("subnet-a2", "us-west-2a", 50, &[("team", "a")]);
    scene.change_class(|class| {
        class.spec.subnet_selector_terms = vec![api::aws::SubnetSelectorTerm {
            tags: Some([("team".to_owned(), "a".to_owned())].into()),
            id: None,
        }];
        let status = class.status.as_mut().unwrap();
        status.subnets = Some(vec![
            samples::subnet("subnet-a", "us-west-2a", "usw2-az1"),
            samples::subnet("subnet-a2", "us-west-2a", "usw2-az1"),
        ]);
    });
    let class = scene.objects.class("default").unwrap();
    scene.services.resolver.subnets.of(&class).await.unwrap();
    let order = |token: &str| request(token, on_demand("m5.large"));
    let failed = FleetOverride {
        instance_type: "m5.large".to_owned(),
        subnet: "subnet-a".to_owned(),
        zone: Some("us-west-2a".to_owned()),
        ..FleetOverride::default()
    };
    let error = AwsError::new("InsufficientFreeAddressesInSubnet", "full");
    let errors = vec![FleetError {
        error,
        failed: Some(failed),
    }];
    let instances = Vec::new();
    scene.aws.answer_fleet(FleetAnswer { instances, errors });
    assert!(scene.launch(&order("one")).await.is_err());
    tokio::time::advance(Duration::from_secs(181)).await;
    let launched = scene.launched(&order("two")).await;
    assert_eq!(scene.info(&launched).subnet, "subnet-a2");
}

/// AW24.11.12, AW24.11.13
#[tokio::test(start_paused = true)]
async fn annotations_of_the_claim_shape_the_request() {
    let scene = scene().await;
    scene.change_class(|class| class.spec.context = Some("context".to_owned()));
    let annotated = |token: &str, key: &str| {
        let mut request = request(token, on_demand("m5.large"));
        request.annotations.insert(key.into(), "true".into());
        request
    };
    scene.launched(&request("plain", on_demand("m5.large"))).await;
    scene
        .launched(&annotated("overlaid", annotations::PRICE_OVERLAY_APPLIED))
        .await;
    scene
        .launched(&annotated("relaxed", annotations::MIN_VALUES_RELAXED))
        .await;
    let fleets = scene.aws.fleets();
    let shown: Vec<(Option<&str>, Option<&str>)> = fleets
        .iter()
        .map(|fleet| (fleet.context.as_deref(), fleet.market.strategy()))
        .collect();
    assert_eq!(
        shown,
        [
            (Some("context"), Some("lowest-price")),
            (Some("context"), Some("prioritized")),
            (None, Some("lowest-price"))
        ]
    );
}

/// AW24.11.16
#[tokio::test(start_paused = true)]
async fn a_template_that_ec2_lost_is_made_again_once() {
    let scene = scene().await;
    let gone = || AwsError::new("InvalidLaunchTemplateName.NotFoundException", "gone");
    scene.aws.fail("CreateFleet", gone());
    scene.launched(&request("one", on_demand("m5.large"))).await;
    assert_eq!(scene.aws.calls("DescribeLaunchTemplates"), 2);
    scene.aws.fail("CreateFleet", gone());
    scene.aws.fail("CreateFleet", gone());
    let refused = scene.launch(&request("two", on_demand("m5.large"))).await.unwrap_err();
    assert_eq!(
        refused.reason(),
        ::provider::Reason::Provider("LaunchTemplateNotFound".to_owned())
    );
}

fn reserved_class(class: &mut EC2NodeClass) {
    let reservation = CapacityReservation {
        availability_zone: "us-west-2a".to_owned(),
        end_time: None,
        id: "cr-1".to_owned(),
        instance_match_criteria: InstanceMatchCriteria::Targeted,
        instance_type: "m5.large".to_owned(),
        owner_id: "1".to_owned(),
        reservation_type: Some(ReservationType::Default),
        interruptible: Some(false),
        state: Some(api::aws::ReservationState::Active),
    };
    class.status.as_mut().unwrap().capacity_reservations = Some(vec![reservation]);
}

async fn count_reservation(scene: &Scene, available: u32) {
    scene.aws.add_reservation(
        crate::ports::ReservationInfo {
            id: "cr-1".to_owned(),
            available,
            ..crate::ports::ReservationInfo::default()
        },
        &[],
    );
    let term = api::aws::CapacityReservationSelectorTerm {
        id: Some("cr-1".to_owned()),
        ..api::aws::CapacityReservationSelectorTerm::default()
    };
    scene.services.resolver.reservations.of(&[term]).await.unwrap();
}

/// AW24.11.5, AW24.11.17, AW24.4.10
#[tokio::test(start_paused = true)]
async fn a_reservation_is_used_first_and_counted() {
    let scene = scene().await;
    count_reservation(&scene, 2).await;
    scene.change_class(reserved_class);
    let left = || scene.services.resolver.reservations.left("cr-1");
    let order = |token: &str| request(token, [Requirement::one_of(labels::INSTANCE_TYPE, ["m5.large"])]);
    let launched = scene.launched(&order("one")).await;
    assert_eq!(left(), 1);
    let label = |key: &str| launched.labels.get(key).map(AsRef::as_ref);
    assert_eq!(label(labels::CAPACITY_TYPE), Some("reserved"));
    assert_eq!(label(aws_labels::CAPACITY_RESERVATION_ID), Some("cr-1"));
    assert_eq!(label(aws_labels::CAPACITY_RESERVATION_TYPE), Some("default"));
    assert_eq!(
        scene.aws.fleets()[0].market,
        Market::OnDemand(crate::ports::Allocation::Price)
    );

    let end = async || scene.provider.terminate(&launched.provider_id).await.unwrap();
    scene.aws.change_instance(&scene.info(&launched).id, |instance| {
        instance.reservation = Some("cr-1".to_owned());
        instance.reservation_preference = "capacity-reservations-only".to_owned();
    });
    assert_eq!(end().await, Termination::Requested);
    assert_eq!(left(), 1);
    scene.aws.let_time_pass();
    assert_eq!(end().await, Termination::Gone);
    assert_eq!(left(), 2, "its place is free again");

    let short = |code: &str| FleetAnswer {
        instances: Vec::new(),
        errors: vec![FleetError {
            error: AwsError::new(code, ""),
            failed: Some(FleetOverride {
                instance_type: "m5.large".to_owned(),
                zone: Some("us-west-2a".to_owned()),
                ..FleetOverride::default()
            }),
        }],
    };
    scene.aws.answer_fleet(short("RequestLimitExceeded"));
    assert!(matches!(
        scene.launch(&order("two")).await,
        Err(ProviderError::Refused { .. })
    ));
    assert_eq!(left(), 2);
    scene.aws.answer_fleet(short("ReservationCapacityExceeded"));
    assert!(matches!(
        scene.launch(&order("three")).await,
        Err(ProviderError::InsufficientCapacity { .. })
    ));
    assert_eq!(left(), 0);
    let launched = scene.launched(&order("four")).await;
    assert_ne!(launched.labels[labels::CAPACITY_TYPE].as_str(), "reserved");
}

/// AW24.11.18
#[tokio::test(start_paused = true)]
async fn efa_is_there_for_those_who_ask_for_it() {
    let scene = scene().await;
    let efa = "vpc.amazonaws.com/efa";
    let mut asking = request("asking", on_demand("m6idn.32xlarge"));
    asking.requests.set(efa.into(), Quantity::from_int(1));
    let launched = scene.launched(&asking).await;
    assert_eq!(launched.capacity.get(efa), Quantity::from_int(2));
    let launched = scene.launched(&request("plain", on_demand("m6idn.32xlarge"))).await;
    assert!(!launched.capacity.lists(efa) && !launched.allocatable.lists(efa));
}
