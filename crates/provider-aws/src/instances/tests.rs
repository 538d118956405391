use parking_lot::Mutex;

use super::*;
use crate::testing::fake::FakeAws;

type Zones = Arc<Mutex<BTreeSet<String>>>;

fn instances(aws: &FakeAws) -> (Arc<Instances>, Zones) {
    let zones = Zones::default();
    let shifted = zones.clone();
    let shifted_zones = Arc::new(move || shifted.lock().clone());
    let instances = Arc::new(Instances::new(aws.ports().ec2, "demo", shifted_zones));
    let runner = instances.clone();
    tokio::spawn(async move { runner.run(|_, _| ()).await });
    (instances, zones)
}

fn add(aws: &FakeAws, id: &str, zone: &str, cluster: &str) {
    let instance = InstanceInfo {
        id: id.to_owned(),
        state: "running".to_owned(),
        zone: zone.to_owned(),
        tags: [
            (tags::NODE_POOL.to_owned(), "pool".to_owned()),
            (tags::NODE_CLASS.to_owned(), "default".to_owned()),
            (tags::CLUSTER_NAME.to_owned(), cluster.to_owned()),
        ]
        .into(),
        ..InstanceInfo::default()
    };
    aws.add_instance(instance);
}

/// AW24.14.1, AW24.14.2
#[tokio::test(start_paused = true)]
async fn the_list_has_the_clusters_own_and_forgets_the_others() {
    let aws = FakeAws::new();
    let (instances, zones) = instances(&aws);
    add(&aws, "i-1", "a", "demo");
    add(&aws, "i-2", "b", "demo");
    add(&aws, "i-3", "a", "other");
    let listed: Vec<String> = instances.list().await.unwrap().into_iter().map(|one| one.id).collect();
    assert_eq!(listed, ["i-1", "i-2"]);
    zones.lock().insert("b".to_owned());
    aws.remove_instance("i-1");
    aws.remove_instance("i-2");
    assert!(instances.list().await.unwrap().is_empty());
    let remembered = instances.get("i-2", Freshness::Asked).await.unwrap();
    assert!(remembered.is_some(), "what is remembered of a shifted zone stays");
    assert_eq!(instances.get("i-1", Freshness::Remembered).await.unwrap(), None);
}

/// AW24.14.3
#[tokio::test(start_paused = true)]
async fn a_shifted_zone_is_left_alone() {
    let aws = FakeAws::new();
    let (instances, zones) = instances(&aws);
    add(&aws, "i-1", "a", "demo");
    zones.lock().insert("a".to_owned());
    let shifted = |result: Result<(), InstanceError>| matches!(result, Err(InstanceError::ZoneShifted(_)));
    assert!(
        instances.tag("i-1", &Tags::new()).await.is_ok(),
        "nothing is known about it yet"
    );
    assert!(shifted(instances.end("i-1").await.map(drop)));
    let calls = aws.all_calls();
    assert!(shifted(instances.end("i-1").await.map(drop)));
    assert!(shifted(instances.tag("i-1", &Tags::new()).await.map(drop)));
    assert!(instances.get("i-1", Freshness::Asked).await.unwrap().is_some());
    assert_eq!(aws.all_calls(), calls, "EC2 is not asked");
    zones.lock().clear();
    assert_eq!(instances.end("i-1").await.unwrap(), Ending::Requested);
}

/// AW24.13.2
#[tokio::test(start_paused = true)]
async fn lookups_are_joined_and_asked_one_by_one_when_that_fails() {
    let aws = FakeAws::new();
    let (instances, _) = instances(&aws);
    add(&aws, "i-1", "a", "demo");
    add(&aws, "i-2", "a", "demo");
    let get = |id: &'static str| instances.get(id, Freshness::Asked);
    let (one, two, again) = futures::join!(get("i-1"), get("i-2"), get("i-1"));
    assert_eq!(one.unwrap().unwrap().id, "i-1");
    assert_eq!(two.unwrap().unwrap().id, "i-2");
    assert_eq!(again.unwrap().unwrap().id, "i-1");
    assert_eq!(aws.calls("DescribeInstances"), 1);

    let (known, missing) = futures::join!(get("i-1"), get("i-9"));
    assert!(known.unwrap().is_some() && missing.unwrap().is_none());
    assert_eq!(
        aws.calls("DescribeInstances"),
        4,
        "one call for both, then one for each"
    );

    let ended = InstanceInfo {
        id: "i-3".to_owned(),
        state: "terminated".to_owned(),
        ..InstanceInfo::default()
    };
    aws.add_instance(ended);
    let (known, ended) = futures::join!(get("i-1"), get("i-3"));
    assert!(known.unwrap().is_some() && ended.unwrap().is_none());
    assert_eq!(
        aws.calls("DescribeInstances"),
        5,
        "it is on record, and not among those that live"
    );

    for _ in 0..3 {
        aws.fail("DescribeInstances", AwsError::new("InternalError", "x"));
    }
    let (one, two) = futures::join!(get("i-1"), get("i-2"));
    assert!(one.is_err() && two.is_err());
    assert_eq!(aws.calls("DescribeInstances"), 8);
}

/// AW24.13.2
#[tokio::test(start_paused = true)]
async fn terminations_are_joined_and_asked_for_until_nothing_is_left() {
    let aws = FakeAws::new();
    let (instances, _) = instances(&aws);
    add(&aws, "i-1", "a", "demo");
    add(&aws, "i-2", "a", "demo");
    let (one, two) = futures::join!(instances.end("i-1"), instances.end("i-2"));
    assert_eq!((one.unwrap(), two.unwrap()), (Ending::Requested, Ending::Requested));
    assert_eq!(aws.terminations(), [["i-1", "i-2"]]);
    assert_eq!(instances.end("i-1").await.unwrap(), Ending::Requested);
    assert_eq!(aws.terminations().len(), 1, "it is ending already");
    aws.remove_instance("i-1");
    assert_eq!(instances.end("i-1").await.unwrap(), Ending::Gone);
    assert!(!instances.tag("i-1", &Tags::new()).await.unwrap());

    add(&aws, "i-3", "a", "demo");
    aws.fail("TerminateInstances", AwsError::new("RequestLimitExceeded", "x"));
    assert_eq!(
        instances.end("i-3").await.unwrap(),
        Ending::Requested,
        "a failed batch is tried one by one"
    );
}

#[tokio::test(start_paused = true)]
async fn what_was_ordered_counts_until_ec2_shows_what_came() {
    let aws = FakeAws::new();
    let (instances, _) = instances(&aws);
    instances.launched(InstanceInfo {
        id: "i-1".to_owned(),
        state: "pending".to_owned(),
        ..InstanceInfo::default()
    });
    let state = async || {
        let found = instances.get("i-1", Freshness::Remembered).await.unwrap();
        found.map(|instance| instance.state)
    };
    assert_eq!(state().await.as_deref(), Some("pending"), "EC2 does not show it yet");
    add(&aws, "i-1", "a", "demo");
    assert_eq!(state().await.as_deref(), Some("running"));
    let calls = aws.all_calls();
    assert_eq!(state().await.as_deref(), Some("running"));
    assert_eq!(aws.all_calls(), calls, "it was seen");
    aws.remove_instance("i-1");
    assert_eq!(instances.get("i-1", Freshness::Asked).await.unwrap(), None);
}
