//! Provisioners of v1alpha5 become pools.

use legacy::{Change, Options, Output, Reason};
use serde_json::json;

use crate::fixtures::{TEMPLATE, beta, object, provisioner, reasons, refused, to_v1, to_v1beta1, warns};

fn defaults() -> serde_json::Value {
    json!([
        {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
        {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
        {"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["c", "m", "r"]},
        {"key": "karpenter.k8s.aws/instance-generation", "operator": "Gt", "values": ["2"]},
    ])
}

/// LE18.1
#[test]
fn a_full_provisioner_keeps_all_of_its_meaning() {
    let converted = to_v1(
        &provisioner(
            "taints: [{key: example.com/special, effect: NoSchedule, value: 'yes'}]
startupTaints: [{key: example.com/starting, effect: NoExecute}]
labels: {billing: team-a}
annotations: {example.com/owner: my-team}
requirements:
- {key: karpenter.k8s.aws/instance-category, operator: In, values: [c, m, r]}
- {key: karpenter.k8s.aws/instance-cpu, operator: In, values: ['4', '8']}
- {key: karpenter.k8s.aws/instance-hypervisor, operator: In, values: [nitro]}
- {key: karpenter.k8s.aws/instance-generation, operator: Gt, values: ['2']}
- {key: topology.kubernetes.io/zone, operator: In, values: [us-west-2a, us-west-2b]}
- {key: kubernetes.io/arch, operator: In, values: [arm64, amd64]}
- {key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand]}
kubeletConfiguration:
  clusterDNS: [10.0.1.100]
  containerRuntime: containerd
  systemReserved: {cpu: 100m, memory: 100Mi, ephemeral-storage: 1Gi}
  kubeReserved: {cpu: 1, memory: 100Mi}
  evictionHard: {memory.available: 5%}
  evictionSoft: {memory.available: 500Mi}
  evictionSoftGracePeriod: {memory.available: 1m}
  evictionMaxPodGracePeriod: 60
  imageGCHighThresholdPercent: 85
  imageGCLowThresholdPercent: 80
  cpuCFSQuota: true
  podsPerCore: 2
  maxPods: 20
limits: {resources: {cpu: 1000, memory: 1000Gi}}
consolidation: {enabled: false}
ttlSecondsUntilExpired: 2592000
ttlSecondsAfterEmpty: 30
weight: 10",
        ),
        &Options::default(),
    );
    let pool = object(&converted, "NodePool", "default");
    let template = &pool["spec"]["template"];
    assert_eq!(template["metadata"]["labels"], json!({"billing": "team-a"}));
    assert_eq!(
        template["metadata"]["annotations"],
        json!({"example.com/owner": "my-team"})
    );
    assert_eq!(template["spec"]["taints"][0]["value"], "yes");
    assert_eq!(template["spec"]["startupTaints"][0]["key"], "example.com/starting");
    let requirements = template["spec"]["requirements"].as_array().expect("a list");
    assert_eq!(requirements.len(), 8);
    assert_eq!(requirements[7], defaults()[0], "what admission adds comes last");
    assert_eq!(template["spec"]["expireAfter"], "720h0m0s");
    let reference = json!({"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"});
    assert_eq!(template["spec"]["nodeClassRef"], reference);
    assert_eq!(
        pool["spec"]["disruption"],
        json!({"consolidationPolicy": "WhenEmpty", "consolidateAfter": "30s"})
    );
    assert_eq!(pool["spec"]["limits"], json!({"cpu": "1000", "memory": "1000Gi"}));
    assert_eq!(pool["spec"]["weight"], 10);
    let kubelet = &object(&converted, "EC2NodeClass", "default")["spec"]["kubelet"];
    assert_eq!(kubelet["maxPods"], 20);
    assert_eq!(kubelet["kubeReserved"]["cpu"], "1");
    assert_eq!(kubelet["evictionSoftGracePeriod"]["memory.available"], "1m");
    assert_eq!(kubelet["containerRuntime"], json!(null));
    assert!(warns(&converted, &Change::ExpiryIsForceful));
    assert!(warns(&converted, &Change::DriftIsOn));
}

/// LE18.2
#[test]
fn without_requirements_those_of_admission_are_written_in_its_order() {
    let pool = |options: &Options| {
        let converted = to_v1(&provisioner(""), options);
        object(&converted, "NodePool", "default")["spec"]["template"]["spec"]["requirements"].clone()
    };
    assert_eq!(pool(&Options::default()), defaults());
    let ignore_defaults = Options {
        ignore_defaults: true,
        ..Options::default()
    };
    assert_eq!(pool(&ignore_defaults), json!([]));
}

/// LE18.3
#[test]
fn a_requirement_that_a_label_exists_counts_as_one_on_it() {
    let converted = to_v1(
        &provisioner("requirements: [{key: kubernetes.io/arch, operator: Exists}]"),
        &Options::default(),
    );
    let pool = object(&converted, "NodePool", "default");
    let requirements = pool["spec"]["template"]["spec"]["requirements"]
        .as_array()
        .expect("a list");
    let on_arch: Vec<_> = requirements
        .iter()
        .filter(|item| item["key"] == "kubernetes.io/arch")
        .collect();
    assert_eq!(on_arch, [&json!({"key": "kubernetes.io/arch", "operator": "Exists"})]);
    assert_eq!(requirements.len(), 5);
}

/// LE18.4
#[test]
fn a_foreign_key_is_kept_and_does_not_stand_for_ours() {
    let converted = to_v1(
        &provisioner("requirements: [{key: node.kubernetes.io/instance-family, operator: In, values: [m5]}]"),
        &Options::default(),
    );
    let pool = object(&converted, "NodePool", "default");
    let requirements = pool["spec"]["template"]["spec"]["requirements"]
        .as_array()
        .expect("a list");
    assert_eq!(requirements[0]["key"], "node.kubernetes.io/instance-family");
    assert_eq!(requirements[1..], defaults().as_array().expect("a list")[..]);
}

/// LE18.5
#[test]
fn nodes_that_nobody_removed_are_removed_by_nobody() {
    for spec in ["weight: 1", "consolidation: {enabled: false}"] {
        let converted = to_v1(&provisioner(spec), &Options::default());
        let pool = object(&converted, "NodePool", "default");
        assert_eq!(
            pool["spec"]["disruption"],
            json!({"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"})
        );
        assert_eq!(pool["spec"]["template"]["spec"]["expireAfter"], "Never");
    }
    let pool = to_v1beta1(&provisioner("weight: 1"));
    assert_eq!(
        object(&pool, "NodePool", "default")["spec"]["disruption"],
        json!({"expireAfter": "Never"})
    );
}

#[test]
fn consolidation_begins_at_once_and_excludes_the_time_for_empty_nodes() {
    let converted = to_v1(&provisioner("consolidation: {enabled: true}"), &Options::default());
    assert_eq!(
        object(&converted, "NodePool", "default")["spec"]["disruption"],
        json!({"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s"})
    );
    let both = provisioner("consolidation: {enabled: true}\nttlSecondsAfterEmpty: 0");
    assert!(refused(&both, &Options::default())[0].contains("excludes ttlSecondsAfterEmpty"));
    let force = Options {
        force: true,
        ..Options::default()
    };
    let forced = to_v1(&both, &force);
    assert!(warns(&forced, &Change::ConsolidationWins));
    assert_eq!(
        object(&forced, "NodePool", "default")["spec"]["disruption"]["consolidationPolicy"],
        "WhenEmptyOrUnderutilized"
    );
}

#[test]
fn zero_seconds_stay_zero_seconds() {
    let converted = to_v1(
        &provisioner("ttlSecondsAfterEmpty: 0\nttlSecondsUntilExpired: 0"),
        &Options::default(),
    );
    let pool = object(&converted, "NodePool", "default");
    assert_eq!(pool["spec"]["disruption"]["consolidateAfter"], "0s");
    assert_eq!(pool["spec"]["template"]["spec"]["expireAfter"], "0s");
    assert!(warns(&converted, &Change::ExpiresAtOnce));
}

/// LE18.11
#[test]
fn other_kinds_pass_untouched_between_those_that_are_converted() {
    let deployment = "\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 1}\n";
    let converted = to_v1(
        &format!("{}{deployment}", provisioner("weight: 1")),
        &Options::default(),
    );
    let kinds: Vec<&str> = converted
        .objects()
        .map(|object| object["kind"].as_str().expect("a kind"))
        .collect();
    assert_eq!(kinds, ["NodePool", "EC2NodeClass", "Deployment"]);
    assert!(matches!(converted.outputs[2], Output::Kept { input: 2, .. }));
    assert_eq!(converted.others["Deployment"], 1);
}

/// LE18.12
#[test]
fn what_the_server_added_is_left_behind() {
    let written = "apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata:
  name: default
  uid: 4e2a
  resourceVersion: '12'
  generation: 3
  creationTimestamp: '2023-01-01T00:00:00Z'
  managedFields: [{manager: kubectl}]
  ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: x, uid: y}]
  labels: {team: a}
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: '{}'
    karpenter.sh/provisioner-hash: '123'
    example.com/kept: 'yes'
  finalizers: [example.com/wait]
spec:
  providerRef: {name: default}
status:
  resources: {cpu: '10'}
  conditions: [{type: Active, status: 'True'}]
";
    let converted = to_v1(
        &format!("{written}\n---{TEMPLATE}status: {{amis: []}}\n"),
        &Options::default(),
    );
    let pool = object(&converted, "NodePool", "default");
    assert_eq!(
        pool["metadata"],
        json!({
            "name": "default",
            "labels": {"team": "a"},
            "annotations": {"example.com/kept": "yes"},
            "finalizers": ["example.com/wait"],
        })
    );
    for object in converted.objects() {
        assert_eq!(object.get("status"), None);
    }
}

