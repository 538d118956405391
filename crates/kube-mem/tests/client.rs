//! The ordinary kube client and its runtime against the server.

mod support;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, EvictParams, GroupVersionKind, ListParams, Patch, PatchParams,
    PostParams, WatchEvent, WatchParams,
};
use kube::runtime::wait::Condition;
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::json;
use support::*;

fn typed<T: serde::de::DeserializeOwned>(value: serde_json::Value) -> T {
    serde_json::from_value(value).expect("the value fits the type")
}

#[tokio::test(start_paused = true)]
async fn a_typed_client_creates_reads_changes_and_deletes() {
    let api: Api<ConfigMap> = Api::default_namespaced(server().client());
    let created = api
        .create(&PostParams::default(), &typed(map("a")))
        .await
        .expect("created");
    assert_eq!(
        created
            .metadata
            .creation_timestamp
            .map(|at| at.0.to_string())
            .as_deref(),
        Some("2026-01-01T00:00:00Z")
    );

    let patch = Patch::Merge(json!({ "data": { "more": "x" } }));
    let patched = api.patch("a", &PatchParams::default(), &patch).await.expect("patched");
    assert_eq!(patched.data.map(|data| data.len()), Some(2));

    let listed = api.list(&ListParams::default()).await.expect("listed");
    assert_eq!(listed.items.len(), 1);
    assert!(
        api.delete("a", &DeleteParams::default())
            .await
            .expect("deleted")
            .is_right()
    );
    assert!(api.get_opt("a").await.expect("asked").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_stale_replace_is_a_conflict() {
    let api: Api<ConfigMap> = Api::default_namespaced(server().client());
    let first = api
        .create(&PostParams::default(), &typed(map("a")))
        .await
        .expect("created");
    let mut second = first.clone();
    second.data = None;
    api.replace("a", &PostParams::default(), &second)
        .await
        .expect("replaced");
    match api.replace("a", &PostParams::default(), &first).await {
        Err(kube::Error::Api(status)) => assert!(status.is_conflict(), "{status}"),
        other => panic!("expected a conflict, got {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_watcher_follows_with_lists_and_with_streaming_lists() {
    for config in [watcher::Config::default(), watcher::Config::default().streaming_lists()] {
        let api: Api<Node> = Api::all(server().client());
        let node = |name: &str| typed::<Node>(json!({ "metadata": { "name": name } }));
        api.create(&PostParams::default(), &node("n1")).await.expect("created");
        let mut events = watcher(api.clone(), config).applied_objects().boxed();
        let first = events.try_next().await.expect("no error").expect("an object");
        assert_eq!(first.metadata.name.as_deref(), Some("n1"));
        api.create(&PostParams::default(), &node("n2")).await.expect("created");
        let second = events.try_next().await.expect("no error").expect("an object");
        assert_eq!(second.metadata.name.as_deref(), Some("n2"));
    }
}

#[tokio::test(start_paused = true)]
async fn metadata_can_be_had_without_the_rest() {
    let client = server().client();
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    api.create(&PostParams::default(), &typed(map("a")))
        .await
        .expect("created");
    let only = api.get_metadata("a").await.expect("read");
    assert_eq!(only.metadata.name.as_deref(), Some("a"));
    assert_eq!(
        api.list_metadata(&ListParams::default())
            .await
            .expect("listed")
            .items
            .len(),
        1
    );
    let mut events = api
        .watch_metadata(&WatchParams::default(), "0")
        .await
        .expect("watching")
        .boxed();
    assert!(matches!(events.try_next().await, Ok(Some(WatchEvent::Added(_)))));
}

#[tokio::test(start_paused = true)]
async fn custom_resources_are_served_as_soon_as_they_are_defined() {
    let client = server().client();
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let definition = definitions
        .create(&PostParams::default(), &typed(widget_definition()))
        .await
        .expect("the definition is accepted");
    assert!(kube::runtime::conditions::is_crd_established().matches_object(Some(&definition)));

    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("example.com", "v1", "Widget"), "widgets");
    let widgets: Api<DynamicObject> = Api::namespaced_with(client, "default", &resource);
    let apply = PatchParams::apply("tester");
    let applied = widgets
        .patch("w", &apply, &Patch::Apply(widget("w", 3)))
        .await
        .expect("applied");
    assert_eq!(applied.data["spec"]["size"], 3);
    let status = Patch::Merge(json!({ "status": { "phase": "Ready" } }));
    let with_status = widgets
        .patch_status("w", &PatchParams::default(), &status)
        .await
        .expect("status written");
    assert_eq!(with_status.data["status"]["phase"], "Ready");
}

#[tokio::test(start_paused = true)]
async fn an_eviction_deletes_the_pod() {
    let pods: Api<Pod> = Api::default_namespaced(server().client());
    pods.create(&PostParams::default(), &typed(pod("p")))
        .await
        .expect("created");
    pods.evict("p", &EvictParams::default()).await.expect("evicted");
    assert!(pods.get_opt("p").await.expect("asked").is_none());
}
