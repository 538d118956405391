//! The scale subresource: the number of replicas of anything that has one, in one shape.

use serde_json::{Value, json};

use super::Reply;
use super::create::Ownership;
use super::decode::{self, WriteOptions};
use crate::cluster::Cluster;
use crate::complaint;
use crate::failure::Failure;
use crate::managed_fields;
use crate::meta;
use crate::patch;
use crate::registry::{Gvk, ResourceType, ScalePaths};
use crate::request::Request;

impl Cluster {
    pub(super) fn scale(&mut self, request: &Request) -> Result<Reply, Failure> {
        let existing = self.existing(request)?.clone();
        let paths = paths(&request.ty);
        let current = scale_of(&existing.value, &paths);
        let wanted = match request.method {
            http::Method::GET => return Ok(Reply::value(200, &current)),
            http::Method::PUT => decode::body(request)?,
            _ => patched(request, &current)?,
        };
        let options = WriteOptions::of(request, "UpdateOptions")?;
        let replicas = wanted["spec"]["replicas"].as_i64().unwrap_or(0);
        if replicas < 0 && request.ty.custom.is_none() {
            let detail = "must be greater than or equal to 0";
            let error = complaint::invalid("spec.replicas", &json!(replicas), detail);
            return Err(Failure::invalid_kind("autoscaling", "Scale", &request.name, &[error]));
        }
        let said = meta::text(&wanted, "resourceVersion");
        if !said.is_empty() && said != existing.revision.to_string() {
            return Err(Failure::stale(&request.ty.group_resource(), &request.name));
        }
        let mut object = existing.value.clone();
        set_at(&mut object, &paths.spec_replicas, json!(replicas));
        managed_fields::record_scale(&existing.value, &mut object, &options.manager, &paths.spec_replicas);
        let written = self.replace(request, &existing, object, &options, Ownership::Recorded, Vec::new())?;
        Ok(Reply::value(200, &scale_of(&written.object.value, &paths)))
    }
}

fn patched(request: &Request, current: &Value) -> Result<Value, Failure> {
    let body: Value = decode::yaml(&request.body)?;
    let media_type = request.content_type.split(';').next().unwrap_or_default().trim();
    match media_type {
        "application/json-patch+json" => patch::json(current, &body),
        "application/strategic-merge-patch+json" => {
            patch::strategic(&Gvk::new("autoscaling", "v1", "Scale"), current, &body)
        }
        _ => Ok(patch::merge(current, &body)),
    }
    .map_err(|cause| Failure::bad_request(cause.to_string()))
}

fn paths(ty: &ResourceType) -> ScalePaths {
    let path = |text: &str| text.split('.').map(str::to_owned).collect::<Vec<String>>();
    ty.custom
        .as_ref()
        .and_then(|custom| custom.scale.clone())
        .unwrap_or_else(|| ScalePaths {
            spec_replicas: path("spec.replicas"),
            status_replicas: path("status.replicas"),
            label_selector: Some(path("spec.selector")),
        })
}

fn scale_of(object: &Value, paths: &ScalePaths) -> Value {
    let number = |path: &[String]| meta::at(object, path).as_i64().unwrap_or(0);
    let mut metadata = json!({});
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object["metadata"].get(field) {
            metadata[field] = value.clone();
        }
    }
    let mut status = json!({ "replicas": number(&paths.status_replicas) });
    let selector = paths
        .label_selector
        .as_ref()
        .map(|path| selector_text(meta::at(object, path)));
    if let Some(selector) = selector.filter(|text| !text.is_empty()) {
        status["selector"] = selector.into();
    }
    let mut spec = json!({});
    let replicas = number(&paths.spec_replicas);
    if replicas != 0 {
        spec["replicas"] = replicas.into();
    }
    json!({ "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status })
}

/// A selector object in the query syntax; custom resources keep theirs as text already.
fn selector_text(selector: &Value) -> String {
    if let Some(text) = selector.as_str() {
        return text.to_owned();
    }
    let mut terms = Vec::new();
    let labels = selector.get("matchLabels").unwrap_or(selector).as_object();
    for (key, value) in labels.into_iter().flatten() {
        if let Some(value) = value.as_str() {
            terms.push(format!("{key}={value}"));
        }
    }
    for expression in meta::list(&selector["matchExpressions"]) {
        let key = expression["key"].as_str().unwrap_or_default();
        let values: Vec<&str> = meta::list(&expression["values"])
            .iter()
            .filter_map(Value::as_str)
            .collect();
        terms.push(match expression["operator"].as_str() {
            Some("In") => format!("{key} in ({})", values.join(",")),
            Some("NotIn") => format!("{key} notin ({})", values.join(",")),
            Some("Exists") => key.to_owned(),
            _ => format!("!{key}"),
        });
    }
    terms.join(",")
}

fn set_at(object: &mut Value, path: &[String], value: Value) {
    let Some((last, parents)) = path.split_last() else {
        return;
    };
    let mut place = object;
    for key in parents {
        meta::map_mut(place, key);
        place = &mut place[key.as_str()];
    }
    place[last.as_str()] = value;
}
