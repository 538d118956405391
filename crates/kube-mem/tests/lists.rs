//! Lists: pages, versions, selectors.

mod support;

use serde_json::{Value, json};
use support::*;

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().expect("a list has items");
    items
        .iter()
        .filter_map(|item| item["metadata"]["name"].as_str())
        .collect()
}

#[test]
fn a_list_names_its_kind_and_version_and_its_items_do_not_repeat_them() {
    let server = server();
    create(&server, MAPS, &map("a"));
    let list = read(&server, MAPS);
    assert_eq!(
        (&list["kind"], &list["apiVersion"]),
        (&json!("ConfigMapList"), &json!("v1"))
    );
    assert_eq!(
        list["metadata"]["resourceVersion"],
        server.resource_version().to_string()
    );
    assert!(list["items"][0].get("kind").is_none());
    assert_eq!(list["items"][0]["data"]["key"], "value");
}

#[test]
fn objects_come_in_the_order_of_their_keys() {
    let server = server();
    for namespace in ["a", "a-b"] {
        create(
            &server,
            "/api/v1/namespaces",
            &json!({ "metadata": { "name": namespace } }),
        );
        create(
            &server,
            &format!("/api/v1/namespaces/{namespace}/configmaps"),
            &map("m"),
        );
    }
    let list = read(&server, "/api/v1/configmaps");
    let namespaces: Vec<&Value> = list["items"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|item| &item["metadata"]["namespace"])
        .collect();
    // A dash sorts before the slash that ends the namespace.
    assert_eq!(namespaces, ["a-b", "a"]);
    assert_eq!(names(&read(&server, "/api/v1/namespaces/a/configmaps")).len(), 1);
}

#[test]
fn pages_are_cut_from_the_version_of_the_first() {
    let server = server();
    for name in ["a", "b", "c", "d", "e"] {
        create(&server, MAPS, &map(name));
    }
    let first = read(&server, &format!("{MAPS}?limit=2"));
    assert_eq!(
        (names(&first), &first["metadata"]["remainingItemCount"]),
        (vec!["a", "b"], &json!(3))
    );
    delete(&server, &format!("{MAPS}/c"), &Value::Null);
    create(&server, MAPS, &map("bb"));
    merge(&server, &format!("{MAPS}/d"), &json!({ "data": { "key": "new" } }));
    let token = first["metadata"]["continue"].as_str().expect("there is more");
    let second = read(&server, &format!("{MAPS}?limit=2&continue={token}"));
    assert_eq!(
        names(&second),
        ["c", "d"],
        "what was deleted since is still there, what was added is not"
    );
    assert_eq!(second["items"][1]["data"]["key"], "value");
    let token = second["metadata"]["continue"].as_str().expect("there is more");
    let third = read(&server, &format!("{MAPS}?limit=2&continue={token}"));
    assert_eq!(names(&third), ["e"]);
    assert!(third["metadata"].get("continue").is_none());
    assert_eq!(
        first["metadata"]["resourceVersion"],
        third["metadata"]["resourceVersion"]
    );
}

#[test]
fn a_page_whose_version_is_gone_is_refused_with_a_way_to_go_on() {
    let server = server_with(|builder| builder.history(2));
    for name in ["a", "b", "c"] {
        create(&server, MAPS, &map(name));
    }
    let first = read(&server, &format!("{MAPS}?limit=1"));
    let token = first["metadata"]["continue"].as_str().expect("there is more");
    for value in 0..5 {
        merge(
            &server,
            &format!("{MAPS}/c"),
            &json!({ "data": { "key": value.to_string() } }),
        );
    }
    let (code, status) = get(&server, &format!("{MAPS}?limit=1&continue={token}"));
    assert_eq!((code, &status["reason"]), (410, &json!("Expired")));
    let token = status["metadata"]["continue"]
        .as_str()
        .expect("an inconsistent continuation");
    assert_eq!(
        names(&read(&server, &format!("{MAPS}?limit=1&continue={token}"))),
        ["b"]
    );
}

#[test]
fn an_exact_version_shows_the_past_and_a_minimum_the_present() {
    let server = server();
    let created = create(&server, MAPS, &map("a"));
    let version = created["metadata"]["resourceVersion"].as_str().expect("a version");
    create(&server, MAPS, &map("b"));
    let exact = read(
        &server,
        &format!("{MAPS}?resourceVersion={version}&resourceVersionMatch=Exact"),
    );
    assert_eq!(
        (names(&exact), &exact["metadata"]["resourceVersion"]),
        (vec!["a"], &json!(version))
    );
    let newer = read(
        &server,
        &format!("{MAPS}?resourceVersion={version}&resourceVersionMatch=NotOlderThan"),
    );
    assert_eq!(names(&newer), ["a", "b"]);
    assert_eq!(names(&read(&server, &format!("{MAPS}?resourceVersion=0"))), ["a", "b"]);
}

#[test]
fn a_version_that_is_not_reached_is_a_timeout() {
    let server = server();
    for uri in [
        format!("{MAPS}?resourceVersion=9999"),
        "/api/v1/namespaces/default?resourceVersion=9999".to_owned(),
    ] {
        let (code, status) = get(&server, &uri);
        assert_eq!((code, &status["reason"]), (504, &json!("Timeout")));
        assert_eq!(status["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
    }
}

#[test]
fn selectors_narrow_lists_and_collection_deletes() {
    let server = server();
    for (name, tier) in [("a", "front"), ("b", "back"), ("c", "front")] {
        let mut map = map(name);
        map["metadata"]["labels"] = json!({ "tier": tier });
        create(&server, MAPS, &map);
    }
    assert_eq!(
        names(&read(&server, &format!("{MAPS}?labelSelector=tier+in+(front)"))),
        ["a", "c"]
    );
    assert_eq!(
        names(&read(&server, &format!("{MAPS}?fieldSelector=metadata.name%3Db"))),
        ["b"]
    );
    let (code, deleted) = delete(&server, &format!("{MAPS}?labelSelector=tier%3Dfront"), &Value::Null);
    assert_eq!((code, names(&deleted)), (200, vec!["a", "c"]));
    assert_eq!(names(&read(&server, MAPS)), ["b"]);
}

#[test]
fn unsupported_selectors_are_refused_in_the_real_servers_words() {
    let server = server();
    for (uri, message) in [
        (
            format!("{PODS}?fieldSelector=spec.x%3D1"),
            "field label not supported: spec.x",
        ),
        (
            "/apis/apps/v1/deployments?fieldSelector=spec.x%3D1".to_owned(),
            "\"spec.x\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
        ),
        (
            format!("{MAPS}?labelSelector=a+in+b"),
            "unable to parse requirement: found 'b' expected: '('",
        ),
    ] {
        let (code, status) = get(&server, &uri);
        assert_eq!((code, &status["message"]), (400, &json!(message)));
    }
}

#[test]
fn custom_resources_are_selected_by_the_fields_that_they_name() {
    let server = server();
    create(&server, DEFINITIONS, &widget_definition());
    create(&server, WIDGETS, &widget("a", 1));
    let mut blue = widget("b", 1);
    blue["spec"]["color"] = "blue".into();
    create(&server, WIDGETS, &blue);
    assert_eq!(
        names(&read(&server, &format!("{WIDGETS}?fieldSelector=spec.color%3Dblue"))),
        ["b"]
    );
    assert_eq!(get(&server, &format!("{WIDGETS}?fieldSelector=spec.size%3D1")).0, 400);
}
