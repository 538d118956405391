//! Everything to v1.

use std::collections::{BTreeMap, BTreeSet};

use api::aws::{EC2NodeClassSpec, KubeletConfiguration};
use api::duration::DurationOrNever;
use serde_json::{Value, json};

use super::draft::{ClassRole, Draft, PoolRole, Role};
use super::kind::Kind;
use super::{Source, other, refused};
use crate::alpha::machine::PoolFacts;
use crate::alpha::{self, devices, launch_template};
use crate::beta;
use crate::context::Context;
use crate::kubelet::{Placement, Wish, place};
use crate::notes::{Change, Notes, Reason};
use crate::{manifest, settings, values};

/// The pod limit that a node had when it was not limited by its network interfaces.
const UNLIMITED_PODS: i32 = 110;
const LONGEST_NAME: usize = 253;

pub fn drafts(sources: &[Source<'_>], context: &Context<'_>) -> Vec<Draft> {
    let is_class = |source: &&Source<'_>| matches!(source.kind, Kind::NodeTemplate | Kind::BetaClass | Kind::Class);
    let classes: BTreeSet<&str> = sources.iter().filter(is_class).map(Source::name).collect();
    let mut drafts = Vec::new();
    for source in sources {
        if source.kind == Kind::LaunchTemplates {
            continue;
        }
        drafts.extend(draft(source, &classes, context));
    }
    settle_kubelets(&mut drafts, context);
    settle_claims(&mut drafts);
    drafts
}

fn draft(source: &Source<'_>, classes: &BTreeSet<&str>, context: &Context<'_>) -> Vec<Draft> {
    let nameless = !matches!(source.kind, Kind::Values | Kind::Other) && source.name().is_empty();
    if nameless {
        let problem = "is missing".to_owned();
        return vec![refused(source, "metadata.name", Reason::Invalid { problem })];
    }
    match source.kind {
        Kind::Provisioner(generation) => super::provisioner(source, generation, classes, context),
        Kind::NodeTemplate => vec![super::node_template(source, context)],
        Kind::BetaPool => vec![beta_pool(source)],
        Kind::BetaClass => vec![beta_class(source, context)],
        Kind::Pool => vec![pool(source)],
        Kind::Class => vec![class(source)],
        Kind::Machine | Kind::BetaClaim => {
            let draft = Draft::kept(source, source.object.clone().into_owned());
            vec![Draft {
                role: Role::Claim,
                ..draft
            }]
        }
        Kind::Settings => {
            let mut notes = Notes::on(source.subject.clone());
            match settings::environment(&source.object, &mut notes) {
                Some(object) => vec![Draft::made(source, object, Role::None, notes)],
                None => vec![other(source, context.options)],
            }
        }
        Kind::Values => {
            let mut notes = Notes::on(source.subject.clone());
            let object = values::convert(&source.object, &mut notes);
            let changed = object != *source.object;
            vec![Draft {
                changed,
                ..Draft::made(source, object, Role::None, notes)
            }]
        }
        Kind::TooOld => vec![refused(source, "apiVersion", Reason::TooOld)],
        Kind::Claim | Kind::LaunchTemplates => vec![Draft::kept(source, source.object.clone().into_owned())],
        Kind::Other => vec![other(source, context.options)],
    }
}

fn beta_pool(source: &Source<'_>) -> Draft {
    let mut notes = Notes::on(source.subject.clone());
    let mut object = source.object.clone().into_owned();
    if let Some(kubelet) = object.pointer_mut("/spec/template/spec/kubelet") {
        manifest::quote_kubelet(kubelet);
    }
    let Some(read) = manifest::read::<beta::NodePoolSpec>(&object, "spec", &mut notes) else {
        return Draft {
            notes,
            ..Draft::kept(source, object)
        };
    };
    for field in read.unknown {
        notes.warn(field, Change::FieldUnknown);
    }
    let mut metadata = manifest::metadata(&object);
    let spec = beta::node_pool::up(read.value, &mut metadata);
    let role = take_pool_role(&mut metadata, &spec.template.spec.node_class_ref.name, false);
    Draft::made(
        source,
        manifest::object("karpenter.sh/v1", "NodePool", metadata, spec),
        Role::Pool(role),
        notes,
    )
}

/// Takes the annotations off that a conversion of a single object needs: their content finds its place in a class.
fn take_pool_role(metadata: &mut serde_json::Map<String, Value>, class: &str, settled: bool) -> PoolRole {
    manifest::take_annotation(metadata, beta::annotations::NODE_CLASS_REFERENCE);
    let kubelet = beta::node_pool::take_kubelet(metadata);
    PoolRole {
        class: class.to_owned(),
        settled: settled && kubelet.is_none(),
        kubelet,
    }
}

/// A pool of v1 stays as it is, unless a webhook of 1.0 left annotations on it.
fn pool(source: &Source<'_>) -> Draft {
    let mut object = source.object.clone().into_owned();
    let class = object
        .pointer("/spec/template/spec/nodeClassRef/name")
        .and_then(Value::as_str);
    let class = class.unwrap_or_default().to_owned();
    let changed = [beta::annotations::KUBELET, beta::annotations::NODE_CLASS_REFERENCE]
        .iter()
        .any(|key| manifest::annotation(&object, key).is_some());
    let mut role = PoolRole {
        class: class.clone(),
        settled: true,
        kubelet: None,
    };
    if changed {
        let mut metadata = manifest::metadata(&object);
        role = take_pool_role(&mut metadata, &class, true);
        object["metadata"] = Value::Object(metadata);
        if let Some(fields) = object.as_object_mut() {
            fields.remove("status");
        }
    }
    Draft {
        changed,
        role: Role::Pool(role),
        ..Draft::kept(source, object)
    }
}

fn beta_class(source: &Source<'_>, context: &Context<'_>) -> Draft {
    let mut notes = Notes::on(source.subject.clone());
    let object = source.object.clone().into_owned();
    let Some(read) = manifest::read::<beta::EC2NodeClassSpec>(&object, "spec", &mut notes) else {
        return Draft {
            notes,
            ..Draft::kept(source, object)
        };
    };
    for field in read.unknown {
        notes.warn(field, Change::FieldUnknown);
    }
    let mut metadata = manifest::metadata(&object);
    let mut spec = beta::node_class::up(read.value, &mut metadata, &mut notes);
    write_hop_limit(&mut spec, context, &mut notes);
    if spec.ami_selector_terms.is_empty() {
        notes.invalid(
            "spec.amiSelectorTerms",
            "is missing, and the family has no images of its own",
        );
    }
    let role = Role::Class(ClassRole::default());
    Draft::made(
        source,
        manifest::object("karpenter.k8s.aws/v1", "EC2NodeClass", metadata, spec),
        role,
        notes,
    )
}

/// v1beta1 let answers of the metadata service travel two hops unless told otherwise, v1 lets them travel one.
fn write_hop_limit(spec: &mut EC2NodeClassSpec, context: &Context<'_>, notes: &mut Notes) {
    let silent = spec
        .metadata_options
        .as_ref()
        .is_none_or(|options| options.http_put_response_hop_limit.is_none());
    if context.options.v1_metadata_defaults || !silent {
        return;
    }
    notes.warn("spec.metadataOptions", Change::HopLimitWritten);
    let options = spec
        .metadata_options
        .get_or_insert_with(devices::absent_metadata_options);
    options.http_put_response_hop_limit = Some(2);
}

fn class(source: &Source<'_>) -> Draft {
    let object = source.object.clone().into_owned();
    let mut kubelet = object.pointer("/spec/kubelet").cloned().unwrap_or_default();
    manifest::quote_kubelet(&mut kubelet);
    let kubelet = serde_json::from_value::<Option<KubeletConfiguration>>(kubelet)
        .ok()
        .flatten();
    let role = Role::Class(ClassRole { kubelet, alpha: false });
    Draft {
        role,
        ..Draft::kept(source, object)
    }
}

/// Gives every class its kubelet settings, and pools that differ classes of their own.
fn settle_kubelets(drafts: &mut Vec<Draft>, context: &Context<'_>) {
    let mut known = BTreeMap::new();
    for draft in drafts.iter() {
        if let Role::Class(role) = &draft.role {
            known.insert(draft.name().to_owned(), role.kubelet.clone());
        }
    }
    let mut wishes = Vec::new();
    for draft in drafts.iter_mut() {
        let Role::Pool(role) = &draft.role else { continue };
        match known.get(&role.class) {
            Some(own) => wishes.push(Wish {
                pool: draft.name().to_owned(),
                class: role.class.clone(),
                kubelet: role.kubelet.clone().or_else(|| own.clone()),
                settled: role.settled,
            }),
            None if role.kubelet.is_some() => {
                let class = role.class.clone();
                if context.options.force {
                    draft.notes.warn("kubelet", Change::Forced { to: "a pool of v1" });
                } else {
                    draft.notes.refuse("kubelet", Reason::KubeletWithoutClass { class });
                }
            }
            None => {}
        }
    }
    let placement = place(&wishes);
    let mut settled = Vec::new();
    for mut draft in std::mem::take(drafts) {
        match &draft.role {
            Role::Pool(_) => move_pool(&mut draft, &placement),
            Role::Class(_) => {
                let copies = settle_class(&mut draft, &placement, context);
                settled.push(draft);
                settled.extend(copies);
                continue;
            }
            Role::Claim | Role::None => {}
        }
        settled.push(draft);
    }
    *drafts = settled;
}

fn move_pool(draft: &mut Draft, placement: &Placement) {
    if let Some(class) = placement.moved.get(draft.name()).cloned() {
        draft.object["spec"]["template"]["spec"]["nodeClassRef"]["name"] = class.as_str().into();
        draft.changed = true;
        if let Role::Pool(role) = &mut draft.role {
            role.class = class;
        }
    }
}

/// Writes the settings into the class; the answer is the copies that others need.
fn settle_class(draft: &mut Draft, placement: &Placement, context: &Context<'_>) -> Vec<Draft> {
    let Role::Class(role) = &draft.role else {
        return Vec::new();
    };
    let pod_limit = role.alpha && context.facts.unlimited_density;
    let name = draft.name().to_owned();
    let original = draft.object.clone();
    let kubelet = placement
        .classes
        .get(&name)
        .cloned()
        .unwrap_or_else(|| role.kubelet.clone());
    let already = role.kubelet == kubelet && !pod_limit;
    if !already {
        draft.changed = true;
        write_kubelet(draft, kubelet, pod_limit);
    }
    let mut copies = Vec::new();
    for copy in placement.copies.iter().filter(|copy| copy.of == name) {
        let mut made = Draft {
            input: draft.input,
            object: original.clone(),
            role: Role::None,
            changed: true,
            silent: false,
            notes: Notes::on(draft.notes.subject.clone()),
        };
        made.object["metadata"]["name"] = copy.name.as_str().into();
        let (class, pools) = (name.clone(), copy.pools.join(", "));
        made.notes.warn(
            "",
            Change::KubeletSplit {
                class,
                copy: copy.name.clone(),
                pools,
            },
        );
        check_name(&copy.name, &mut made.notes);
        write_kubelet(&mut made, copy.kubelet.clone(), pod_limit);
        copies.push(made);
    }
    copies
}

pub fn check_name(name: &str, notes: &mut Notes) {
    if name.len() > LONGEST_NAME {
        notes.invalid(
            "metadata.name",
            format!("{name:?} is longer than {LONGEST_NAME} characters"),
        );
    }
}

fn write_kubelet(draft: &mut Draft, kubelet: Option<KubeletConfiguration>, pod_limit: bool) {
    let mut kubelet = kubelet.unwrap_or_default();
    if pod_limit && kubelet.max_pods.is_none() {
        kubelet.max_pods = Some(UNLIMITED_PODS);
        draft.notes.warn("", Change::DensityWritten);
    }
    let Some(spec) = draft.object.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    if kubelet == KubeletConfiguration::default() {
        spec.remove("kubelet");
    } else {
        spec.insert("kubelet".to_owned(), json!(kubelet));
    }
}

/// Claims take their class and their time to expire from the pool as it is now.
fn settle_claims(drafts: &mut [Draft]) {
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
    let mut metadata = super::claim_metadata(claim, "karpenter.sh/v1");
    let expire_after = pool.and_then(|pool| pool.expire_after.clone());
    let mut spec = beta::node_claim::up(read.value, expire_after, &mut metadata);
    let role = take_pool_role(&mut metadata, &spec.node_class_ref.name, false);
    spec.node_class_ref.name = pool.and_then(|pool| pool.class.clone()).unwrap_or(role.class);
    let mut object = manifest::object("karpenter.sh/v1", "NodeClaim", metadata, spec);
    if let Some(status) = claim.get("status").filter(|status| !manifest::is_empty(status)) {
        object["status"] = status.clone();
    }
    Some(object)
}

/// The annotation that keeps a launch template, on the class that is made.
pub fn keep_template(metadata: &mut serde_json::Map<String, Value>, kept: Option<String>) {
    if let Some(kept) = kept {
        manifest::annotate(metadata, launch_template::ANNOTATION, kept);
    }
}
