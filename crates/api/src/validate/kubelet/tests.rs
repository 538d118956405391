use serde_json::json;

use super::*;

fn problems(settings: Value) -> Vec<String> {
    let Value::Object(settings) = settings else {
        panic!("settings are an object")
    };
    kubelet(&settings).iter().map(ToString::to_string).collect()
}

#[track_caller]
fn ok(settings: Value) {
    assert_eq!(problems(settings), [] as [String; 0]);
}

/// The errors are about exactly these fields.
#[track_caller]
fn fails(settings: Value, fields: &[&str]) {
    let problems = problems(settings.clone());
    let about = |field: &&str| {
        problems
            .iter()
            .any(|problem| problem.starts_with(&format!("{PATH}.{field}:")))
    };
    assert!(
        fields.iter().all(about) && !problems.is_empty(),
        "{settings}: {problems:?}"
    );
}

/// AP17.6.1, AP17.6.2, AP17.6.3, AP17.6.4, AP17.6.5, AP17.6.6, AP17.6.7
#[test]
fn sound_settings_pass() {
    ok(json!({}));
    ok(json!({
        "maxPods": 110,
        "podsPerCore": 10,
        "kubeReserved": { "cpu": "100m", "memory": "1Gi" },
        "systemReserved": { "ephemeral-storage": "1Gi", "pid": "100" },
        "evictionHard": { "memory.available": "5%" },
    }));
    ok(json!({
        "serializeImagePulls": false,
        "logging": { "format": "json", "flushFrequency": "5s", "options": { "json": { "splitStream": true } } },
    }));
    ok(json!({ "evictionHard": { "nodefs.available": "500Mi" } }));
    ok(json!({
        "evictionSoft": { "memory.available": "10%" },
        "evictionSoftGracePeriod": { "memory.available": "1m" },
    }));
    ok(json!({ "imageGCHighThresholdPercent": 80, "imageGCLowThresholdPercent": 60 }));
    ok(json!({ "maxPods": 0, "podsPerCore": 0, "evictionMaxPodGracePeriod": 0 }));
    ok(json!({
        "maxPods": "vcpus * 10",
        "kubeReserved": { "memory": "memory * 0.1" },
        "systemReserved": { "cpu": "vcpus * 10m" },
    }));
}

/// AP17.6.8, AP17.6.9
#[test]
fn unknown_fields_and_wrong_types_fail_at_any_depth() {
    fails(json!({ "noSuchField": 1 }), &["noSuchField"]);
    fails(json!({ "logging": { "noSuchField": 1 } }), &["logging.noSuchField"]);
    fails(
        json!({ "logging": { "options": { "json": { "noSuchField": 1 } } } }),
        &["logging.options.json.noSuchField"],
    );
    fails(json!({ "podsPerCore": "ten" }), &["podsPerCore"]);
    fails(json!({ "logging": { "format": 12345 } }), &["logging.format"]);
    fails(json!({ "clusterDNS": "10.0.0.1" }), &["clusterDNS"]);
    fails(json!({ "maxPods": true }), &["maxPods"]);
    fails(json!({ "kubeReserved": { "cpu": 1 } }), &["kubeReserved[cpu]"]);
    fails(
        json!({ "evictionHard": { "memory.available": 5 } }),
        &["evictionHard[memory.available]"],
    );
    fails(json!({ "cpuCFSQuota": "true" }), &["cpuCFSQuota"]);
}

/// AP17.6.10, AP17.6.11
#[test]
fn numbers_out_of_bounds_fail() {
    for field in ["maxPods", "podsPerCore", "evictionMaxPodGracePeriod"] {
        fails(json!({ field: -1 }), &[field]);
    }
    for (high, low) in [(101, 60), (-1, -2), (60, 80), (70, 70)] {
        fails(
            json!({ "imageGCHighThresholdPercent": high, "imageGCLowThresholdPercent": low }),
            &["imageGCHighThresholdPercent"],
        );
    }
    fails(
        json!({ "imageGCLowThresholdPercent": 101 }),
        &["imageGCLowThresholdPercent"],
    );
}

/// AP17.6.12
#[test]
fn only_known_resources_can_be_reserved_and_not_below_zero() {
    for field in ["kubeReserved", "systemReserved"] {
        fails(json!({ field: { "gpu": "1" } }), &[&format!("{field}[gpu]")]);
        fails(json!({ field: { "cpu": "-1" } }), &[&format!("{field}[cpu]")]);
    }
}

/// AP17.6.13, AP17.6.14, AP17.6.15
#[test]
fn eviction_thresholds_need_known_signals_and_readable_values() {
    for field in [
        "evictionHard",
        "evictionSoft",
        "evictionMinimumReclaim",
        "evictionSoftGracePeriod",
    ] {
        fails(
            json!({ field: { "notASignal": "5m" } }),
            &[&format!("{field}[notASignal]")],
        );
    }
    fails(
        json!({ "evictionHard": { "memory.available": "lots" } }),
        &["evictionHard[memory.available]"],
    );
    for period in ["soon", "-1m", "5x"] {
        fails(
            json!({
                "evictionSoft": { "memory.available": "5%" },
                "evictionSoftGracePeriod": { "memory.available": period },
            }),
            &["evictionSoftGracePeriod[memory.available]"],
        );
    }
    fails(
        json!({ "evictionSoft": { "memory.available": "5%" } }),
        &["evictionSoft[memory.available]"],
    );
    fails(
        json!({ "evictionSoftGracePeriod": { "memory.available": "1m" } }),
        &["evictionSoftGracePeriod[memory.available]"],
    );
    fails(
        json!({
            "evictionSoft": { "memory.available": "5%" },
            "evictionSoftGracePeriod": { "pid.available": "1m" },
        }),
        &[
            "evictionSoft[memory.available]",
            "evictionSoftGracePeriod[pid.available]",
        ],
    );
}

/// AP17.6.16
#[test]
fn taints_are_not_for_the_kubelet_to_register() {
    let taints = json!([{ "key": "a", "effect": "NoSchedule" }]);
    assert_eq!(problems(json!({ "registerWithTaints": taints })).len(), 1);
}

/// AP17.6.17
#[test]
fn all_faults_are_listed() {
    fails(
        json!({ "noSuchField": 1, "maxPods": -1, "kubeReserved": { "gpu": "1" }, "evictionHard": { "x": "lots" } }),
        &["noSuchField", "maxPods", "kubeReserved[gpu]", "evictionHard[x]"],
    );
}
