//! The program with the rights that the chart gives it and no others, through an upgrade and all that it does.

use std::path::Path;

use serde_json::Value;
use testkit::Process;

use crate::{
    cluster::Cluster,
    earlier,
    least::{self, Rules},
};

/// A simulated cloud stands in for EC2, and makes the nodes that kubelets would.
const INSTALL: &str = r#"
helm upgrade --install karpenter-crd "$CHARTS/karpenter-crd" --namespace kube-system
kubectl apply --server-side -f charts/karpenter-crd/kwok/karpenter.kwok.sh_kwoknodeclasses.yaml
helm upgrade --install karpenter "$CHARTS/karpenter" --namespace kube-system --set settings.clusterName=demo --set replicas=0 \
  --set legacy.enabled=true --set legacy.webhooks.enabled=true \
  --set settings.ignoreDRARequests=false --set 'controller.env[0].name=SCHEDULER_CONFIG' \
  --set-json 'additionalClusterRoleRules=[
    {"apiGroups": ["karpenter.kwok.sh"], "resources": ["kwoknodeclasses"], "verbs": ["get", "list", "watch", "create", "patch", "delete"]},
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["create"]}]'
"#;

/// Whether the rules above give it to the simulated provider, or only the provider of AWS has a use for it.
fn is_for_another(rule: &str) -> bool {
    ["karpenter.kwok.sh", "create nodes", least::FOR_AWS]
        .iter()
        .any(|words| rule.contains(words))
}

/// A kubeconfig of the service account's own.
pub const BECOME: &str = r#"
kubectl config view --raw >"$OWN"
kubectl --kubeconfig "$OWN" config set-credentials admin --token "$(kubectl create token karpenter --namespace kube-system)"
"#;

/// A pool whose drains end after some seconds, and pods that need two nodes and forbid to be moved: first their eviction is
/// refused, then they are deleted.
const WORKLOAD: &str = r#"
kubectl apply --server-side -f - <<'EOF'
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: default}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  disruption: {consolidateAfter: 0s, budgets: [{nodes: 100%}]}
  template:
    spec:
      terminationGracePeriod: 12s
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements: [{key: karpenter.kwok.sh/instance-cpu, operator: Lt, values: ["5"]}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 6
      nodeSelector: {karpenter.sh/nodepool: general}
      containers: [{name: c, image: pause, resources: {requests: {cpu: "3"}}}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: default}
spec: {maxUnavailable: 0, selector: {matchLabels: {app: web}}}
EOF
"#;

/// What only some clusters have.
const OPTIONAL: &str = r#"
kubectl apply --server-side -f - <<'EOF'
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: dearer}
spec: {requirements: [{key: kubernetes.io/os, operator: In, values: [linux]}], priceAdjustment: "+1%"}
---
apiVersion: v1
kind: PodTemplate
metadata: {name: room, namespace: default}
template: {spec: {nodeSelector: {karpenter.sh/nodepool: general}, containers: [{name: c, image: pause, resources: {requests: {cpu: "1"}}}]}}
---
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: room, namespace: default}
spec: {podTemplateRef: {name: room}, replicas: 1}
---
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: old}
spec: {provider: {instanceProfile: old}, limits: {resources: {cpu: 0}}}
---
apiVersion: karpenter.sh/v1alpha5
kind: Machine
metadata: {name: never-launched, finalizers: [karpenter.sh/termination]}
spec: {requirements: [], machineTemplateRef: {name: old}}
EOF
"#;

/// Spreads for pods of services, which somebody has to know for that.
const SPREADS: &str = "podTopologySpread: {defaultConstraints: [
  {maxSkew: 3, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway}]}";

/// A command that succeeds once the state is reached.
pub async fn until(cluster: &Cluster, process: &Process, what: &str, script: &str) {
    testkit::eventually(what, async || {
        let log = process.log();
        assert!(!log.contains("forbidden"), "{log}");
        let answer = cluster.try_shell(script);
        let complaint = String::from_utf8_lossy(&answer.stderr).into_owned();
        answer.status.success().then_some(()).ok_or(complaint)
    })
    .await;
}

fn start(kubeconfig: &Path) -> Process {
    let gates = "NodeOverlay=true,CapacityBuffer=true,StaticCapacity=true,NodeRepair=true";
    let mut process = Process::controller(env!("CARGO_BIN_EXE_karpenter"), kubeconfig)
        .arguments(&["--cloud-provider", "sim"])
        .variable("SYSTEM_NAMESPACE", "kube-system")
        .variable("LEGACY_WEBHOOKS", "true")
        .variable("WEBHOOK_PORT", &testkit::free_port().to_string())
        .variable("IGNORE_DRA_REQUESTS", "false")
        .variable("SCHEDULER_CONFIG", SPREADS)
        .variable("FEATURE_GATES", gates);
    process.start();
    process
}

pub async fn until_it_leads(cluster: &Cluster, process: &Process) {
    let ready = format!(
        "curl --fail --silent --show-error http://127.0.0.1:{}/readyz",
        process.health_port()
    );
    until(cluster, process, "it is ready", &ready).await;
    let leads = format!(
        "curl --fail --silent http://127.0.0.1:{}/metrics | grep -E '^leader_election_master_status.* 1$'",
        process.metrics_port()
    );
    until(cluster, process, "it leads", &leads).await;
}

/// Name and identity of every node and claim, with whether it is on its way out.
fn machines(cluster: &Cluster) -> Vec<String> {
    let list = cluster.get("nodes,nodeclaims --selector karpenter.sh/nodepool");
    let machine = |item: &Value| {
        let metadata = &item["metadata"];
        format!(
            "{} {} {}",
            metadata["name"], metadata["uid"], metadata["deletionTimestamp"]
        )
    };
    let items = list["items"].as_array().expect("items");
    items.iter().map(machine).collect()
}

