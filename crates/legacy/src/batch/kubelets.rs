//! Kubelet settings on their way from pools to classes.

use std::collections::BTreeMap;

use api::aws::KubeletConfiguration;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::{Value, json};

use super::draft::{Draft, Role};
use super::up::check_name;
use crate::context::Context;
use crate::kubelet::{Placement, Wish, place};
use crate::notes::{Change, Notes, Reason};

/// The pod limit that a node had when it was not limited by its network interfaces.
const UNLIMITED_PODS: i32 = 110;

/// Gives every class its kubelet settings, and pools that differ classes of their own.
pub fn settle(drafts: &mut Vec<Draft>, context: &Context<'_>) {
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

fn write_kubelet(draft: &mut Draft, kubelet: Option<KubeletConfiguration>, pod_limit: bool) {
    let mut kubelet = kubelet.unwrap_or_default();
    if pod_limit && kubelet.max_pods.is_none() {
        kubelet.max_pods = Some(IntOrString::Int(UNLIMITED_PODS));
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
