//! One object of v1beta1 or v1 by itself, as a conversion webhook gets it: what v1 keeps in other objects travels in
//! annotations, and whatever the server wrote about the object stays.

use std::collections::BTreeMap;

use api::duration::DurationOrNever;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::batch::kind::{self, Kind};
use crate::notes::{Notes, Reason, Refusal, Subject};
use crate::options::Target;
use crate::{beta, manifest};

/// A server that asks for v1beta1 has to get it, whatever is lost.
const LOSING: bool = true;

/// When the claims of a pool expire, by the name of the pool.
pub type Pools = BTreeMap<String, DurationOrNever>;

/// The pool whose time to expire a claim of v1beta1 takes over.
pub fn pool_of(object: &Value) -> Option<&str> {
    let labels = object
        .pointer("/metadata/labels")
        .filter(|_| kind::of(object) == Kind::BetaClaim)?;
    labels.get(api::labels::NODE_POOL)?.as_str()
}

/// The object in the other generation; as it is, if it is of that generation already.
pub fn convert_single(object: &Value, target: Target, pools: &Pools) -> Result<Value, Refusal> {
    let mut notes = notes(object);
    let written_metadata = object.get("metadata").and_then(Value::as_object);
    let mut metadata = written_metadata.cloned().unwrap_or_default();
    let spec = match (kind::of(object), target) {
        (Kind::Pool | Kind::Claim | Kind::Class, Target::V1)
        | (Kind::BetaPool | Kind::BetaClaim | Kind::BetaClass, Target::V1Beta1) => return Ok(object.clone()),
        (Kind::BetaPool, Target::V1) => plain(&beta::node_pool::up(written(object)?, &mut metadata)),
        (Kind::BetaClaim, Target::V1) => {
            let expire_after = pool_of(object).and_then(|pool| pools.get(pool)).cloned();
            plain(&beta::node_claim::up(written(object)?, expire_after, &mut metadata))
        }
        (Kind::BetaClass, Target::V1) => plain(&beta::node_class::up(written(object)?, &mut metadata, &mut notes)),
        (Kind::Pool, Target::V1Beta1) => plain(&beta::node_pool::down(
            written(object)?,
            &mut metadata,
            LOSING,
            &mut notes,
        )),
        (Kind::Claim, Target::V1Beta1) => plain(&beta::node_claim::down(
            written(object)?,
            &mut metadata,
            LOSING,
            &mut notes,
        )),
        (Kind::Class, Target::V1Beta1) => plain(&beta::node_class::down(
            written(object)?,
            &mut metadata,
            LOSING,
            &mut notes,
        )),
        _ => {
            let problem = "is none that converts to v1 and v1beta1".to_owned();
            return Err(Refusal {
                subject: notes.subject,
                field: "apiVersion".to_owned(),
                reason: Reason::Invalid { problem },
            });
        }
    };
    Ok(with(object, target, metadata, spec))
}

fn notes(object: &Value) -> Notes {
    Notes::on(Subject {
        place: String::new(),
        object: kind::title(object),
    })
}

/// The spec of an object. Kubelet settings may have numbers where their types have texts.
fn written<T: Serialize + DeserializeOwned>(object: &Value) -> Result<T, Refusal> {
    let mut notes = notes(object);
    let mut object = object.clone();
    for place in ["/spec/kubelet", "/spec/template/spec/kubelet"] {
        if let Some(kubelet) = object.pointer_mut(place) {
            manifest::quote_kubelet(kubelet);
        }
    }
    match manifest::read(&object, "spec", &mut notes) {
        Some(read) => Ok(read.value),
        None => Err(notes.refusals.remove(0)),
    }
}

fn plain(spec: &impl Serialize) -> Value {
    serde_json::to_value(spec).unwrap_or_default()
}

fn with(object: &Value, target: Target, metadata: Map<String, Value>, spec: Value) -> Value {
    let (group, _) = manifest::group_version(object);
    let version = match target {
        Target::V1 => "v1",
        Target::V1Beta1 => beta::V1BETA1,
    };
    let mut converted = object.clone();
    converted["apiVersion"] = format!("{group}/{version}").into();
    converted["metadata"] = Value::Object(metadata);
    converted["spec"] = spec;
    converted
}
