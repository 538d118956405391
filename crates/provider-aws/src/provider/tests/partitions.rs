//! Placement groups of several partitions.

use super::*;

async fn partitioned() -> Scene {
    let scene = scene().await;
    scene.aws.add_placement_group(PlacementGroupInfo {
        id: "pg-1".to_owned(),
        name: "spread-out".to_owned(),
        strategy: "partition".to_owned(),
        partitions: 3,
        spread_level: None,
    });
    scene.change_class(|class| {
        class.spec.placement_group_selector = Some(PlacementGroupSelector {
            name: Some("spread-out".to_owned()),
            id: None,
        });
    });
    scene
}

fn label(launched: &Launched, key: &str) -> Option<String> {
    launched.labels.get(key).map(ToString::to_string)
}

fn in_partitions(token: &str, partitions: &[&str]) -> LaunchRequest {
    let mut chosen = on_demand("m5.large");
    let partitions = partitions.iter().copied();
    chosen.push(Requirement::one_of(aws_labels::PLACEMENT_GROUP_PARTITION, partitions));
    request(token, chosen)
}

#[tokio::test(start_paused = true)]
async fn a_partition_that_ec2_will_choose_is_left_open() {
    let scene = partitioned().await;
    let launched = scene.launched(&request("open", on_demand("m5.large"))).await;
    assert_eq!(
        label(&launched, aws_labels::PLACEMENT_GROUP_ID).as_deref(),
        Some("pg-1")
    );
    assert_eq!(
        label(&launched, aws_labels::PLACEMENT_GROUP_PARTITION).as_deref(),
        Some("")
    );
    let launched = scene.launched(&in_partitions("chosen", &["3", "2"])).await;
    assert_eq!(
        label(&launched, aws_labels::PLACEMENT_GROUP_PARTITION).as_deref(),
        Some("2")
    );
}

#[tokio::test(start_paused = true)]
async fn a_partition_without_room_leaves_the_others() {
    let scene = partitioned().await;
    let short = |zone: &str| FleetError {
        error: AwsError::new("InsufficientInstanceCapacity", "there is none left"),
        failed: Some(FleetOverride {
            instance_type: "m5.large".to_owned(),
            zone: Some(zone.to_owned()),
            ..FleetOverride::default()
        }),
    };
    scene.aws.answer_fleet(FleetAnswer {
        instances: Vec::new(),
        errors: vec![short("us-west-2a"), short("us-west-2b")],
    });
    let refused = scene.launch(&in_partitions("one", &["1", "2"])).await.unwrap_err();
    assert!(
        matches!(refused, ProviderError::InsufficientCapacity { .. }),
        "{refused:?}"
    );
    let launched = scene.launched(&in_partitions("two", &["1", "2"])).await;
    assert_eq!(
        label(&launched, aws_labels::PLACEMENT_GROUP_PARTITION).as_deref(),
        Some("2")
    );
    let fleets = scene.aws.fleets().len();
    assert!(scene.launch(&in_partitions("three", &["1"])).await.is_err());
    assert_eq!(
        scene.aws.fleets().len(),
        fleets,
        "EC2 is not asked for what it does not have"
    );
}
