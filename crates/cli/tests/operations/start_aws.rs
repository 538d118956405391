//! A controller on EC2 that is installed before anything that it needs, and that keeps its secrets to itself throughout.

use std::sync::Arc;

use api::crds::Variant;
use aws_fake::{Fake, region::Plan, server::serve};
use clock::SystemClock;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, api::PostParams};
use serde_json::json;
use testkit::{Process, eventually};

use crate::{server::Live, start::until_told};

const CLUSTER: &str = "demo";
const REGION: &str = "us-west-2";
/// Stands wherever the program is given a secret, or could meet one.
const SECRET: &str = "hunter2";

async fn apply_work(live: &Live) {
    let discovery = json!([{"tags": {"karpenter.sh/discovery": CLUSTER}}]);
    live.apply(
        json!({"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "default"}, "spec": {
        "role": "KarpenterNodeRole-demo", "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "userData": format!("#!/bin/sh\nexport TOKEN={SECRET}"),
        "subnetSelectorTerms": discovery, "securityGroupSelectorTerms": discovery}}),
    )
    .await;
    live.apply(
        json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"}, "spec": {
        "template": {"spec": {"requirements": [],
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}}}}}),
    )
    .await;
    live.apply(
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "default"}, "spec": {
        "containers": [{"name": "c", "image": "i", "env": [{"name": "PASSWORD", "value": SECRET}],
            "resources": {"requests": {"cpu": "1"}}}]},
        "status": {"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}}),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_can_be_installed_first_and_tells_no_secret() {
    let live = Live::start(&[]).await;
    let port = testkit::free_port();
    let endpoint = format!("http://127.0.0.1:{port}");
    let mut process = Process::controller(env!("CARGO_BIN_EXE_karpenter"), &live.folder().join("kubeconfig"))
        .arguments(&["--bind-address", "127.0.0.1"])
        .variable("SYSTEM_NAMESPACE", "kube-system")
        .variable("AWS_ENDPOINT_URL", &endpoint)
        .variable("AWS_REGION", REGION)
        .variable("AWS_ACCESS_KEY_ID", "any")
        .variable("AWS_SECRET_ACCESS_KEY", SECRET)
        .variable("AWS_SESSION_TOKEN", SECRET)
        .variable("CLUSTER_NAME", CLUSTER)
        .variable("LOG_LEVEL", "debug");
    process.start();
    let missing = [
        "[+]api-server ok",
        "[-]crd failed: nodepools.karpenter.sh is not installed; hint: ",
        "[-]cloud failed: ec2 api connectivity check failed: EC2 does not answer; hint: ",
    ];
    until_told(&process, &missing).await;

    let definitions: Api<CustomResourceDefinition> = Api::all(live.client.clone());
    for definition in api::crds::all(Variant::Aws) {
        let created = definitions.create(&PostParams::default(), &definition).await;
        created.expect("the definition is accepted");
    }
    until_told(&process, &["[+]crd ok", "[-]cloud failed"]).await;
    let fake = Fake::new(Plan::new(REGION, CLUSTER), Arc::new(SystemClock));
    let _served = serve(fake.clone(), port).await.expect("the port is free");
    until_told(&process, &["200 OK", "[+]cloud ok", "[+]lease ok"]).await;

    apply_work(&live).await;
    eventually("an instance is launched", async || {
        let launched = fake.with(|state, _| !state.region.instances.is_empty());
        if launched { Ok(()) } else { Err(process.log()) }
    })
    .await;
    let page = eventually("the metrics tell of the launch", async || {
        let page = Process::ask(process.metrics_port(), "GET", "/metrics").map_err(|error| error.to_string())?;
        if page.contains("karpenter_nodeclaims_created_total{") {
            Ok(page)
        } else {
            Err(page)
        }
    })
    .await;
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
        let answer = Process::ask(process.metrics_port(), method, "/metrics").expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 405"), "{method}: {answer}");
    }
    assert_eq!(process.stop(), Some(0));
    let log = process.log();
    assert!(
        log.contains("start-up goes on") && log.contains("\"level\":\"DEBUG\""),
        "{log}"
    );
    for (place, text) in [("log", &log), ("page of metrics", &page)] {
        assert!(!text.contains(SECRET), "a secret is in the {place}: {text}");
    }
}
