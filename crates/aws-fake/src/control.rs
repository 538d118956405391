//! The control page, `/_fake/…` on the same port: what happened, and what is to happen next.
//!
//! `docs/aws-fake.md` has the reference. Every POST is one [`Command`]; a script is a list of the same.

mod command;
mod orders;
mod views;

use axum::{
    body::{Body, Bytes},
    http::{Method, Response, StatusCode, header},
};
use serde_json::{Value, json};

pub use self::command::{Command, CommandError};
use crate::fake::Fake;

pub(crate) fn answer(fake: &Fake, method: &Method, path: &str, query: &str, body: &Bytes) -> Response<Body> {
    let (status, value) = match *method {
        Method::GET => shown(fake, path, query),
        Method::DELETE if path == "calls" => {
            fake.with(|state, _| state.record.clear());
            (StatusCode::OK, json!({}))
        }
        Method::POST => ordered(fake, path, body),
        _ => (
            StatusCode::METHOD_NOT_ALLOWED,
            json!({"error": "GET, POST, or DELETE of calls"}),
        ),
    };
    let mut response = Response::new(Body::from(value.to_string()));
    *response.status_mut() = status;
    let json = header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

fn shown(fake: &Fake, path: &str, query: &str) -> (StatusCode, Value) {
    let view = fake.with(|state, now| match path {
        "calls" => Some(views::calls(state, query)),
        "instances" => Some(views::instances(&state.region, now)),
        "region" => Some(views::region(&state.region)),
        "health" => Some(json!({"status": "ok"})),
        _ => None,
    });
    match view {
        Some(view) => (StatusCode::OK, view),
        None => (
            StatusCode::NOT_FOUND,
            json!({"error": format!("there is no page {path}")}),
        ),
    }
}

fn ordered(fake: &Fake, path: &str, body: &Bytes) -> (StatusCode, Value) {
    let outcome = Command::parse(path, body).and_then(|command| fake.with(|state, now| command.carry_out(state, now)));
    match outcome {
        Ok(made) => (StatusCode::OK, made),
        Err(error) => (StatusCode::BAD_REQUEST, json!({"error": error.to_string()})),
    }
}
