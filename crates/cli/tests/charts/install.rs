//! The charts on a real control plane, by the commands that people find in print.

use std::path::Path;

use serde_json::Value;

use crate::{cluster::Cluster, helm::repository};

/// The command of upstream's getting-started guide, and that of a widespread how-to with IRSA.
const GUIDE: &str = r#"
helm upgrade --install karpenter oci://public.ecr.aws/karpenter/karpenter --version "${KARPENTER_VERSION}" --namespace "${KARPENTER_NAMESPACE}" --create-namespace \
  --set "settings.clusterName=${CLUSTER_NAME}" \
  --set "settings.interruptionQueue=${CLUSTER_NAME}" \
  --set controller.resources.requests.cpu=1 \
  --set controller.resources.requests.memory=1Gi \
  --set controller.resources.limits.cpu=1 \
  --set controller.resources.limits.memory=1Gi \
  --wait
"#;
const HOW_TO: &str = r#"
helm upgrade --install karpenter oci://public.ecr.aws/karpenter/karpenter \
  --namespace $KARPENTER_NAMESPACE \
  --version $KARPENTER_VERSION \
  --set settings.clusterName=$CLUSTER_NAME \
  --set serviceAccount.annotations."eks\.amazonaws\.com/role-arn"=arn:aws:iam::$AWS_ACCOUNT_ID:role/KarpenterControllerRole-$CLUSTER_NAME \
  --set controller.resources.requests.cpu=1 \
  --set controller.resources.requests.memory=1Gi \
  --set controller.resources.limits.cpu=1 \
  --set controller.resources.limits.memory=1Gi \
  --create-namespace
"#;

/// Does for the commands of pages what `envsubst` of gettext does, which not every machine has.
const ENVSUBST: &str = r#"
envsubst() { python3 -c 'import os, sys; sys.stdout.write(os.path.expandvars(sys.stdin.read()))'; }
"#;

/// The `sh` blocks of a page, in their order.
fn shell_blocks(page: &str) -> Vec<String> {
    blocks_of(page, "sh")
}

fn blocks_of(page: &str, language: &str) -> Vec<String> {
    let text = std::fs::read_to_string(repository().join(Path::new(page))).expect("the page is there");
    let fence = format!("```{language}\n");
    let blocks = text.split(fence.as_str()).skip(1);
    blocks
        .map(|rest| rest.split("```").next().unwrap_or_default().to_owned())
        .collect()
}

/// The first block that says this.
#[track_caller]
fn block<'a>(blocks: &'a [String], what: &str) -> &'a str {
    let found = blocks.iter().find(|block| block.contains(what));
    found.unwrap_or_else(|| panic!("no block of the page says {what}"))
}

