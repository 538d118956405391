//! The webhooks of the time of Provisioners, asked by a real API server.

use api::v1::NodePool;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

use crate::{cluster::Cluster, controller::Controller};

/// A cluster whose API server asks a controller of this machine: there is no network of services.
async fn start() -> (Cluster, Controller) {
    let cluster = Cluster::start_with(testkit::Parts::ApiServer, api::crds::Variant::Kwok).await;
    cluster.install(api::crds::legacy()).await;
    let controller = Controller::with_webhooks(cluster.plane.kubeconfig());
    let rule = json!({
        "operations": ["CREATE", "UPDATE"],
        "apiGroups": ["karpenter.sh"], "apiVersions": ["v1alpha5"], "resources": ["provisioners"],
    });
    for (kind, name, path) in [
        (
            "Mutating",
            "defaulting.webhook.karpenter.k8s.aws",
            "/default/karpenter.k8s.aws",
        ),
        (
            "Validating",
            "validation.webhook.karpenter.sh",
            "/validate/karpenter.sh",
        ),
    ] {
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": format!("{kind}WebhookConfiguration"),
            "metadata": {"name": name},
            "webhooks": [{
                "name": name, "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Ignore",
                "timeoutSeconds": 5, "clientConfig": {"url": controller.webhook(path)}, "rules": [rule],
            }],
        });
        cluster.apply(configuration).await;
    }
    (cluster, controller)
}

fn provisioner(name: &str, spec: Value) -> DynamicObject {
    let object = json!({
        "apiVersion": "karpenter.sh/v1alpha5", "kind": "Provisioner", "metadata": {"name": name}, "spec": spec,
    });
    serde_json::from_value(object).expect("an object")
}

fn objects(cluster: &Cluster, version: &str, kind: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("karpenter.sh", version, kind);
    Api::all_with(cluster.client.clone(), &ApiResource::from_gvk(&kind))
}

