//! What a watch saw of a story, on both servers.

use http_body_util::BodyExt;
use kube::Client;
use serde_json::{Value, json};

use super::answer::Answer;

/// A collection by its API and plural name, and an object whose appearance ends the watch.
type Watched = (&'static str, &'static str, fn() -> Value);

pub const WATCHED: [Watched; 3] = [
    ("/api/v1", "configmaps", || json!({"metadata": {"name": "end"}})),
    (
        "/apis/coordination.k8s.io/v1",
        "leases",
        || json!({"metadata": {"name": "end"}}),
    ),
    (
        "/apis/example.com/v1",
        "widgets",
        || json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "end"}, "spec": {"size": "S"}}),
    ),
];

/// The events from `version` on, up to the one about the object named `end`.
pub async fn events(client: &Client, collection: &str, version: &str) -> Answer {
    let path = format!("{collection}?watch=true&resourceVersion={version}");
    let request = http::Request::get(path)
        .body(kube::client::Body::empty())
        .expect("the request is well formed");
    let response = client.send(request).await.expect("the server answers");
    let code = response.status().as_u16();
    let mut body = response.into_body();
    let (mut seen, mut rest) = (Vec::new(), Vec::new());
    while let Some(frame) = body.frame().await {
        rest.extend_from_slice(
            frame
                .expect("the watch goes on")
                .data_ref()
                .map_or(&[][..], |data| &data[..]),
        );
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            let event: Value = serde_json::from_slice(&line).expect("an event is a line of JSON");
            let is_last = event["object"]["metadata"]["name"] == "end";
            seen.push(event);
            if is_last {
                return Answer {
                    code,
                    warnings: Vec::new(),
                    body: seen.into(),
                };
            }
        }
    }
    Answer {
        code,
        warnings: Vec::new(),
        body: seen.into(),
    }
}
