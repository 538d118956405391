//! Kubelet settings as command line flags, for the families that take them so.

use std::collections::BTreeMap;

use super::{Bootstrap, UserDataError};

/// The flags in upstream's order; what is not set is left out.
pub(super) fn flags(bootstrap: &Bootstrap) -> Result<Vec<String>, UserDataError> {
    let kubelet = &bootstrap.kubelet;
    let number = |name: &str, value: Option<i32>| value.map(|value| format!("--{name}={value}"));
    let all = [
        node_labels(&bootstrap.labels),
        Some(taints(bootstrap)),
        number("max-pods", bootstrap.max_pods()),
        number("pods-per-core", kubelet.pods_per_core),
        joined("system-reserved", kubelet.system_reserved.as_ref(), '='),
        joined("kube-reserved", kubelet.kube_reserved.as_ref(), '='),
        joined("eviction-hard", kubelet.eviction_hard.as_ref(), '<'),
        joined("eviction-soft", kubelet.eviction_soft.as_ref(), '<'),
        joined("eviction-soft-grace-period", bootstrap.grace_periods()?.as_ref(), '='),
        number("eviction-max-pod-grace-period", kubelet.eviction_max_pod_grace_period),
        number("image-gc-high-threshold", kubelet.image_gc_high_threshold_percent),
        number("image-gc-low-threshold", kubelet.image_gc_low_threshold_percent),
        kubelet.cpu_cfs_quota.map(|on| format!("--cpu-cfs-quota={on}")),
    ];
    Ok(all.into_iter().flatten().collect())
}

/// The one flag that AL2023 takes too.
pub(super) fn node_labels(labels: &BTreeMap<String, String>) -> Option<String> {
    joined("node-labels", Some(labels), '=')
}

fn taints(bootstrap: &Bootstrap) -> String {
    let taints: Vec<String> = bootstrap.taints.iter().map(ToString::to_string).collect();
    format!("--register-with-taints=\"{}\"", taints.join(","))
}

fn joined(name: &str, entries: Option<&BTreeMap<String, String>>, separator: char) -> Option<String> {
    let entries = entries.filter(|entries| !entries.is_empty())?;
    let pairs: Vec<String> = entries
        .iter()
        .map(|(key, value)| format!("{key}{separator}{value}"))
        .collect();
    Some(format!("--{name}=\"{}\"", pairs.join(",")))
}
