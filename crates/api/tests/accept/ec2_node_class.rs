//! AP17.5: EC2NodeClass.

mod devices;
mod selectors;

use serde_json::{Value, json};

use crate::row::{Row, Table, drop, set};

const AMIS: &str = "spec.amiSelectorTerms";
const FAMILY: &str = "spec.amiFamily";
const KUBELET: &str = "spec.kubelet";

fn base() -> Value {
    json!({
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {},
        "spec": {
            "role": "role-1",
            "amiSelectorTerms": [{ "alias": "al2023@latest" }],
            "subnetSelectorTerms": [{ "tags": { "*": "*" } }],
            "securityGroupSelectorTerms": [{ "tags": { "*": "*" } }],
        },
    })
}

pub fn rows() -> Vec<Row> {
    let mut table = Table::new(base());
    identity(&mut table);
    families(&mut table);
    tags(&mut table);
    selectors::rows(&mut table);
    kubelet(&mut table);
    devices::rows(&mut table);
    table.into_rows()
}

/// AW24.2.1, AW24.2.2
fn identity(t: &mut Table) {
    let profile = || set("spec.instanceProfile", "profile-1");
    t.admits("AP17.5.1", []).stores(
        "spec.metadataOptions",
        json!({
            "httpEndpoint": "enabled",
            "httpProtocolIPv6": "disabled",
            "httpPutResponseHopLimit": 1,
            "httpTokens": "required",
        }),
    );
    t.admits("AP17.5.1", [drop("spec.role"), profile()]);
    let because = "must specify exactly one of ['role', 'instanceProfile']";
    t.refuses("AP17.5.2", because, [profile()]);
    t.refuses("AP17.5.2", because, [drop("spec.role")]);
    t.refuses("AP17.5.2", "role cannot be empty", [set("spec.role", "")]);
    t.admits("AP17.5.3", [set("spec.role", "role-2")]).updating(&base(), []);
    t.admits("AP17.5.3", [drop("spec.role"), profile()])
        .updating(&base(), []);
    t.admits("AP17.5.3", [])
        .updating(&base(), [drop("spec.role"), profile()]);
    t.admits("AP17.5.4", [drop("spec")]);
}

/// AW24.2.3
fn families(t: &mut Table) {
    let families = [
        "AL2",
        "AL2023",
        "Bottlerocket",
        "Windows2019",
        "Windows2022",
        "Windows2025",
    ];
    let by_id = || set(AMIS, json!([{ "id": "ami-12345749" }]));
    let by_alias = |family: &str| set(AMIS, json!([{ "alias": format!("{}@latest", family.to_lowercase()) }]));
    for family in families.iter().chain(&["Custom"]) {
        t.admits("AP17.5.5", [by_id(), set(FAMILY, *family)]);
    }
    t.refuses("AP17.5.6", FAMILY, [by_id(), set(FAMILY, "Ubuntu")]);
    for family in families {
        t.admits("AP17.5.7", [by_alias(family), set(FAMILY, family)]);
        t.admits("AP17.5.7", [by_alias(family), set(FAMILY, "Custom")]);
        for other in families.iter().filter(|other| **other != family) {
            t.refuses(
                "AP17.5.8",
                "if set, amiFamily must be",
                [by_alias(family), set(FAMILY, *other)],
            );
        }
        t.admits("AP17.5.10", [by_alias(family)]);
    }
    t.refuses(
        "AP17.5.9",
        "must specify amiFamily if amiSelectorTerms does not contain an alias",
        [by_id()],
    );
}

/// AW24.2.7
fn tags(t: &mut Table) {
    t.admits("AP17.5.11", [set("spec.tags", json!({}))]);
    for key in [
        "karpenter.sh/custom-key",
        "karpenter.sh/managed",
        "kubernetes.io/role/key",
    ] {
        t.admits("AP17.5.11", [set("spec.tags", json!({ key: "value" }))]);
    }
    for key in [
        "karpenter.sh/nodepool",
        "kubernetes.io/cluster/test",
        "eks:eks-cluster-name",
        "karpenter.k8s.aws/ec2nodeclass",
        "karpenter.sh/nodeclaim",
    ] {
        t.refuses(
            "AP17.5.12",
            "tag contains a restricted tag matching",
            [set("spec.tags", json!({ key: "value" }))],
        );
    }
    t.refuses(
        "AP17.5.12",
        "empty tag keys aren't supported",
        [set("spec.tags", json!({ "": "value" }))],
    );
}

