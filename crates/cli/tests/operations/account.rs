//! The doctor on an account: a region over the wire that has what the guides make, or lacks some of it.

use std::sync::Arc;

use api::crds::Variant;
use aws_fake::{
    Fake,
    fake::State,
    region::Plan,
    server::{Served, serve},
};
use clock::SystemClock;
use serde_json::{Value, json};

use crate::{doctor::controller, server::Live};

const CLUSTER: &str = "demo";
const REGION: &str = "us-west-2";
const ROLE: &str = "KarpenterNodeRole-demo";

struct Account {
    live: Live,
    fake: Fake,
    served: Served,
}

impl Account {
    /// A cluster with the class of the getting-started page, in an account as its stack leaves it.
    async fn new() -> Self {
        let live = Live::start(&api::crds::all(Variant::Aws)).await;
        live.apply(controller(1)).await;
        let discovery = json!([{"tags": {"karpenter.sh/discovery": CLUSTER}}]);
        live.apply(json!({
            "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "default"},
            "spec": {
                "role": ROLE, "amiSelectorTerms": [{"alias": "al2023@latest"}],
                "subnetSelectorTerms": discovery, "securityGroupSelectorTerms": discovery,
            },
        }))
        .await;
        let fake = Fake::new(Plan::new(REGION, CLUSTER), Arc::new(SystemClock));
        let served = serve(fake.clone(), 0).await.expect("a free port");
        Self { live, fake, served }
    }

    /// What is said of the account: level, what, fix.
    async fn findings(&self) -> Vec<(String, String, String)> {
        self.findings_of("account").await
    }

    async fn findings_of(&self, check: &str) -> Vec<(String, String, String)> {
        let endpoint = self.served.endpoint();
        let variables = [
            ("AWS_ENDPOINT_URL", endpoint.as_str()),
            ("AWS_REGION", REGION),
            ("AWS_ACCESS_KEY_ID", "any"),
            ("AWS_SECRET_ACCESS_KEY", "any"),
        ];
        let arguments = ["doctor", "--kubeconfig", "kubeconfig", "-o", "json"];
        let output = self.live.run_with(&arguments, &variables).await;
        let told = String::from_utf8_lossy(&output.stderr);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {told}"));
        let text = |finding: &Value, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
        let findings = report["findings"].as_array().expect("findings").iter();
        findings
            .filter(|finding| finding["check"] == check)
            .map(|finding| (text(finding, "level"), text(finding, "what"), text(finding, "fix")))
            .collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_as_the_stack_leaves_it_is_well() {
    let account = Account::new().await;
    let findings = account.findings().await;
    let whats: Vec<&str> = findings.iter().map(|(_, what, _)| what.as_str()).collect();
    assert!(findings.iter().all(|(level, ..)| level == "ok"), "{findings:#?}");
    assert_eq!(whats.len(), 5, "{whats:?}");
    for (what, word) in whats.iter().zip([
        "EKS cluster demo",
        "interruption queue demo",
        "3 subnets in 3 zones",
        "1 security groups",
        ROLE,
    ]) {
        assert!(what.contains(word), "{what}");
    }
}

/// There is no ConfigMap, and EKS is asked.
#[tokio::test(flavor = "multi_thread")]
async fn the_role_of_nodes_joins_by_its_access_entry() {
    let account = Account::new().await;
    let told = |level: &str, what: &str| (level.to_owned(), what.to_owned());
    let found = async || {
        let findings = account.findings_of("role-mapping").await.into_iter();
        findings.map(|(level, what, _)| (level, what)).collect::<Vec<_>>()
    };
    assert_eq!(found().await, [told("ok", "KarpenterNodeRole-demo may join")]);
    let change = |change: fn(&mut State)| account.fake.with(|state, _| change(state));
    change(|state| {
        let entries = state.region.identity.access_entries.values_mut();
        entries.for_each(|entry| (entry.kind, entry.groups) = ("STANDARD".to_owned(), Vec::new()));
    });
    let what = "the access entry of KarpenterNodeRole-demo is of type STANDARD, by which no node joins";
    assert_eq!(found().await, [told("problem", what)]);
    change(|state| state.region.identity.access_entries.clear());
    let what = "KarpenterNodeRole-demo has no access entry, and there is no ConfigMap aws-auth";
    assert_eq!(found().await, [told("problem", what)]);
}

/// What is taken away, what is said of it, and what is to be done.
#[tokio::test(flavor = "multi_thread")]
async fn what_an_account_lacks_is_named_with_the_fix() {
    type Loss = fn(&mut State);
    let table: [(Loss, &str, &str); 5] = [
        (
            |state| state.region.queue.name = "another".to_owned(),
            "the interruption queue demo does not answer",
            "deploy/aws makes the queue",
        ),
        (
            |state| {
                for subnet in &mut state.region.network.subnets {
                    subnet.tags.remove("karpenter.sh/discovery");
                }
            },
            "its terms select no subnet",
            "create-tags --tags Key=karpenter.sh/discovery",
        ),
        (
            |state| {
                for group in &mut state.region.network.groups {
                    group.tags.remove("karpenter.sh/discovery");
                }
            },
            "its terms select no security group",
            "create-tags --tags Key=karpenter.sh/discovery",
        ),
        (
            |state| drop(state.region.identity.roles.remove(ROLE)),
            "node role KarpenterNodeRole-demo",
            "create the role (deploy/aws has it), or correct spec.role",
        ),
        (
            |state| state.region.plan.cluster = "another".to_owned(),
            "EKS does not describe cluster demo",
            "settings.clusterName",
        ),
    ];
    let account = Account::new().await;
    for (number, (take_away, ..)) in table.iter().enumerate() {
        account.fake.with(|state, _| take_away(state));
        let findings = account.findings().await;
        for (place, (_, what, fix)) in table.iter().enumerate() {
            let about = |finding: &&(String, String, String)| finding.1.contains(what);
            let problem = findings.iter().filter(|(level, ..)| level == "problem").find(about);
            let is_told = problem.is_some_and(|(_, _, told)| told.contains(fix));
            assert_eq!(is_told, place <= number, "{what}: {findings:#?}");
        }
    }
}