/// LE18.13
#[test]
fn pools_of_one_template_with_different_kubelets_get_classes_of_their_own() {
    let pool = |name: &str, max_pods: u8| {
        format!(
            "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {{name: {name}}}\nspec: {{providerRef: {{name: default}}, kubeletConfiguration: {{maxPods: {max_pods}}}}}\n---\n"
        )
    };
    let converted = to_v1(
        &format!("{}{}{TEMPLATE}", pool("a", 10), pool("b", 20)),
        &Options::default(),
    );
    let kinds: Vec<&str> = converted
        .objects()
        .map(|object| object["kind"].as_str().expect("a kind"))
        .collect();
    assert_eq!(kinds, ["NodePool", "NodePool", "EC2NodeClass", "EC2NodeClass"]);
    let class_of = |pool: &str| {
        let reference = &object(&converted, "NodePool", pool)["spec"]["template"]["spec"]["nodeClassRef"];
        reference["name"].as_str().expect("a name").to_owned()
    };
    assert_eq!(class_of("a"), "default");
    let copy = class_of("b");
    assert!(
        copy.starts_with("default-") && copy.len() == "default-".len() + 8,
        "{copy}"
    );
    assert_eq!(
        object(&converted, "EC2NodeClass", "default")["spec"]["kubelet"]["maxPods"],
        10
    );
    assert_eq!(
        object(&converted, "EC2NodeClass", &copy)["spec"]["kubelet"]["maxPods"],
        20
    );
}

