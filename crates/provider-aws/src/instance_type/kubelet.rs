//! What the kubelets of one instance type are told, where the class leaves it to an expression.
//!
//! This is the only place that evaluates expressions: what is planned with, what user data says and what validation finds
//! wrong all come from here.

use std::collections::BTreeMap;

use api::aws::KubeletConfiguration;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use model::Quantity;
use tracing::warn;

use super::{
    Setting, Unreadable,
    formula::{Formulas, Variables},
    pods,
};
use crate::ports::InstanceTypeInfo;

type Amounts = BTreeMap<String, String>;

/// What is set aside on machines of one type, in the kubelet's words.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reserved {
    pub kube: Amounts,
    pub system: Amounts,
}

/// The settings that decide how much of a machine pods get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Resolved {
    pub pods: i64,
    pub reserved: Reserved,
}

/// What the class says of machines of this type. Amounts that have no value are left out: validation has refused the class
/// for them, and nodes that it launched before are still to be understood.
pub(super) fn resolved(info: &InstanceTypeInfo, setting: &Setting<'_>) -> Result<Resolved, Unreadable> {
    let (resolved, refused) = judged(info, setting)?;
    for problem in refused {
        warn!(instance_type = info.name, %problem, "a reservation of a node class is left out");
    }
    Ok(resolved)
}

/// The first thing that the class's expressions do wrong on machines of this type.
pub(super) fn checked(info: &InstanceTypeInfo, setting: &Setting<'_>) -> Result<(), Unreadable> {
    let (_, refused) = judged(info, setting)?;
    refused.into_iter().next().map_or(Ok(()), Err)
}

fn judged(info: &InstanceTypeInfo, setting: &Setting<'_>) -> Result<(Resolved, Vec<Unreadable>), Unreadable> {
    let unset = KubeletConfiguration::default();
    let written = setting.class.spec.kubelet.as_ref().unwrap_or(&unset);
    let bound = max_pods(info, written, setting)?;
    let pods = pods::bounded_by_cores(bound, info, setting.class);
    let mut refused = Vec::new();
    let mut amounts = |field: &'static str, written: Option<&Amounts>| {
        let variables = || Variables::of(info, pods).map_err(|error| error.to_string());
        let found = amounts(written, setting.formulas, variables).map_err(|problem| Unreadable {
            field: field.to_owned(),
            text: info.name.clone(),
            problem,
        })?;
        let mut kept = Amounts::new();
        for (name, amount) in found {
            match amount {
                Ok(amount) => {
                    kept.insert(name, amount);
                }
                Err((text, problem)) => refused.push(Unreadable {
                    field: format!("{field}.{name}"),
                    text,
                    problem: format!("{problem} for {}", info.name),
                }),
            }
        }
        Ok::<_, Unreadable>(kept)
    };
    let reserved = Reserved {
        kube: amounts("kubelet.kubeReserved", written.kube_reserved.as_ref())?,
        system: amounts("kubelet.systemReserved", written.system_reserved.as_ref())?,
    };
    Ok((Resolved { pods, reserved }, refused))
}

fn max_pods(info: &InstanceTypeInfo, written: &KubeletConfiguration, setting: &Setting<'_>) -> Result<i64, Unreadable> {
    let default = pods::default_pods(info, setting);
    let text = match &written.max_pods {
        Some(IntOrString::Int(count)) => return Ok(i64::from(*count)),
        Some(IntOrString::String(text)) if setting.formulas.are_allowed() => text,
        _ => return Ok(default),
    };
    let unreadable = |problem: String| Unreadable {
        field: "kubelet.maxPods".to_owned(),
        text: text.clone(),
        problem,
    };
    let formula = setting
        .formulas
        .of(text)
        .map_err(|error| unreadable(error.to_string()))?;
    let variables = Variables::of(info, default).map_err(|error| unreadable(error.to_string()))?;
    let pods = formula
        .value(&variables)
        .map_err(|error| unreadable(format!("has no value for {}: {error}", info.name)))?;
    match i32::try_from(pods) {
        Ok(pods) if pods >= 0 => Ok(i64::from(pods)),
        _ => Err(unreadable(format!(
            "yields {pods} for {}, which is no number of pods",
            info.name
        ))),
    }
}

/// An amount, or what was written and what is wrong with it.
type Amount = Result<String, (String, String)>;

/// Every amount in the kubelet's words. Variables are asked for once, and only if there is an expression; without them
/// there is no answer at all.
fn amounts<E>(
    written: Option<&Amounts>,
    formulas: &Formulas,
    variables: impl Fn() -> Result<Variables, E>,
) -> Result<Vec<(String, Amount)>, E> {
    let mut known = None;
    let mut found = Vec::new();
    for (name, text) in written.into_iter().flatten() {
        if Quantity::parse(text).is_ok() {
            found.push((name.clone(), Ok(text.clone())));
            continue;
        }
        if !formulas.are_allowed() {
            continue;
        }
        let variables = match &mut known {
            Some(known) => known,
            none => none.insert(variables()?),
        };
        let amount = amount(name, text, formulas, variables);
        found.push((name.clone(), amount.map_err(|problem| (text.clone(), problem))));
    }
    Ok(found)
}

fn amount(name: &str, text: &str, formulas: &Formulas, variables: &Variables) -> Result<String, String> {
    let formula = formulas.of(text).map_err(|error| error.to_string())?;
    let value = formula.value(variables);
    let value = value.map_err(|error| format!("has no value ({error})"))?;
    let amount = u64::try_from(value).map_err(|_| format!("yields {value}, which cannot be set aside"))?;
    Ok(rendered(name, amount))
}

/// In steps that keep the number of different launch templates small: 10 millicores, 16 MiB.
fn rendered(name: &str, amount: u64) -> String {
    match name {
        "cpu" => format!("{}m", amount.next_multiple_of(10)),
        "memory" => format!("{}Mi", amount.next_multiple_of(16)),
        "ephemeral-storage" => format!("{amount}Gi"),
        _ => amount.to_string(),
    }
}

/// The settings of a class that are expressions, by the names of their fields.
pub fn expressions(kubelet: &KubeletConfiguration) -> Vec<(String, &str)> {
    let max_pods = match &kubelet.max_pods {
        Some(IntOrString::String(text)) => Some(("kubelet.maxPods".to_owned(), text.as_str())),
        _ => None,
    };
    let maps = [
        ("kubelet.kubeReserved", kubelet.kube_reserved.as_ref()),
        ("kubelet.systemReserved", kubelet.system_reserved.as_ref()),
    ];
    let amounts = maps.into_iter().flat_map(|(field, amounts)| {
        let texts = amounts.into_iter().flatten();
        let texts = texts.filter(|(_, text)| Quantity::parse(text).is_err());
        texts.map(move |(name, text)| (format!("{field}.{name}"), text.as_str()))
    });
    max_pods.into_iter().chain(amounts).collect()
}

#[cfg(test)]
mod tests;
