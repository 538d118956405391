//! What a new playground contains: the custom resources, a node class, a pool, and a deployment to play with.

use anyhow::Context as _;
use api::crds::Variant;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, ResourceExt,
    api::{DynamicObject, Patch, PatchParams},
    core::GroupVersionKind,
    discovery::ApiResource,
};

const MANAGER: &str = "karpenter-playground";

/// Something to scale.
const DEPLOYMENT: &str = r#"{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "inflate", "namespace": "default"}, "spec": {
    "replicas": 0, "selector": {"matchLabels": {"app": "inflate"}}, "template": {
        "metadata": {"labels": {"app": "inflate"}},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [{
            "name": "inflate", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": {"cpu": "1"}}
        }]}
    }
}}"#;

/// Installs the resource definitions of this build, over whatever was there.
pub async fn install_crds(client: &Client, variant: Variant) -> anyhow::Result<()> {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    for crd in api::crds::all(variant) {
        let params = PatchParams::apply(MANAGER).force();
        crds.patch(&crd.name_any(), &params, &Patch::Apply(&crd))
            .await
            .with_context(|| format!("CRD {} is refused", crd.name_any()))?;
    }
    Ok(())
}

/// Puts the things to play with into a new cluster.
pub async fn create_defaults(client: &Client, class_and_pool: [&str; 2]) -> anyhow::Result<()> {
    for text in class_and_pool.into_iter().chain([DEPLOYMENT]) {
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
