//! The contract of [`CloudProvider`] as checks that any provider's tests can run.
//!
//! A provider's test crate implements [`Subject`] over whatever stands in for its cloud and calls [`check_all`], or
//! the checks one by one. A check panics with the promise that was broken.

use std::sync::Arc;

use async_trait::async_trait;
use model::{
    CapacityType, InstanceType, Labels, Offering, Quantity, Requirement, Requirements, ResourceName, Resources,
    pool::Pool, vocabulary,
};

use crate::{CloudProvider, Instance, LaunchRequest, Launched, ProviderError, Termination};

/// How many times the suite asks for the end of an instance before it calls the provider stuck.
const PATIENCE: usize = 100;

/// A provider over a cloud that is empty and without faults when the suite starts.
#[async_trait]
pub trait Subject: Send + Sync {
    fn provider(&self) -> &dyn CloudProvider;

    /// A pool that the provider serves, with a class that is ready.
    fn pool(&self) -> Pool;

    /// Lets time pass, so that what was asked of the cloud can happen.
    async fn wait(&self);

    /// Makes the cloud run out of an offering.
    async fn exhaust(&self, shape: &InstanceType, offering: &Offering);
}

/// Every promise, one after the other, on the same cloud.
pub async fn check_all(subject: &dyn Subject) {
    the_catalog_is_complete(subject).await;
    unknown_instances_are_gone(subject).await;
    a_launched_instance_can_be_found(subject).await;
    launch_is_idempotent_on_its_token(subject).await;
    terminate_is_asked_until_nothing_is_left(subject).await;
    the_cheapest_admitted_offering_is_bought(subject).await;
    requirements_are_respected(subject).await;
    what_cannot_be_had_is_insufficient_capacity(subject).await;
    a_shortage_is_seen_in_the_catalog(subject).await;
}

pub async fn the_catalog_is_complete(subject: &dyn Subject) {
    let catalog = catalog(subject).await;
    assert!(!catalog.is_empty(), "a pool has shapes");
    let vocabulary = subject.provider().vocabulary();
    for shape in catalog.iter() {
        let name = &shape.name;
        let listed = shape.requirements.get(vocabulary::INSTANCE_TYPE);
        assert!(listed.has(name.as_str()), "{name} has its name among its labels");
        assert!(
            !shape.offerings.is_empty(),
            "{name} is offered somewhere, available or not"
        );
        assert!(!shape.allocatable().is_overdrawn(), "{name} has room for pods");
        for offering in &shape.offerings {
            assert!(
                offering.price.is_finite() && offering.price >= 0.0,
                "{name} has a price"
            );
            let zone = offering.requirements.get(vocabulary::ZONE).single();
            assert!(
                zone.is_some_and(|zone| *zone == offering.zone.as_str()),
                "{name} has its zone as a label"
            );
            let reserved = offering.capacity_type == CapacityType::Reserved;
            assert_eq!(
                offering.reservation_capacity.is_some(),
                reserved,
                "only reservations have a size ({name})"
            );
            for requirement in offering.requirements.iter() {
                let key = requirement.key.as_str();
                assert!(vocabulary.is_well_known(key), "the vocabulary knows {key} of {name}");
            }
        }
    }
}

pub async fn unknown_instances_are_gone(subject: &dyn Subject) {
    for id in ["unheard-of", "other:///zone/i-0123456789"] {
        let found = subject
            .provider()
            .instance(&id.into())
            .await
            .expect("an unknown id is no error");
        assert_eq!(found, None, "nobody has {id}");
        let ended = subject
            .provider()
            .terminate(&id.into())
            .await
            .expect("an unknown id is no error");
        assert_eq!(ended, Termination::Gone, "nothing is left of {id}");
    }
}

pub async fn a_launched_instance_can_be_found(subject: &dyn Subject) {
    let request = request(subject, "found");
    let launched = launch(subject, &request).await;
    let found = subject
        .provider()
        .instance(&launched.provider_id)
        .await
        .expect("an answer");
    let found = found.expect("what was launched is there");
    assert_eq!(found.provider_id, launched.provider_id);
    assert_eq!(
        found.claim.as_ref(),
        Some(&request.claim),
        "the cloud knows whom it was launched for"
    );
    assert_eq!(
        listed(subject, &launched).await.as_ref(),
        Some(&found),
        "the list tells the same"
    );
    assert!(
        request.requests.fits(&launched.allocatable),
        "it holds what was asked for"
    );
    let beyond = launched
        .allocatable
        .iter()
        .find(|(name, amount)| *amount > launched.capacity.get(name.as_str()));
    assert_eq!(beyond, None, "nothing is allocatable beyond the capacity");
    for key in [vocabulary::INSTANCE_TYPE, vocabulary::ZONE, vocabulary::CAPACITY_TYPE] {
        assert!(launched.labels.contains_key(key), "the launch settles {key}");
    }
    end(subject, &launched).await;
}