#[test]
fn a_kubelet_without_its_class_is_a_loss() {
    let alone = "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: default}\nspec: {providerRef: {name: t}, kubeletConfiguration: {maxPods: 10}}";
    let class = "t".to_owned();
    assert_eq!(
        reasons(alone, &Options::default()),
        [Reason::KubeletWithoutClass { class }]
    );
    to_v1(
        alone,
        &Options {
            force: true,
            ..Options::default()
        },
    );
}

#[test]
fn keys_of_old_are_renamed_or_leave() {
    let converted = to_v1(
        &provisioner(
            "requirements:
- {key: beta.kubernetes.io/arch, operator: In, values: [arm64]}
- {key: node.k8s.aws/capacity-type, operator: In, values: [spot]}
- {key: karpenter.k8s.aws/instance-pods, operator: Gt, values: ['20']}
- {key: kubernetes.io/hostname, operator: Exists}
annotations: {karpenter.sh/do-not-consolidate: 'true'}",
        ),
        &Options {
            ignore_defaults: true,
            ..Options::default()
        },
    );
    let pool = object(&converted, "NodePool", "default");
    assert_eq!(
        pool["spec"]["template"]["spec"]["requirements"],
        json!([
            {"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]},
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
        ])
    );
    assert_eq!(
        pool["spec"]["template"]["metadata"]["annotations"],
        json!({"karpenter.sh/do-not-disrupt": "true"})
    );
    assert!(warns(
        &converted,
        &Change::Widens {
            to: "karpenter.sh/do-not-disrupt"
        }
    ));
}

#[test]
fn what_admission_refused_is_refused() {
    for (spec, part) in [
        (
            "requirements: [{key: karpenter.sh/provisioner-name, operator: Exists}]",
            "restricted",
        ),
        (
            "requirements: [{key: karpenter.sh/novel, operator: Exists}]",
            "restricted",
        ),
        (
            "requirements: [{key: karpenter.k8s.aws/novel, operator: Exists}]",
            "restricted",
        ),
        (
            "requirements: [{key: kubernetes.io/arch, operator: In, values: []}]",
            "needs a value",
        ),
        (
            "requirements: [{key: karpenter.k8s.aws/instance-cpu, operator: Gte, values: ['2']}]",
            "is none of",
        ),
        ("labels: {karpenter.sh/provisioner-name: x}", "restricted"),
        (
            "taints: [{key: a, effect: NoSchedule}, {key: a, effect: NoSchedule}]",
            "twice",
        ),
        ("taints: [{key: a, effect: Sometimes}]", "effect"),
        ("ttlSecondsAfterEmpty: -1", "negative"),
        ("ttlSecondsUntilExpired: -1", "negative"),
        ("weight: 101", "between 1 and 100"),
        ("limits: {resources: {cpu: lots}}", "is not a quantity"),
        ("provider: {subnetSelector: {a: b}}", "excludes spec.provider"),
        ("kubeletConfiguration: {containerRuntime: dockerd}", "containerd"),
        (
            "kubeletConfiguration: {evictionSoft: {memory.available: 1Gi}}",
            "no counterpart",
        ),
        ("kubeletConfiguration: {evictionHard: {moon.phase: 1Gi}}", "unknown key"),
        ("weight: heavy", "spec.weight"),
    ] {
        let told = refused(&provisioner(spec), &Options::default());
        assert!(told[0].contains(part), "{spec}: {told:?}");
        assert!(told[0].starts_with("document 1, Provisioner default: "), "{told:?}");
    }
    let foreign = "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: x}\nspec: {providerRef: {name: x, kind: Robot}}";
    assert!(refused(foreign, &Options::default())[0].contains("is not AWSNodeTemplate"));
    assert!(refused(foreign, &beta())[0].contains("is not AWSNodeTemplate"));
}

#[test]
fn a_field_that_the_schema_never_had_is_left_out_and_told() {
    let converted = to_v1(&provisioner("kubelet: {maxPods: 10}"), &Options::default());
    assert!(warns(&converted, &Change::FieldUnknown));
}

#[test]
fn parallelism_of_old_can_be_kept_by_budgets() {
    let options = Options {
        preserve_parallelism: true,
        ..Options::default()
    };
    let converted = to_v1(&provisioner("weight: 1"), &options);
    assert_eq!(
        object(&converted, "NodePool", "default")["spec"]["disruption"]["budgets"],
        json!([
            {"nodes": "100%", "reasons": ["Empty"]},
            {"nodes": "1", "reasons": ["Underutilized", "Drifted"]},
        ])
    );
}

#[test]
fn the_generations_before_v1alpha3_have_no_way() {
    let old = "apiVersion: provisioning.karpenter.sh/v1alpha2\nkind: Provisioner\nmetadata: {name: x}";
    assert_eq!(reasons(old, &Options::default()), [Reason::TooOld]);
}