#[tokio::test]
async fn a_provisioner_is_completed_or_refused_and_passes_when_nobody_answers() {
    let (cluster, mut controller) = start().await;
    controller.start();
    let provisioners = objects(&cluster, "v1alpha5", "Provisioner");
    let wrong = json!({"providerRef": {"name": "default"}, "ttlSecondsUntilExpired": -1, "weight": 10});
    let refusal = testkit::eventually("the API server trusts the webhooks", async || {
        let only_try = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        match provisioners
            .create(&only_try, &provisioner("wrong", wrong.clone()))
            .await
        {
            Err(kube::Error::Api(status)) => Ok(status),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    assert_eq!(
        refusal.message,
        "admission webhook \"validation.webhook.karpenter.sh\" denied the request: \
         spec.ttlSecondsUntilExpired: may not be negative"
    );
    assert_eq!(refusal.code, 422);

    let bare = provisioner("bare", json!({"providerRef": {"name": "default"}}));
    let made = provisioners
        .create(&PostParams::default(), &bare)
        .await
        .expect("it is valid");
    let keys: Vec<&str> = made.data["spec"]["requirements"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|requirement| requirement["key"].as_str())
        .collect();
    // Words of EC2 are not added where machines are simulated.
    assert_eq!(
        keys,
        ["kubernetes.io/os", "kubernetes.io/arch", "karpenter.sh/capacity-type"]
    );

    // Without a controller everything can be written, as it is. With the next one it is refused again.
    controller.kill();
    let written = provisioners
        .create(&PostParams::default(), &provisioner("wrong", wrong))
        .await
        .expect("nothing is blocked");
    assert!(written.data["spec"].get("requirements").is_none(), "{:?}", written.data);
    controller.start();
    let heavier = Patch::Merge(json!({"spec": {"weight": 11}}));
    testkit::eventually("the next controller answers", async || {
        let only_try = PatchParams {
            dry_run: true,
            ..PatchParams::default()
        };
        match provisioners.patch("wrong", &only_try, &heavier).await {
            Err(kube::Error::Api(status)) if status.message.contains("may not be negative") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    let labelled = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
    let labelled = provisioners.patch("wrong", &PatchParams::default(), &labelled).await;
    labelled.expect("the spec is as it was");
}

/// The definition of pools as upstream's releases up to 1.0 had it: v1beta1, which is stored, beside v1, and a webhook between them.
fn served_in_both(mut definition: CustomResourceDefinition, url: &str) -> CustomResourceDefinition {
    let mut older = definition.spec.versions[0].clone();
    older.name = "v1beta1".to_owned();
    older.additional_printer_columns = None;
    older.selectable_fields = None;
    older.schema = serde_json::from_value(json!({"openAPIV3Schema": {
        "type": "object", "x-kubernetes-preserve-unknown-fields": true,
    }}))
    .expect("a schema");
    definition.spec.versions[0].storage = false;
    older.storage = true;
    definition.spec.versions.push(older);
    definition.spec.conversion = serde_json::from_value(json!({
        "strategy": "Webhook",
        "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": url}},
    }))
    .expect("a conversion");
    definition
}

#[tokio::test]
async fn what_is_stored_as_v1beta1_is_read_as_v1_and_comes_back_as_it_was() {
    let cluster = Cluster::start_with(testkit::Parts::ApiServer, api::crds::Variant::Kwok).await;
    let mut controller = Controller::with_webhooks(cluster.plane.kubeconfig());
    let url = controller.webhook("/conversion/karpenter.sh");
    let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
    let ours = definitions
        .get("nodepools.karpenter.sh")
        .await
        .expect("it is installed");
    let both = served_in_both(ours, &url);
    definitions
        .replace("nodepools.karpenter.sh", &PostParams::default(), &both)
        .await
        .expect("it is accepted");

    // Written before there is anybody to convert it, as an older release did.
    let spec = json!({
        "disruption": {"consolidationPolicy": "WhenUnderutilized", "expireAfter": "240h"},
        "template": {"spec": {
            "requirements": [],
            "kubelet": {"maxPods": 20},
            "nodeClassRef": {"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "name": "default"},
        }},
    });
    let old: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "karpenter.sh/v1beta1", "kind": "NodePool", "metadata": {"name": "old"}, "spec": spec,
    }))
    .expect("an object");
    let older = objects(&cluster, "v1beta1", "NodePool");
    testkit::eventually("v1beta1 is served", async || {
        older.create(&PostParams::default(), &old).await
    })
    .await;

    controller.start();
    let pools: Api<NodePool> = Api::all(cluster.client.clone());
    let pool = testkit::eventually("it is read as v1", async || pools.get("old").await).await;
    let template = &pool.spec.template.spec;
    assert_eq!(
        (
            template.node_class_ref.group.as_str(),
            template.node_class_ref.name.as_str()
        ),
        ("karpenter.kwok.sh", "default")
    );
    assert_eq!(template.expire_after.as_ref().map(|time| time.0.as_str()), Some("240h"));

    // A change by way of v1 leaves what v1 does not know.
    let lighter = Patch::Merge(json!({"spec": {"weight": 7}}));
    pools
        .patch("old", &PatchParams::default(), &lighter)
        .await
        .expect("it is written");
    let read = older.get("old").await.expect("it is read as v1beta1");
    assert_eq!(read.data["spec"]["weight"], 7);
    assert_eq!(read.data["spec"]["template"]["spec"]["kubelet"], json!({"maxPods": 20}));
    assert_eq!(
        read.data["spec"]["template"]["spec"]["nodeClassRef"],
        spec["template"]["spec"]["nodeClassRef"]
    );

    // From now on v1 is stored, and v1beta1 need not be known any more.
    let stores_v1 = Patch::Json::<()>(
        serde_json::from_value(json!([
            {"op": "replace", "path": "/spec/versions/0/storage", "value": true},
            {"op": "replace", "path": "/spec/versions/1/storage", "value": false},
        ]))
        .expect("a patch"),
    );
    definitions
        .patch("nodepools.karpenter.sh", &PatchParams::default(), &stores_v1)
        .await
        .expect("it is accepted");
    testkit::eventually("v1 alone is stored", async || {
        let definition = definitions.get("nodepools.karpenter.sh").await.expect("it is there");
        let stored = definition
            .status
            .and_then(|status| status.stored_versions)
            .unwrap_or_default();
        (stored == ["v1"]).then_some(()).ok_or(stored)
    })
    .await;
    let pool = pools.get("old").await.expect("it is there");
    assert_eq!(pool.annotations()["karpenter.sh/stored-version-migrated"], "true");
}
