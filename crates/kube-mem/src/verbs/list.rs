//! Lists: at which version, which page, which objects.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::Reply;
use crate::cluster::Cluster;
use crate::complaint;
use crate::encode::Encoder;
use crate::failure::Failure;
use crate::request::Request;
use crate::schema::FieldError;
use crate::selector::{FieldSelector, LabelSelector, Selector};
use crate::store::{Collection, Object, range};
use crate::watch::Scope;

const TOO_OLD: &str = "The resourceVersion for the provided list is too old.";
const TOKEN_TOO_OLD: &str = "The provided continue parameter is too old to display a consistent list result. You can \
     start a new list without the continue parameter, or use the continue token in this response to retrieve the \
     remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were \
     created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/// Which objects the request is about.
pub(super) fn scope(request: &Request) -> Result<Scope, Failure> {
    let labels = LabelSelector::parse(request.query.get("labelSelector")).map_err(Failure::bad_request)?;
    let fields = FieldSelector::parse(request.query.get("fieldSelector"), &request.ty).map_err(Failure::bad_request)?;
    Ok(Scope {
        namespace: request.namespace.clone(),
        selector: Selector { labels, fields },
    })
}

/// The parameter `resourceVersion`; absent, empty and `0` give nothing, for all three are content with any version.
pub(super) fn version(request: &Request) -> Result<Option<u64>, Failure> {
    match request.query.get("resourceVersion") {
        "" | "0" => Ok(None),
        text => text.parse().map(Some).map_err(|_| {
            Failure::bad_request(format!(
                "invalid resource version: resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax"
            ))
        }),
    }
}

/// Where the next page begins, and at which version the first one was read.
struct Continue {
    revision: Option<u64>,
    after: String,
}

impl Continue {
    /// Keys in a token are relative to the place that is listed.
    fn parse(token: &str, namespace: &str) -> Result<Option<Self>, Failure> {
        if token.is_empty() {
            return Ok(None);
        }
        let invalid =
            |cause: &str| Failure::bad_request(format!("invalid continue token: continue key is not valid: {cause}"));
        let bytes = URL_SAFE_NO_PAD
            .decode(token.trim_end_matches('='))
            .map_err(|cause| invalid(&cause.to_string()))?;
        let token: Value = serde_json::from_slice(&bytes).map_err(|cause| invalid(&cause.to_string()))?;
        if token["v"] != "meta.k8s.io/v1" {
            return Err(invalid("server does not recognize this encoded version"));
        }
        let start = token["start"].as_str().unwrap_or_default();
        if start.is_empty() {
            return Err(invalid("encoded start key empty (version meta.k8s.io/v1)"));
        }
        let revision = token["rv"].as_i64().and_then(|revision| u64::try_from(revision).ok());
        Ok(Some(Self {
            revision,
            after: format!("{namespace}{}", start.trim_end_matches('\0')),
        }))
    }

    fn token(revision: i64, after: &str, namespace: &str) -> String {
        let start = json!(format!("{}\0", after.strip_prefix(namespace).unwrap_or(after)));
        URL_SAFE_NO_PAD.encode(format!(
            "{{\"v\":\"meta.k8s.io/v1\",\"rv\":{revision},\"start\":{start}}}"
        ))
    }
}

/// The state that a list reads.
struct Reading {
    revision: u64,
    /// Only for a version that is not the present one.
    exact: bool,
}

impl Cluster {
    pub(super) fn list(&self, request: &Request) -> Result<Reply, Failure> {
        let scope = scope(request)?;
        let limit = request
            .query
            .number("limit")?
            .and_then(|limit| usize::try_from(limit).ok())
            .unwrap_or(0);
        let token = Continue::parse(request.query.get("continue"), &request.namespace)?;
        let reading = self.reading(request, limit, token.as_ref())?;
        let after = token.as_ref().map(|token| token.after.as_str());
        let page = match self.store.collection(&request.ty.collection) {
            Some(collection) => read(collection, &reading, &scope, after, limit, token.is_some())?,
            None => Page::default(),
        };
        let mut metadata = json!({ "resourceVersion": reading.revision.to_string() });
        if request.ty.custom.is_some() {
            metadata["continue"] = "".into();
        }
        if let Some(last) = &page.more_after {
            let revision = i64::try_from(reading.revision).unwrap_or(-1);
            metadata["continue"] = Continue::token(revision, last, &request.namespace).into();
            // The number of objects that match a selector is not known without reading them all.
            if scope.selector.is_everything() {
                metadata["remainingItemCount"] = page.remaining.into();
            }
        }
        let bytes = Encoder::of(request)?.list(&page.objects, &metadata, self.now);
        Ok(Reply::Bytes {
            code: 200,
            bytes,
            warnings: Vec::new(),
        })
    }