/// What the doctor finds by one of its checks.
fn diagnosis(cluster: &Cluster, check: &str) -> Vec<String> {
    let program = env!("CARGO_BIN_EXE_karpenter");
    let report = cluster.shell(&format!("{program} doctor --skip-account --output json || true"));
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let findings = report["findings"].as_array().expect("findings").iter();
    findings
        .filter(|finding| finding["check"] == check)
        .map(|finding| format!("{}: {}", finding["level"], finding["what"]).replace('"', ""))
        .collect()
}

#[tokio::test]
async fn the_charts_rights_suffice_none_is_spare_and_an_upgrade_disturbs_no_node() {
    let cluster = Cluster::start("kube-system").await;
    let folder = tempfile::tempdir().expect("a folder");
    let own = folder.path().join("kubeconfig");
    let earlier = earlier::charts();
    cluster.shell(&INSTALL.replace("$CHARTS", &earlier.path().to_string_lossy()));
    cluster.shell(&BECOME.replace("$OWN", &own.to_string_lossy()));
    let denied = cluster.try_shell(&format!("kubectl --kubeconfig {} get crds", own.display()));
    assert!(
        String::from_utf8_lossy(&denied.stderr).contains("forbidden"),
        "the account is an administrator"
    );
    let has_new_field = || {
        let definition = cluster.get("crd ec2nodeclasses.karpenter.k8s.aws");
        let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
        let fields = definition.pointer(schema).expect("a schema");
        fields.get(earlier::NEW_FIELD).is_some()
    };
    assert!(!has_new_field());
    let older = format!(
        "problem: is of an older release: it has no .spec.{}",
        earlier::NEW_FIELD
    );
    assert_eq!(diagnosis(&cluster, "definitions"), [older]);

    // The release before, with nodes.
    let mut process = start(&own);
    until_it_leads(&cluster, &process).await;
    cluster.shell(WORKLOAD);
    let running = "kubectl wait --for=condition=Available deployment/web --timeout=1s";
    until(&cluster, &process, "the pods run", running).await;
    let before = machines(&cluster);
    assert_eq!(before.len(), 4, "{before:#?}");

    // This release: definitions move forward, and the next process takes the lease of the last.
    cluster.shell(&INSTALL.replace("$CHARTS", "charts"));
    assert!(has_new_field());
    // Those of the chart, and the node class of the simulated machines.
    let known = "ok: all 6 kinds are served as this build knows them";
    assert_eq!(diagnosis(&cluster, "definitions"), [known]);
    let rights = diagnosis(&cluster, "rights");
    assert!(rights.len() == 1 && rights[0].starts_with("ok: all "), "{rights:#?}");
    process.kill();
    process = start(&own);
    until_it_leads(&cluster, &process).await;
    cluster.shell(OPTIONAL);
    let judged = "kubectl get capacitybuffer room --output jsonpath={.status.conditions} | grep ReadyForProvisioning
         kubectl get nodeoverlay dearer --output jsonpath={.status.conditions} | grep Ready";
    until(&cluster, &process, "overlay and buffer are judged", judged).await;
    let followed = "kubectl get provisioner old --output jsonpath={.status.conditions} | grep Converted
         kubectl get nodepool old
         test -z \"$(kubectl get machines --output name)\"";
    until(
        &cluster,
        &process,
        "the Provisioner has its pool, and its machine is gone",
        followed,
    )
    .await;
    let trusted = "kubectl get validatingwebhookconfiguration validation.webhook.karpenter.sh \
         --output jsonpath={.webhooks[0].clientConfig.caBundle} | base64 --decode | grep 'BEGIN CERTIFICATE'";
    until(&cluster, &process, "webhooks are trusted", trusted).await;
    cluster.shell("kubectl delete capacitybuffer room && kubectl delete provisioner old --wait=false");
    let after = machines(&cluster);
    assert!(
        before.iter().all(|machine| after.contains(machine)),
        "{before:#?} {after:#?}"
    );

    // A drain that a budget forbids ends at its deadline; then everything goes.
    let claims = cluster.shell("kubectl get nodeclaims --output name").replace('\n', " ");
    cluster.shell("kubectl delete nodeclaims --all --wait=false");
    let replaced = format!(
        "test -z \"$(kubectl get {claims} --ignore-not-found --output name)\" &&
         kubectl wait --for=condition=Available deployment/web --timeout=1s"
    );
    until(&cluster, &process, "the nodes are replaced", &replaced).await;
    cluster.shell("kubectl delete deployment web && kubectl delete nodepool general --wait=false");
    let gone = "test -z \"$(kubectl get nodes,nodeclaims --selector karpenter.sh/nodepool --output name)\"";
    until(&cluster, &process, "nothing is left", gone).await;
    process.kill();

    let requests = least::requests(&cluster.audit());
    assert!(requests.len() > 30, "the audit log has {requests:#?}");
    let everywhere = ["karpenter-core", "karpenter-controller", "karpenter-webhook"]
        .map(|role| Rules::of(role, |rule| !is_for_another(rule)));
    let here = ["karpenter", "karpenter-controller", "karpenter-webhook"].map(Rules::all_of);
    least::prove(&cluster.client().await, &requests, &everywhere, &here).await;

    cluster.shell("kubectl delete clusterrolebinding karpenter-core");
    let denied = diagnosis(&cluster, "rights");
    let expected = "problem: the controller may not create".to_owned();
    assert!(denied.contains(&expected), "{denied:#?}");
}
