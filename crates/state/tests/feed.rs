//! Feeds over an API server: what is there, what comes, what goes, and what was missed.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use kube_mem::ApiServer;
use serde_json::json;
use state::{Feed, FeedPace, Index, Served, View};
use tokio::{task::JoinSet, time::timeout};

fn index() -> Arc<Index> {
    Arc::new(Index::new(Arc::default(), Served::default()))
}

async fn create(client: &Client, name: &str) -> Node {
    let node: Node = serde_json::from_value(json!({"metadata": {"name": name}})).expect("the literal is a node");
    let api: Api<Node> = Api::all(client.clone());
    api.create(&PostParams::default(), &node)
        .await
        .expect("the server takes it")
}

fn names(view: &View) -> Vec<String> {
    view.nodes
        .values()
        .filter_map(|node| node.metadata.name.clone())
        .collect()
}

async fn until(index: &Index, expected: &[&str]) {
    let seen = timeout(
        Duration::from_secs(600),
        index.until(|view| view.synced && names(view) == expected),
    )
    .await;
    assert!(seen.is_ok(), "{:?} instead of {expected:?}", names(&index.view()));
}

fn feed(client: &Client, index: &Arc<Index>, pace: FeedPace) -> JoinSet<()> {
    let feed = Feed::<Node>::new(Api::all(client.clone()), (), index.clone(), pace);
    assert!(!index.view().synced, "a feed that has not listed yet is not synced");
    let mut tasks = JoinSet::new();
    tasks.spawn(feed.run());
    tasks
}

#[tokio::test(start_paused = true)]
async fn the_index_follows_the_server() {
    let server = ApiServer::builder().build();
    let client = server.client();
    let index = index();
    create(&client, "a").await;
    let _running = feed(&client, &index, FeedPace::default());
    until(&index, &["a"]).await;

    create(&client, "b").await;
    until(&index, &["a", "b"]).await;
    let api: Api<Node> = Api::all(client.clone());
    let label = Patch::Merge(json!({"metadata": {"labels": {"x": "y"}}}));
    api.patch("b", &PatchParams::default(), &label)
        .await
        .expect("the server takes it");
    index
        .until(|view| view.nodes.named("b").is_some_and(|node| node.metadata.labels.is_some()))
        .await;
    api.delete("a", &DeleteParams::default())
        .await
        .expect("the server takes it");
    until(&index, &["b"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_list_in_pages_is_complete() {
    let server = ApiServer::builder().build();
    let client = server.client();
    for n in 0..7 {
        create(&client, &format!("n{n}")).await;
    }
    let index = index();
    let _running = feed(
        &client,
        &index,
        FeedPace {
            page_size: 3,
            ..FeedPace::default()
        },
    );
    until(&index, &["n0", "n1", "n2", "n3", "n4", "n5", "n6"]).await;
}

/// The server forgets; what happened meanwhile is found out by listing again.
#[tokio::test(start_paused = true)]
async fn a_feed_that_lost_its_place_lists_again() {
    let server = ApiServer::builder().history(1).build();
    let client = server.client();
    let index = index();
    create(&client, "a").await;
    create(&client, "b").await;
    let running = feed(&client, &index, FeedPace::default());
    until(&index, &["a", "b"]).await;
    drop(running);

    let api: Api<Node> = Api::all(client.clone());
    api.delete("a", &DeleteParams::default())
        .await
        .expect("the server takes it");
    create(&client, "c").await;
    create(&client, "d").await;
    let feed = Feed::<Node>::new(Api::all(client.clone()), (), index.clone(), FeedPace::default());
    let mut tasks = JoinSet::new();
    tasks.spawn(feed.run());
    until(&index, &["b", "c", "d"]).await;
}
