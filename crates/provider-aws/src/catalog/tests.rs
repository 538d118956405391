use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use model::CapacityType;

use super::*;
use crate::{
    offering::Spot,
    ports::{SpotPrice, TypeOffering},
    testing::{
        fake::FakeAws,
        samples::{self, REGION},
    },
};

fn region() -> FakeAws {
    let aws = FakeAws::new();
    let types = samples::all_types();
    let zones = ["us-west-2a", "us-west-2b", "us-west-2c"];
    let sold = |info: &InstanceTypeInfo| {
        let name = info.name.clone();
        zones.map(|zone| TypeOffering {
            instance_type: name.clone(),
            zone: zone.to_owned(),
        })
    };
    aws.set_types(types.clone(), types.iter().flat_map(sold).collect());
    aws
}

fn catalog(aws: &FakeAws) -> RegionCatalog {
    RegionCatalog::new(aws.ports(), aws.clock(), REGION, Arc::new(samples::options()), true)
}

fn listed(catalog: &RegionCatalog, class: &EC2NodeClass) -> Result<Arc<[Arc<InstanceType>]>, CatalogError> {
    let moment = Moment {
        placement_group: None,
        shifted_zones: &BTreeSet::new(),
        reservation_capacity: &|_| 0,
        own_prices: &BTreeMap::new(),
    };
    catalog.of(class, &moment)
}

fn one(catalog: &RegionCatalog, class: &EC2NodeClass, name: &str) -> Arc<InstanceType> {
    let listed = listed(catalog, class).unwrap();
    let found = listed.iter().find(|shape| shape.name == name);
    found.expect("the type is listed").clone()
}

/// AW24.9.13, AW24.9.15
#[tokio::test(start_paused = true)]
async fn nothing_is_listed_before_ec2_has_been_asked_or_subnets_are_known() {
    let aws = region();
    let catalog = catalog(&aws);
    let class = samples::class();
    assert!(matches!(listed(&catalog, &class), Err(CatalogError::NoTypes)));
    catalog.refresh_types().await.unwrap();
    assert_eq!(listed(&catalog, &class).unwrap().len(), samples::all_types().len());
    let mut bare = class.clone();
    bare.status = None;
    assert!(matches!(listed(&catalog, &bare), Err(CatalogError::NoSubnets)));
    let mut bad = class.clone();
    bad.spec.kubelet = Some(api::aws::KubeletConfiguration {
        eviction_hard: Some([("memory.available".to_owned(), "much".to_owned())].into()),
        ..api::aws::KubeletConfiguration::default()
    });
    assert!(matches!(listed(&catalog, &bad), Err(CatalogError::Unreadable(_))));
    assert!(listed(&catalog, &class).is_ok());
}

/// AW24.9.14
#[tokio::test(start_paused = true)]
async fn shapes_follow_the_class_and_the_facts() {
    let aws = region();
    let catalog = catalog(&aws);
    catalog.refresh_types().await.unwrap();
    let class = samples::class();
    let pods = |class: &EC2NodeClass| one(&catalog, class, "m5.large").capacity.get("pods").value_ceil();
    assert_eq!(pods(&class), 29);
    let mut edited = class.clone();
    edited.spec.kubelet = Some(api::aws::KubeletConfiguration {
        max_pods: Some(IntOrString::Int(5)),
        ..api::aws::KubeletConfiguration::default()
    });
    assert_eq!(pods(&edited), 5);
    let mut types = samples::all_types();
    types.retain(|info| info.name == "m5.large");
    types[0].network.ipv4_per_interface = 20;
    let sold = TypeOffering {
        instance_type: "m5.large".to_owned(),
        zone: "us-west-2a".to_owned(),
    };
    aws.set_types(types, vec![sold]);
    catalog.refresh_types().await.unwrap();
    assert_eq!(pods(&class), 59);
    assert_eq!(listed(&catalog, &class).unwrap().len(), 1);
}

/// AW24.9.17
#[tokio::test(start_paused = true)]
async fn what_nodes_report_lowers_the_memory_of_their_type() {
    let aws = region();
    let catalog = catalog(&aws);
    catalog.refresh_types().await.unwrap();
    let class = samples::class();
    let memory = |class: &EC2NodeClass| one(&catalog, class, "m5.large").capacity.get("memory").to_string();
    assert_eq!(memory(&class), "7577Mi");
    let seen = |text: &str| Quantity::parse(text).unwrap();
    catalog.saw_memory("m5.large", "ami-amd", seen("7400Mi"));
    catalog.saw_memory("m5.large", "ami-amd", seen("7500Mi"));
    catalog.saw_memory("m5.large", "ami-arm", seen("7000Mi"));
    assert_eq!(memory(&class), "7400Mi");
    assert_eq!(
        one(&catalog, &class, "t3.large").capacity.get("memory").to_string(),
        "7577Mi"
    );
    let mut other = class.clone();
    let mut of_images = |images: &[(&str, &str)]| {
        let amis = images.iter().map(|(id, arch)| samples::ami(id, arch)).collect();
        other.status.as_mut().unwrap().amis = Some(amis);
        memory(&other)
    };
    assert_eq!(
        of_images(&[("ami-new", "amd64")]),
        "7577Mi",
        "another image, another memory"
    );
    let mixed = [("ami-new-arm", "arm64"), ("ami-amd", "amd64")];
    assert_eq!(of_images(&mixed), "7400Mi", "images of other types do not matter");
}

/// AW24.10.3, AW24.10.10
#[tokio::test(start_paused = true)]
async fn shortages_and_prices_are_seen_at_the_next_question() {
    let aws = region();
    let catalog = catalog(&aws);
    catalog.refresh_types().await.unwrap();
    let class = samples::class();
    let available = || one(&catalog, &class, "m5.large").available().count();
    assert_eq!(available(), 4);
    catalog.shortages(|shortages| shortages.mark_capacity_type(CapacityType::Spot));
    assert_eq!(available(), 2);
    tokio::time::advance(std::time::Duration::from_secs(181)).await;
    assert_eq!(available(), 4);
    catalog.shortages(|shortages| {
        let spot = Spot {
            capacity_type: CapacityType::OnDemand,
            instance_type: "m5.large",
            zone: "us-west-2a",
        };
        shortages.mark(spot, None);
    });
    assert_eq!(available(), 3);

    aws.set_spot_prices(vec![SpotPrice {
        instance_type: "m5.large".to_owned(),
        zone: "us-west-2a".to_owned(),
        price: 0.01,
    }]);
    assert!(catalog.refresh_prices().await.is_err(), "the price list is empty");
    let spot = one(&catalog, &class, "m5.large");
    let spot = spot
        .available()
        .find(|offering| offering.capacity_type == CapacityType::Spot);
    assert_eq!(
        spot.map(|offering| offering.price),
        Some(0.01),
        "spot prices count all the same"
    );
    let isolated = Options {
        isolated_vpc: true,
        ..samples::options()
    };
    let isolated = RegionCatalog::new(aws.ports(), aws.clock(), REGION, Arc::new(isolated), true);
    let calls = aws.calls("GetProducts");
    isolated.refresh_prices().await.unwrap();
    assert_eq!(aws.calls("GetProducts"), calls, "an isolated network has no price list");
}
