//! Requests in protobuf, which Go clients prefer for built-in kinds. Answers are always JSON.
//!
//! A body is the magic `k8s\0`, then a message that names the kind and holds the object's own message. Field numbers
//! come from the definitions (`x-go`), where `2.5` is field 5 of the struct embedded as field 2.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::openapi::{definition, name_of};
use crate::registry::Gvk;

const MAGIC: &[u8] = b"k8s\0";
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// Reads an object with its `apiVersion` and `kind`.
///
/// *Errors*: what is wrong with the body, for a 400 answer.
pub(crate) fn decode(body: &[u8]) -> Result<Value, String> {
    let body = body
        .strip_prefix(MAGIC)
        .ok_or("provided data does not appear to be a protobuf message")?;
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    for field in fields(body)? {
        match (field.number, field.bytes()) {
            (1, Some(type_meta)) => {
                for field in fields(type_meta)? {
                    match field.number {
                        1 => api_version = field.text()?,
                        2 => kind = field.text()?,
                        _ => {}
                    }
                }
            }
            (2, Some(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", &api_version));
    let name = match kind.as_str() {
        // Sent with the version of whatever is deleted.
        "DeleteOptions" => format!("{META}.DeleteOptions"),
        kind => name_of(&Gvk::new(group, version, kind)),
    };
    let schema =
        definition(&name).ok_or_else(|| format!("no kind {kind:?} is registered for version {api_version:?}"))?;
    let mut object = Map::new();
    message(schema, "", raw, &mut object)?;
    object.insert("apiVersion".into(), api_version.into());
    object.insert("kind".into(), kind.into());
    Ok(Value::Object(object))
}

/// Reads the fields of a struct into `object`. `prefix` is the number of the embedded struct that they belong to.
fn message(schema: &Value, prefix: &str, bytes: &[u8], object: &mut Map<String, Value>) -> Result<(), String> {
    let Some(properties) = schema["properties"].as_object() else {
        return Ok(());
    };
    let facts = |property: &Value| property["x-go"].as_str().unwrap_or_default().to_owned();
    for field in fields(bytes)? {
        let place = format!("{prefix}{}", field.number);
        let is_here = |property: &Value| facts(property).trim_end_matches(['*', '?', '!']) == place;
        if let Some((name, property)) = properties.iter().find(|(_, property)| is_here(property)) {
            let facts = facts(property);
            let omits = facts.contains('?') && !facts.contains('*');
            add(property, omits, &field, name, object)?;
            continue;
        }
        let embedded = format!("{place}.");
        if let Some(bytes) = field.bytes()
            && properties
                .values()
                .any(|property| facts(property).starts_with(&embedded))
        {
            message(schema, &embedded, bytes, object)?;
        }
    }
    Ok(())
}

/// Adds one field: repeated fields append, maps take one entry, empty values that Go omits are left out.
fn add(
    property: &Value,
    omits: bool,
    field: &Field<'_>,
    name: &str,
    object: &mut Map<String, Value>,
) -> Result<(), String> {
    match property["type"].as_str() {
        Some("array") => {
            let item = value(&property["items"], field)?;
            let list = object.entry(name).or_insert_with(|| json!([]));
            list.as_array_mut()
                .ok_or("a list is mixed with something else")?
                .push(item);
        }
        Some("object") if property["additionalProperties"].is_object() => {
            let (mut key, mut entry) = (String::new(), None);
            for part in fields(field.bytes().ok_or("a map entry is not a message")?)? {
                match part.number {
                    1 => key = part.text()?,
                    _ => entry = Some(map_value(&property["additionalProperties"], &part)?),
                }
            }
            let map = object.entry(name).or_insert_with(|| json!({}));
            map[key] = entry.unwrap_or_else(|| "".into());
        }
        _ => {
            let value = value(property, field)?;
            let is_empty = match &value {
                Value::Null => true,
                Value::Bool(flag) => !flag,
                Value::Number(number) => number.as_f64() == Some(0.0),
                Value::String(text) => text.is_empty(),
                _ => false,
            };
            if !(is_empty && (omits || value.is_null())) {
                object.insert(name.to_owned(), value);
            }
        }
    }
    Ok(())
}

/// The value of a map's entry. A list there is wrapped in a message of its own.
fn map_value(schema: &Value, field: &Field<'_>) -> Result<Value, String> {
    if schema["type"] != "array" {
        return value(schema, field);
    }
    let wrapped = fields(field.bytes().ok_or("a wrapped list is not a message")?)?;
    wrapped.iter().map(|item| value(&schema["items"], item)).collect()
}

fn value(schema: &Value, field: &Field<'_>) -> Result<Value, String> {
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        return referenced(name, field.bytes().ok_or("a struct is not a message")?);
    }
    match (schema["type"].as_str(), field.content) {
        (Some("boolean"), Content::Number(number)) => Ok((number != 0).into()),
        // Negative numbers are written as the ten bytes of their two's complement.
        (Some("integer"), Content::Number(number)) => Ok(number.cast_signed().into()),
        (Some("number"), Content::Number(bits)) => Ok(f64::from_bits(bits).into()),
        (Some("string"), Content::Bytes(bytes)) if schema["format"] == "byte" => {
            use base64::Engine;
            Ok(base64::engine::general_purpose::STANDARD.encode(bytes).into())
        }
        (Some("string"), Content::Bytes(_)) => Ok(field.text()?.into()),
        (kind, _) => Err(format!(
            "field {} does not fit the type {}",
            field.number,
            kind.unwrap_or("any")
        )),
    }
}

/// A struct by its name. Some have a form of their own in JSON.
fn referenced(name: &str, bytes: &[u8]) -> Result<Value, String> {
    let parts = fields(bytes)?;
    let number = |at: u32| {
        parts
            .iter()
            .find(|part| part.number == at)
            .map_or(0, Field::number_or_zero)
    };
    let text = |at: u32| {
        parts
            .iter()
            .find(|part| part.number == at)
            .map_or(Ok(String::new()), Field::text)
    };
    let raw = |at: u32| parts.iter().find(|part| part.number == at).and_then(Field::bytes);
    match name.rsplit('.').next().unwrap_or_default() {
        "Quantity" => Ok(text(1)?.into()),
        "IntOrString" if number(1) == 0 => Ok(number(2).into()),
        "IntOrString" => Ok(text(3)?.into()),
        "Time" | "MicroTime" if parts.is_empty() => Ok(Value::Null),
        "Time" | "MicroTime" => {
            let nanos = i32::try_from(number(2)).map_err(|cause| cause.to_string())?;
            let time = Timestamp::new(number(1), nanos).map_err(|cause| cause.to_string())?;
            let precision = if name.ends_with("MicroTime") { 6 } else { 0 };
            Ok(format!("{time:.precision$}").into())
        }
        "RawExtension" | "FieldsV1" | "JSON" => match raw(1) {
            Some(bytes) if !bytes.is_empty() => serde_json::from_slice(bytes).map_err(|cause| cause.to_string()),
            _ => Ok(Value::Null),
        },
        _ => {
            let schema = definition(name).ok_or_else(|| format!("unknown struct {name}"))?;
            let mut object = Map::new();
            message(schema, "", bytes, &mut object)?;
            Ok(Value::Object(object))
        }
    }
}

/// One field as it stands on the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Field<'a> {
    number: u32,
    content: Content<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Content<'a> {
    /// A varint, or the bits of a fixed-size number.
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Field<'a> {
    fn bytes(&self) -> Option<&'a [u8]> {
        match self.content {
            Content::Bytes(bytes) => Some(bytes),
            Content::Number(_) => None,
        }
    }

    fn number_or_zero(&self) -> i64 {
        match self.content {
            Content::Number(number) => number.cast_signed(),
            Content::Bytes(_) => 0,
        }
    }

    fn text(&self) -> Result<String, String> {
        let bytes = self
            .bytes()
            .ok_or_else(|| format!("field {} is not a string", self.number))?;
        String::from_utf8(bytes.to_vec()).map_err(|cause| cause.to_string())
    }
}

fn fields(mut bytes: &[u8]) -> Result<Vec<Field<'_>>, String> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes)?;
        let content = match key & 7 {
            0 => Content::Number(varint(&mut bytes)?),
            1 => Content::Number(fixed::<8>(&mut bytes).map(u64::from_le_bytes)?),
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).map_err(|cause| cause.to_string())?;
                let (content, rest) = bytes.split_at_checked(length).ok_or("unexpected EOF")?;
                bytes = rest;
                Content::Bytes(content)
            }
            5 => Content::Number(fixed::<4>(&mut bytes).map(u32::from_le_bytes)?.into()),
            kind => return Err(format!("wire type {kind} is not supported")),
        };
        found.push(Field {
            number: u32::try_from(key >> 3).map_err(|cause| cause.to_string())?,
            content,
        });
    }
    Ok(found)
}

