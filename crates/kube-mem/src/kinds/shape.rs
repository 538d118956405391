//! The shape of a built-in kind: what a typed server keeps of an object that it reads and writes back.
//!
//! The real server decodes into Go structs. Fields that the struct does not have are dropped, nulls and empty lists
//! and maps vanish, and fields that the struct always writes appear even if nobody set them.

use std::fmt;

use serde_json::{Map, Value};

use super::scalar;
use crate::schema::{Form, MapType, NodeId, Scalar, TypeSchema};

/// Brings an object into the shape of its kind and gives the paths of the fields that the kind does not have.
///
/// *Errors*: what the real decoder says about a value of the wrong type.
pub(crate) fn fit(types: &TypeSchema, kind: &str, object: &mut Value) -> Result<Vec<String>, String> {
    let mut fitting = Fitting {
        types,
        kind,
        unknown: Vec::new(),
    };
    fitting.value(types.root(), object, &Path::Root)?;
    Ok(fitting.unknown)
}

/// Brings the metadata of a custom resource into shape. Its fields are typed although the rest of the object is not.
pub(crate) fn fit_metadata(types: &TypeSchema, kind: &str, object: &mut Value) -> Result<(), String> {
    let root = types
        .node(types.root())
        .map
        .as_ref()
        .and_then(|map| map.type_of("metadata"));
    let (Some(node), Some(metadata)) = (root, object.get_mut("metadata")) else {
        return Ok(());
    };
    let mut fitting = Fitting {
        types,
        kind,
        unknown: Vec::new(),
    };
    fitting.value(node, metadata, &Path::Field(&Path::Root, "metadata"))
}

/// Where a value stands. Written out only when there is something to say about it.
enum Path<'a> {
    Root,
    Field(&'a Path<'a>, &'a str),
    Item(&'a Path<'a>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root => Ok(()),
            Path::Field(Path::Root, key) => f.write_str(key),
            Path::Field(parent, key) => write!(f, "{parent}.{key}"),
            Path::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

struct Fitting<'a> {
    types: &'a TypeSchema,
    kind: &'a str,
    unknown: Vec<String>,
}

impl Fitting<'_> {
    fn value(&mut self, id: NodeId, value: &mut Value, path: &Path<'_>) -> Result<(), String> {
        match (self.types.node(id).fitting(value), value) {
            (Form::Map(map), Value::Object(_)) if self.is_untyped(map) => Ok(()),
            (Form::Map(map), Value::Object(fields)) => self.map(map, fields, path),
            (Form::List(list), Value::Array(items)) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.value(list.items, item, &Path::Item(path, index))?;
                }
                Ok(())
            }
            (Form::Scalar(kind), value) if fits(kind, value) => scalar::read(self.types.node(id).meaning, value)
                .map_err(|cause| match cause {
                    scalar::Unreadable::Text(text) => text,
                    scalar::Unreadable::Number(kind) => self.bad_number(kind, value, &path.to_string()),
                }),
            (_, Value::Null) => Ok(()),
            (form, value) => Err(self.misfit(form, value, &path.to_string())),
        }
    }

    fn map(&mut self, map: &MapType, fields: &mut Map<String, Value>, path: &Path<'_>) -> Result<(), String> {
        let mut dropped = Vec::new();
        for (key, value) in fields.iter_mut() {
            let Some(node) = map.type_of(key) else {
                self.unknown.push(Path::Field(path, key).to_string());
                dropped.push(key.clone());
                continue;
            };
            self.value(node, value, &Path::Field(path, key))?;
            // A map of strings holds no nulls.
            if value.is_null() && !map.fields.contains_key(key) && self.types.node(node).scalar == Some(Scalar::String)
            {
                *value = "".into();
            }
            // Storage does not tell an empty list or map from none.
            if map.zero_of(key) == Some(&Value::Null) && self.is_empty(node, value) {
                *value = Value::Null;
            }
            if self.vanishes(map, key, value) {
                dropped.push(key.clone());
            }
        }
        for key in dropped {
            fields.remove(&key);
        }
        for (key, field) in &map.fields {
            if fields.contains_key(key) {
                continue;
            }
            if let Some(mut zero) = field.zero.clone() {
                self.value(field.node, &mut zero, &Path::Field(path, key))?;
                fields.insert(key.clone(), zero);
            }
        }
        Ok(())
    }

    /// True for what a Go struct does not write. Keys of plain maps are never dropped.
    fn vanishes(&self, map: &MapType, key: &str, value: &Value) -> bool {
        let Some(field) = map.fields.get(key) else { return false };
        match value {
            Value::Null => field.zero != Some(Value::Null),
            _ if !field.omit_empty => false,
            Value::Array(_) | Value::Object(_) => self.is_empty(field.node, value),
            Value::String(text) => text.is_empty(),
            Value::Bool(flag) => !flag,
            Value::Number(number) => number.as_i64() == Some(0),
        }
    }

    /// Anything at all may stand there, so nothing is known about it: the fields that a manager owns, raw extensions.
    fn is_untyped(&self, map: &MapType) -> bool {
        let open = |id: NodeId| {
            let node = self.types.node(id);
            node.scalar.is_some() && node.list.is_some() && node.map.is_some()
        };
        map.fields.is_empty() && map.values.is_some_and(open)
    }

    /// True for an empty list and for an empty map of keys to values; a struct may be there and empty.
    fn is_empty(&self, node: NodeId, value: &Value) -> bool {
        let plain = |map: &MapType| map.fields.is_empty() && map.values.is_some();
        match value {
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty() && self.types.node(node).map.as_ref().is_some_and(plain),
            _ => false,
        }
    }

    fn bad_number(&self, kind: &str, value: &Value, path: &str) -> String {
        let owner = self.owner(path);
        format!("json: cannot unmarshal number {value} into Go struct field {owner}.{path} of type {kind}")
    }

    /// The real message names the innermost struct; its first field stands for it here.
    fn owner(&self, path: &str) -> String {
        path.split('.')
            .next()
            .filter(|first| path.len() > first.len())
            .map_or_else(
                || self.kind.to_owned(),
                |first| format!("{}{}{}", self.kind, first[..1].to_uppercase(), &first[1..]),
            )
    }

    fn misfit(&self, form: Form<'_>, value: &Value, path: &str) -> String {
        let found = match value {
            Value::Null => "null",
            Value::Bool(_) => "bool",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        let wanted = match form {
            Form::Scalar(Scalar::Boolean) => "bool",
            Form::Scalar(Scalar::Numeric) => "int64",
            Form::Scalar(_) => "string",
            Form::List(_) => "[]v1.Item",
            Form::Map(map) if map.fields.is_empty() => "map[string]string",
            Form::Map(_) | Form::Invalid => "v1",
        };
        let owner = self.owner(path);
        format!("json: cannot unmarshal {found} into Go struct field {owner}.{path} of type {wanted}")
    }
}

