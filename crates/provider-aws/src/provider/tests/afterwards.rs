//! What becomes of instances after their launch: drift, and what EC2 announces.

use super::*;

/// AW24.14.4
#[tokio::test(start_paused = true)]
async fn drift_is_told_in_order_and_not_guessed() {
    let scene = scene().await;
    let launched = scene.launched(&request("one", on_demand("m5.large"))).await;
    let id = scene.info(&launched).id;
    *scene.objects.stamps.lock() = launched.annotations.clone();
    let class = pool().template.class;
    let drift = async || scene.provider.drift(&launched.provider_id, &class).await;
    assert_eq!(drift().await.unwrap(), None);
    scene.change_class(|class| class.status.as_mut().unwrap().subnets.as_mut().unwrap().clear());
    assert!(drift().await.is_err(), "an empty status is no reason");
    scene.change_class(|class| {
        let status = class.status.as_mut().unwrap();
        status.subnets = Some(vec![samples::subnet("subnet-z", "us-west-2a", "usw2-az1")]);
    });
    assert_eq!(drift().await.unwrap().as_deref(), Some("SubnetDrift"));
    scene.change_class(|class| class.status.as_mut().unwrap().amis = Some(vec![samples::ami("ami-new", "amd64")]));
    assert_eq!(drift().await.unwrap().as_deref(), Some("AMIDrift"));
    scene.change_class(|class| {
        let stamp = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        class.metadata.annotations = Some(
            [
                stamp(annotations::EC2_NODE_CLASS_HASH, "other"),
                stamp(
                    annotations::EC2_NODE_CLASS_HASH_VERSION,
                    crate::class_hash::VERSION.as_str(),
                ),
            ]
            .into(),
        );
    });
    assert_eq!(drift().await.unwrap().as_deref(), Some("NodeClassDrift"));
    *scene.objects.class.lock() = None;
    assert_eq!(drift().await.unwrap(), None);
    scene.change_class(|_| ());
    scene.aws.remove_instance(&id);
    scene.provider.instances().await.unwrap();
    let gone = drift().await.unwrap_err();
    assert!(
        matches!(gone, ProviderError::Gone { .. }),
        "an instance that is gone does not drift"
    );
}

/// AW24.14.4: a reservation that ended leaves an on-demand instance, which has not drifted.
#[tokio::test(start_paused = true)]
async fn an_ended_reservation_is_no_drift() {
    let scene = scene().await;
    count_reservation(&scene, 2).await;
    scene.change_class(reserved_class);
    let order = request("one", [Requirement::one_of(labels::INSTANCE_TYPE, ["m5.large"])]);
    let launched = scene.launched(&order).await;
    let class = pool().template.class;
    scene.change_class(|_| ());
    let drift = async || scene.provider.drift(&launched.provider_id, &class).await.unwrap();
    assert_eq!(drift().await, None, "EC2 says that it is on demand now");
    let in_reservation = |instance: &mut InstanceInfo| {
        instance.reservation = Some("cr-1".to_owned());
        instance.reservation_preference = "capacity-reservations-only".to_owned();
    };
    scene.aws.change_instance(&scene.info(&launched).id, in_reservation);
    scene.provider.instances().await.unwrap();
    assert_eq!(drift().await.as_deref(), Some("CapacityReservationDrift"));
}

fn event(kind: &str, instance: &str) -> String {
    json!({"version": "0", "source": "aws.ec2", "detail-type": kind, "detail": {"instance-id": instance}}).to_string()
}

fn with_queue(foundation: &mut crate::Foundation) {
    foundation.options = Arc::new(Options {
        interruption_queue: Some("demo".to_owned()),
        ..samples::options()
    });
}

#[tokio::test(start_paused = true)]
async fn what_is_received_together_is_looked_up_together() {
    let scene = scene_with(with_queue).await;
    for token in ["one", "two", "three"] {
        let launched = scene.launched(&request(token, on_demand("m5.large"))).await;
        let message = event("EC2 Spot Instance Interruption Warning", &scene.info(&launched).id);
        scene.aws.announce(token, &message);
    }
    let before = scene.aws.calls("DescribeInstances");
    let notices = scene.provider.notices().await.unwrap();
    let receipts: Vec<&str> = notices.iter().map(|notice| notice.receipt.as_str()).collect();
    assert_eq!(receipts, ["one", "two", "three"]);
    assert_eq!(scene.aws.calls("DescribeInstances"), before + 1);
}