pub async fn launch_is_idempotent_on_its_token(subject: &dyn Subject) {
    let (one, other) = (request(subject, "same"), request(subject, "different"));
    let first = launch(subject, &one).await;
    let again = launch(subject, &one).await;
    assert_eq!(first, again, "the second call answers with the instance of the first");
    let before = count(subject).await;
    let different = launch(subject, &other).await;
    assert_ne!(
        first.provider_id, different.provider_id,
        "another token is another instance"
    );
    assert_eq!(count(subject).await, before + 1);
    end(subject, &first).await;
    end(subject, &different).await;

    let twice = request(subject, "at-once");
    let (first, second) = tokio::join!(launch(subject, &twice), launch(subject, &twice));
    assert_eq!(
        first.provider_id, second.provider_id,
        "also when both calls are under way"
    );
    end(subject, &first).await;
}

pub async fn terminate_is_asked_until_nothing_is_left(subject: &dyn Subject) {
    let launched = launch(subject, &request(subject, "end")).await;
    subject.wait().await;
    subject
        .provider()
        .terminate(&launched.provider_id)
        .await
        .expect("an answer");
    assert_eq!(
        listed(subject, &launched).await,
        None,
        "an instance that is ending is not listed"
    );
    end(subject, &launched).await;
    let left = subject
        .provider()
        .instance(&launched.provider_id)
        .await
        .expect("an answer");
    assert_eq!(left, None, "after Gone nothing is left");
    end(subject, &launched).await;
}

pub async fn the_cheapest_admitted_offering_is_bought(subject: &dyn Subject) {
    let catalog = catalog(subject).await;
    let zones = catalog
        .iter()
        .flat_map(|shape| shape.available())
        .map(|offering| offering.zone.clone());
    let zone = zones.max().expect("something can be had");
    let narrowings = [
        Vec::new(),
        vec![Requirement::one_of(vocabulary::ZONE, [zone.as_str()])],
        vec![Requirement::one_of(vocabulary::CAPACITY_TYPE, ["on-demand"])],
    ];
    for (index, narrowing) in narrowings.into_iter().enumerate() {
        let mut request = request(subject, &format!("cheap-{index}"));
        request.requirements.extend(narrowing);
        let cheapest = admitted(&catalog, &request)
            .map(|(_, offering)| offering.price)
            .reduce(f64::min);
        let cheapest = cheapest.expect("the request can be met");
        let launched = launch(subject, &request).await;
        let price = price_of(&catalog, &launched.labels).expect("what was launched is in the catalog");
        assert_eq!(price, cheapest, "the cheapest of {}", request.requirements);
        end(subject, &launched).await;
    }
}

pub async fn requirements_are_respected(subject: &dyn Subject) {
    let catalog = catalog(subject).await;
    let open = request(subject, "open");
    let all: Vec<_> = admitted(&catalog, &open).collect();
    // A handful from all over the catalog; reservations are the business of the labels that name them.
    let picks = all
        .iter()
        .filter(|(_, offering)| offering.capacity_type != CapacityType::Reserved);
    for (index, (shape, offering)) in picks.step_by(all.len() / 7 + 1).enumerate() {
        let mut request = request(subject, &format!("pinned-{index}"));
        let wanted = [
            (vocabulary::INSTANCE_TYPE, shape.name.as_str()),
            (vocabulary::ZONE, offering.zone.as_str()),
            (vocabulary::CAPACITY_TYPE, offering.capacity_type.as_str()),
        ];
        request
            .requirements
            .extend(wanted.map(|(key, value)| Requirement::one_of(key, [value])));
        let launched = launch(subject, &request).await;
        for (key, value) in wanted {
            assert_eq!(
                launched.labels.get(key).map(AsRef::as_ref),
                Some(value),
                "{key} as asked for"
            );
        }
        end(subject, &launched).await;
    }
}

pub async fn what_cannot_be_had_is_insufficient_capacity(subject: &dyn Subject) {
    let before = count(subject).await;
    let mut huge = request(subject, "huge");
    huge.requests.set(ResourceName::CPU, Quantity::from_int(1_000_000));
    let mut nowhere = request(subject, "nowhere");
    nowhere
        .requirements
        .extend([Requirement::one_of(vocabulary::ZONE, ["no-such-zone"])]);
    let mut unmade = request(subject, "unmade");
    unmade
        .requirements
        .extend([Requirement::one_of(vocabulary::INSTANCE_TYPE, ["no.such-type"])]);
    for request in [huge, nowhere, unmade] {
        expect_insufficient(subject, &request).await;
    }
    assert_eq!(count(subject).await, before, "what was refused was not launched");
}

