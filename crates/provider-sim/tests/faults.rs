//! Latency, shortages, failures and interruptions happen as they were configured, and the same way again for a seed.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use api::labels::{annotations, kwok};
use expect_test::expect;
use jiff::SignedDuration;
use model::{CapacityType, InstanceType, Offering, Quantity, vocabulary};
use provider::{CloudProvider, NoticeKind, ProviderError, Termination};
use provider_sim::{Catalog, Faults, Interruption, Latency, MachineState, Market, Shortage, SimProvider, ledger::Deed};

mod fixtures;

use fixtures::{class_with_ready, pool, provider, request, request_with, with_class};

fn secs(seconds: i64) -> SignedDuration {
    SignedDuration::from_secs(seconds)
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

fn calm() -> SimProvider {
    provider(1, Catalog::generic(), Faults::default())
}

#[tokio::test(start_paused = true)]
async fn a_machine_is_pending_then_running_then_terminating_then_gone() {
    let faults = Faults {
        launch_latency: Latency::exactly(secs(30)),
        termination_latency: Latency::exactly(secs(20)),
        ..Faults::default()
    };
    let provider = provider(1, Catalog::generic(), faults);
    let id = provider.launch(&request("a")).await.unwrap().provider_id;
    let state = || provider.cloud().machine(&id).unwrap().state(provider.cloud().now());
    assert_eq!(state(), MachineState::Pending);
    pass(31).await;
    assert_eq!(state(), MachineState::Running);
    assert_eq!(provider.terminate(&id).await.unwrap(), Termination::Requested);
    assert_eq!(state(), MachineState::Terminating);
    assert!(
        provider.instance(&id).await.unwrap().is_some(),
        "an ending machine is still there"
    );
    pass(10).await;
    assert_eq!(provider.terminate(&id).await.unwrap(), Termination::Requested);
    pass(11).await;
    assert_eq!(provider.terminate(&id).await.unwrap(), Termination::Gone);
    assert_eq!(state(), MachineState::Gone);
    assert!(provider.instance(&id).await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_shortage_moves_launches_elsewhere_and_ends() {
    let provider = calm();
    let pinned = |claim| request_with(claim, [(kwok::INSTANCE_CPU, "4"), (vocabulary::ZONE, "test-zone-a")]);
    let until = provider.cloud().now() + secs(600);
    let shortage = Shortage {
        zone: Some("test-zone-a".into()),
        until: Some(until),
        ..Shortage::default()
    };
    provider
        .cloud()
        .change_faults(|faults| faults.shortages = vec![shortage]);

    let error = provider.launch(&pinned("a")).await.unwrap_err();
    assert!(matches!(error, ProviderError::InsufficientCapacity { .. }), "{error}");
    let elsewhere = provider.launch(&request("b")).await.unwrap();
    assert_ne!(elsewhere.labels[vocabulary::ZONE], "test-zone-a");

    let short = async || {
        let catalog = provider.catalog(&pool("default")).await.unwrap();
        let offerings = catalog.iter().flat_map(|shape| &shape.offerings);
        offerings.filter(|offering| !offering.available).count()
    };
    assert!(short().await > 0, "what was found short is reported as unavailable");
    pass(181).await;
    assert_eq!(short().await, 0, "it is worth another try after three minutes");
    assert!(
        provider.launch(&pinned("c")).await.is_err(),
        "which fails while the shortage lasts"
    );
    pass(420).await;
    assert!(
        provider.launch(&pinned("d")).await.is_ok(),
        "and succeeds when it is over"
    );
}

/// From the moment on at which there is a new image, and not before.
#[tokio::test(start_paused = true)]
async fn a_new_image_makes_the_machines_of_before_drift() {
    let provider = calm();
    let since = provider.cloud().now() + secs(60);
    provider
        .cloud()
        .change_faults(|faults| faults.image_since = Some(since));
    let request = request("a");
    let old = provider.launch(&request).await.unwrap().provider_id;
    let drift = async |id| provider.drift(id, &request.class).await.unwrap();
    assert_eq!(drift(&old).await, None);
    pass(61).await;
    assert_eq!(drift(&old).await.as_deref(), Some("ImageDrift"));
    let new = provider.launch(&fixtures::request("b")).await.unwrap().provider_id;
    assert_eq!(drift(&new).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_loses_no_machine() {
    let faults = Faults {
        lost_answer: 1.0,
        ..Faults::default()
    };
    let provider = provider(1, Catalog::generic(), faults);
    let error = provider.launch(&request("a")).await.unwrap_err();
    assert!(matches!(error, ProviderError::Unavailable { .. }), "{error}");
    let launched = provider
        .launch(&request("a"))
        .await
        .expect("the repetition finds the machine");
    assert_eq!(provider.cloud().machines().len(), 1);
    assert_eq!(launched.provider_id, "kwok://a");
}

#[tokio::test(start_paused = true)]
async fn spot_machines_get_a_notice_and_are_taken_back() {
    let interruption = Interruption {
        mean_lifetime: secs(3600),
        notice: secs(120),
    };
    let faults = Faults {
        interruption: Some(interruption),
        ..Faults::default()
    };
    let provider = provider(5, Catalog::generic(), faults);
    let spot = provider
        .launch(&request_with("spot", [(vocabulary::CAPACITY_TYPE, "spot")]))
        .await
        .unwrap();
    let firm = provider
        .launch(&request_with("firm", [(vocabulary::CAPACITY_TYPE, "on-demand")]))
        .await
        .unwrap();
    let cloud = provider.cloud();
    let reclaim = cloud
        .machine(&spot.provider_id)
        .unwrap()
        .reclaim
        .expect("a spot machine has an end");
    assert_eq!(cloud.machine(&firm.provider_id).unwrap().reclaim, None);
    assert!(cloud.notices().is_empty());

    tokio::time::sleep(reclaim.notice.duration_since(cloud.now()).unsigned_abs()).await;
    let notices = cloud.notices();
    assert_eq!(notices.len(), 1);
    assert_eq!((&notices[0].id, notices[0].gone), (&spot.provider_id, reclaim.gone));
    assert!(
        provider.instance(&spot.provider_id).await.unwrap().is_some(),
        "it runs until its time is up"
    );
    pass(120).await;
    assert!(provider.instance(&spot.provider_id).await.unwrap().is_none());
    assert!(cloud.notices().is_empty());
    assert_eq!(provider.instances().await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_machine_can_be_interrupted_by_hand() {
    let provider = calm();
    let id = provider.launch(&request("a")).await.unwrap().provider_id;
    assert!(provider.cloud().interrupt(&id, secs(120)));
    assert!(!provider.cloud().interrupt(&id, secs(120)), "only once");
    pass(121).await;
    assert!(provider.instances().await.unwrap().is_empty());
    assert!(!provider.cloud().interrupt(&"kwok://unheard-of".into(), secs(1)));
}

#[tokio::test(start_paused = true)]
async fn a_notice_is_told_until_it_is_acknowledged_and_makes_its_offering_short() {
    let provider = calm();
    let spot = request_with("a", [(vocabulary::CAPACITY_TYPE, "spot")]);
    let id = provider.launch(&spot).await.unwrap().provider_id;
    let offering = provider.cloud().machine(&id).unwrap().offering.clone();
    let silence = tokio::time::timeout(Duration::from_secs(3600), provider.notices()).await;
    assert!(silence.is_err(), "nothing to tell");

    let waiting = provider.notices();
    provider.cloud().interrupt(&id, secs(120));
    let told = waiting.await.unwrap();
    assert_eq!(
        (told[0].kind, &told[0].instances),
        (NoticeKind::SpotInterrupted, &vec![id])
    );
    assert_eq!(provider.notices().await.unwrap(), told, "again");
    provider.acknowledge(&told[0]).await.unwrap();
    let silence = tokio::time::timeout(Duration::from_secs(60), provider.notices()).await;
    assert!(silence.is_err(), "it was heard");

    let catalog = provider.catalog(&pool("general")).await.unwrap();
    let shape = catalog
        .iter()
        .find(|shape| shape.name == offering.instance_type)
        .unwrap();
    let same = |it: &&Offering| it.zone == offering.zone && it.capacity_type == offering.capacity_type;
    assert!(!shape.offerings.iter().find(same).unwrap().available);
}

#[tokio::test(start_paused = true)]
async fn a_second_machine_for_one_claim_is_refused_and_written_down() {
    let provider = calm();
    provider.launch(&request("a")).await.unwrap();
    let mut second = request("a");
    second.token = "another-uid".to_owned();
    assert!(provider.launch(&second).await.is_err());
    assert_eq!(provider.cloud().live().len(), 1);
    let ledger = provider.cloud().ledger();
    assert!(
        ledger.iter().any(|entry| matches!(entry.deed, Deed::Doubled { .. })),
        "{ledger:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn equal_prices_spread_over_the_zones() {
    let provider = calm();
    let mut zones = BTreeSet::new();
    for index in 0..30 {
        let launched = provider.launch(&request(&format!("claim-{index}"))).await.unwrap();
        zones.insert(launched.labels[vocabulary::ZONE].clone());
    }
    assert_eq!(zones.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_reservation_is_used_up_and_given_back() {
    let text = r#"{"reservationIDLabel": "cloud/reservation", "byNodePool": {"default": [{
        "name": "r1.large", "architecture": "amd64", "operatingSystems": ["linux"], "resources": {"cpu": "4", "memory": "8Gi"},
        "offerings": [{"Price": 0.001, "ReservationCapacity": 2, "Requirements": [
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["reserved"]},
            {"key": "cloud/reservation", "operator": "In", "values": ["r-1"]},
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}]}]}]}}"#;
    let provider = provider(1, Catalog::parse("f", text).unwrap(), Faults::default());
    let left = async || {
        let catalog = provider.catalog(&pool("default")).await.unwrap();
        let offering = &catalog[0].offerings[0];
        (offering.available, offering.reservation_capacity)
    };
    assert_eq!(left().await, (true, Some(2)));
    let first = provider.launch(&request("a")).await.unwrap();
    assert_eq!(first.labels["cloud/reservation"], "r-1");
    assert_eq!(left().await, (true, Some(1)));
    provider.launch(&request("b")).await.unwrap();
    assert_eq!(left().await, (false, Some(0)));
    assert!(matches!(
        provider.launch(&request("c")).await,
        Err(ProviderError::InsufficientCapacity { .. })
    ));
    provider.terminate(&first.provider_id).await.unwrap();
    pass(181).await;
    assert_eq!(left().await, (true, Some(1)));
    provider.launch(&request("d")).await.expect("there is room again");
}

#[tokio::test(start_paused = true)]
async fn resources_that_an_overlay_added_do_not_stop_a_launch() {
    let provider = calm();
    let mut wanting = request("a");
    wanting
        .requests
        .set("example.com/license".into(), Quantity::from_int(1));
    assert!(provider.launch(&wanting).await.is_err());
    wanting
        .annotations
        .insert(annotations::CAPACITY_OVERLAY_APPLIED.into(), "true".into());
    let launched = provider.launch(&wanting).await.expect("the plan has counted it");
    assert_eq!(launched.allocatable.get("example.com/license"), Quantity::from_int(1));
}

#[tokio::test(start_paused = true)]
async fn a_node_class_that_is_missing_or_not_ready_stops_a_launch() {
    let provider = calm();
    let mut classless = request("a");
    classless.class.name = "other".to_owned();
    let error = provider.launch(&classless).await.unwrap_err();
    expect!["the cloud has no capacity for any offering that the claim admits: there is no KWOKNodeClass other"]
        .assert_eq(&error.to_string());

    let unready = with_class(
        1,
        Catalog::generic(),
        Faults::default(),
        class_with_ready("False", "no subnets"),
    );
    let error = unready.launch(&request("a")).await.unwrap_err();
    assert!(matches!(error, ProviderError::NodeClassNotReady { .. }), "{error:?}");
    expect!["the node class is not ready: no subnets"].assert_eq(&error.to_string());
    let unknown = with_class(
        1,
        Catalog::generic(),
        Faults::default(),
        class_with_ready("Unknown", ""),
    );
    assert!(
        unknown.launch(&request("a")).await.is_ok(),
        "only a definite no stops a launch, as upstream has it"
    );
}

#[tokio::test(start_paused = true)]
async fn time_costs_money() {
    let provider = calm();
    let id = provider.launch(&request("a")).await.unwrap().provider_id;
    let price = provider.cloud().machine(&id).unwrap().price;
    pass(7200).await;
    assert!((provider.cloud().spent() - 2.0 * price).abs() < 1e-6);
    provider.terminate(&id).await.unwrap();
    pass(7200).await;
    assert!(
        (provider.cloud().spent() - 2.0 * price).abs() < 1e-6,
        "nothing after its end"
    );
    provider.launch(&request("b")).await.unwrap();
    assert!(
        (provider.cloud().spent() - 2.0 * price).abs() < 1e-6,
        "also once it is forgotten"
    );
}

/// One list of prices holds for a period, for whoever asks and whoever launches; the next one has others.
#[tokio::test(start_paused = true)]
async fn prices_move_with_the_market_and_launches_follow_them() {
    let market = Market {
        period: secs(600),
        spot_swing: 0.5,
        on_demand_swing: 0.0,
        sold_out: 0.0,
        until: None,
    };
    let faults = Faults {
        market: Some(market),
        ..Faults::default()
    };
    let provider = provider(3, Catalog::generic(), faults);
    let default = pool("default");
    let first = provider.catalog(&default).await.unwrap();
    pass(300).await;
    let again = provider.catalog(&default).await.unwrap();
    assert!(Arc::ptr_eq(&first, &again), "nothing has changed");
    pass(300).await;
    let moved = provider.catalog(&default).await.unwrap();
    let prices = |catalog: &[Arc<InstanceType>], kind: CapacityType| -> Vec<f64> {
        let offerings = catalog.iter().flat_map(|shape| &shape.offerings);
        offerings
            .filter(|offering| offering.capacity_type == kind)
            .map(|offering| offering.price)
            .collect()
    };
    assert_eq!(
        prices(&first, CapacityType::OnDemand),
        prices(&moved, CapacityType::OnDemand)
    );
    let pairs: Vec<_> = prices(&first, CapacityType::Spot)
        .into_iter()
        .zip(prices(&moved, CapacityType::Spot))
        .collect();
    assert!(pairs.iter().all(|(before, after)| before != after));

    let launched = provider.launch(&request("a")).await.unwrap();
    let machine = provider.cloud().machine(&launched.provider_id).unwrap();
    let shape = moved
        .iter()
        .find(|shape| shape.name == machine.offering.instance_type)
        .unwrap();
    let bought = |offering: &&Offering| {
        offering.zone == machine.offering.zone && offering.capacity_type == machine.offering.capacity_type
    };
    let price = shape.offerings.iter().find(bought).unwrap().price;
    assert_eq!(machine.price, price, "what is listed is what is paid");
}

#[tokio::test(start_paused = true)]
async fn what_is_sold_out_can_be_had_in_another_period() {
    let market = Market {
        period: secs(600),
        spot_swing: 0.0,
        on_demand_swing: 0.0,
        sold_out: 0.5,
        until: None,
    };
    let provider = calm();
    provider.cloud().change_faults(|faults| faults.market = Some(market));
    let mut delivered = Vec::new();
    for claim in 0..20 {
        let name = format!("claim-{claim}");
        let pinned = request_with(
            &name,
            [
                (vocabulary::INSTANCE_TYPE, "c-4x-amd64-linux"),
                (vocabulary::ZONE, "test-zone-a"),
                (vocabulary::CAPACITY_TYPE, "spot"),
            ],
        );
        delivered.push(provider.launch(&pinned).await.is_ok());
        pass(600).await;
    }
    assert!(delivered.contains(&true) && delivered.contains(&false), "{delivered:?}");
}

/// A rough day: every fault at once, with retries as a controller would make them.
async fn rough_day(seed: u64) -> String {
    let faults = Faults {
        image_since: None,
        launch_latency: Latency::between(secs(5), secs(90)),
        termination_latency: Latency::between(secs(1), secs(60)),
        launch_failure: 0.2,
        lost_answer: 0.2,
        unanswered: 0.2,
        never_joins: 0.3,
        interruption: Some(Interruption {
            mean_lifetime: secs(300),
            notice: secs(120),
        }),
        shortages: vec![Shortage {
            zone: Some("test-zone-b".into()),
            ..Shortage::default()
        }],
        market: Some(Market {
            period: secs(60),
            spot_swing: 0.5,
            on_demand_swing: 0.1,
            sold_out: 0.2,
            until: None,
        }),
    };
    let provider = provider(seed, Catalog::generic(), faults);
    for index in 0..25 {
        let request = request(&format!("claim-{index}"));
        while provider.launch(&request).await.is_err() {
            pass(1).await;
        }
        pass(10).await;
        if index % 3 == 0 {
            let id = format!("kwok://claim-{}", index / 2);
            while provider.terminate(&id.as_str().into()).await.ok() != Some(Termination::Gone) {
                pass(5).await;
            }
        }
    }
    let machines = provider.cloud().machines();
    let ledger: Vec<String> = provider.cloud().ledger().iter().map(ToString::to_string).collect();
    format!("{machines:#?}\n{}", ledger.join("\n"))
}

#[tokio::test(start_paused = true)]
async fn a_seed_decides_everything() {
    let first = rough_day(11).await;
    assert_eq!(first, rough_day(11).await);
    assert_ne!(first, rough_day(12).await);
    assert!(
        first.contains("failed this launch on purpose") && first.contains("asked for again"),
        "{first}"
    );
}
