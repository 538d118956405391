//! The AWS provider with the rights that the chart gives it and no others, from a class to its instances and back; nodes and
//! bindings are made as early releases made them, and node templates are followed.

use std::sync::Arc;

use aws_fake::{Fake, join, region::Plan, server::serve};
use clock::{Clock, SystemClock};
use testkit::Process;

use crate::{
    cluster::Cluster,
    least::{self, Rules},
    rights::{BECOME, until, until_it_leads},
};

/// As the blueprint names it.
const CLUSTER: &str = "karpenter-mng";
const REGION: &str = "us-west-2";

const INSTALL: &str = r#"
helm upgrade --install karpenter-crd charts/karpenter-crd --namespace kube-system
helm upgrade --install karpenter charts/karpenter --namespace kube-system --set settings.clusterName=demo --set replicas=0 \
  --set legacy.enabled=true --set legacy.nodePreRegistration=true --set legacy.proactiveBinding=true
kubectl create service clusterip kube-dns --tcp=53 --namespace kube-system
"#;

const WORKLOAD: &str = r#"
kubectl apply -f deploy/blueprint/karpenter.yaml
kubectl create deployment inflate --image pause --replicas 0
kubectl patch deployment inflate --patch '{"spec": {"template": {"spec": {
  "terminationGracePeriodSeconds": 0, "nodeSelector": {"karpenter.sh/nodepool": "default"}}}}}'
kubectl scale deployment inflate --replicas 1
"#;

/// A template with its class, and a class that is no longer needed once its Provisioner refers to the template.
const LEGACY: &str = r#"
kubectl apply --server-side -f - <<'EOF'
apiVersion: karpenter.k8s.aws/v1alpha1
kind: AWSNodeTemplate
metadata: {name: old}
spec:
  subnetSelector: {karpenter.sh/discovery: karpenter-mng}
  securityGroupSelector: {karpenter.sh/discovery: karpenter-mng}
  instanceProfile: old
---
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: inline}
spec:
  limits: {resources: {cpu: 0}}
  provider:
    subnetSelector: {karpenter.sh/discovery: karpenter-mng}
    securityGroupSelector: {karpenter.sh/discovery: karpenter-mng}
    instanceProfile: old
EOF
"#;

#[tokio::test]
async fn the_rights_of_the_aws_provider_suffice_and_none_is_spare() {
    let cluster = Cluster::start("kube-system").await;
    let folder = tempfile::tempdir().expect("a folder");
    let own = folder.path().join("kubeconfig");
    cluster.shell(INSTALL);
    cluster.shell(&BECOME.replace("$OWN", &own.to_string_lossy()));

    let mut plan = Plan::new(REGION, CLUSTER);
    let client = join::connect(cluster.kubeconfig(), &mut plan)
        .await
        .expect("the cluster answers");
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let fake = Fake::new(plan, Arc::clone(&clock));
    let mut tasks = join::kubelets(&fake, &client, &clock);
    tasks.spawn(join::run(fake.clone(), client));
    let served = serve(fake, 0).await.expect("a free port");
    let start = |gates: &str| {
        let mut process = Process::controller(env!("CARGO_BIN_EXE_karpenter"), &own)
            .variable("SYSTEM_NAMESPACE", "kube-system")
            .variable("AWS_ENDPOINT_URL", &served.endpoint())
            .variable("AWS_REGION", REGION)
            .variable("AWS_ACCESS_KEY_ID", "any")
            .variable("AWS_SECRET_ACCESS_KEY", "any")
            .variable("CLUSTER_NAME", CLUSTER)
            .variable("FEATURE_GATES", gates);
        process.start();
        process
    };
    let nothing_is_left = async |process: &Process| {
        cluster.shell(
            "kubectl delete deployment inflate && kubectl delete -f deploy/blueprint/karpenter.yaml --wait=false",
        );
        let gone = "test -z \"$(kubectl get ec2nodeclasses,nodepools,nodeclaims --output name)\"";
        until(&cluster, process, "nothing is left", gone).await;
    };

    let mut process = start("");
    until_it_leads(&cluster, &process).await;
    cluster.shell(WORKLOAD);
    let running =
        "kubectl get pods --selector app=inflate --field-selector status.phase=Running --output name | grep pod";
    until(&cluster, &process, "the pod runs on an instance", running).await;
    cluster.shell(LEGACY);
    let followed = "kubectl get awsnodetemplate old --output jsonpath={.status.subnets} | grep subnet
         kubectl get ec2nodeclass inline";
    until(&cluster, &process, "old objects have their classes", followed).await;
    cluster.shell(
        r#"kubectl patch provisioner inline --type merge --patch '{"spec": {"provider": null, "providerRef": {"name": "old"}}}'"#,
    );
    let unused = "test -z \"$(kubectl get ec2nodeclass inline --ignore-not-found --output name)\"";
    until(&cluster, &process, "the class that nobody uses is gone", unused).await;
    cluster.shell("kubectl delete provisioner inline && kubectl delete awsnodetemplate old");
    nothing_is_left(&process).await;
    process.kill();

    // A node before its kubelet, and the pod on it.
    process = start("NodePreRegistration=true,ProactiveBinding=true");
    until_it_leads(&cluster, &process).await;
    cluster.shell(WORKLOAD);
    let bound = "kubectl get pods --selector app=inflate --field-selector spec.nodeName!= --output name | grep pod";
    until(&cluster, &process, "the pod is bound", bound).await;
    nothing_is_left(&process).await;
    process.kill();

    let requests = least::requests(&cluster.audit());
    let everywhere = [
        Rules::all_of("karpenter"),
        Rules::of("karpenter-core", |rule| {
            rule.starts_with("create nodes") || rule.starts_with("create pods/binding")
        }),
        Rules::of("karpenter-controller", |rule| rule.contains(least::FOR_AWS)),
    ];
    let here = [Rules::all_of("karpenter-dns")];
    least::prove(&cluster.client().await, &requests, &everywhere, &here).await;
}
