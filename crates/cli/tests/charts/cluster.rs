//! A real cluster to install the charts in, and commands in it.

use std::process::Output;

use kube::Client;
use serde_json::Value;
use testkit::{ControlPlane, Parts};

use crate::helm::command;

/// Two nodes in two zones, as the controller's replicas want them; kwok is their kubelet.
const NODES: &str = r#"
for zone in a b; do
  kubectl create -f - <<EOF
{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "$zone", "annotations": {"kwok.x-k8s.io/node": "fake"}, "labels":
  {"kubernetes.io/hostname": "$zone", "kubernetes.io/os": "linux", "topology.kubernetes.io/zone": "$zone"}},
 "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"}, "capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"}}}
EOF
done
"#;

pub struct Cluster {
    plane: ControlPlane,
    namespace: &'static str,
}

impl Cluster {
    pub async fn start(namespace: &'static str) -> Self {
        let plane = ControlPlane::start(Parts::WithKwok)
            .await
            .expect("the control plane starts");
        let cluster = Self { plane, namespace };
        cluster.shell(NODES);
        cluster
    }

    pub fn try_shell(&self, script: &str) -> Output {
        command("bash", Some(self.plane.kubeconfig()))
            .args(["-euc", script])
            .env("KARPENTER_NAMESPACE", self.namespace)
            .env("KARPENTER_VERSION", "1.0.8")
            .env("CLUSTER_NAME", "demo")
            .env("AWS_ACCOUNT_ID", "123456789012")
            .output()
            .expect("bash runs")
    }

    #[track_caller]
    pub fn shell(&self, script: &str) -> String {
        let output = self.try_shell(script);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script}\nfailed: {complaint}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Runs a command as it is printed; only the chart comes from here.
    #[track_caller]
    pub fn printed(&self, text: &str) {
        self.shell(&text.replace("oci://public.ecr.aws/karpenter/karpenter", "charts/karpenter"));
    }

    #[track_caller]
    pub fn get(&self, object: &str) -> Value {
        let text = self.shell(&format!(
            "kubectl get {object} --namespace {} --output json",
            self.namespace
        ));
        serde_json::from_str(&text).expect("kubectl prints JSON")
    }

    #[cfg(feature = "aws")]
    pub fn kubeconfig(&self) -> &std::path::Path {
        self.plane.kubeconfig()
    }

    pub async fn client(&self) -> Client {
        self.plane.client().await.expect("its kubeconfig is good")
    }

    /// Every request that the controller's service account has made so far, as the API server wrote it down.
    pub fn audit(&self) -> Vec<Value> {
        let log = std::fs::read_to_string(self.plane.data().join("audit.log")).expect("the audit log");
        log.lines()
            .map(|line| serde_json::from_str(line).expect("an audit event"))
            .collect()
    }

    pub fn definitions(&self) -> usize {
        let names = self.shell("kubectl get crd --output name");
        names
            .lines()
            .filter(|name| name.contains("karpenter") || name.contains("capacitybuffers"))
            .count()
    }
}