    /// At which version to read.
    ///
    /// *Errors*: 422 for parameters that contradict each other, 504 for a version that is not reached.
    fn reading(&self, request: &Request, limit: usize, token: Option<&Continue>) -> Result<Reading, Failure> {
        let rule = request.query.get("resourceVersionMatch");
        let given = request.query.get("resourceVersion");
        let errors = contradictions(rule, given, token.is_some(), request.query.get("sendInitialEvents"));
        if !errors.is_empty() {
            return Err(Failure::invalid_kind("meta.k8s.io", "ListOptions", "", &errors));
        }
        let current = self.store.revision();
        if let Some(token) = token {
            if !given.is_empty() && given != "0" {
                return Err(Failure::bad_request(
                    "specifying resource version is not allowed when using continue",
                ));
            }
            let revision = token.revision.unwrap_or(current);
            return Ok(Reading {
                revision,
                exact: token.revision.is_some(),
            });
        }
        let Some(asked) = version(request)? else {
            return Ok(Reading {
                revision: current,
                exact: false,
            });
        };
        if asked > current {
            return Err(Failure::too_large_version(asked, current));
        }
        // Without a rule, a version means "not older than", except on a first page, which has always been exact.
        let exact = rule == "Exact" || (rule.is_empty() && limit > 0);
        Ok(Reading {
            revision: if exact { asked } else { current },
            exact,
        })
    }
}

#[derive(Default)]
struct Page {
    objects: Vec<Arc<Object>>,
    /// The key after which the next page begins, if there is one.
    more_after: Option<Arc<str>>,
    remaining: usize,
}

fn read(
    collection: &Collection,
    reading: &Reading,
    scope: &Scope,
    after: Option<&str>,
    limit: usize,
    continued: bool,
) -> Result<Page, Failure> {
    if !reading.exact || collection.unchanged_since(reading.revision) {
        return Ok(page(collection.range(&scope.namespace, after), scope, limit));
    }
    let objects = collection.at(reading.revision).map_err(|_| match (continued, after) {
        (true, Some(after)) => {
            let mut failure = Failure::expired(TOKEN_TOO_OLD);
            failure.continue_token = Some(Continue::token(-1, after, &scope.namespace));
            failure
        }
        _ => Failure::expired(TOO_OLD),
    })?;
    Ok(page(range(&objects, &scope.namespace, after), scope, limit))
}

fn page<'a>(objects: impl Iterator<Item = (&'a Arc<str>, &'a Arc<Object>)>, scope: &Scope, limit: usize) -> Page {
    let mut page = Page::default();
    let everything = scope.selector.is_everything();
    let mut matching = objects.filter(|(_, object)| everything || scope.selector.matches(&object.value));
    let mut last: Option<&Arc<str>> = None;
    for (key, object) in matching.by_ref() {
        if limit > 0 && page.objects.len() == limit {
            page.more_after = last.cloned();
            page.remaining = 1 + if everything { matching.count() } else { 0 };
            break;
        }
        page.objects.push(object.clone());
        last = Some(key);
    }
    page
}

fn contradictions(rule: &str, given: &str, continued: bool, initial_events: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let forbidden = |detail| complaint::forbidden("resourceVersionMatch", detail);
    if !rule.is_empty() {
        if given.is_empty() {
            errors.push(forbidden(
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            ));
        }
        if continued {
            errors.push(forbidden("resourceVersionMatch is forbidden when continue is provided"));
        }
        if rule != "Exact" && rule != "NotOlderThan" {
            let supported = ["Exact", "NotOlderThan", ""];
            errors.push(complaint::not_supported(
                "resourceVersionMatch",
                &rule.into(),
                &supported,
            ));
        }
        if rule == "Exact" && given == "0" {
            errors.push(forbidden(
                "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
            ));
        }
    }
    if !initial_events.is_empty() {
        let detail = "sendInitialEvents is forbidden for list";
        errors.push(complaint::forbidden("sendInitialEvents", detail));
    }
    errors
}
