//! One file per verb: what each request does to the cluster.

mod create;
mod decode;
mod delete;
mod eviction;
mod list;
mod patch;
mod pods;
mod review;
mod scale;
mod update;
mod watch;

use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use serde_json::Value;

pub(crate) use delete::{DeleteOptions, Propagation};

use crate::cluster::Cluster;
use crate::encode::{Encoder, bytes_of};
use crate::failure::Failure;
use crate::request::Request;
use crate::store::Object;
use crate::watch::WatchOptions;

/// What goes back to the client.
pub(crate) enum Reply {
    Bytes {
        code: u16,
        bytes: Bytes,
        warnings: Vec<String>,
    },
    Watch(Box<WatchOptions>),
}

impl Reply {
    fn value(code: u16, value: &Value) -> Self {
        Self::Bytes {
            code,
            bytes: bytes_of(value),
            warnings: Vec::new(),
        }
    }
}

/// The outcome of a write: an object to show, and things to say about it.
pub(crate) struct Written {
    pub code: u16,
    pub object: Arc<Object>,
    pub warnings: Vec<String>,
}

impl Cluster {
    pub(crate) fn handle(&mut self, request: &Request) -> Result<Reply, Failure> {
        if let Some(name) = request.subresource_name() {
            let verb = match request.method {
                Method::GET => "get",
                Method::PUT => "update",
                Method::PATCH => "patch",
                Method::POST => "create",
                _ => "delete",
            };
            let known = request
                .ty
                .subresource(name)
                .is_some_and(|sub| sub.verbs.contains(&verb));
            return if known {
                self.handle_subresource(request, name)
            } else {
                Err(Failure::method_not_allowed())
            };
        }
        let verb = self.verb_of(request)?;
        if !request.ty.has_verb(verb) {
            return Err(Failure::method_not_allowed());
        }
        match verb {
            "get" => self.get(request),
            "list" => self.list(request),
            "watch" => self.watch(request),
            "create" if review::is_review(&request.ty) => self.review(request),
            "create" => self
                .create_object(request)
                .and_then(|written| self.shown(request, written)),
            "update" => self
                .update_object(request)
                .and_then(|written| self.shown(request, written)),
            "patch" => self
                .patch_object(request)
                .and_then(|written| self.shown(request, written)),
            "delete" => self.delete_object(request),
            _ => self.delete_collection(request),
        }
    }

    fn verb_of(&self, request: &Request) -> Result<&'static str, Failure> {
        Ok(match (&request.method, request.name.is_empty()) {
            (&Method::GET, _) if request.query.flag("watch") => "watch",
            (&Method::GET, true) => "list",
            (&Method::GET, false) => "get",
            (&Method::POST, true) => "create",
            (&Method::PUT, false) => "update",
            (&Method::PATCH, false) => "patch",
            (&Method::DELETE, false) => "delete",
            (&Method::DELETE, true) => "deletecollection",
            (&Method::PUT | &Method::PATCH, true) if request.ty.custom.is_some() => {
                return Err(Failure::bad_request("name must be provided"));
            }
            _ => return Err(Failure::method_not_allowed()),
        })
    }

    fn handle_subresource(&mut self, request: &Request, name: &str) -> Result<Reply, Failure> {
        match (name, &request.method) {
            ("scale", _) => self.scale(request),
            ("eviction", _) => self.evict(request),
            ("binding", _) => self.bind(request),
            ("token", _) => self.issue_token(request),
            ("log", _) => self.refuse_logs(request),
            (_, &Method::GET) => self.get(request),
            (_, &Method::PUT) => self
                .update_object(request)
                .and_then(|written| self.shown(request, written)),
            _ => self
                .patch_object(request)
                .and_then(|written| self.shown(request, written)),
        }
    }

    /// *Errors*: 404, also for objects of a namespace that does not exist.
    fn get(&self, request: &Request) -> Result<Reply, Failure> {
        if let Some(asked) = list::version(request)? {
            let current = self.store.revision();
            if asked > current {
                return Err(Failure::too_large_version(asked, current));
            }
        }
        let object = self.existing(request)?;
        let bytes = Encoder::of(request)?.object(object, self.now);
        Ok(Reply::Bytes {
            code: 200,
            bytes,
            warnings: Vec::new(),
        })
    }

    /// The object that the request names.
    pub(crate) fn existing(&self, request: &Request) -> Result<&Arc<Object>, Failure> {
        self.find(&request.ty, &request.namespace, &request.name)
            .ok_or_else(|| Failure::not_found(&request.ty.group_resource(), &request.name))
    }

    fn shown(&self, request: &Request, written: Written) -> Result<Reply, Failure> {
        let bytes = Encoder::of(request)?.object(&written.object, self.now);
        Ok(Reply::Bytes {
            code: written.code,
            bytes,
            warnings: written.warnings,
        })
    }
}
