//! A cluster with Karpenter's resources in it, and questions to it.

use std::collections::BTreeMap;

use api::{crds::Variant, v1::NodeClaim};
use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{Node, Pod},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, ResourceExt,
    api::{DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
    discovery::ApiResource,
};
use serde_json::{Value, json};
use testkit::{ControlPlane, Parts};

pub struct Cluster {
    pub plane: ControlPlane,
    pub client: Client,
}

impl Cluster {
    /// For simulated machines, whose kubelets are kwok's.
    pub async fn start() -> Self {
        Self::start_with(Parts::WithKwok, Variant::Kwok).await
    }

    pub async fn start_with(parts: Parts, variant: Variant) -> Self {
        let plane = ControlPlane::start(parts).await.expect("the control plane starts");
        let client = plane.client().await.expect("its kubeconfig is good");
        let cluster = Self { plane, client };
        cluster.install(api::crds::all(variant)).await;
        cluster
    }

    pub async fn install(&self, definitions: Vec<CustomResourceDefinition>) {
        let crds: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        for crd in definitions {
            crds.create(&PostParams::default(), &crd)
                .await
                .expect("the CRD is accepted");
        }
        self.eventually("all CRDs are established", async || {
            let list = crds.list(&ListParams::default()).await.expect("CRDs can be listed");
            let established = |crd: &CustomResourceDefinition| {
                let conditions = crd
                    .status
                    .iter()
                    .filter_map(|status| status.conditions.as_ref())
                    .flatten();
                conditions
                    .into_iter()
                    .any(|c| c.type_ == "Established" && c.status == "True")
            };
            list.iter()
                .all(established)
                .then_some(())
                .ok_or("some are not".to_owned())
        })
        .await;
    }

    /// A pool without limits over the simulated provider's catalog, and the class that it refers to.
    pub async fn apply_pool(&self, name: &str) {
        let class = json!({
            "apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"},
        });
        let pool = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name},
            "spec": {
                "disruption": {"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]},
                "template": {"spec": {
                    "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
                    // Small nodes only, so that fifty pods need several of them.
                    "requirements": [{"key": "karpenter.kwok.sh/instance-cpu", "operator": "Lt", "values": ["9"]}],
                }},
            },
        });
        for object in [class, pool] {
            self.apply(object).await;
        }
    }

    /// Applies a cluster-wide object.
    pub async fn apply(&self, object: Value) {
        let object: DynamicObject = serde_json::from_value(object).expect("an object");
        let types = object.types.clone().expect("its types");
        let gvk = GroupVersionKind::try_from(&types).expect("a kind");
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &ApiResource::from_gvk(&gvk));
        let params = PatchParams::apply("e2e").force();
        api.patch(&object.name_any(), &params, &Patch::Apply(&object))
            .await
            .expect("the object is accepted");
    }

    pub async fn create_deployment(&self, name: &str, cpu: &str) {
        self.create_deployment_where(name, cpu, json!({})).await;
    }

    /// A deployment of no replicas, for nodes with these labels.
    pub async fn create_deployment_where(&self, name: &str, cpu: &str, node_selector: Value) {
        let labels = BTreeMap::from([("app", name)]);
        let deployment: Deployment = serde_json::from_value(json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": {
                "metadata": {"labels": labels},
                "spec": {"terminationGracePeriodSeconds": 0, "nodeSelector": node_selector, "containers": [{
                    "name": "pause", "image": "pause", "resources": {"requests": {"cpu": cpu}},
                }]},
            }},
        }))
        .expect("a deployment");
        let api: Api<Deployment> = Api::default_namespaced(self.client.clone());
        api.create(&PostParams::default(), &deployment)
            .await
            .expect("the deployment is accepted");
    }

    pub async fn scale(&self, name: &str, replicas: i32) {
        let api: Api<Deployment> = Api::default_namespaced(self.client.clone());
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        api.patch_scale(name, &PatchParams::default(), &patch)
            .await
            .expect("the deployment scales");
    }

    pub async fn pods(&self) -> Vec<Pod> {
        let api: Api<Pod> = Api::default_namespaced(self.client.clone());
        api.list(&ListParams::default())
            .await
            .expect("pods can be listed")
            .items
    }

    pub async fn nodes(&self) -> Vec<Node> {
        let api: Api<Node> = Api::all(self.client.clone());
        api.list(&ListParams::default())
            .await
            .expect("nodes can be listed")
            .items
    }

    pub async fn claims(&self) -> Vec<NodeClaim> {
        let api: Api<NodeClaim> = Api::all(self.client.clone());
        api.list(&ListParams::default())
            .await
            .expect("claims can be listed")
            .items
    }

    /// Exactly `count` pods are there, and all of them run.
    pub async fn until_running(&self, count: usize) {
        self.eventually(&format!("{count} pods run"), async || {
            let pods = self.pods().await;
            let phase = |pod: &Pod| {
                pod.status
                    .as_ref()
                    .and_then(|status| status.phase.clone())
                    .unwrap_or_default()
            };
            let running = pods.iter().filter(|pod| phase(pod) == "Running").count();
            let (nodes, claims) = (self.nodes().await.len(), self.claims().await.len());
            let seen = format!("{running} of {} pods run, {nodes} nodes, {claims} claims", pods.len());
            if running == count && pods.len() == count {
                Ok(())
            } else {
                Err(seen)
            }
        })
        .await;
    }

    /// No node and no claim is left.
    pub async fn until_empty(&self) {
        self.eventually("no node and no claim is left", async || {
            let names = |list: Vec<String>| list.join(" ");
            let nodes = names(self.nodes().await.iter().map(ResourceExt::name_any).collect());
            let claims = names(self.claims().await.iter().map(ResourceExt::name_any).collect());
            if nodes.is_empty() && claims.is_empty() {
                Ok(())
            } else {
                Err(format!("nodes: {nodes}; claims: {claims}"))
            }
        })
        .await;
    }

    pub async fn eventually(&self, what: &str, ask: impl AsyncFnMut() -> Result<(), String>) {
        testkit::eventually(what, ask).await;
    }
}
