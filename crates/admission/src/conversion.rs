//! Objects in another version.

use legacy::{Target, convert_single, pool_of};
use serde_json::{Value, json};

use crate::{Pools, review::Conversion};

/// The pools whose claims are among the objects.
pub fn pools(asked: &Conversion) -> Vec<String> {
    let mut names: Vec<String> = asked.objects.iter().filter_map(pool_of).map(str::to_owned).collect();
    names.sort();
    names.dedup();
    names
}

/// All objects, or why one of them has no other version.
pub fn converted(asked: &Conversion, pools: &Pools) -> Value {
    let outcome = target(&asked.desired).and_then(|target| {
        let converted = asked
            .objects
            .iter()
            .map(|object| convert_single(object, target, pools).map_err(|refusal| refusal.to_string()));
        converted.collect::<Result<Vec<Value>, String>>()
    });
    match outcome {
        Ok(objects) => json!({
            "uid": asked.uid,
            "convertedObjects": objects,
            "result": { "status": "Success" },
        }),
        Err(message) => json!({
            "uid": asked.uid,
            "result": { "status": "Failure", "message": message },
        }),
    }
}

fn target(desired: &str) -> Result<Target, String> {
    match desired.split_once('/') {
        Some((_, "v1")) => Ok(Target::V1),
        Some((_, "v1beta1")) => Ok(Target::V1Beta1),
        _ => Err(format!("nothing is converted to {desired:?}")),
    }
}

#[cfg(test)]
mod tests;