pub async fn a_shortage_is_seen_in_the_catalog(subject: &dyn Subject) {
    let before = catalog(subject).await;
    let request = request(subject, "short");
    let (shape, offering) = admitted(&before, &request).next().expect("something can be had");
    subject.exhaust(shape, offering).await;
    let mut pinned = request.clone();
    pinned.requirements.extend([
        Requirement::one_of(vocabulary::INSTANCE_TYPE, [shape.name.as_str()]),
        Requirement::one_of(vocabulary::ZONE, [offering.zone.as_str()]),
        Requirement::one_of(vocabulary::CAPACITY_TYPE, [offering.capacity_type.as_str()]),
    ]);
    expect_insufficient(subject, &pinned).await;

    let after = catalog(subject).await;
    assert_eq!(after.len(), before.len(), "shapes that cannot be had are still listed");
    let listed = after.iter().filter(|listed| listed.name == shape.name);
    let listed = listed.flat_map(|listed| &listed.offerings);
    let same = |listed: &&Offering| listed.zone == offering.zone && listed.capacity_type == offering.capacity_type;
    let now = listed.filter(same).collect::<Vec<_>>();
    assert!(!now.is_empty(), "offerings that cannot be had are still listed");
    assert!(
        now.iter().all(|offering| !offering.available),
        "and marked as unavailable"
    );
}

/// A request for anything that holds a small pod.
fn request(subject: &dyn Subject, name: &str) -> LaunchRequest {
    let pool = subject.pool();
    LaunchRequest {
        claim: format!("conformance-{name}").into(),
        token: format!("conformance-token-{name}"),
        class: pool.template.class.clone(),
        requirements: Requirements::new(),
        requests: Resources::new()
            .with(ResourceName::CPU, Quantity::from_millis(500))
            .with(ResourceName::MEMORY, Quantity::from_bytes(256 << 20))
            .with(ResourceName::PODS, Quantity::from_int(1)),
        labels: Labels::new(),
        annotations: Labels::new(),
        taints: Vec::new(),
        startup_taints: Vec::new(),
        pool: Some(pool.name),
    }
}

async fn catalog(subject: &dyn Subject) -> model::snapshot::Catalog {
    subject
        .provider()
        .catalog(&subject.pool())
        .await
        .expect("the provider knows its catalog")
}

/// What a request may be met with, by the contract's own reading of the catalog.
fn admitted<'a>(
    catalog: &'a [Arc<InstanceType>],
    request: &'a LaunchRequest,
) -> impl Iterator<Item = (&'a Arc<InstanceType>, &'a Offering)> {
    let shapes = catalog
        .iter()
        .filter(|shape| shape.requirements.overlaps(&request.requirements));
    shapes.flat_map(|shape| {
        let offerings = shape.offerings_within(&request.requirements);
        let holding = offerings.filter(|offering| request.requests.fits(&shape.allocatable_under(offering)));
        holding.map(move |offering| (shape, offering))
    })
}

/// The lowest price in the catalog of what the labels name.
fn price_of(catalog: &[Arc<InstanceType>], labels: &Labels) -> Option<f64> {
    let label = |key: &str| labels.get(key).map(AsRef::as_ref);
    let shapes = catalog
        .iter()
        .filter(|shape| label(vocabulary::INSTANCE_TYPE) == Some(shape.name.as_str()));
    let offerings = shapes.flat_map(|shape| &shape.offerings).filter(|offering| {
        label(vocabulary::ZONE) == Some(offering.zone.as_str())
            && label(vocabulary::CAPACITY_TYPE) == Some(offering.capacity_type.as_str())
    });
    offerings.map(|offering| offering.price).reduce(f64::min)
}

async fn launch(subject: &dyn Subject, request: &LaunchRequest) -> Launched {
    match subject.provider().launch(request).await {
        Ok(launched) => launched,
        Err(error) => panic!("{} can be launched: {error}", request.claim),
    }
}

async fn listed(subject: &dyn Subject, launched: &Launched) -> Option<Instance> {
    let all = subject
        .provider()
        .instances()
        .await
        .expect("the provider lists its instances");
    all.into_iter()
        .find(|instance| instance.provider_id == launched.provider_id)
}

async fn count(subject: &dyn Subject) -> usize {
    subject
        .provider()
        .instances()
        .await
        .expect("the provider lists its instances")
        .len()
}

async fn expect_insufficient(subject: &dyn Subject, request: &LaunchRequest) {
    match subject.provider().launch(request).await {
        Err(ProviderError::InsufficientCapacity { .. }) => {}
        other => panic!("{} is refused for lack of capacity, not {other:?}", request.claim),
    }
}

async fn end(subject: &dyn Subject, launched: &Launched) {
    for _ in 0..PATIENCE {
        let answer = subject
            .provider()
            .terminate(&launched.provider_id)
            .await
            .expect("an answer");
        if answer == Termination::Gone {
            return;
        }
        subject.wait().await;
    }
    panic!("{} ends when it is asked to often enough", launched.provider_id);
}
