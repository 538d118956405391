//! Watches: what is told, in which order, and when a watch ends.

mod support;

use std::time::Duration;

use serde_json::json;
use support::*;

#[tokio::test(start_paused = true)]
async fn a_watch_tells_what_is_there_and_then_what_changes() {
    let server = server();
    create(&server, MAPS, &map("a"));
    let mut watch = watch(&server, &format!("{MAPS}?watch=true"));
    assert_eq!(watch.told().await, "ADDED a");
    create(&server, MAPS, &map("b"));
    merge(&server, &format!("{MAPS}/b"), &json!({ "data": { "x": "y" } }));
    delete(&server, &format!("{MAPS}/a"), &json!(null));
    assert_eq!(watch.told().await, "ADDED b");
    assert_eq!(watch.told().await, "MODIFIED b");
    assert_eq!(watch.told().await, "DELETED a");
    assert!(watch.is_quiet().await);
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_a_version_tells_only_what_came_after() {
    let server = server();
    let first = create(&server, MAPS, &map("a"));
    let version = first["metadata"]["resourceVersion"]
        .as_str()
        .expect("a version")
        .to_owned();
    create(&server, MAPS, &map("b"));
    let mut watch = watch(&server, &format!("{MAPS}?watch=true&resourceVersion={version}"));
    assert_eq!(watch.told().await, "ADDED b");
    assert!(watch.is_quiet().await);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_changes_nothing_is_not_told_and_keeps_the_version() {
    let server = server();
    let created = create(&server, MAPS, &map("a"));
    let version = created["metadata"]["resourceVersion"]
        .as_str()
        .expect("a version")
        .to_owned();
    let mut watch = watch(&server, &format!("{MAPS}?watch=true&resourceVersion={version}"));
    let (code, same) = merge(&server, &format!("{MAPS}/a"), &json!({ "data": { "key": "value" } }));
    assert_eq!((code, &same["metadata"]["resourceVersion"]), (200, &json!(version)));
    assert!(watch.is_quiet().await);
}

#[tokio::test(start_paused = true)]
async fn a_change_into_a_selector_is_an_addition_and_one_out_of_it_a_removal() {
    let server = server();
    create(&server, MAPS, &map("a"));
    let mut watch = watch(&server, &format!("{MAPS}?watch=true&labelSelector=tier%3Dfront"));
    let label = |value: Option<&str>| json!({ "metadata": { "labels": { "tier": value } } });
    merge(&server, &format!("{MAPS}/a"), &label(Some("front")));
    merge(&server, &format!("{MAPS}/a"), &json!({ "data": { "x": "y" } }));
    merge(&server, &format!("{MAPS}/a"), &label(Some("back")));
    merge(&server, &format!("{MAPS}/a"), &label(None));
    assert_eq!(watch.told().await, "ADDED a");
    assert_eq!(watch.told().await, "MODIFIED a");
    let left = watch.next().await.expect("the watch goes on");
    assert_eq!(
        (&left["type"], &left["object"]["metadata"]["labels"]["tier"]),
        (&json!("DELETED"), &json!("front"))
    );
    let now = read(&server, &format!("{MAPS}/a"));
    assert_ne!(
        left["object"]["metadata"]["resourceVersion"],
        now["metadata"]["resourceVersion"]
    );
    assert!(watch.is_quiet().await, "a change outside of the selector is not told");
}

#[tokio::test(start_paused = true)]
async fn a_kubelets_watch_sees_a_pod_when_it_is_bound() {
    let server = server();
    create(&server, PODS, &pod("p"));
    let mut watch = watch(&server, "/api/v1/pods?watch=true&fieldSelector=spec.nodeName%3Dn1");
    assert!(watch.is_quiet().await);
    let binding = json!({ "metadata": { "name": "p" }, "target": { "kind": "Node", "name": "n1" } });
    assert_eq!(post(&server, &format!("{PODS}/p/binding"), &binding).0, 201);
    assert_eq!(watch.told().await, "ADDED p");
}

#[tokio::test(start_paused = true)]
async fn a_watch_on_one_namespace_or_one_object_hears_of_nothing_else() {
    let server = server();
    create(
        &server,
        "/api/v1/namespaces",
        &json!({ "metadata": { "name": "defaultish" } }),
    );
    let mut namespace = watch(&server, &format!("{MAPS}?watch=true"));
    let mut single = watch(&server, &format!("{MAPS}/b?watch=true"));
    create(&server, "/api/v1/namespaces/defaultish/configmaps", &map("a"));
    create(&server, MAPS, &map("a"));
    create(&server, MAPS, &map("b"));
    assert_eq!(namespace.told().await, "ADDED a");
    assert_eq!(namespace.told().await, "ADDED b");
    assert_eq!(single.told().await, "ADDED b");
    assert!(single.is_quiet().await);
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_ends_its_first_part_with_a_marked_bookmark() {
    let server = server();
    create(&server, MAPS, &map("a"));
    let options = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = watch(&server, &format!("{MAPS}?{options}"));
    assert_eq!(watch.told().await, "ADDED a");
    let mark = watch.next().await.expect("a bookmark");
    assert_eq!(mark["type"], "BOOKMARK");
    assert_eq!(mark["object"]["kind"], "ConfigMap");
    assert_eq!(
        mark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"],
        "true"
    );
    assert_eq!(
        mark["object"]["metadata"]["resourceVersion"],
        server.resource_version().to_string()
    );
}

#[tokio::test(start_paused = true)]
async fn a_quiet_watch_gets_a_bookmark_every_minute_with_the_newest_version() {
    let server = server();
    let mut watch = watch(&server, &format!("{MAPS}?watch=true&allowWatchBookmarks=true"));
    create(&server, PODS, &pod("elsewhere"));
    let started = tokio::time::Instant::now();
    for minute in 1..=3 {
        let bookmark = watch.next().await.expect("a bookmark");
        assert_eq!(bookmark["type"], "BOOKMARK");
        assert_eq!(
            bookmark["object"]["metadata"]["resourceVersion"],
            server.resource_version().to_string()
        );
        assert_eq!(started.elapsed(), Duration::from_secs(60 * minute));
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_after_its_timeout() {
    let server = server();
    let mut watch = watch(&server, &format!("{MAPS}?watch=true&timeoutSeconds=90"));
    let started = tokio::time::Instant::now();
    assert_eq!(watch.next().await, None);
    assert_eq!(started.elapsed(), Duration::from_secs(90));
}

#[tokio::test(start_paused = true)]
async fn a_version_that_has_left_the_log_is_gone() {
    let server = server_with(|builder| builder.history(4));
    let first = create(&server, MAPS, &map("a"));
    for name in ["b", "c", "d", "e", "f", "g"] {
        create(&server, MAPS, &map(name));
    }
    let version = first["metadata"]["resourceVersion"].as_str().expect("a version");
    let mut watch = watch(&server, &format!("{MAPS}?watch=true&resourceVersion={version}"));
    let error = watch.next().await.expect("an error");
    assert_eq!(
        (&error["type"], &error["object"]["code"]),
        (&json!("ERROR"), &json!(410))
    );
    assert_eq!(error["object"]["reason"], "Expired");
    let message = error["object"]["message"].as_str().expect("a message");
    assert!(
        message.starts_with(&format!("too old resource version: {version} (")),
        "{message}"
    );
    assert_eq!(watch.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_lags_holds_the_log_back_for_a_while_and_is_then_dropped() {
    let server = server_with(|builder| builder.history(4));
    let mut patient = watch(&server, &format!("{MAPS}?watch=true"));
    for index in 0..50 {
        create(&server, MAPS, &map(&format!("m{index:02}")));
    }
    for index in 0..50 {
        assert_eq!(patient.told().await, format!("ADDED m{index:02}"));
    }
    for index in 50..150 {
        create(&server, MAPS, &map(&format!("m{index}")));
    }
    assert_eq!(
        patient.next().await,
        None,
        "a hundred changes are more than the log holds"
    );
}

#[tokio::test(start_paused = true)]
async fn contradictory_parameters_are_refused() {
    let server = server();
    for query in [
        "watch=true&sendInitialEvents=true",
        "watch=true&resourceVersionMatch=Exact",
        "watch=true&resourceVersionMatch=NotOlderThan",
    ] {
        let (code, status) = get(&server, &format!("{MAPS}?{query}"));
        assert_eq!(
            (code, &status["details"]["kind"]),
            (422, &json!("ListOptions")),
            "{query}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn tables_are_watched_with_their_columns_told_once() {
    let server = server();
    create(&server, PODS, &pod("a"));
    create(&server, PODS, &pod("b"));
    let request = http::Request::builder()
        .uri(format!("{PODS}?watch=true"))
        .header(
            "accept",
            "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
        )
        .body(bytes::Bytes::new())
        .expect("the request is well formed");
    let mut watch = Watch::of(server.handle(request));
    let first = watch.next().await.expect("an event");
    let second = watch.next().await.expect("an event");
    assert_eq!(first["object"]["kind"], "Table");
    assert_eq!(first["object"]["columnDefinitions"][0]["name"], "Name");
    assert!(
        second["object"]["columnDefinitions"]
            .as_array()
            .is_none_or(Vec::is_empty)
    );
    assert_eq!(second["object"]["rows"][0]["cells"][0], "b");
}