/// AW24.2.8: settings that Karpenter does not understand are kept, right or wrong, and judged by the controller. Of its own
/// settings the server refuses what the release refuses, except for texts that may be expressions.
fn kubelet(t: &mut Table) {
    let with = |settings: Value| [set(KUBELET, settings)];
    for settings in [
        json!({ "maxPods": 10, "serializeImagePulls": false }),
        json!({ "logging": { "format": "json", "options": { "json": { "infoBufferSize": "0" } } } }),
        json!({ "serializeImagePulls": "sometimes", "noSuchSetting": [1, { "a": "b" }] }),
        json!({ "maxPods": "default_enis * (ips_per_eni - 1) + 2" }),
        json!({ "maxPods": "ten", "kubeReserved": { "cpu": "vcpus *" }, "systemReserved": { "memory": "255 + 11 * max_pods" } }),
    ] {
        t.admits("AP17.5.33", with(settings.clone())).stores(KUBELET, settings);
    }
    t.refuses("AP17.5.33", "spec.kubelet.maxPods", with(json!({ "maxPods": true })));
    t.refuses("AP17.5.33", "spec.kubelet", with(json!([])));
    for field in ["kubeReserved", "systemReserved"] {
        t.refuses("AP17.5.34", "valid keys for", with(json!({ field: { "pods": "10" } })));
        t.refuses(
            "AP17.5.34",
            "value cannot be a negative resource quantity",
            with(json!({ field: { "cpu": "-1" } })),
        );
    }
    let signals = json!({
        "memory.available": "5%",
        "nodefs.available": "5%",
        "nodefs.inodesFree": "5%",
        "imagefs.available": "5%",
        "imagefs.inodesFree": "5%",
        "pid.available": "5%",
    });
    t.admits("AP17.5.35", with(json!({ "evictionHard": signals })));
    let mut graces = signals.clone();
    for (_, grace) in graces.as_object_mut().expect("signals are a map") {
        *grace = "1m".into();
    }
    t.admits(
        "AP17.5.35",
        with(json!({ "evictionSoft": signals, "evictionSoftGracePeriod": graces })),
    );
    let grace = json!({ "memory.available": "1m" });
    for (field, extra) in [
        ("evictionHard", json!({})),
        ("evictionSoft", json!({ "evictionSoftGracePeriod": grace })),
    ] {
        for value in ["5%3", "110%", "110GB"] {
            let mut settings = extra.clone();
            settings[field] = json!({ "memory.available": value });
            t.refuses("AP17.5.36", "memory.available", with(settings));
        }
    }
    t.refuses(
        "AP17.5.36",
        "valid keys for evictionHard",
        with(json!({ "evictionHard": { "memory": "5%" } })),
    );
    t.refuses(
        "AP17.5.36",
        "valid keys for evictionSoft",
        with(json!({
            "evictionSoft": { "memory": "5%" },
            "evictionSoftGracePeriod": { "memory": "1m" },
        })),
    );
    t.refuses(
        "AP17.5.36",
        "spec.kubelet",
        with(json!({ "evictionSoft": { "memory.available": "5%" } })),
    );
    t.refuses(
        "AP17.5.36",
        "spec.kubelet",
        with(json!({ "evictionSoftGracePeriod": grace })),
    );
    t.admits("AP17.5.37", with(json!({ "imageGCHighThresholdPercent": 10 })));
    t.refuses(
        "AP17.5.38",
        "imageGCHighThresholdPercent must be greater than imageGCLowThresholdPercent",
        with(json!({ "imageGCHighThresholdPercent": 50, "imageGCLowThresholdPercent": 60 })),
    );
    t.refuses("AP17.5.38", "spec.kubelet.maxPods", with(json!({ "maxPods": -1 })));
}
