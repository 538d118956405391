//! A server per test, on virtual time, spoken to in raw requests where the wire matters.

#![allow(dead_code, reason = "each test file uses its own part of this")]

use std::sync::Arc;

use bytes::Bytes;
use clock::VirtualClock;
use kube_mem::ApiServer;
use serde_json::{Value, json};

pub fn server() -> ApiServer {
    server_with(|builder| builder)
}

pub fn server_with(settings: impl FnOnce(kube_mem::ApiServerBuilder) -> kube_mem::ApiServerBuilder) -> ApiServer {
    let clock = Arc::new(VirtualClock::starting_at(VirtualClock::EPOCH));
    settings(ApiServer::builder().clock(clock).seed(1)).build()
}

/// An answer: its code and its body.
pub type Answer = (u16, Value);

pub fn send(server: &ApiServer, method: &str, uri: &str, content_type: &str, body: &Value) -> Answer {
    let bytes = if body.is_null() {
        Bytes::new()
    } else {
        Bytes::from(body.to_string())
    };
    let request = http::Request::builder()
        .method(method)
        .uri(uri)
        .header("content-type", content_type)
        .header("user-agent", "tester/1.0")
        .body(bytes)
        .expect("the request is well formed");
    let response = server.handle(request);
    let code = response.status().as_u16();
    let bytes = response.into_body().into_bytes().expect("the answer is not a watch");
    (
        code,
        serde_json::from_slice(&bytes).unwrap_or_else(|_| json!(String::from_utf8_lossy(&bytes))),
    )
}

pub fn get(server: &ApiServer, uri: &str) -> Answer {
    send(server, "GET", uri, "", &Value::Null)
}

pub fn post(server: &ApiServer, uri: &str, body: &Value) -> Answer {
    send(server, "POST", uri, "application/json", body)
}

pub fn put(server: &ApiServer, uri: &str, body: &Value) -> Answer {
    send(server, "PUT", uri, "application/json", body)
}

pub fn merge(server: &ApiServer, uri: &str, body: &Value) -> Answer {
    send(server, "PATCH", uri, "application/merge-patch+json", body)
}

pub fn delete(server: &ApiServer, uri: &str, options: &Value) -> Answer {
    send(server, "DELETE", uri, "application/json", options)
}

/// Creates an object and gives what was stored.
#[track_caller]
pub fn create(server: &ApiServer, uri: &str, body: &Value) -> Value {
    let (code, created) = post(server, uri, body);
    assert_eq!(code, 201, "{created}");
    created
}

/// Reads an object that has to be there.
#[track_caller]
pub fn read(server: &ApiServer, uri: &str) -> Value {
    let (code, found) = get(server, uri);
    assert_eq!(code, 200, "{found}");
    found
}

#[track_caller]
pub fn assert_gone(server: &ApiServer, uri: &str) {
    assert_eq!(get(server, uri).0, 404, "{uri}");
}

pub const MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub const PODS: &str = "/api/v1/namespaces/default/pods";
pub const NODES: &str = "/api/v1/nodes";

pub fn map(name: &str) -> Value {
    json!({ "metadata": { "name": name }, "data": { "key": "value" } })
}

pub fn pod(name: &str) -> Value {
    json!({
        "metadata": { "name": name, "labels": { "app": name } },
        "spec": { "containers": [{ "name": "main", "image": "app:1" }] },
    })
}

pub fn bound_pod(name: &str, node: &str) -> Value {
    let mut pod = pod(name);
    pod["spec"]["nodeName"] = node.into();
    pod
}

/// The definition of a small custom resource with a status.
pub fn widget_definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.example.com" },
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": { "plural": "widgets", "kind": "Widget", "shortNames": ["wd"] },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "selectableFields": [{ "jsonPath": ".spec.color" }],
                "subresources": {
                    "status": {},
                    "scale": { "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size" },
                },
                "schema": { "openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "spec": {
                            "type": "object",
                            "required": ["size"],
                            "properties": {
                                "size": { "type": "integer", "minimum": 0, "maximum": 10 },
                                "color": { "type": "string", "default": "red" },
                            },
                        },
                        "status": {
                            "type": "object",
                            "properties": { "size": { "type": "integer" }, "phase": { "type": "string" } },
                        },
                    },
                } },
            }],
        },
    })
}

pub const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

pub fn widget(name: &str, size: i64) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": { "name": name }, "spec": { "size": size },
    })
}

/// A watch that is read line by line.
pub struct Watch {
    body: kube_mem::Body,
    buffer: Vec<u8>,
}

pub fn watch(server: &ApiServer, uri: &str) -> Watch {
    let request = http::Request::builder()
        .uri(uri)
        .body(Bytes::new())
        .expect("the request is well formed");
    Watch::of(server.handle(request))
}

impl Watch {
    /// Reads an answer that has to be a watch.
    pub fn of(response: http::Response<kube_mem::Body>) -> Self {
        assert_eq!(response.status(), 200);
        Self {
            body: response.into_body(),
            buffer: Vec::new(),
        }
    }

    /// The next event, or nothing once the watch has ended.
    pub async fn next(&mut self) -> Option<Value> {
        use http_body_util::BodyExt;
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).expect("a line is an event"));
            }
            let frame = self.body.frame().await?.expect("bodies of this server do not fail");
            self.buffer.extend_from_slice(&frame.into_data().expect("a data frame"));
        }
    }

    /// The next event as `TYPE name`.
    pub async fn told(&mut self) -> String {
        let event = self.next().await.expect("the watch goes on");
        let name = event["object"]["metadata"]["name"].as_str().unwrap_or_default();
        format!("{} {name}", event["type"].as_str().unwrap_or_default())
            .trim_end()
            .to_owned()
    }

    /// True if nothing is waiting to be read. Virtual time passes while we look.
    pub async fn is_quiet(&mut self) -> bool {
        tokio::time::timeout(std::time::Duration::from_millis(1), self.next())
            .await
            .is_err()
    }
}
