//! Going back: what the doctor says would be lost is what is lost.

use std::fs;

use serde_json::Value;

use crate::{cluster::Cluster, earlier};

/// An object with a field that the release before did not have, one of a kind that it did not have, and one without either.
const OBJECTS: &str = r#"
kubectl apply --server-side -f deploy/blueprint/karpenter.yaml
kubectl patch ec2nodeclass default --type merge --patch '{"spec": {"detailedMonitoring": true}}'
kubectl apply --server-side -f - <<'EOF'
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: dearer}
spec: {requirements: [{key: kubernetes.io/os, operator: In, values: [linux]}], priceAdjustment: "+1%"}
EOF
"#;

/// The doctor's exit code, and what it found.
fn question(cluster: &Cluster, revision: u32) -> (Option<i32>, Vec<String>) {
    let program = env!("CARGO_BIN_EXE_karpenter");
    let output = cluster.try_shell(&format!(
        "helm get manifest karpenter-crd --revision {revision} --namespace kube-system |
         {program} doctor --downgrade-to - --output json"
    ));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let findings = report["findings"].as_array().expect("findings").iter();
    let lines = findings.map(|finding| format!("{}: {}", finding["object"], finding["what"]).replace('"', ""));
    (output.status.code(), lines.collect())
}

#[tokio::test]
async fn what_a_downgrade_is_said_to_lose_is_what_it_loses() {
    let cluster = Cluster::start("kube-system").await;
    let before = earlier::charts();
    let chart = before.path().join("karpenter-crd");
    for place in [
        "files/karpenter.sh_nodeoverlays.yaml",
        "templates/karpenter.sh_nodeoverlays.yaml",
    ] {
        fs::remove_file(chart.join(place)).expect("the file is there");
    }
    for chart in [chart.as_path(), "charts/karpenter-crd".as_ref()] {
        cluster.shell(&format!(
            "helm upgrade --install karpenter-crd {} --namespace kube-system",
            chart.display()
        ));
    }
    assert_eq!(cluster.definitions(), 5);
    cluster.shell("kubectl wait crd --all --for condition=Established");
    cluster.shell(OBJECTS);

    let lost = [
        "nodeoverlays.karpenter.sh: is unknown there: without the definition, nodeoverlay/dearer would be gone"
            .to_owned(),
        format!("ec2nodeclass/default: would lose spec.{}", earlier::NEW_FIELD),
    ];
    assert_eq!(question(&cluster, 1), (Some(1), lost.to_vec()));
    let nothing = "null: 3 objects would lose nothing".to_owned();
    assert_eq!(question(&cluster, 2), (Some(0), vec![nothing]));

    cluster.shell("helm rollback karpenter-crd 1 --namespace kube-system");
    testkit::eventually("the API server has gone back", async || {
        cluster.shell("kubectl annotate ec2nodeclass default --overwrite touched=\"$RANDOM\"");
        let class = cluster.get("ec2nodeclass default");
        let is_gone = class["spec"].get(earlier::NEW_FIELD).is_none();
        if is_gone { Ok(()) } else { Err(class) }
    })
    .await;
    let definition = cluster.try_shell("kubectl get crd nodeoverlays.karpenter.sh");
    let complaint = String::from_utf8_lossy(&definition.stderr);
    assert!(complaint.contains("NotFound"), "{complaint}");
}
