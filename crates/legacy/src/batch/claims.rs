//! Claims and machines, which belong to a pool.

use std::collections::BTreeMap;

use api::duration::DurationOrNever;
use serde_json::{Map, Value};

use super::draft::{Draft, PoolRole, Role};
use crate::alpha::machine::PoolFacts;
use crate::notes::{Change, Notes};
use crate::{alpha, beta, manifest};

/// Claims take their class and their time to expire from the pool as it is now.
pub fn settle(drafts: &mut [Draft]) {
    let mut pools = BTreeMap::new();
    for draft in drafts.iter() {
        if let Role::Pool(role) = &draft.role {
            let expire_after = draft
                .object
                .pointer("/spec/template/spec/expireAfter")
                .and_then(Value::as_str);
            let facts = PoolFacts {
                class: Some(role.class.clone()),
                expire_after: expire_after.map(DurationOrNever::from),
            };
            pools.insert(draft.name().to_owned(), facts);
        }
    }
    for draft in drafts.iter_mut().filter(|draft| draft.role == Role::Claim) {
        let made = if manifest::text(&draft.object, "kind") == "Machine" {
            let pool = alpha::machine::provisioner(&draft.object).and_then(|name| pools.get(name));
            alpha::machine::node_claim(&draft.object, pool, &mut draft.notes)
        } else {
            beta_claim(&draft.object, &pools, &mut draft.notes)
        };
        if let Some(object) = made {
            draft.object = object;
            draft.changed = true;
        }
    }
}

fn beta_claim(claim: &Value, pools: &BTreeMap<String, PoolFacts>, notes: &mut Notes) -> Option<Value> {
    notes.warn("", Change::IsState { kind: "NodeClaim" });
    let read = manifest::read::<beta::NodeClaimSpec>(claim, "spec", notes)?;
    for field in read.unknown {
        notes.warn(field, Change::FieldUnknown);
    }
    let label = claim
        .pointer("/metadata/labels")
        .and_then(|labels| labels.get(api::labels::NODE_POOL));
    let pool = label.and_then(Value::as_str).and_then(|name| pools.get(name));
    if pool.is_none() {
        notes.warn("", Change::PoolUnknown);
    }
    let mut metadata = metadata(claim, "karpenter.sh/v1");
    let expire_after = pool.and_then(|pool| pool.expire_after.clone());
    let mut spec = beta::node_claim::up(read.value, expire_after, &mut metadata);
    let role = PoolRole::take(&mut metadata, &spec.node_class_ref.name, false);
    spec.node_class_ref.name = pool.and_then(|pool| pool.class.clone()).unwrap_or(role.class);
    let mut object = manifest::object("karpenter.sh/v1", "NodeClaim", metadata, spec);
    if let Some(status) = claim.get("status").filter(|status| !manifest::is_empty(status)) {
        object["status"] = status.clone();
    }
    Some(object)
}

/// Claims are state: who owns them, and which pool they were made from, stays on them.
pub fn metadata(claim: &Value, api_version: &str) -> Map<String, Value> {
    let mut metadata = manifest::metadata(claim);
    let written = claim.get("metadata").unwrap_or(&Value::Null);
    if let Some(annotations) = written.get("annotations").and_then(Value::as_object) {
        let hashes = annotations
            .iter()
            .filter(|(key, _)| key.ends_with("-hash") || key.ends_with("-hash-version"));
        for (key, value) in hashes.filter_map(|(key, value)| Some((key, value.as_str()?))) {
            manifest::annotate(&mut metadata, key, value.to_owned());
        }
    }
    let owners = written
        .get("ownerReferences")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let owners: Vec<Value> = owners
        .map(|owner| {
            let mut owner = owner.clone();
            if manifest::text(&owner, "kind") == "NodePool" {
                owner["apiVersion"] = api_version.into();
            }
            owner
        })
        .collect();
    if !owners.is_empty() {
        metadata.insert("ownerReferences".to_owned(), owners.into());
    }
    metadata
}