fn fits(scalar: Scalar, value: &Value) -> bool {
    match scalar {
        Scalar::Any => !matches!(value, Value::Array(_) | Value::Object(_)),
        Scalar::Numeric => value.is_number(),
        Scalar::String => value.is_string(),
        Scalar::Boolean => value.is_boolean(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::registry::Gvk;

    fn fitted(kind: &str, mut object: Value) -> Result<(Value, Vec<String>), String> {
        let types = crate::types::of(&Gvk::new("", "v1", kind)).expect("a built-in kind");
        let unknown = fit(&types, kind, &mut object)?;
        Ok((object, unknown))
    }

    #[test]
    fn unknown_fields_go_and_are_told() {
        let pod = json!({ "spec": { "foo": 1, "containers": [{ "name": "c", "bar": true }] }, "x": 1 });
        let (pod, unknown) = fitted("Pod", pod).expect("the rest fits");
        assert_eq!(unknown, ["spec.containers[0].bar", "spec.foo", "x"]);
        assert_eq!(pod["spec"]["containers"], json!([{ "name": "c", "resources": {} }]));
    }

    #[test]
    fn what_go_omits_goes_and_what_go_writes_appears() {
        let node = json!({
            "metadata": { "labels": {} },
            "spec": { "unschedulable": false, "taints": [] },
            "status": { "conditions": [{ "type": "Ready", "status": "True", "reason": "" }] },
        });
        let (node, _) = fitted("Node", node).expect("it fits");
        assert_eq!((&node["metadata"], &node["spec"]), (&json!({}), &json!({})));
        assert_eq!(
            node["status"]["daemonEndpoints"],
            json!({ "kubeletEndpoint": { "Port": 0 } })
        );
        assert_eq!(
            node["status"]["conditions"],
            json!([{ "type": "Ready", "status": "True", "lastHeartbeatTime": null, "lastTransitionTime": null }])
        );
    }

    #[test]
    fn an_empty_struct_that_was_written_stays() {
        let pod = json!({ "spec": { "containers": [], "securityContext": {}, "volumes": [{ "name": "v", "emptyDir": {} }] } });
        let (pod, _) = fitted("Pod", pod).expect("it fits");
        assert_eq!(pod["spec"]["securityContext"], json!({}));
        assert_eq!(pod["spec"]["volumes"][0]["emptyDir"], json!({}));
    }

    #[test]
    fn the_fields_that_managers_own_stay_as_they_are() {
        let managed = json!([{ "manager": "m", "fieldsV1": { "f:data": { ".": {}, "f:a": {} } } }]);
        let map = json!({ "metadata": { "managedFields": managed } });
        let (map, _) = fitted("ConfigMap", map).expect("it fits");
        assert_eq!(map["metadata"]["managedFields"], managed);
    }

    #[test]
    fn wrong_types_are_refused_in_the_decoders_words() {
        assert_eq!(
            fitted("Pod", json!({ "spec": { "nodeName": 5 } })),
            Err("json: cannot unmarshal number into Go struct field PodSpec.spec.nodeName of type string".to_owned())
        );
    }
}
