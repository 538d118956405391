//! A live cluster that buys on EC2: its region is asked what it sells without anybody saying so.

use std::sync::Arc;

use api::crds::Variant;
use aws_fake::{Fake, region::Plan, server::serve};
use clock::SystemClock;
use serde_json::{Value, json};

use crate::server::Live;

/// Not the region of the built-in list.
const REGION: &str = "eu-central-1";

async fn populated() -> Live {
    let live = Live::start(&api::crds::all(Variant::Aws)).await;
    let discovery = json!([{"tags": {"karpenter.sh/discovery": "demo"}}]);
    for object in [
        json!({"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "default"}, "spec": {
            "role": "any", "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "subnetSelectorTerms": discovery, "securityGroupSelectorTerms": discovery}}),
        json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"},
            "spec": {"template": {"spec": {
                "requirements": [{"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["m5"]}],
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}}}},
            "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}),
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]},
            "status": {"phase": "Pending", "conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}}),
    ] {
        live.apply(object).await;
    }
    live
}

/// The program's answer with AWS at an endpoint: exit code, plan, and what was said beside it.
async fn plan(live: &Live, endpoint: &str, more: &[&str]) -> (Option<i32>, Value, String) {
    let variables = [
        ("AWS_ENDPOINT_URL", endpoint),
        ("AWS_REGION", REGION),
        ("AWS_ACCESS_KEY_ID", "any"),
        ("AWS_SECRET_ACCESS_KEY", "any"),
        ("AWS_MAX_ATTEMPTS", "1"),
    ];
    let arguments = [&["schedule", "--kubeconfig", "kubeconfig", "-o", "json"], more].concat();
    let output = live.run_with(&arguments, &variables).await;
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    (
        output.status.code(),
        serde_json::from_slice(&output.stdout).unwrap_or_default(),
        told,
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_on_ec2_is_planned_for_with_what_its_region_sells() {
    let live = populated().await;
    let fake = Fake::new(Plan::new(REGION, "demo"), Arc::new(SystemClock));
    let served = serve(fake, 0).await.expect("a free port");
    let (code, planned, told) = plan(&live, &served.endpoint(), &[]).await;
    assert_eq!(code, Some(0), "{told}");
    let launch = &planned["newNodes"][0]["launch"];
    let starts = |key: &str, with: &str| launch[key].as_str().is_some_and(|text| text.starts_with(with));
    assert!(
        starts("instanceType", "m5.") && starts("zone", REGION),
        "{planned:#} {told}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_region_that_does_not_answer_is_not_replaced_by_a_list_unasked() {
    let live = populated().await;
    // Port 9 of the loopback is nobody's.
    let nobody = "http://127.0.0.1:9";
    let (code, _, told) = plan(&live, nobody, &[]).await;
    assert_eq!(code, Some(3), "{told}");
    assert!(
        told.contains("hint: set AWS_REGION and credentials, or plan with a list: --instance-types ec2"),
        "{told}"
    );
    let (code, planned, told) = plan(&live, nobody, &["--instance-types", "ec2"]).await;
    assert_eq!(code, Some(0), "{told}");
    let zone = planned["newNodes"][0]["launch"]["zone"].as_str();
    assert!(zone.is_some_and(|zone| zone.starts_with("us-west-2")), "{planned:#}");
}
