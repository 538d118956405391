//! What a new playground contains: the custom resources, a node class, a pool, and a deployment to play with.

use anyhow::Context as _;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, ResourceExt,
    api::{DynamicObject, Patch, PatchParams},
    core::GroupVersionKind,
    discovery::ApiResource,
};

const MANAGER: &str = "karpenter-playground";

/// The pool launches nodes of a size that people run: a hundred pods need several, not a hundred. They go a little while
/// after their last pod, so that a newcomer sees it happen.
const DEFAULTS: [&str; 3] = [
    r#"{"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}}"#,
    r#"{"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"}, "spec": {
        "disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "10s", "budgets": [{"nodes": "100%"}]},
        "limits": {"cpu": "1000"},
        "template": {"spec": {
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
            "requirements": [
                {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
                {"key": "karpenter.kwok.sh/instance-cpu", "operator": "Gt", "values": ["3"]},
                {"key": "karpenter.kwok.sh/instance-cpu", "operator": "Lt", "values": ["33"]},
                {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot", "on-demand"]}
            ]
        }}
    }}"#,
    r#"{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "inflate", "namespace": "default"}, "spec": {
        "replicas": 0, "selector": {"matchLabels": {"app": "inflate"}}, "template": {
            "metadata": {"labels": {"app": "inflate"}},
            "spec": {"terminationGracePeriodSeconds": 0, "containers": [{
                "name": "inflate", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": {"cpu": "1"}}
            }]}
        }
    }}"#,
];

/// Installs the resource definitions of this build, over whatever was there.
pub async fn install_crds(client: &Client) -> anyhow::Result<()> {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    for crd in api::crds::all(api::crds::Variant::Kwok) {
        let params = PatchParams::apply(MANAGER).force();
        crds.patch(&crd.name_any(), &params, &Patch::Apply(&crd))
            .await
            .with_context(|| format!("CRD {} is refused", crd.name_any()))?;
    }
    Ok(())
}

/// Puts the things to play with into a new cluster.
pub async fn create_defaults(client: &Client) -> anyhow::Result<()> {
    for text in DEFAULTS {
        let object: DynamicObject = serde_json::from_str(text).context("an embedded manifest")?;
        let types = object.types.as_ref().context("an embedded manifest without a kind")?;
        let resource = ApiResource::from_gvk(&GroupVersionKind::try_from(types)?);
        let api: Api<DynamicObject> = match object.namespace() {
            Some(namespace) => Api::namespaced_with(client.clone(), &namespace, &resource),
            None => Api::all_with(client.clone(), &resource),
        };
        let params = PatchParams::apply(MANAGER);
        api.patch(&object.name_any(), &params, &Patch::Apply(&object))
            .await
            .with_context(|| format!("{} {} is refused", types.kind, object.name_any()))?;
    }
    Ok(())
}
