//! A process that takes over from one that died between a fleet and its record.

use futures::future::join_all;

use super::*;

/// Another process over the same region and the same objects.
async fn successor(scene: &Scene) -> AwsProvider {
    let services = Arc::new(Services::new(samples::foundation(&scene.aws)));
    services.catalog.refresh_types().await.unwrap();
    let runner = services.clone();
    tokio::spawn(async move { runner.run().await });
    AwsProvider::new(services, scene.objects.clone())
}

fn leave_behind(scene: &Scene, requests: &[&LaunchRequest]) {
    let at = scene.services.clock.now();
    let mut inherited = scene.objects.inherited.lock();
    for request in requests {
        inherited.insert(request.claim.clone(), Inherited { created: at, at });
    }
}

fn ids<'a>(launched: impl IntoIterator<Item = &'a Launched>) -> BTreeSet<ProviderId> {
    launched.into_iter().map(|one| one.provider_id.clone()).collect()
}

/// The claims of one fleet come back one by one, so that no token helps.
#[tokio::test(start_paused = true)]
async fn claims_of_an_earlier_process_get_what_it_had_launched_for_them() {
    let scene = scene().await;
    let requests = ["a", "b", "c"].map(|token| request(token, on_demand("m5.large")));
    let first = join_all(requests.iter().map(|request| scene.launched(request))).await;
    leave_behind(&scene, &requests.each_ref());

    let next = successor(&scene).await;
    let mut second = Vec::new();
    for request in &requests {
        second.push(next.launch(request).await.unwrap());
    }
    assert_eq!(ids(&second), ids(&first));
    assert_eq!(second[0].labels, first[0].labels);
    assert_eq!(scene.aws.calls("CreateFleet"), 1);
    let told = next.instances().await.unwrap();
    assert!(told.iter().all(|instance| instance.claim.is_some()));

    let young = request("young", on_demand("m5.large"));
    let before = scene.aws.calls("DescribeInstances");
    let own = next.launch(&young).await.unwrap();
    assert!(!ids(&first).contains(&own.provider_id));
    assert_eq!(
        scene.aws.calls("DescribeInstances"),
        before,
        "a claim of this process has nothing to look for"
    );
}

/// A process that died between the two writes that record a launch: the labels are there, the instance is not named.
#[tokio::test(start_paused = true)]
async fn a_claim_whose_launch_is_half_recorded_gets_that_instance() {
    let scene = scene().await;
    let requests = ["a", "b", "c"].map(|token| LaunchRequest {
        labels: [(labels::NODE_POOL.into(), "general".into())].into_iter().collect(),
        ..request(token, on_demand("m5.large"))
    });
    let first = join_all(requests.iter().map(|request| scene.launched(request))).await;
    leave_behind(&scene, &requests.each_ref());
    let mut half = requests[1].clone();
    half.labels.extend(first[1].labels.clone());
    half.annotations.extend(first[1].annotations.clone());
    let next = successor(&scene).await;
    let again = join_all([&half, &requests[0], &requests[2]].map(|request| next.launch(request))).await;
    let again: Vec<Launched> = again.into_iter().map(Result::unwrap).collect();
    assert_eq!(ids(&again), ids(&first));
    assert_eq!(
        (scene.aws.calls("CreateFleet"), scene.aws.calls("CreateLaunchTemplate")),
        (1, 1)
    );
}

/// Another pool, another template, another zone than asked for, another's, older than the claim, on its way out.
#[tokio::test(start_paused = true)]
async fn an_instance_that_cannot_be_the_claims_own_is_left_alone() {
    type Change = fn(&mut InstanceInfo, &Scene);
    let table: [(&str, Change); 7] = [
        ("pool", |instance, _| {
            instance.tags.insert(tags::NODE_POOL.to_owned(), "other".to_owned());
        }),
        ("class", |instance, _| {
            instance.tags.insert(tags::NODE_CLASS.to_owned(), "other".to_owned());
        }),
        ("template", |instance, _| {
            let other = "lt-other".to_owned();
            instance.tags.insert(tags::LAUNCH_TEMPLATE_ID.to_owned(), other);
        }),
        ("zone", |instance, _| instance.zone = "us-west-2z".to_owned()),
        ("owner", |instance, scene| {
            let id = provider_id::of(&instance.zone, &instance.id);
            scene.objects.claimed.lock().insert(id);
        }),
        ("age", |instance, scene| {
            let now = scene.services.clock.now();
            instance.launched = Some(now - SignedDuration::from_mins(1));
        }),
        ("state", |instance, _| instance.state = "shutting-down".to_owned()),
    ];
    for (what, change) in table {
        let scene = scene().await;
        let zone = Requirement::one_of(labels::ZONE, ["us-west-2a", "us-west-2b"]);
        let order = request("one", on_demand("m5.large").into_iter().chain([zone]));
        let first = scene.launched(&order).await;
        let id = provider_id::instance_id(&first.provider_id).expect("an id of EC2's");
        scene.aws.change_instance(id, |instance| change(instance, &scene));
        leave_behind(&scene, &[&order]);
        // Another token, so that EC2 does not answer with the same instance.
        let order = LaunchRequest {
            token: "other".to_owned(),
            ..order
        };
        let second = successor(&scene).await.launch(&order).await.unwrap();
        assert_ne!(second.provider_id, first.provider_id, "{what}");
    }
}

/// Two equal claims of two fleets: one takes over what was launched for the other, whose token then brings the same
/// instance again.
#[tokio::test(start_paused = true)]
async fn one_instance_is_never_given_to_two_claims() {
    let scene = scene().await;
    let [one, other] = ["one", "other"].map(|token| request(token, on_demand("m5.large")));
    let first = scene.launched(&one).await;
    leave_behind(&scene, &[&other]);
    let next = successor(&scene).await;
    let taken = next.launch(&other).await.unwrap();
    assert_eq!(taken.provider_id, first.provider_id);
    let own = next.launch(&one).await.unwrap();
    assert_ne!(own.provider_id, first.provider_id);
    assert_eq!(
        scene.aws.calls("CreateFleet"),
        3,
        "the second is asked for twice: EC2 remembers"
    );
}
