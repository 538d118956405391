//! In which form objects go back to the client: whole, as a table, or only their metadata.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::events;
use crate::failure::Failure;
use crate::registry::ResourceType;
use crate::request::Request;
use crate::store::Object;
use crate::table::{self, IncludeObject, TableOptions};

#[derive(Clone, Copy, Debug)]
enum Form {
    Whole,
    Table {
        include: IncludeObject,
        version: &'static str,
    },
    Metadata {
        version: &'static str,
    },
}

/// Turns stored objects into the bytes that one client asked for.
#[derive(Clone, Debug)]
pub(crate) struct Encoder {
    ty: Arc<ResourceType>,
    form: Form,
}

impl Encoder {
    /// *Errors*: 400 for an unknown `includeObject`.
    pub(crate) fn of(request: &Request) -> Result<Self, Failure> {
        let form = if let Some(version) = table::accepts(&request.accept) {
            let include = IncludeObject::parse(request.query.get("includeObject")).map_err(Failure::bad_request)?;
            Form::Table { include, version }
        } else if let Some(version) = accepts_metadata(&request.accept) {
            Form::Metadata { version }
        } else {
            Form::Whole
        };
        Ok(Self {
            ty: request.ty.clone(),
            form,
        })
    }

    /// One object.
    pub(crate) fn object(&self, object: &Object, now: Timestamp) -> Bytes {
        self.encoded(object, true, now)
    }

    /// The object of a watch event. Only the first event of a watch tells the columns of a table.
    pub(crate) fn watched(&self, object: &Object, first: bool, now: Timestamp) -> Bytes {
        self.encoded(object, first, now)
    }

    fn encoded(&self, object: &Object, headers: bool, now: Timestamp) -> Bytes {
        let value = self.in_requested_version(&object.value);
        match self.form {
            Form::Whole => match value {
                Cow::Borrowed(_) => object.json().clone(),
                Cow::Owned(value) => bytes_of(&value),
            },
            Form::Metadata { version } => bytes_of(&partial(&value, version)),
            Form::Table { include, version } => {
                let metadata = json!({ "resourceVersion": object.revision.to_string() });
                let options = TableOptions {
                    include,
                    headers,
                    version,
                    now,
                };
                bytes_of(&table::render(&self.ty, &[&value], &metadata, &options))
            }
        }
    }

    pub(crate) fn list(&self, objects: &[Arc<Object>], metadata: &Value, now: Timestamp) -> Bytes {
        match self.form {
            Form::Whole => self.whole_list(objects, metadata),
            Form::Metadata { version } => {
                let items: Vec<Value> = objects
                    .iter()
                    .map(|object| partial(&self.in_requested_version(&object.value), version))
                    .collect();
                bytes_of(&json!({
                    "kind": "PartialObjectMetadataList",
                    "apiVersion": format!("meta.k8s.io/{version}"),
                    "metadata": metadata,
                    "items": items,
                }))
            }
            Form::Table { include, version } => {
                let values: Vec<Cow<'_, Value>> = objects
                    .iter()
                    .map(|object| self.in_requested_version(&object.value))
                    .collect();
                let values: Vec<&Value> = values.iter().map(Cow::as_ref).collect();
                let options = TableOptions {
                    include,
                    headers: true,
                    version,
                    now,
                };
                bytes_of(&table::render(&self.ty, &values, metadata, &options))
            }
        }
    }

