//! Bottlerocket: settings in TOML.
//!
//! What the user set outside `settings.kubernetes` stays as it is, and so do Kubernetes settings that Karpenter does not
//! decide. (Upstream drops those that it does not know; the node then lacks them without a word.)

use toml_edit::{Array, DocumentMut, Item, Table, Value};

use super::{Bootstrap, UserDataError, toml_text};

/// Upstream's order of the keys under `settings.kubernetes`.
const KUBERNETES_KEYS: &[&str] = &[
    "api-server",
    "cloud-provider",
    "cluster-certificate",
    "cluster-name",
    "cluster-dns-ip",
    "credential-providers",
    "node-labels",
    "node-taints",
    "max-pods",
    "static-pods",
    "eviction-hard",
    "eviction-soft",
    "eviction-soft-grace-period",
    "eviction-max-pod-grace-period",
    "kube-reserved",
    "system-reserved",
    "allowed-unsafe-sysctls",
    "server-tls-bootstrap",
    "registry-qps",
    "registry-burst",
    "event-qps",
    "event-burst",
    "kube-api-qps",
    "kube-api-burst",
    "container-log-max-size",
    "container-log-max-files",
    "cpu-manager-policy",
    "cpu-manager-policy-options",
    "cpu-manager-reconcile-period",
    "memory-manager-policy",
    "memory-manager-reserved-memory",
    "topology-manager-scope",
    "topology-manager-policy",
    "topology-manager-policy-options",
    "image-gc-high-threshold-percent",
    "image-gc-low-threshold-percent",
    "ids-per-pod",
    "cpu-cfs-quota-enforced",
    "shutdown-grace-period",
    "shutdown-grace-period-for-critical-pods",
    "cluster-domain",
    "seccomp-default",
    "pod-pids-limit",
    "device-ownership-from-security-context",
    "single-process-oom-kill",
    "container-log-max-workers",
    "container-log-monitor-interval",
    "hostname-override-source",
    "log-level",
];

const COMMAND_KEYS: &[&str] = &["commands", "mode", "essential"];
const CREDENTIAL_KEYS: &[&str] = &["enabled", "cache-duration", "image-patterns", "environment"];
const TOPOLOGY_KEYS: &[&str] = &["prefer-closest-numa-nodes", "max-allowable-numa-nodes"];

/// The first release whose `ephemeral-storage bind` knows what to bind.
const BINDS_BY_ITSELF: [u64; 3] = [1, 46, 0];

pub(super) fn text(bootstrap: &Bootstrap) -> Result<String, UserDataError> {
    let custom = bootstrap.custom_text().unwrap_or_default();
    let mut document: DocumentMut = custom
        .parse()
        .map_err(|error: toml_edit::TomlError| UserDataError::Toml(error.message().to_owned()))?;
    let settings = table(document.as_table_mut(), "settings")?;
    kubernetes(table(settings, "kubernetes")?, bootstrap)?;
    if bootstrap.uses_raid0() {
        let commands = table(settings, "bootstrap-commands")?;
        commands.insert("000-mount-instance-storage", Item::Table(mount_command(bootstrap)));
    }
    Ok(toml_text::write(document.as_table(), key_order))
}

fn key_order(path: &[&str]) -> Option<&'static [&'static str]> {
    match path {
        ["settings", "kubernetes"] => Some(KUBERNETES_KEYS),
        ["settings", "kubernetes", "credential-providers", _] => Some(CREDENTIAL_KEYS),
        ["settings", "kubernetes", "topology-manager-policy-options"] => Some(TOPOLOGY_KEYS),
        ["settings", "bootstrap-commands", _] => Some(COMMAND_KEYS),
        _ => None,
    }
}

/// The table of this name, made if there is none; inline tables become proper ones.
fn table<'a>(parent: &'a mut Table, key: &str) -> Result<&'a mut Table, UserDataError> {
    let item = parent.entry(key).or_insert_with(|| Item::Table(Table::new()));
    if let Item::Value(Value::InlineTable(inline)) = item {
        *item = Item::Table(std::mem::take(inline).into_table());
    }
    item.as_table_mut()
        .ok_or_else(|| UserDataError::Toml(format!("{key} is not a table")))
}

