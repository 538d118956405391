//! The two servers side by side.

use http::Method;
use kube::Client;
use kube_mem::ApiServer;
use serde_json::{Value, json};
use testkit::{ControlPlane, Parts};

use super::answer::{Answer, difference};
use super::objects;
use super::steps::{Body, Step, Story};
use super::watched::{WATCHED, events};

pub struct Pair {
    real: Client,
    memory: Client,
    _control_plane: ControlPlane,
}

/// A request as it goes to one of the servers.
struct Call {
    method: Method,
    path: String,
    content_type: &'static str,
    body: Vec<u8>,
}

impl Pair {
    /// Both servers, with the definition of the custom resource that the stories use.
    pub async fn start() -> Pair {
        let control_plane = ControlPlane::start(Parts::ApiServer)
            .await
            .expect("the real server starts");
        let real = control_plane.client().await.expect("the real server has a client");
        let memory = ApiServer::builder().build().client();
        let pair = Pair {
            real,
            memory,
            _control_plane: control_plane,
        };
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        for client in [&pair.real, &pair.memory] {
            let made = call(client, Call::post(definitions, &objects::widget_definition())).await;
            assert_eq!(made.code, 201, "{}", made.body);
            // The real server takes a moment to serve a new resource; each question is a round trip, so this is no
            // busy loop.
            while call(client, Call::get("/apis/example.com/v1/widgets")).await.code == 404 {}
        }
        pair
    }

    /// A namespace for a story, with the account that pods run under.
    pub async fn prepare(&self, namespace: &str) {
        for client in [&self.real, &self.memory] {
            let made = call(
                client,
                Call::post("/api/v1/namespaces", &json!({"metadata": {"name": namespace}})),
            )
            .await;
            assert_eq!(made.code, 201, "{}", made.body);
            // Without a controller manager nobody makes the account.
            let account = json!({"metadata": {"name": "default"}});
            call(
                client,
                Call::post(&format!("/api/v1/namespaces/{namespace}/serviceaccounts"), &account),
            )
            .await;
        }
    }

    /// Takes a step on both servers and tells how the answers differ.
    pub async fn compare(&self, story: &mut Story, step: &Step) -> Option<String> {
        let real = self.take(&self.real, step).await;
        let memory = self.take(&self.memory, step).await;
        story.learn(step, &memory);
        difference(&real, &memory)
    }

    /// Where the watched collections of a namespace stand, on both servers.
    pub async fn versions(&self, namespace: &str) -> Vec<[String; 2]> {
        let mut versions = Vec::new();
        for (api, plural, _) in WATCHED {
            let path = format!("{api}/namespaces/{namespace}/{plural}");
            let mut at = [String::new(), String::new()];
            for (client, version) in [&self.real, &self.memory].into_iter().zip(&mut at) {
                let list = call(client, Call::get(&path)).await.body;
                *version = list["metadata"]["resourceVersion"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned();
            }
            versions.push(at);
        }
        versions
    }

    /// How what the watches saw since `versions` differs.
    pub async fn compare_watches(&self, namespace: &str, versions: &[[String; 2]]) -> Option<String> {
        for ((api, plural, end), [real, memory]) in WATCHED.into_iter().zip(versions) {
            let path = format!("{api}/namespaces/{namespace}/{plural}");
            let mut seen = Vec::new();
            for (client, version) in [(&self.real, real), (&self.memory, memory)] {
                let made = call(client, Call::post(&path, &end())).await;
                assert_eq!(made.code, 201, "{}", made.body);
                seen.push(events(client, &path, version).await);
            }
            if let Some(difference) = difference(&seen[0], &seen[1]) {
                return Some(format!("watch {path}\n{difference}"));
            }
        }
        None
    }

    async fn take(&self, client: &Client, step: &Step) -> Answer {
        let body = match &step.body {
            Body::None => Vec::new(),
            Body::Json(value) => value.to_string().into_bytes(),
            Body::Raw(text) => text.clone().into_bytes(),
            // What is there now, as this server says, changed.
            Body::Changed {
                path,
                otherwise,
                change,
            } => {
                let found = call(client, Call::get(path)).await;
                let mut current = if found.code == 200 {
                    found.body
                } else {
                    otherwise.clone()
                };
                change(&mut current);
                current.to_string().into_bytes()
            }
        };
        let request = Call {
            method: step.method.clone(),
            path: step.path.clone(),
            content_type: step.content_type,
            body,
        };
        call(client, request).await
    }
}

impl Call {
    fn get(path: &str) -> Call {
        Call {
            method: Method::GET,
            path: path.into(),
            content_type: "",
            body: Vec::new(),
        }
    }

    fn post(path: &str, body: &Value) -> Call {
        let body = body.to_string().into_bytes();
        Call {
            method: Method::POST,
            path: path.into(),
            content_type: "application/json",
            body,
        }
    }
}

async fn call(client: &Client, call: Call) -> Answer {
    let mut request = http::Request::builder()
        .method(call.method)
        .uri(&call.path)
        .header("user-agent", "story/1.0");
    if !call.content_type.is_empty() {
        request = request.header("content-type", call.content_type);
    }
    let request = request
        .body(kube::client::Body::from(call.body))
        .expect("the request is well formed");
    let response = client.send(request).await.expect("the server answers");
    let code = response.status().as_u16();
    let mut warnings: Vec<String> = response
        .headers()
        .get_all("warning")
        .iter()
        .filter_map(|warning| warning.to_str().ok())
        .map(str::to_owned)
        .collect();
    warnings.sort();
    let bytes = response.into_body().collect_bytes().await.expect("the answer ends");
    let body =
        serde_json::from_slice(&bytes).unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
    Answer { code, warnings, body }
}
