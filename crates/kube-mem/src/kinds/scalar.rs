//! Scalars that are more than their JSON type: what can be read, and the one form in which it is written back.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::Value;

use super::resources;
use crate::schema::Meaning;

/// Why a scalar cannot be read.
pub(super) enum Unreadable {
    /// The decoder's complaint.
    Text(String),
    /// A number that the named type cannot hold.
    Number(&'static str),
}

/// Checks a scalar and brings it into its canonical form.
pub(super) fn read(meaning: Meaning, value: &mut Value) -> Result<(), Unreadable> {
    let complaint = match (meaning, &*value) {
        (Meaning::Int32 | Meaning::IntOrString, Value::Number(number)) => {
            let fits = number.as_i64().is_some_and(|number| i32::try_from(number).is_ok());
            return if fits { Ok(()) } else { Err(Unreadable::Number("int32")) };
        }
        (Meaning::Int64, Value::Number(number)) => {
            return if number.is_i64() {
                Ok(())
            } else {
                Err(Unreadable::Number("int64"))
            };
        }
        (Meaning::Bytes, Value::String(text)) => match STANDARD.decode(text) {
            Ok(_) => return Ok(()),
            Err(_) => format!("illegal base64 data at input byte {}", first_illegal(text)),
        },
        (Meaning::Quantity, Value::Number(number)) => {
            return set(
                value,
                resources::canonical(&number.to_string()).ok_or_else(unreadable_quantity),
            );
        }
        (Meaning::Quantity, Value::String(text)) => {
            return set(value, resources::canonical(text).ok_or_else(unreadable_quantity));
        }
        (Meaning::Time, Value::String(text)) => match text.parse::<Timestamp>() {
            Ok(time) => return set(value, Ok(format!("{time:.0}"))),
            Err(_) => {
                format!("parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse {text:?} as \"2006\"")
            }
        },
        (Meaning::MicroTime, Value::String(text)) => match text.parse::<Timestamp>() {
            Ok(time) if has_micros(text) => return set(value, Ok(format!("{time:.6}"))),
            _ => {
                format!(
                    "parsing time {text:?} as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse {text:?} as \"2006\""
                )
            }
        },
        _ => return Ok(()),
    };
    Err(Unreadable::Text(complaint))
}

fn set(value: &mut Value, text: Result<String, Unreadable>) -> Result<(), Unreadable> {
    *value = text?.into();
    Ok(())
}

fn unreadable_quantity() -> Unreadable {
    Unreadable::Text(resources::UNREADABLE.to_owned())
}

/// Times of events and leases are written with exactly six digits after the second.
fn has_micros(text: &str) -> bool {
    let digits = text.split_once('.').map_or("", |(_, fraction)| fraction);
    digits.bytes().take_while(u8::is_ascii_digit).count() == 6
}

fn first_illegal(text: &str) -> usize {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=');
    text.find(|c| !legal(c)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn scalars_are_read_into_one_form_or_refused() {
        let rows = [
            (Meaning::Int32, json!(5), Some(json!(5))),
            (Meaning::Int32, json!(3_000_000_000_u32), None),
            (Meaning::Int64, json!(1.5), None),
            (Meaning::IntOrString, json!("50%"), Some(json!("50%"))),
            (Meaning::IntOrString, json!(1.5), None),
            (Meaning::Bytes, json!("aGk="), Some(json!("aGk="))),
            (Meaning::Bytes, json!("%%"), None),
            (Meaning::Quantity, json!("1000m"), Some(json!("1"))),
            (Meaning::Quantity, json!(2), Some(json!("2"))),
            (Meaning::Quantity, json!("x"), None),
            (
                Meaning::Time,
                json!("2024-01-01T01:00:00.5+01:00"),
                Some(json!("2024-01-01T00:00:00Z")),
            ),
            (Meaning::Time, json!("yesterday"), None),
            (
                Meaning::MicroTime,
                json!("2024-01-01T00:00:00.000001Z"),
                Some(json!("2024-01-01T00:00:00.000001Z")),
            ),
            (Meaning::MicroTime, json!("2024-01-01T00:00:00Z"), None),
            (Meaning::Plain, json!("anything"), Some(json!("anything"))),
        ];
        for (meaning, written, expected) in rows {
            let mut value = written.clone();
            let read = read(meaning, &mut value).ok().map(|()| value);
            assert_eq!(read, expected, "{meaning:?} {written}");
        }
    }
}