fn varint(bytes: &mut &[u8]) -> Result<u64, String> {
    let mut number = 0_u64;
    for shift in (0..70).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or("unexpected EOF")?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err("a number is too long".into())
}

fn fixed<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], String> {
    let (number, rest) = bytes.split_first_chunk::<N>().ok_or("unexpected EOF")?;
    *bytes = rest;
    Ok(*number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message in the notation of the tests: numbers, texts and messages by field number.
    enum Part<'a> {
        Number(u64),
        Text(&'a str),
        Message(Vec<(u32, Part<'a>)>),
    }

    fn encode(parts: &[(u32, Part<'_>)]) -> Vec<u8> {
        fn put(out: &mut Vec<u8>, mut number: u64) {
            while number >= 0x80 {
                out.push(u8::try_from(number & 0x7f).expect("seven bits") | 0x80);
                number >>= 7;
            }
            out.push(u8::try_from(number).expect("seven bits"));
        }
        let mut out = Vec::new();
        for (field, part) in parts {
            let bytes = match part {
                Part::Number(number) => {
                    put(&mut out, u64::from(*field) << 3);
                    put(&mut out, *number);
                    continue;
                }
                Part::Text(text) => text.as_bytes().to_vec(),
                Part::Message(parts) => encode(parts),
            };
            put(&mut out, u64::from(*field) << 3 | 2);
            put(&mut out, bytes.len() as u64);
            out.extend(bytes);
        }
        out
    }

    fn body(api_version: &str, kind: &str, object: Vec<(u32, Part<'_>)>) -> Vec<u8> {
        let type_meta = Part::Message(vec![(1, Part::Text(api_version)), (2, Part::Text(kind))]);
        [MAGIC, &encode(&[(1, type_meta), (2, Part::Message(object))])].concat()
    }

    /// The body that kubectl 1.32 sends for `auth can-i create pods`, as seen on the wire.
    #[test]
    fn an_access_review_of_kubectl_is_read() {
        let hex = "6b3873000a320a17617574686f72697a6174696f6e2e6b38732e696f2f7631121753656c665375626a656374416363\
                   65737352657669657712 3f0a100a0012001a0022002a003200380042001221 0a1f0a0764656661756c74120663726561\
                   74651a0022002a04706f647332003a001a080800 12001a0020001a002200";
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        let bytes: Vec<u8> = digits
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).expect("ASCII"), 16).expect("hexadecimal"))
            .collect();
        assert_eq!(
            decode(&bytes),
            Ok(json!({
                "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "metadata": {},
                "spec": {"resourceAttributes": {"namespace": "default", "verb": "create", "resource": "pods"}},
                "status": {"allowed": false},
            }))
        );
    }

    #[test]
    fn embedded_structs_maps_lists_and_special_forms_are_read() {
        use Part::{Message, Number, Text};
        let container = Message(vec![
            (1, Text("c")),
            (
                8,
                Message(vec![(
                    2,
                    Message(vec![(1, Text("cpu")), (2, Message(vec![(1, Text("100m"))]))]),
                )]),
            ),
            (
                10,
                Message(vec![
                    (
                        1,
                        Message(vec![(
                            2,
                            Message(vec![
                                (1, Text("/ok")),
                                (2, Message(vec![(1, Number(0)), (2, Number(80))])),
                            ]),
                        )]),
                    ),
                    (3, Number(5)),
                ]),
            ),
        ]);
        let volume = Message(vec![(1, Text("v")), (2, Message(vec![(2, Message(vec![]))]))]);
        let metadata = Message(vec![
            (1, Text("p")),
            (3, Text("")),
            (8, Message(vec![(1, Number(1_700_000_000))])),
            (11, Message(vec![(1, Text("a")), (2, Text("b"))])),
        ]);
        let spec = Message(vec![(1, volume), (2, container), (4, Number(0)), (11, Number(1))]);
        assert_eq!(
            decode(&body("v1", "Pod", vec![(1, metadata), (2, spec)])),
            Ok(json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": "p", "creationTimestamp": "2023-11-14T22:13:20Z", "labels": {"a": "b"}},
                "spec": {
                    "volumes": [{"name": "v", "emptyDir": {}}],
                    "containers": [{
                        "name": "c",
                        "resources": {"requests": {"cpu": "100m"}},
                        "livenessProbe": {"httpGet": {"path": "/ok", "port": 80}, "timeoutSeconds": 5},
                    }],
                    // A pointer keeps its zero.
                    "terminationGracePeriodSeconds": 0,
                    "hostNetwork": true,
                },
            }))
        );
    }

    #[test]
    fn options_of_a_delete_are_read_in_any_version() {
        let options = body(
            "policy/v1",
            "DeleteOptions",
            vec![(1, Part::Number(0)), (4, Part::Text("Background"))],
        );
        let read = decode(&options).expect("options are known");
        assert_eq!(
            (&read["gracePeriodSeconds"], &read["propagationPolicy"]),
            (&json!(0), &json!("Background"))
        );
    }

    #[test]
    fn broken_bodies_are_refused() {
        assert!(decode(b"{}").is_err());
        assert!(decode(&body("v1", "Nothing", Vec::new())).is_err());
        let whole = body("v1", "Pod", vec![(1, Part::Message(vec![(1, Part::Text("p"))]))]);
        for length in 4..whole.len() {
            let _ = decode(&whole[..length]);
        }
    }
}
