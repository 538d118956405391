//! The routes that profilers look for, behind `--enable-profiling`.
//!
//! Tools written for Go ask for them by name. What this program cannot answer is refused with a word on what to use
//! instead, rather than with a 404 that looks like a wrong address.

use axum::{Router, extract::Path, http::StatusCode, response::IntoResponse, routing::get};

const INDEX: &str = "/debug/pprof/\n\ncmdline: the arguments of this process\n\
    profile, heap, allocs, block, goroutine, symbol, threadcreate, trace: not in this build, each says what to use\n";

/// Where else the answer is found.
fn instead(route: &str) -> Option<&'static str> {
    match route {
        "profile" => Some("processor time is sampled from outside: perf record -g -p <pid>"),
        "heap" | "allocs" => {
            Some("memory is watched by process_resident_memory_bytes, or from outside by heaptrack -p <pid>")
        }
        "goroutine" => Some("tasks are in workqueue_unfinished_work_seconds and controller_runtime_active_workers"),
        "trace" => Some("what happens is in the log at --log-level=debug"),
        "block" | "mutex" | "threadcreate" | "symbol" => {
            Some("this is about Go's runtime, which this program does not have")
        }
        _ => None,
    }
}

pub fn routes() -> Router {
    Router::new()
        .route("/debug/pprof/", get(|| async { INDEX }))
        .route("/debug/pprof/{route}", get(route))
}

async fn route(Path(route): Path<String>) -> impl IntoResponse {
    if route == "cmdline" {
        let arguments: Vec<String> = std::env::args().collect();
        return (StatusCode::OK, arguments.join("\0"));
    }
    match instead(&route) {
        Some(hint) => (
            StatusCode::NOT_IMPLEMENTED,
            format!("{route} is not served by this build; hint: {hint}\n"),
        ),
        None => (StatusCode::NOT_FOUND, format!("there is no profile {route:?}\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_cannot_be_answered_is_refused_with_a_hint() {
        let answer = |name: &str| route(Path(name.to_owned()));
        let status = |answer: axum::response::Response| answer.status();
        assert_eq!(status(answer("cmdline").await.into_response()), StatusCode::OK);
        assert_eq!(
            status(answer("heap").await.into_response()),
            StatusCode::NOT_IMPLEMENTED
        );
        assert_eq!(status(answer("nonsense").await.into_response()), StatusCode::NOT_FOUND);
    }
}
