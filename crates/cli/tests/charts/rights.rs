//! The program with the rights that the chart gives it and no others.

use std::{
    fs::File,
    net::TcpListener,
    process::{Child, Command, Stdio},
    time::Duration,
};

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

/// Ends with the test, however that ends.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().expect("the process can be killed");
        self.0.wait().expect("the process ends");
    }
}

fn free_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").port().to_string()
}

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

    let (health, log) = (free_port(), folder.path().join("log"));
    let file = File::create(&log).expect("a log file");
    let _process = Process(
        Command::new(env!("CARGO_BIN_EXE_karpenter"))
            .args(["controller", "--cloud-provider", "sim"])
            .env("KUBECONFIG", &own)
            .env("SYSTEM_NAMESPACE", "kube-system")
            .env("HEALTH_PROBE_PORT", &health)
            .env("METRICS_PORT", free_port())
            .stdin(Stdio::null())
            .stderr(file.try_clone().expect("the log file a second time"))
            .stdout(file)
            .spawn()
            .expect("the program starts"),
    );
    let asked = format!(
        "curl --fail --silent --show-error http://127.0.0.1:{health}/readyz &&
         kubectl get lease karpenter-leader-election --namespace kube-system --output jsonpath={{.spec.holderIdentity}} | grep ."
    );
    // Real components on real time leave no other way than to look again.
    for attempt in 0.. {
        let answer = cluster.try_shell(&asked);
        let log = std::fs::read_to_string(&log).expect("the log");
        assert!(!log.contains("forbidden"), "{log}");
        if answer.status.success() {
            break;
        }
        assert!(
            attempt < 120,
            "not ready: {}\n{log}",
            String::from_utf8_lossy(&answer.stderr)
        );
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}
