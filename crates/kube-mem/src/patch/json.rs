//! RFC 6902 JSON patch.

use super::PatchError;
use serde_json::Value;

/// Applies a list of operations, all or nothing.
pub fn json(target: &Value, patch: &Value) -> Result<Value, PatchError> {
    let operations: json_patch::Patch =
        serde_json::from_value(patch.clone()).map_err(|error| PatchError::Malformed(error.to_string()))?;
    let mut patched = target.clone();
    json_patch::patch(&mut patched, &operations).map_err(|error| PatchError::Unprocessable(error.to_string()))?;
    Ok(patched)
}
