//! A thousand pods at once.

use std::time::Duration;

use api::v1::NodeClaim;

use crate::stage::{Stage, class, minutes, pool};

/// Two hundred nodes within the rates that AWS grants: what is throttled is asked again, and nobody is told.
#[tokio::test(start_paused = true)]
async fn a_thousand_pods_get_two_hundred_nodes_within_the_rates_of_aws() {
    let mut stage = Stage::new().await;
    stage.apply(class("web")).await;
    stage.apply(pool("web", &["m5.2xlarge"])).await;
    stage.until_ready("web", minutes(5)).await;
    stage.fake.with(|state, _| state.record.clear());
    stage.scale("web", 1000).await;
    stage
        .until("all are launched", Duration::from_secs(60), async |stage: &Stage| {
            let launched = stage.launched();
            if launched == 200 {
                Ok(())
            } else {
                Err(format!("{launched} instances"))
            }
        })
        .await;
    stage.until_running("web", 1000, minutes(3)).await;
    assert_eq!(stage.launched(), 200);
    let (fleets, throttled) = stage.calls("CreateFleet");
    assert!(fleets <= 10, "{fleets} fleets");
    assert_eq!(throttled, 0);
    let claims = stage.list::<NodeClaim>().await;
    assert_eq!(claims.len(), 200);
    for kind in ["NodeClaim", "NodePool", "Pod", "EC2NodeClass"] {
        let told = stage.told(kind, None).await;
        let limited: Vec<&String> = told
            .iter()
            .filter(|message| message.contains("RequestLimitExceeded"))
            .collect();
        assert!(limited.is_empty(), "{kind}: {limited:?}");
    }

    stage.scale("web", 0).await;
    stage
        .until("nothing is left", minutes(10), async |stage: &Stage| {
            let (alive, nodes) = (stage.alive().len(), stage.nodes().await);
            if alive + nodes == 0 {
                Ok(())
            } else {
                Err(format!("{alive} instances, {nodes} nodes"))
            }
        })
        .await;
}