fn kubernetes(settings: &mut Table, bootstrap: &Bootstrap) -> Result<(), UserDataError> {
    let kubelet = &bootstrap.kubelet;
    let mut set = |key: &str, value: Value| {
        settings.insert(key, Item::Value(value));
    };
    set("api-server", bootstrap.cluster_endpoint.as_str().into());
    set("cluster-name", bootstrap.cluster_name.as_str().into());
    if let Some(ca) = &bootstrap.ca_bundle {
        set("cluster-certificate", ca.as_str().into());
    }
    if let Some(dns) = bootstrap.dns() {
        set("cluster-dns-ip", dns.into());
    }
    if let Some(pods) = bootstrap.max_pods() {
        set("max-pods", i64::from(pods).into());
    }
    if let Some(seconds) = kubelet.eviction_max_pod_grace_period {
        set("eviction-max-pod-grace-period", i64::from(seconds).into());
    }
    for (key, percent) in [
        (
            "image-gc-high-threshold-percent",
            kubelet.image_gc_high_threshold_percent,
        ),
        ("image-gc-low-threshold-percent", kubelet.image_gc_low_threshold_percent),
    ] {
        if let Some(percent) = percent {
            set(key, percent.to_string().into());
        }
    }
    if let Some(on) = kubelet.cpu_cfs_quota {
        set("cpu-cfs-quota-enforced", on.into());
    }
    let grace_periods = bootstrap.grace_periods()?;
    for (key, entries) in [
        ("system-reserved", kubelet.system_reserved.as_ref()),
        ("kube-reserved", kubelet.kube_reserved.as_ref()),
        ("eviction-hard", kubelet.eviction_hard.as_ref()),
        ("eviction-soft", kubelet.eviction_soft.as_ref()),
        ("eviction-soft-grace-period", grace_periods.as_ref()),
    ] {
        if let Some(entries) = entries {
            let entries = entries
                .iter()
                .map(|(name, value)| (name.as_str(), Value::from(value.as_str())));
            settings.insert(key, Item::Table(entries.collect()));
        }
    }
    let labels = table(settings, "node-labels")?;
    for (key, value) in &bootstrap.labels {
        labels.insert(key, Item::Value(value.as_str().into()));
    }
    let mut taints = Table::new();
    for taint in &bootstrap.taints {
        let entry = taints
            .entry(&taint.key)
            .or_insert_with(|| Item::Value(Array::new().into()));
        let written = format!("{}:{}", taint.value, taint.effect);
        entry.as_array_mut().expect("it was made as a list").push(written);
    }
    settings.insert("node-taints", Item::Table(taints));
    Ok(())
}

fn mount_command(bootstrap: &Bootstrap) -> Table {
    let command = |words: &[&str]| Value::from(words.iter().copied().collect::<Array>());
    let mut bind = vec!["apiclient", "ephemeral-storage", "bind"];
    if !binds_by_itself(bootstrap.image_version.as_deref()) {
        bind.extend(["--dirs", "/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods"]);
    }
    let commands = [command(&["apiclient", "ephemeral-storage", "init"]), command(&bind)];
    let mut table = Table::new();
    table.insert("commands", Item::Value(commands.into_iter().collect::<Array>().into()));
    table.insert("mode", Item::Value("always".into()));
    table.insert("essential", Item::Value(true.into()));
    table
}

fn binds_by_itself(version: Option<&str>) -> bool {
    let Some(version) = version else { return false };
    if version == "latest" {
        return true;
    }
    let version = version.trim_start_matches('v');
    let numbers: Vec<u64> = version
        .split(['.', '-'])
        .map_while(|part| part.parse().ok())
        .take(3)
        .collect();
    numbers.len() == 3 && numbers.as_slice() >= BINDS_BY_ITSELF.as_slice()
}
