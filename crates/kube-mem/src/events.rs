//! Events have two groups and one place: they are stored in the core form and shown in either.

use serde_json::{Map, Value};

/// Field names in the core group and in `events.k8s.io`.
const RENAMED: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

/// The form of `events.k8s.io/v1`.
pub(crate) fn to_events_group(stored: &Value) -> Value {
    let mut event = renamed(stored, "events.k8s.io/v1", |(core, newer)| (core, newer));
    if let Some(fields) = event.as_object_mut() {
        // The core form writes these even if they are empty, the newer one does not.
        fields.retain(|key, value| !(key.starts_with("reporting") && value == ""));
    }
    event
}

/// The form of the core group, in which events are stored.
pub(crate) fn to_core(event: &Value) -> Value {
    renamed(event, "v1", |(core, newer)| (newer, core))
}

fn renamed(
    event: &Value,
    api_version: &str,
    direction: impl Fn((&'static str, &'static str)) -> (&'static str, &'static str),
) -> Value {
    let Some(fields) = event.as_object() else {
        return event.clone();
    };
    let mut out = Map::new();
    for (key, value) in fields {
        let pair = RENAMED
            .iter()
            .map(|pair| direction(*pair))
            .find(|(from, _)| from == key);
        out.insert(pair.map_or(key.as_str(), |(_, to)| to).to_owned(), value.clone());
    }
    out.insert("apiVersion".to_owned(), api_version.into());
    Value::Object(out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_survives_the_way_there_and_back() {
        let newer = json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": { "name": "e" },
            "regarding": { "kind": "Pod" }, "note": "gone", "reportingController": "karpenter", "eventTime": "t",
        });
        let stored = to_core(&newer);
        assert_eq!(
            (&stored["involvedObject"]["kind"], &stored["message"]),
            (&json!("Pod"), &json!("gone"))
        );
        assert_eq!(to_events_group(&stored), newer);
    }
}
