//! The doctor on an API server: what is well, what is not, and how the program ends.

use api::crds::Variant;
use serde_json::{Value, json};

use crate::server::Live;

/// A deployment as the chart makes it.
pub fn controller(ready: i64) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "karpenter", "namespace": "kube-system",
        "labels": {"app.kubernetes.io/name": "karpenter"}},
      "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "karpenter"}}, "template": {"metadata": {"labels": {"app": "karpenter"}},
        "spec": {"serviceAccountName": "karpenter", "dnsPolicy": "Default", "containers": [{"name": "controller", "image": "x",
            "env": [{"name": "METRICS_PORT", "value": "8080"}, {"name": "CLUSTER_NAME", "value": "demo"},
                {"name": "INTERRUPTION_QUEUE", "value": "demo"}]}]}}},
      "status": {"replicas": 1, "readyReplicas": ready}})
}

async fn report(live: &Live) -> (Option<i32>, Value) {
    let arguments = ["doctor", "--kubeconfig", "kubeconfig", "--skip-account", "-o", "json"];
    let output = live.run(&arguments).await;
    let told = String::from_utf8_lossy(&output.stderr);
    let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {told}"));
    (output.status.code(), report)
}

fn found<'a>(report: &'a Value, check: &str) -> Vec<&'a Value> {
    let findings = report["findings"].as_array().expect("findings");
    findings.iter().filter(|finding| finding["check"] == check).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bare_cluster_lacks_the_definitions() {
    let live = Live::start(&[]).await;
    let (code, report) = report(&live).await;
    assert_eq!(code, Some(1), "{report:#}");
    let definitions = found(&report, "definitions");
    assert_eq!(definitions.len(), 5);
    assert_eq!(definitions[0]["level"], "problem");
    assert!(
        definitions[0]["fix"]
            .as_str()
            .is_some_and(|fix| fix.contains("karpenter-crd"))
    );

    let mut arguments = vec!["doctor", "--kubeconfig", "kubeconfig"];
    // A program with the AWS provider would call AWS.
    if cfg!(feature = "aws") {
        arguments.push("--skip-account");
    }
    let table = live.run(&arguments).await;
    let table = String::from_utf8_lossy(&table.stdout);
    assert!(table.contains("definitions       PROBLEM  "), "{table}");
    let untold = table.contains("the AWS account was not looked at");
    assert_eq!(untold, !cfg!(feature = "aws"), "{table}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_is_well_gets_a_clean_bill() {
    // Of the simulated provider, and nothing of EC2.
    let live = Live::start(&api::crds::all(Variant::Kwok)).await;
    live.apply(controller(1)).await;
    live.apply(json!({"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"},
        "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}))
        .await;
    live.apply(pool("default")).await;
    let (code, clean) = report(&live).await;
    assert_eq!((code, &clean["problems"]), (Some(0), &json!(0)), "{clean:#}");
    for check in [
        "definitions",
        "controller",
        "node-pools",
        "node-claims",
        "nodes",
        "finalizers",
    ] {
        assert_eq!(found(&clean, check)[0]["level"], "ok", "{clean:#}");
    }

    live.apply(pool("nowhere")).await;
    let (code, report) = report(&live).await;
    assert_eq!(code, Some(1));
    let what = "refers to KWOKNodeClass nowhere, which does not exist";
    assert_eq!(found(&report, "node-pools")[0]["what"], what, "{report:#}");
}

/// Nothing is set, and the controller may list them.
#[tokio::test(flavor = "multi_thread")]
async fn provisioners_are_known_to_be_followed_without_a_setting() {
    let mut definitions = api::crds::all(Variant::Aws);
    definitions.extend(api::crds::legacy());
    let live = Live::start(&definitions).await;
    live.apply(controller(1)).await;
    let (_, report) = report(&live).await;
    let told = found(&report, "older-generation");
    assert_eq!(told[0]["level"], "ok", "{report:#}");
    assert!(
        told[0]["what"]
            .as_str()
            .is_some_and(|what| what.ends_with(" are followed")),
        "{report:#}"
    );
}

fn pool(class: &str) -> Value {
    json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "general"},
        "spec": {"template": {"spec": {"requirements": [],
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": class}}}},
        "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}})
}

/// A static pool, and definitions of a release that knew none.
#[tokio::test(flavor = "multi_thread")]
async fn a_downgrade_says_what_it_would_lose() {
    let ours = api::crds::all(Variant::Aws);
    let live = Live::start(&ours).await;
    let mut spare = pool("default");
    spare["spec"]["replicas"] = json!(2);
    live.apply(spare).await;
    let mut older = serde_json::to_value(&ours).expect("definitions are plain data");
    let fields = "/0/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    let fields = older
        .pointer_mut(fields)
        .and_then(Value::as_object_mut)
        .expect("fields");
    assert!(fields.remove("replicas").is_some(), "NodePool is the first");
    let list = json!({"apiVersion": "v1", "kind": "List", "items": older});
    for (name, text) in [
        ("older.json", list.to_string()),
        (
            "other.yaml",
            "{apiVersion: v1, kind: Namespace, metadata: {name: a}}".to_owned(),
        ),
    ] {
        std::fs::write(live.folder().join(name), text).expect("a file");
    }

    let ask = async |file: &str| {
        let arguments = ["doctor", "--kubeconfig", "kubeconfig", "--downgrade-to", file];
        let output = live.run(&arguments).await;
        let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        (output.status.code(), said.concat())
    };
    let (code, said) = ask("older.json").await;
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("downgrade  PROBLEM  nodepool/general: would lose spec.replicas\n"),
        "{said}"
    );
    let (code, said) = ask("other.yaml").await;
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("--downgrade-to other.yaml: has no CustomResourceDefinition"),
        "{said}"
    );
}
