//! Labels and annotations of old in objects that are not Karpenter's.

use serde_json::{Map, Value};

use crate::alpha::keys::renamed_in_workloads;

/// Maps whose keys are labels or annotations.
const KEYED: &[&str] = &["nodeSelector", "matchLabels", "labels", "annotations"];
/// Fields whose text is a label key.
const NAMING: &[&str] = &["key", "topologyKey"];

/// Renames every old key in the object. The answer says whether there was one.
pub fn rewrite(object: &mut Value) -> bool {
    let mut changed = false;
    match object {
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                if KEYED.contains(&name.as_str())
                    && let Value::Object(map) = value
                {
                    changed |= rename_keys(map);
                } else if NAMING.contains(&name.as_str())
                    && let Some(new) = value.as_str().and_then(renamed_in_workloads)
                {
                    *value = new.into();
                    changed = true;
                } else {
                    changed |= rewrite(value);
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                changed |= rewrite(item);
            }
        }
        _ => {}
    }
    changed
}

fn rename_keys(map: &mut Map<String, Value>) -> bool {
    let old: Vec<String> = map
        .keys()
        .filter(|key| renamed_in_workloads(key).is_some())
        .cloned()
        .collect();
    for key in &old {
        if let (Some(new), Some(value)) = (renamed_in_workloads(key), map.remove(key)) {
            map.entry(new).or_insert(value);
        }
    }
    !old.is_empty()
}
