//! The program with the rights that the chart gives it and no others.

use testkit::Process;

use crate::cluster::Cluster;

/// A simulated cloud stands in for EC2, and makes the nodes that kubelets would.
const INSTALL: &str = r#"
helm upgrade --install karpenter-crd charts/karpenter-crd --namespace kube-system
kubectl apply --server-side -f charts/karpenter-crd/kwok/karpenter.kwok.sh_kwoknodeclasses.yaml
helm upgrade --install karpenter charts/karpenter --namespace kube-system --set settings.clusterName=demo --set replicas=0 \
  --set-json 'additionalClusterRoleRules=[
    {"apiGroups": ["karpenter.kwok.sh"], "resources": ["kwoknodeclasses"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["create"]}]'
"#;

/// A kubeconfig of the service account's own.
const BECOME: &str = r#"
kubectl config view --raw >"$OWN"
kubectl --kubeconfig "$OWN" config set-credentials admin --token "$(kubectl create token karpenter --namespace kube-system)"
"#;

#[tokio::test]
async fn the_program_starts_and_leads_with_the_rights_of_the_chart() {
    let cluster = Cluster::start("kube-system").await;
    let folder = tempfile::tempdir().expect("a folder");
    let own = folder.path().join("kubeconfig");
    cluster.shell(INSTALL);
    cluster.shell(&BECOME.replace("$OWN", &own.to_string_lossy()));
    let denied = cluster.try_shell(&format!("kubectl --kubeconfig {} get crds", own.display()));
    assert!(
        String::from_utf8_lossy(&denied.stderr).contains("forbidden"),
        "the account is an administrator"
    );

    let mut process = Process::controller(env!("CARGO_BIN_EXE_karpenter"), &own)
        .arguments(&["--cloud-provider", "sim"])
        .variable("SYSTEM_NAMESPACE", "kube-system");
    process.start();
    let asked = format!(
        "curl --fail --silent --show-error http://127.0.0.1:{}/readyz &&
         kubectl get lease karpenter-leader-election --namespace kube-system --output jsonpath={{.spec.holderIdentity}} | grep .",
        process.health_port()
    );
    testkit::eventually("it is ready and leads", async || {
        let log = process.log();
        assert!(!log.contains("forbidden"), "{log}");
        let answer = cluster.try_shell(&asked);
        let complaint = String::from_utf8_lossy(&answer.stderr).into_owned();
        answer.status.success().then_some(()).ok_or(complaint)
    })
    .await;
}
