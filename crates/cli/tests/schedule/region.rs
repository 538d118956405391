//! `--instance-types aws`: the same plans with what a region sells, asked over the wire.

use std::{process::Output, sync::Arc};

use aws_fake::{
    Fake,
    fake::Fault,
    refusal::Refusal,
    region::Plan,
    server::{Served, serve},
};
use clock::SystemClock;
use serde_json::{Value, json};

use crate::{Input, server};

const CLUSTER: &str = "demo";

/// Objects in files, and a region beside them.
struct Abroad {
    input: Input,
    fake: Fake,
    served: Served,
}

impl Abroad {
    async fn new(objects: Vec<Value>) -> Self {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        let fake = Fake::new(Plan::new("us-west-2", CLUSTER), Arc::new(SystemClock));
        let served = serve(fake.clone(), 0).await.expect("a free port");
        Self {
            input: Input::new(&list.to_string()),
            fake,
            served,
        }
    }

    async fn run(&self, arguments: &[&str]) -> Output {
        let mut command = server::karpenter(self.input.path(), arguments);
        command.envs([
            ("AWS_ENDPOINT_URL", self.served.endpoint().as_str()),
            ("AWS_REGION", "us-west-2"),
            ("AWS_ACCESS_KEY_ID", "any"),
            ("AWS_SECRET_ACCESS_KEY", "any"),
        ]);
        let run = tokio::task::spawn_blocking(move || command.output());
        run.await.expect("no panic").expect("the program runs")
    }

    /// The plan, and what was said beside it.
    async fn plan(&self) -> (Value, String) {
        let output = self
            .run(&[
                "schedule",
                "-f",
                "objects.yaml",
                "--instance-types",
                "aws",
                "-o",
                "json",
            ])
            .await;
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{told}");
        (serde_json::from_slice(&output.stdout).expect("JSON"), told)
    }
}

fn class(tags: &Value) -> Value {
    let discovery = json!([{"tags": tags}]);
    json!({
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "default"},
        "spec": {
            "role": "any", "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "subnetSelectorTerms": discovery, "securityGroupSelectorTerms": discovery,
        },
    })
}

fn discovered() -> Value {
    class(&json!({"karpenter.sh/discovery": CLUSTER}))
}

/// A pool as guides have it: by EC2's own labels.
fn pool() -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"},
        "spec": {"template": {"spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            "requirements": [
                {"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["m5"]},
                {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
            ],
        }}},
    })
}

fn pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
        "spec": {"containers": [{"name": "web", "resources": {"requests": {"cpu": "1"}}}]},
    })
}

#[tokio::test]
async fn a_pool_buys_what_its_class_finds_in_the_region() {
    let abroad = Abroad::new(vec![discovered(), pool(), pod()]).await;
    let (plan, _) = abroad.plan().await;
    let bought = &plan["newNodes"][0];
    let types = bought["instanceTypes"].as_array().expect("types");
    assert!(!types.is_empty(), "{plan:#}");
    let family = |name: &Value| name.as_str().is_some_and(|name| name.starts_with("m5."));
    assert!(types.iter().all(family), "{types:?}");
}

#[tokio::test]
async fn who_has_no_subnets_or_no_class_buys_nothing_and_is_told_why() {
    for (objects, why) in [
        (
            vec![class(&json!({"no": "such"})), pool(), pod()],
            "node pool default can launch nothing: the node class has no subnets",
        ),
        (
            vec![pool(), pod()],
            "node pool default can launch nothing: EC2NodeClass default is not among the objects",
        ),
    ] {
        let (plan, told) = Abroad::new(objects).await.plan().await;
        assert!(told.contains(why), "{told}");
        assert!(plan["newNodes"].as_array().is_some_and(Vec::is_empty), "{plan:#}");
    }
}

/// A class and a pool of this name, which ask for a placement group.
fn grouped(name: &str) -> [Value; 2] {
    let (mut class, mut pool) = (discovered(), pool());
    class["metadata"]["name"] = json!(name);
    class["spec"]["placementGroupSelector"] = json!({"name": "any"});
    pool["metadata"]["name"] = json!(name);
    pool["spec"]["template"]["spec"]["nodeClassRef"]["name"] = json!(name);
    [class, pool]
}

#[tokio::test]
async fn a_class_that_aws_says_nothing_of_is_the_matter_of_its_pools_alone() {
    let [class, pool_of_class] = grouped("grouped");
    let mut objects = vec![discovered(), pool(), pod(), class];
    for (is_used, told_of) in [
        (false, None),
        (
            true,
            Some("node pool grouped can launch nothing: UnauthorizedOperation"),
        ),
    ] {
        if is_used {
            objects.push(pool_of_class.clone());
        }
        let abroad = Abroad::new(objects.clone()).await;
        let fault = Fault {
            action: "DescribePlacementGroups".to_owned(),
            refusal: Refusal::new(
                "UnauthorizedOperation",
                "You are not authorized to perform this operation.",
            ),
            times: None,
        };
        abroad.fake.with(|state, _| state.faults.push(fault));
        let (plan, told) = abroad.plan().await;
        assert_eq!(plan["newNodes"][0]["nodePool"], "default", "{plan:#}");
        match told_of {
            Some(why) => assert!(told.contains(why), "{told}"),
            None => assert!(!told.contains("can launch nothing"), "{told}"),
        }
    }
}

#[tokio::test]
async fn a_class_that_cannot_be_read_leads_to_its_place() {
    let mut bad = discovered();
    bad["spec"]["subnetSelectorTerms"] = json!("all");
    let abroad = Abroad::new(vec![bad, pool()]).await;
    let output = abroad
        .run(&["schedule", "-f", "objects.yaml", "--instance-types", "aws"])
        .await;
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(
        told.contains("EC2NodeClass") && told.contains("subnetSelectorTerms"),
        "{told}"
    );
}

#[tokio::test]
async fn what_a_region_sells_is_a_file_that_plans_the_same() {
    let abroad = Abroad::new(vec![discovered(), pool(), pod()]).await;
    let (asked, _) = abroad.plan().await;
    let exported = abroad
        .run(&[
            "instance-types",
            "-f",
            "objects.yaml",
            "--instance-types",
            "aws",
            "-o",
            "json",
        ])
        .await;
    let text = String::from_utf8(exported.stdout).expect("text");
    abroad.input.write("region.json", &text);
    let arguments = [
        "schedule",
        "-f",
        "objects.yaml",
        "--instance-types",
        "region.json",
        "-o",
        "json",
    ];
    let read: Value = serde_json::from_slice(&abroad.run(&arguments).await.stdout).expect("JSON");
    assert_eq!(asked["newNodes"], read["newNodes"]);
}