#[tokio::test]
async fn printed_commands_install_upgrade_and_remove() {
    let cluster = Cluster::start("kube-system").await;

    let blocks = shell_blocks("docs/install.md");
    let names = block(&blocks, "export IMAGE=");
    let install = block(&blocks, "helm upgrade --install karpenter-crd");
    cluster.shell(&format!("{names}{install}"));
    assert_eq!(cluster.definitions(), 5);
    let deployment = cluster.get("deployment karpenter");
    assert_eq!(deployment["status"]["readyReplicas"], 2, "{}", deployment["status"]);
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(
        container["image"],
        format!("registry.example.com/karpenter:{}", env!("CARGO_PKG_VERSION"))
    );
    for object in [
        "service karpenter",
        "serviceaccount karpenter",
        "poddisruptionbudget karpenter",
        "clusterrole karpenter",
        "clusterrole karpenter-core",
        "clusterrole karpenter-admin",
        "role karpenter",
        "role karpenter-dns",
    ] {
        assert_eq!(
            cluster.get(object)["metadata"]["labels"]["app.kubernetes.io/name"],
            "karpenter",
            "{object}"
        );
    }
    let pods = "kubectl get pods --namespace kube-system --selector app.kubernetes.io/name=karpenter --output name";
    assert_eq!(cluster.shell(pods).lines().count(), 2);

    // The pool and class of the blueprint are accepted, and outlive every release.
    cluster.shell("kubectl apply --server-side -f deploy/blueprint/karpenter.yaml -f deploy/blueprint/example.yaml");

    // Upgrades, from our own page's values to those of others.
    cluster.printed(GUIDE);
    let image = cluster.get("deployment karpenter")["spec"]["template"]["spec"]["containers"][0]["image"].clone();
    assert_eq!(
        image,
        format!("public.ecr.aws/karpenter/controller:{}", env!("CARGO_PKG_VERSION"))
    );
    cluster.printed(HOW_TO);
    let role = "arn:aws:iam::123456789012:role/KarpenterControllerRole-demo";
    let account = cluster.get("serviceaccount karpenter");
    assert_eq!(account["metadata"]["annotations"]["eks.amazonaws.com/role-arn"], role);
    cluster.shell("helm rollback karpenter 1 --namespace kube-system");
    assert_eq!(
        cluster.get("serviceaccount karpenter")["metadata"]["annotations"]["eks.amazonaws.com/role-arn"],
        Value::Null
    );
    cluster.shell(
        "helm upgrade karpenter-crd charts/karpenter-crd --namespace kube-system --set additionalAnnotations.a=b",
    );
    assert_eq!(
        cluster.get("crd nodepools.karpenter.sh")["metadata"]["annotations"]["a"],
        "b"
    );

    cluster.shell("helm uninstall karpenter --namespace kube-system --wait");
    assert_eq!(
        cluster.shell("kubectl get clusterroles --output name | grep -c karpenter || true"),
        "0"
    );
    assert_eq!(
        cluster
            .shell("kubectl get nodepools,ec2nodeclasses --output name")
            .lines()
            .count(),
        2
    );
    cluster.shell("helm uninstall karpenter-crd --namespace kube-system --wait");
    assert_eq!(cluster.definitions(), 0);

    // Without Helm, by the other block of the page.
    let plain = block(&blocks, "envsubst");
    cluster.shell(&format!("{ENVSUBST}{names}{plain}"));
    cluster.shell("kubectl rollout status deployment karpenter --namespace kube-system --timeout 3m");
    assert_eq!(cluster.definitions(), 5);
}

/// Every manifest on these pages is one that the API server takes, with no field that it does not know.
#[tokio::test]
async fn manifests_in_print_are_admitted() {
    let cluster = Cluster::start("kube-system").await;
    cluster.shell("kubectl apply --server-side -f charts/karpenter-crd/files && kubectl create namespace shop");
    cluster.shell("kubectl wait --for=condition=Established crd --all");
    let pages = [
        ("docs/pools.md", 3),
        ("docs/concepts/node-pools.md", 1),
        ("docs/concepts/node-classes.md", 1),
        ("deploy/palette/karpenter/README.md", 1),
    ];
    for (page, expected) in pages {
        let mut manifests = blocks_of(page, "yaml");
        manifests.retain(|block| block.starts_with("apiVersion:"));
        assert_eq!(manifests.len(), expected, "{page}");
        for manifest in manifests {
            cluster.shell(&format!(
                "kubectl apply --server-side --dry-run=server --validate=strict -f - <<'END'\n{manifest}END"
            ));
        }
    }
}

#[tokio::test]
async fn its_pods_pass_the_restricted_standard() {
    let cluster = Cluster::start("karpenter").await;
    cluster.shell("kubectl create namespace karpenter");
    cluster.shell("kubectl label namespace karpenter pod-security.kubernetes.io/enforce=restricted");
    let lax = cluster.try_shell("kubectl run lax --image=x --namespace karpenter --dry-run=server");
    let refusal = String::from_utf8_lossy(&lax.stderr);
    assert!(
        refusal.contains("violates PodSecurity \"restricted"),
        "the standard is not enforced: {refusal}"
    );

    // The chart alone brings the definitions, and flow schemas for a namespace without priority.
    cluster.printed(&GUIDE.replace("--wait", "--set flowSchemas.enabled=true --wait"));
    let deployment = cluster.get("deployment karpenter");
    assert_eq!(deployment["status"]["readyReplicas"], 2, "{}", deployment["status"]);
    cluster.get("flowschema karpenter-leader-election");
    assert_eq!(cluster.definitions(), 5);

    // Definitions that came along change hands by the commands of the other chart's page.
    let takes_over = "helm upgrade --install karpenter-crd charts/karpenter-crd --namespace karpenter";
    let refused = cluster.try_shell(takes_over);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("invalid ownership metadata"));
    for block in shell_blocks("charts/karpenter-crd/README.md") {
        cluster.shell(&block);
    }
    cluster.shell(takes_over);
}