    /// Joins the wire forms that the objects already have.
    fn whole_list(&self, objects: &[Arc<Object>], metadata: &Value) -> Bytes {
        let api_version = self.ty.api_version();
        let head = format!(
            "{{\"kind\":\"{}\",\"apiVersion\":\"{api_version}\",\"metadata\":{metadata},\"items\":[",
            self.ty.list_kind
        );
        // Items of built-in lists do not repeat the version and the kind of the list.
        let repeated = format!("{{\"apiVersion\":\"{api_version}\",\"kind\":\"{}\",", self.ty.kind);
        let mut bytes = BytesMut::from(head.as_bytes());
        for (index, object) in objects.iter().enumerate() {
            if index > 0 {
                bytes.put_u8(b',');
            }
            match (self.in_requested_version(&object.value), &self.ty.custom) {
                (Cow::Borrowed(_), Some(_)) => bytes.extend_from_slice(object.json()),
                (Cow::Owned(value), Some(_)) => bytes.extend_from_slice(&bytes_of(&value)),
                (value, None) => match (&value, object.json().strip_prefix(repeated.as_bytes())) {
                    (Cow::Borrowed(_), Some(rest)) => {
                        bytes.put_u8(b'{');
                        bytes.extend_from_slice(rest);
                    }
                    _ => bytes.extend_from_slice(&bytes_of(&without_type(&value))),
                },
            }
        }
        bytes.put_slice(b"]}");
        bytes.freeze()
    }

    /// A bookmark: an object that has nothing but a version.
    pub(crate) fn bookmark(&self, revision: u64, initial_events_end: bool) -> Bytes {
        let mut metadata = json!({ "resourceVersion": revision.to_string() });
        if initial_events_end {
            metadata["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
        }
        bytes_of(&match self.form {
            Form::Whole => json!({ "kind": self.ty.kind, "apiVersion": self.ty.api_version(), "metadata": metadata }),
            Form::Metadata { version } => json!({
                "kind": "PartialObjectMetadata",
                "apiVersion": format!("meta.k8s.io/{version}"),
                "metadata": metadata,
            }),
            Form::Table { version, .. } => json!({
                "kind": "Table",
                "apiVersion": format!("meta.k8s.io/{version}"),
                "metadata": { "resourceVersion": revision.to_string() },
                "columnDefinitions": null,
                "rows": [{ "cells": [], "object": {
                    "kind": "PartialObjectMetadata",
                    "apiVersion": format!("meta.k8s.io/{version}"),
                    "metadata": metadata,
                } }],
            }),
        })
    }

    fn in_requested_version<'a>(&self, stored: &'a Value) -> Cow<'a, Value> {
        in_version(&self.ty, stored)
    }
}

/// The object in the version of a type, which need not be the one in which it is stored.
pub(crate) fn in_version<'a>(ty: &ResourceType, stored: &'a Value) -> Cow<'a, Value> {
    let Some(custom) = &ty.custom else {
        return match ty.group.as_str() {
            "events.k8s.io" => Cow::Owned(events::to_events_group(stored)),
            _ => Cow::Borrowed(stored),
        };
    };
    if custom.storage_version == ty.version {
        return Cow::Borrowed(stored);
    }
    let mut value = stored.clone();
    value["apiVersion"] = ty.api_version().into();
    Cow::Owned(value)
}

pub(crate) fn bytes_of(value: &Value) -> Bytes {
    Bytes::from(serde_json::to_vec(value).expect("a JSON value is always serialisable"))
}

fn without_type(value: &Value) -> Value {
    let mut map: Map<String, Value> = value.as_object().cloned().unwrap_or_default();
    map.remove("apiVersion");
    map.remove("kind");
    Value::Object(map)
}

fn partial(value: &Value, version: &str) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": format!("meta.k8s.io/{version}"),
        "metadata": value["metadata"],
    })
}

/// The version of `meta.k8s.io` in which `Accept` asks for metadata only.
fn accepts_metadata(accept: &str) -> Option<&'static str> {
    let first = accept.split(',').next()?;
    let has = |parameter: &str| first.split(';').any(|part| part.trim() == parameter);
    let wanted = has("as=PartialObjectMetadata") || has("as=PartialObjectMetadataList");
    if !wanted || !has("g=meta.k8s.io") {
        return None;
    }
    ["v1", "v1beta1"]
        .into_iter()
        .find(|version| has(&format!("v={version}")))
}
