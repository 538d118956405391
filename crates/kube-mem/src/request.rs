//! From an HTTP request to what is asked: which resource, which object, which verb, with which options.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use http::request::Parts;

use crate::failure::Failure;
use crate::registry::{Registry, ResourceType};

/// A request for a resource.
#[derive(Debug)]
pub(crate) struct Request {
    pub ty: Arc<ResourceType>,
    /// Empty for cluster-wide resources and for lists over all namespaces.
    pub namespace: String,
    /// Empty for the collection.
    pub name: String,
    /// Empty for the object itself.
    pub subresource: String,
    pub method: Method,
    pub query: Query,
    pub accept: String,
    pub content_type: String,
    pub user_agent: String,
    pub body: Bytes,
}

impl Request {
    /// Reads a path below `/api` or `/apis`.
    ///
    /// *Errors*: 404 for a resource that the registry does not have.
    pub(crate) fn parse(parts: &Parts, body: Bytes, registry: &Registry) -> Result<Self, Failure> {
        let segments = segments(parts.uri.path());
        let words: Vec<&str> = segments.iter().map(String::as_str).collect();
        let (group, version, rest) = match words.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return Err(Failure::unknown_resource()),
        };
        let found = |plural: &str| {
            registry
                .find(group, version, plural)
                .cloned()
                .ok_or_else(Failure::unknown_resource)
        };
        let (namespace, ty, rest) = match rest {
            // Below a namespace lie its own subresources and the namespaced resources.
            ["namespaces", namespace, plural, rest @ ..] if !is_namespace_subresource(group, plural) => {
                let ty = found(plural)?;
                if !ty.namespaced {
                    return Err(Failure::unknown_resource());
                }
                (*namespace, ty, rest)
            }
            [plural, rest @ ..] => {
                let ty = found(plural)?;
                // A namespaced object can only be named within its namespace.
                if ty.namespaced && !rest.is_empty() {
                    return Err(Failure::unknown_resource());
                }
                ("", ty, rest)
            }
            [] => return Err(Failure::unknown_resource()),
        };
        let (name, subresource) = match rest {
            [] => ("", ""),
            [name] => (*name, ""),
            [name, subresource] if ty.subresource(subresource).is_some() => (*name, *subresource),
            _ => return Err(Failure::unknown_resource()),
        };
        let header = |name: http::header::HeaderName| -> String {
            let value = parts.headers.get(name).and_then(|value| value.to_str().ok());
            value.unwrap_or_default().to_owned()
        };
        Ok(Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            subresource: subresource.to_owned(),
            ty: ty.clone(),
            method: parts.method.clone(),
            query: Query::parse(parts.uri.query().unwrap_or_default()),
            accept: header(http::header::ACCEPT),
            content_type: header(http::header::CONTENT_TYPE),
            user_agent: header(http::header::USER_AGENT),
            body,
        })
    }

    /// The name under which changes are recorded: the one given, or the client's own up to the first slash.
    pub(crate) fn field_manager(&self) -> String {
        let given = self.query.get("fieldManager");
        let name = if given.is_empty() {
            self.user_agent.split('/').next().unwrap_or_default()
        } else {
            given
        };
        let name = if name.is_empty() { "unknown" } else { name };
        name.chars().take(128).collect()
    }

    pub(crate) fn subresource_name(&self) -> Option<&str> {
        (!self.subresource.is_empty()).then_some(self.subresource.as_str())
    }
}

fn is_namespace_subresource(group: &str, word: &str) -> bool {
    group.is_empty() && matches!(word, "status" | "finalize")
}

fn segments(path: &str) -> Vec<String> {
    path.split('/')
        .filter(|segment| !segment.is_empty())
        .map(percent_decoded)
        .collect()
}

fn percent_decoded(segment: &str) -> String {
    percent_encoding::percent_decode_str(segment)
        .decode_utf8_lossy()
        .into_owned()
}

/// The parameters after the question mark. The first value of a repeated parameter counts, except for `dryRun`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query {
    values: BTreeMap<String, Vec<String>>,
}

impl Query {
    pub(crate) fn parse(text: &str) -> Self {
        let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (key, value) in form_urlencoded::parse(text.as_bytes()) {
            values.entry(key.into_owned()).or_default().push(value.into_owned());
        }
        Self { values }
    }

    /// The value, or the empty string.
    pub(crate) fn get(&self, key: &str) -> &str {
        self.values
            .get(key)
            .and_then(|values| values.first())
            .map_or("", String::as_str)
    }

    pub(crate) fn all(&self, key: &str) -> &[String] {
        self.values.get(key).map_or(&[], Vec::as_slice)
    }

    /// True for `true`, `1` and a bare parameter, as the real server reads booleans.
    pub(crate) fn flag(&self, key: &str) -> bool {
        match self.values.get(key).and_then(|values| values.first()) {
            Some(value) => !matches!(value.to_ascii_lowercase().as_str(), "false" | "0"),
            None => false,
        }
    }

    /// A number, if the parameter is there.
    ///
    /// *Errors*: 400 for anything that is not a number.
    pub(crate) fn number(&self, key: &str) -> Result<Option<i64>, Failure> {
        match self.get(key) {
            "" => Ok(None),
            text => text
                .parse()
                .map(Some)
                .map_err(|_| Failure::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(method: Method, uri: &str) -> Result<Request, Failure> {
        let request = http::Request::builder()
            .method(method)
            .uri(uri)
            .body(())
            .expect("a valid request");
        Request::parse(&request.into_parts().0, Bytes::new(), &Registry::default())
    }

    #[test]
    fn paths_name_resources_objects_and_subresources() {
        let list = parse(Method::GET, "/api/v1/pods?limit=5").expect("all pods");
        assert_eq!(
            (list.ty.kind.as_str(), list.namespace.as_str(), list.name.as_str()),
            ("Pod", "", "")
        );
        assert_eq!(list.query.number("limit"), Ok(Some(5)));

        let status = parse(Method::PUT, "/apis/apps/v1/namespaces/a/deployments/web/status").expect("a status");
        assert_eq!((status.namespace.as_str(), status.name.as_str()), ("a", "web"));
        assert_eq!(status.subresource_name(), Some("status"));

        let namespace = parse(Method::GET, "/api/v1/namespaces/a").expect("a namespace");
        assert_eq!(
            (namespace.ty.kind.as_str(), namespace.name.as_str()),
            ("Namespace", "a")
        );
        let finalize = parse(Method::PUT, "/api/v1/namespaces/a/finalize").expect("its finalize");
        assert_eq!(
            (finalize.name.as_str(), finalize.subresource.as_str()),
            ("a", "finalize")
        );
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        for uri in [
            "/api/v1/foos",
            "/api/v1/pods/x",
            "/api/v1/namespaces/a/nodes",
            "/apis/apps/v2/deployments",
            "/api/v1/nodes/n/log",
        ] {
            assert_eq!(
                parse(Method::GET, uri).map(|request| request.name).map_err(|f| f.code),
                Err(404),
                "{uri}"
            );
        }
    }
}
