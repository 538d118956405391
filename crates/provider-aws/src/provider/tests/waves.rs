//! Many launches at once, and the same launch twice.

use futures::future::join_all;

use super::*;

/// AW24.13.1: two hundred claims of one wave cost one changing call each for template and fleet.
#[tokio::test(start_paused = true)]
async fn a_wave_of_equal_claims_shares_its_requests() {
    let scene = scene().await;
    let requests: Vec<LaunchRequest> = (0..200)
        .map(|number| request(&format!("wave-{number}"), on_demand("m5.large")))
        .collect();
    let launched = join_all(requests.iter().map(|request| scene.launched(request))).await;
    let ids: std::collections::BTreeSet<&ProviderId> = launched.iter().map(|one| &one.provider_id).collect();
    assert_eq!(ids.len(), 200, "everybody has an instance of their own");
    assert_eq!(
        (scene.aws.calls("CreateLaunchTemplate"), scene.aws.calls("CreateFleet")),
        (1, 1)
    );
    let ended = join_all(launched.iter().map(|one| scene.provider.terminate(&one.provider_id))).await;
    assert!(
        ended
            .into_iter()
            .all(|answer| answer.is_ok_and(|how| how == Termination::Requested))
    );
    assert_eq!(scene.aws.calls("TerminateInstances"), 1);
}

/// A process that died after its launch and before its record asks again, and gets the same instance.
#[tokio::test(start_paused = true)]
async fn a_process_that_asks_again_after_a_restart_gets_the_same_instance() {
    let scene = scene().await;
    let order = request("one", on_demand("m5.large"));
    let first = scene.launched(&order).await;
    let services = Arc::new(Services::new(samples::foundation(&scene.aws)));
    services.catalog.refresh_types().await.unwrap();
    let runner = services.clone();
    tokio::spawn(async move { runner.run().await });
    let restarted = AwsProvider::new(services, scene.objects.clone());
    let again = restarted.launch(&order).await.unwrap();
    assert_eq!(again, first);
    assert_eq!(restarted.instances().await.unwrap().len(), 1);
}
