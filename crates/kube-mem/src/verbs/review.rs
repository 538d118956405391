//! Requests that are answered and not stored: who am I, may I, and tokens. The answer to "may I" is always yes.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{Reply, decode};
use crate::cluster::Cluster;
use crate::failure::Failure;
use crate::meta;
use crate::registry::ResourceType;
use crate::request::Request;

const USER: &str = "kubernetes-admin";
const GROUPS: [&str; 2] = ["system:masters", "system:authenticated"];

pub(super) fn is_review(ty: &ResourceType) -> bool {
    matches!(ty.group.as_str(), "authorization.k8s.io" | "authentication.k8s.io")
}

impl Cluster {
    pub(super) fn review(&mut self, request: &Request) -> Result<Reply, Failure> {
        let mut review = decode::object(request, &self.registry)?;
        review["status"] = match request.ty.kind.as_str() {
            "SelfSubjectRulesReview" => json!({
                "incomplete": false,
                "nonResourceRules": [{ "nonResourceURLs": ["*"], "verbs": ["*"] }],
                "resourceRules": [{ "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] }],
            }),
            "SelfSubjectReview" => json!({ "userInfo": { "username": USER, "groups": GROUPS } }),
            "TokenReview" => json!({
                "authenticated": true,
                "user": { "username": USER, "groups": GROUPS },
                "audiences": review["spec"]["audiences"],
            }),
            _ => json!({ "allowed": true }),
        };
        if request.ty.kind == "SelfSubjectReview" {
            meta::metadata_mut(&mut review).insert("creationTimestamp".to_owned(), self.stamp().into());
        }
        Ok(Reply::value(201, &review))
    }

    /// A token that nothing checks; it names its owner so that a reader of a dump can tell.
    pub(super) fn issue_token(&mut self, request: &Request) -> Result<Reply, Failure> {
        self.existing(request)?;
        let mut asked = decode::body(request)?;
        let seconds = asked["spec"]["expirationSeconds"].as_i64().unwrap_or(3600);
        let expires = self.now + SignedDuration::from_secs(seconds);
        asked["kind"] = "TokenRequest".into();
        asked["apiVersion"] = "authentication.k8s.io/v1".into();
        asked["spec"]["expirationSeconds"] = seconds.into();
        asked["status"] = json!({
            "token": format!("{}.{}.{}", request.namespace, request.name, self.ids.uid()),
            "expirationTimestamp": meta::stamp(expires),
        });
        let metadata = meta::metadata_mut(&mut asked);
        metadata.insert("name".to_owned(), Value::from(request.name.as_str()));
        metadata.insert("namespace".to_owned(), Value::from(request.namespace.as_str()));
        Ok(Reply::value(201, &asked))
    }
}
