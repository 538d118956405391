//! How people are told that a lease can be neither seen nor taken, and what helps.

use crate::startup::told;

/// `what` was to be done: `read`, `written`.
pub(super) fn trouble(lease: &str, what: &str, error: &kube::Error) -> String {
    let facts = format!("lease {lease} cannot be {what}: {}", told(error));
    match hint(error) {
        Some(hint) => format!("{facts}; hint: {hint}"),
        None => facts,
    }
}

/// Only for what the error itself shows. A server that is not there is no matter of rights.
fn hint(error: &kube::Error) -> Option<&'static str> {
    let kube::Error::Api(status) = error else { return None };
    let is_about_namespace = status
        .details
        .as_ref()
        .is_some_and(|details| details.kind == "namespaces");
    match status.code {
        403 => Some("the role of the controller's account has to allow leases in this namespace"),
        404 if is_about_namespace => Some("create the namespace, or name another with --leader-election-namespace"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(code: u16, message: &str, kind: &str, expected: &str) {
        let status = json!({"code": code, "message": message, "details": {"kind": kind}});
        let status = serde_json::from_value(status).expect("a status");
        assert_eq!(trouble("l", "written", &kube::Error::Api(status)), expected);
    }

    #[test]
    fn a_hint_is_given_only_where_it_helps() {
        check(
            403,
            "leases is forbidden",
            "leases",
            "lease l cannot be written: leases is forbidden; hint: the role of the controller's account has to allow leases \
             in this namespace",
        );
        check(
            404,
            "namespaces \"n\" not found",
            "namespaces",
            "lease l cannot be written: namespaces \"n\" not found; hint: create the namespace, or name another \
             with --leader-election-namespace",
        );
        check(
            404,
            "leases \"l\" not found",
            "leases",
            "lease l cannot be written: leases \"l\" not found",
        );
        check(500, "etcd is down", "", "lease l cannot be written: etcd is down");
        let refused = kube::Error::Service("connection refused".into());
        assert!(!trouble("l", "read", &refused).contains("hint"));
    }
}
