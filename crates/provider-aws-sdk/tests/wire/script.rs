//! A server on loopback that answers by a script and keeps what it was asked.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt::Write,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use aws_config::{BehaviorVersion, Region, SdkConfig, retry::RetryConfig};
use aws_credential_types::{Credentials, provider::SharedCredentialsProvider};
use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, Method, StatusCode, Uri},
    response::{IntoResponse, Response},
};
use expect_test::Expect;
use provider_aws::ports::Aws;
use provider_aws_sdk::{Connected, Connection};
use serde_json::Value;

pub const REGION: &str = "us-west-2";

/// What the server says next.
#[derive(Clone, Debug)]
pub enum Answer {
    Text {
        status: u16,
        kind: &'static str,
        body: String,
    },
    /// It takes the request and says nothing.
    Silence,
}

/// An answer of EC2 to `action`.
pub fn ec2(action: &str, content: &str) -> Answer {
    xml(
        200,
        format!(
            "<{action}Response xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\"><requestId>r-1</requestId>{content}</{action}Response>"
        ),
    )
}

/// A refusal of EC2.
pub fn ec2_error(status: u16, code: &str, message: &str) -> Answer {
    xml(
        status,
        format!(
            "<Response><Errors><Error><Code>{code}</Code><Message>{message}</Message></Error></Errors><RequestID>r-1</RequestID></Response>"
        ),
    )
}

/// An answer of IAM to `action`.
pub fn iam(action: &str, content: &str) -> Answer {
    xml(
        200,
        format!(
            "<{action}Response xmlns=\"https://iam.amazonaws.com/doc/2010-05-08/\"><{action}Result>{content}</{action}Result>\
             <ResponseMetadata><RequestId>r-1</RequestId></ResponseMetadata></{action}Response>"
        ),
    )
}

/// A refusal of IAM.
pub fn iam_error(status: u16, code: &str, message: &str) -> Answer {
    xml(
        status,
        format!(
            "<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error><RequestId>r-1</RequestId></ErrorResponse>"
        ),
    )
}

fn xml(status: u16, body: String) -> Answer {
    Answer::Text {
        status,
        kind: "text/xml;charset=UTF-8",
        body,
    }
}

/// An answer of the services that speak JSON.
pub fn json(status: u16, body: &Value) -> Answer {
    Answer::Text {
        status,
        kind: "application/x-amz-json-1.1",
        body: body.to_string(),
    }
}

/// One request that came in.
#[derive(Clone, Debug)]
pub struct Seen {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: String,
}

impl Seen {
    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }

    /// Region and service that the request is signed for.
    pub fn scope(&self) -> String {
        let credential = self.header("authorization").split_once("Credential=");
        let scope = credential.map_or("", |(_, rest)| rest.split(',').next().unwrap_or_default());
        let parts: Vec<&str> = scope.split('/').collect();
        match parts.as_slice() {
            [_, _, region, service, _] => format!("{region}/{service}"),
            _ => "unsigned".to_owned(),
        }
    }

    /// The fields of a form, without the version of the API, which is always the same.
    pub fn form(&self) -> BTreeMap<String, String> {
        let fields = form_urlencoded::parse(self.body.as_bytes()).into_owned();
        fields.filter(|(name, _)| name != "Version").collect()
    }

    /// One line for what is asked, one for each field of it.
    fn render(&self) -> String {
        let mut text = String::new();
        let target = self.header("x-amz-target");
        if !target.is_empty() {
            let body: Value = serde_json::from_str(&self.body).expect("a JSON body");
            writeln!(text, "{} {target}\n{body:#}", self.scope()).expect("writing to a string succeeds");
        } else if self.body.is_empty() {
            writeln!(text, "{} {} {}", self.scope(), self.method, self.uri).expect("writing to a string succeeds");
        } else {
            let mut fields = self.form();
            let action = fields.remove("Action").unwrap_or_default();
            writeln!(text, "{} {action}", self.scope()).expect("writing to a string succeeds");
            for (name, value) in fields {
                writeln!(text, "  {name}={}", without_made_tokens(&name, value)).expect("writing to a string succeeds");
            }
        }
        text
    }
}

/// Tokens that the SDK makes up are different each time; ours are short.
fn without_made_tokens(name: &str, value: String) -> String {
    if name == "ClientToken" && value.len() == 36 {
        "<made by the SDK>".to_owned()
    } else {
        value
    }
}

#[derive(Default)]
struct Play {
    answers: Mutex<VecDeque<Answer>>,
    seen: Mutex<Vec<Seen>>,
}

/// The server, and the ports that lead to it.
pub struct Script {
    play: Arc<Play>,
    pub endpoint: String,
    pub connected: Connected,
}

impl Script {
    /// Answers requests in this order, and whatever comes after the last with an error.
    pub async fn of(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self::with(answers, &Connection::default()).await
    }

    pub async fn with(answers: impl IntoIterator<Item = Answer>, connection: &Connection) -> Self {
        let play = Arc::new(Play {
            answers: Mutex::new(answers.into_iter().collect()),
            ..Play::default()
        });
        let endpoint = serve(play.clone()).await;
        let connected = provider_aws_sdk::over(&config(&endpoint), connection).expect("a region and a good version");
        Self {
            play,
            endpoint,
            connected,
        }
    }

    pub fn aws(&self) -> &Aws {
        &self.connected.aws
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.play.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Compares what was asked, and makes sure that the script was played to its end.
    #[track_caller]
    pub fn check(&self, expected: &Expect) {
        let left = self.play.answers.lock().unwrap_or_else(PoisonError::into_inner).len();
        assert_eq!(left, 0, "answers that nobody asked for");
        let requests: Vec<String> = self.seen().iter().map(Seen::render).collect();
        expected.assert_eq(&requests.join("\n"));
    }
}

async fn serve(play: Arc<Play>) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("a bound socket has an address");
    let router = Router::new().fallback(answer).with_state(play);
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

async fn answer(State(play): State<Arc<Play>>, method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let seen = Seen {
        method,
        uri,
        headers,
        body: String::from_utf8_lossy(&body).into_owned(),
    };
    play.seen.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
    let next = play.answers.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    match next {
        Some(Answer::Text { status, kind, body }) => {
            let status = StatusCode::from_u16(status).expect("a scripted status is one");
            (status, [("content-type", kind)], body).into_response()
        }
        Some(Answer::Silence) => std::future::pending().await,
        None => (StatusCode::GONE, "the script is over").into_response(),
    }
}

fn config(endpoint: &str) -> SdkConfig {
    let credentials = Credentials::new("key", "secret", None, None, "test");
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new(REGION))
        .endpoint_url(endpoint)
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .http_client(provider_aws_sdk::http_client())
        .retry_config(RetryConfig::standard().with_initial_backoff(Duration::from_millis(1)))
        .build()
}