/// AW24.15.1, AW24.15.2, AW24.15.3, AW24.15.4
#[tokio::test(start_paused = true)]
async fn announcements_become_notices_and_lessons() {
    let scene = scene_with(with_queue).await;
    let zone = Requirement::one_of(labels::ZONE, ["us-west-2a"]);
    let kind = Requirement::one_of(labels::INSTANCE_TYPE, ["m5.large"]);
    let spot = Requirement::one_of(labels::CAPACITY_TYPE, ["spot"]);
    let launched = scene.launched(&request("one", [zone, kind, spot])).await;
    let id = scene.info(&launched).id;
    scene
        .aws
        .announce("r1", &event("EC2 Spot Instance Interruption Warning", &id));
    scene.aws.announce("r2", "not json");
    scene.aws.announce("r3", "{}");
    scene
        .aws
        .announce("r4", &event("EC2 Spot Instance Interruption Warning", "i-unknown"));
    scene
        .aws
        .fail("GetQueueUrl", AwsError::new("QueueDoesNotExist", "not yet"));
    assert!(scene.provider.notices().await.is_err());
    let notices = scene.provider.notices().await.unwrap();
    let shown: Vec<(NoticeKind, usize)> = notices.iter().map(|one| (one.kind, one.instances.len())).collect();
    assert_eq!(
        shown,
        [(NoticeKind::SpotInterrupted, 1), (NoticeKind::SpotInterrupted, 0)]
    );
    assert_eq!(notices[0].instances[0], launched.provider_id);
    assert_eq!(scene.aws.waiting_messages(), 2, "what concerns nobody is gone");
    for notice in &notices {
        scene.provider.acknowledge(notice).await.unwrap();
    }
    assert_eq!(scene.aws.waiting_messages(), 0);
    let catalog = scene.provider.catalog(&pool()).await.unwrap();
    let shape = catalog.iter().find(|shape| shape.name == "m5.large").unwrap();
    let is_available = |capacity_type: CapacityType| {
        let offered = shape
            .offerings
            .iter()
            .find(|offering| offering.capacity_type == capacity_type && offering.zone.as_str() == "us-west-2a");
        offered.unwrap().available
    };
    assert!(!is_available(CapacityType::Spot) && is_available(CapacityType::OnDemand));
    scene.aws.fail("ReceiveMessage", AwsError::new("AccessDenied", "no"));
    assert!(scene.provider.notices().await.is_err());
}

/// AW24.14.9
#[tokio::test(start_paused = true)]
async fn a_node_registers_when_its_partition_is_known() {
    use ::provider::{Admission, Registering};
    let scene = scene().await;
    let launched = scene.launched(&request("one", on_demand("m5.large"))).await;
    let hook = &scene.provider.registration_hooks()[0];
    let admit = async |instance: &str, labels: &[(&str, &str)]| {
        let labels = labels.iter().map(|(key, value)| ((*key).into(), (*value).into()));
        let node = Registering {
            claim: "one".into(),
            token: "one".to_owned(),
            instance: instance.into(),
            node: "node".into(),
            labels: labels.collect(),
            annotations: Labels::new(),
        };
        hook.admit(&node).await
    };
    let (group, partition) = (aws_labels::PLACEMENT_GROUP_ID, aws_labels::PLACEMENT_GROUP_PARTITION);
    let id = launched.provider_id.as_str();
    let open = [(group, "pg-1"), (partition, "")];
    assert_eq!(admit(id, &[]).await.unwrap(), Admission::passed());
    assert_eq!(admit(id, &[(group, "pg-1")]).await.unwrap(), Admission::passed());
    assert_eq!(
        admit(id, &[(group, "pg-1"), (partition, "2")]).await.unwrap(),
        Admission::passed()
    );
    assert!(matches!(admit("", &open).await.unwrap(), Admission::Pending { .. }));
    assert!(matches!(admit(id, &open).await.unwrap(), Admission::Pending { .. }));
    let name = scene.info(&launched).id;
    scene
        .aws
        .change_instance(&name, |instance| instance.partition = Some(3));
    let Admission::Passed { labels } = admit(id, &open).await.unwrap() else {
        panic!("the partition is known");
    };
    assert_eq!(labels[partition].as_str(), "3");
    scene.aws.remove_instance(&name);
    assert!(
        admit(id, &open).await.is_err(),
        "an instance that is gone has no partition"
    );
}
