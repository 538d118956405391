//! What it costs not to have Provisioners: one question at the start.

mod common;

use std::{sync::Arc, time::Duration};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use operator::settings::{LegacyApis, Settings};
use parking_lot::Mutex;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// What the program has asked about kinds of the time of Provisioners after a minute.
async fn asked(choice: LegacyApis, installed: &[CustomResourceDefinition]) -> Vec<String> {
    let (server, clock) = common::server();
    common::install_kinds(&server);
    common::install(&server, installed);
    common::create_home(&server);
    let asked = Arc::new(Mutex::new(Vec::new()));
    let notes = asked.clone();
    let client = common::client(&server, move |method, path| {
        notes.lock().push(format!("{method} {path}"));
        std::future::ready(Ok(()))
    });
    let settings = Settings {
        legacy_apis: choice,
        ..common::settings()
    };
    let program = common::program(clock, client.clone(), client, settings, |provided| Box::new(provided));
    let stop = CancellationToken::new();
    let running = tokio::spawn(program.run(stop.clone()));
    sleep(Duration::from_secs(60)).await;
    stop.cancel();
    running.await.expect("no panic").expect("it stops when told to");
    let old = ["v1alpha5", "karpenter.k8s.aws", "configmaps"];
    let mut asked: Vec<String> = asked.lock().clone();
    asked.retain(|request| old.iter().any(|word| request.contains(word)));
    asked.dedup();
    asked
}

#[tokio::test(start_paused = true)]
async fn a_cluster_without_provisioners_is_asked_once_and_watched_never() {
    assert_eq!(asked(LegacyApis::Auto, &[]).await, ["GET /apis/karpenter.sh/v1alpha5"]);
    assert_eq!(asked(LegacyApis::Off, &[]).await, Vec::<String>::new());
    assert_eq!(asked(LegacyApis::Off, &api::crds::legacy()).await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_cluster_with_provisioners_is_watched() {
    let requests = asked(LegacyApis::Auto, &api::crds::legacy()).await;
    for path in [
        "/apis/karpenter.sh/v1alpha5/provisioners",
        "/apis/karpenter.sh/v1alpha5/machines",
        "/apis/karpenter.k8s.aws/v1alpha1/awsnodetemplates",
        "/api/v1/namespaces/karpenter/configmaps",
    ] {
        assert!(requests.contains(&format!("GET {path}")), "{path} in {requests:#?}");
    }
}
