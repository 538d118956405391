//! A Machine becomes a NodeClaim: the same instance under another name.

use api::duration::DurationOrNever;
use api::labels::NODE_POOL;
use api::v1::{NodeClaimSpec, Requirement};
use serde_json::{Value, json};

use super::keys::PROVISIONER_NAME;
use super::pool::class_reference;
use super::requirements::renamed;
use super::types::MachineSpec;
use crate::manifest;
use crate::notes::{Change, Notes, Reason};

/// Annotations that only linked the machine to what it was made from.
const DROPPED_ANNOTATIONS: &[&str] = &["karpenter.sh/linked", "compatibility.karpenter.sh/provider"];

/// What the machine's pool says, as far as it is known.
#[derive(Clone, Debug, Default)]
pub struct PoolFacts {
    pub class: Option<String>,
    pub expire_after: Option<DurationOrNever>,
}

/// The name of the Provisioner that a machine belongs to.
pub fn provisioner(machine: &Value) -> Option<&str> {
    machine.get("metadata")?.get("labels")?.get(PROVISIONER_NAME)?.as_str()
}

pub fn node_claim(machine: &Value, pool: Option<&PoolFacts>, notes: &mut Notes) -> Option<Value> {
    notes.warn("", Change::IsState { kind: "Machine" });
    let read = manifest::read::<MachineSpec>(machine, "spec", notes)?;
    for field in read.unknown {
        notes.warn(field, Change::FieldUnknown);
    }
    let spec = read.value;
    let class = pool.and_then(|pool| pool.class.clone());
    let Some(class) = class.or_else(|| Some(spec.machine_template_ref.as_ref()?.name.clone())) else {
        notes.refuse("spec.machineTemplateRef", Reason::ClassUnknown);
        return None;
    };
    if pool.is_none() {
        notes.warn("", Change::PoolUnknown);
    }
    let claim = NodeClaimSpec {
        taints: spec.taints,
        startup_taints: spec.startup_taints,
        requirements: requirements(&spec.requirements, notes),
        resources: spec.resources.filter(|resources| resources.requests.is_some()),
        node_class_ref: class_reference(&class),
        termination_grace_period: None,
        expire_after: pool.and_then(|pool| pool.expire_after.clone()),
    };
    let mut metadata = manifest::metadata(machine);
    for key in DROPPED_ANNOTATIONS {
        manifest::take_annotation(&mut metadata, key);
    }
    if let Some(owner) = provisioner(machine) {
        metadata["labels"][NODE_POOL] = owner.into();
    }
    let mut object = manifest::object("karpenter.sh/v1", "NodeClaim", metadata, claim);
    if let Some(status) = machine.get("status").and_then(status) {
        object["status"] = status;
    }
    Some(object)
}

/// A machine asked for the name of its Provisioner, which is the name of its pool now.
fn requirements(written: &[Requirement], notes: &mut Notes) -> Vec<Requirement> {
    let mut requirements = renamed(written, notes);
    for requirement in &mut requirements {
        if requirement.key == PROVISIONER_NAME {
            requirement.key = NODE_POOL.to_owned();
        }
    }
    requirements
}

/// The status with today's names of conditions.
fn status(written: &Value) -> Option<Value> {
    let mut status = json!({});
    for field in ["nodeName", "providerID", "capacity", "allocatable"] {
        if let Some(value) = written.get(field).filter(|value| !manifest::is_empty(value)) {
            status[field] = value.clone();
        }
    }
    let conditions = written
        .get("conditions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let conditions: Vec<Value> = conditions.filter_map(condition).collect();
    if !conditions.is_empty() {
        status["conditions"] = conditions.into();
    }
    (!manifest::is_empty(&status)).then_some(status)
}

fn condition(written: &Value) -> Option<Value> {
    let word = manifest::text(written, "type");
    if matches!(word, "MachineEmpty" | "MachineExpired") {
        return None;
    }
    let word = word.strip_prefix("Machine").unwrap_or(word);
    let reason = manifest::text(written, "reason");
    Some(json!({
        "type": word,
        "status": manifest::text(written, "status"),
        "lastTransitionTime": manifest::text(written, "lastTransitionTime"),
        // A reason was optional then and is required now.
        "reason": if reason.is_empty() { word } else { reason },
        "message": manifest::text(written, "message"),
    }))
}
