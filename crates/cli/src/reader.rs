//! What the tools for operators ask of a cluster: whole lists, and who may do what.
//!
//! [`Reader`] is the port; a kube client stands behind it. Objects stay as they are written, because these tools also look
//! at objects of other programs and of other releases, which need not have the fields that we know.

use async_trait::async_trait;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::{
    Api, Client,
    api::{DynamicObject, ListParams, PostParams},
    discovery::ApiResource,
};
use serde_json::Value;

/// Large enough to be few requests, small enough for any proxy on the way.
const PAGE: u32 = 500;

/// Objects of one kind, all of them or those with a label or a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    pub group: &'static str,
    pub version: &'static str,
    pub kind: &'static str,
    pub plural: &'static str,
    pub labels: &'static str,
    pub fields: &'static str,
}

impl Kind {
    pub const fn new(group: &'static str, version: &'static str, kind: &'static str, plural: &'static str) -> Self {
        Self {
            group,
            version,
            kind,
            plural,
            labels: "",
            fields: "",
        }
    }

    pub const fn labelled(self, labels: &'static str) -> Self {
        Self { labels, ..self }
    }

    pub const fn selected(self, fields: &'static str) -> Self {
        Self { fields, ..self }
    }

    pub fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    #[error("the cluster does not have this kind")]
    Absent,
    #[error("not allowed: {0}")]
    Forbidden(String),
    #[error("{0}")]
    Failed(String),
}

/// Something that somebody may or may not do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    pub group: String,
    /// With its subresource: `pods/eviction`.
    pub resource: String,
    pub verb: String,
    pub namespace: Option<String>,
    pub name: Option<String>,
}

#[async_trait]
pub trait Reader: Sync {
    /// All objects of a kind, as they are stored.
    async fn list(&self, kind: &Kind) -> Result<Vec<Value>, Unread>;

    /// Whether a user may do this.
    async fn may(&self, user: &str, right: &Right) -> Result<bool, Unread>;

    /// The version of the API server, as it calls itself.
    async fn version(&self) -> Result<String, Unread>;
}

#[async_trait]
impl Reader for Client {
    async fn list(&self, kind: &Kind) -> Result<Vec<Value>, Unread> {
        let resource = ApiResource {
            group: kind.group.to_owned(),
            version: kind.version.to_owned(),
            api_version: kind.api_version(),
            kind: kind.kind.to_owned(),
            plural: kind.plural.to_owned(),
        };
        let api: Api<DynamicObject> = Api::all_with(self.clone(), &resource);
        let mut params = ListParams::default().limit(PAGE);
        if !kind.labels.is_empty() {
            params = params.labels(kind.labels);
        }
        if !kind.fields.is_empty() {
            params = params.fields(kind.fields);
        }
        let mut objects = Vec::new();
        loop {
            let page = api.list(&params).await.map_err(unread)?;
            for item in page.items {
                let mut object = serde_json::to_value(item).map_err(|error| Unread::Failed(error.to_string()))?;
                // Items of a list need not repeat what they are.
                object["apiVersion"] = Value::from(kind.api_version());
                object["kind"] = Value::from(kind.kind);
                objects.push(object);
            }
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params.continue_token = Some(token),
                None => return Ok(objects),
            }
        }
    }

    async fn may(&self, user: &str, right: &Right) -> Result<bool, Unread> {
        let (resource, subresource) = match right.resource.split_once('/') {
            Some((resource, subresource)) => (resource.to_owned(), Some(subresource.to_owned())),
            None => (right.resource.clone(), None),
        };
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: Some(user.to_owned()),
                resource_attributes: Some(ResourceAttributes {
                    group: Some(right.group.clone()),
                    resource: Some(resource),
                    subresource,
                    verb: Some(right.verb.clone()),
                    namespace: right.namespace.clone(),
                    name: right.name.clone(),
                    ..ResourceAttributes::default()
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let api: Api<SubjectAccessReview> = Api::all(self.clone());
        let answer = api.create(&PostParams::default(), &review).await.map_err(unread)?;
        let status = answer
            .status
            .ok_or_else(|| Unread::Failed("the API server does not judge".to_owned()))?;
        Ok(status.allowed)
    }

    async fn version(&self) -> Result<String, Unread> {
        let info = self.apiserver_version().await.map_err(unread)?;
        Ok(info.git_version)
    }
}

fn unread(error: kube::Error) -> Unread {
    match error {
        kube::Error::Api(status) if status.code == 404 => Unread::Absent,
        kube::Error::Api(status) if status.code == 403 => Unread::Forbidden(status.message),
        error => Unread::Failed(error.to_string()),
    }
}
