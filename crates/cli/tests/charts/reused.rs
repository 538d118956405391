//! `helm upgrade --reuse-values` from upstream's charts: their values, whole, take the place of ours.

use std::{fs, process::Output};

use serde_json::{Value, json};

use crate::{
    earlier,
    helm::{environment, helm, object, repository},
};

/// What the values of upstream's charts lack beside those of the release after them, newest first.
const LACKING: [(&str, &[&str]); 8] = [
    ("1.14", &["flowSchemas", "legacy"]),
    (
        "1.12",
        &[
            "settings.amiRefreshInterval",
            "settings.awsFeatureGates",
            "settings.featureGates.capacityBuffer",
            "settings.subnetRefreshInterval",
        ],
    ),
    ("1.8", &["serviceMonitor.sampleLimit", "settings.enableZonalShift"]),
    (
        "1.5",
        &[
            "settings.disableClusterStateObservability",
            "settings.disableDryRun",
            "settings.featureGates.nodeOverlay",
            "settings.featureGates.staticCapacity",
            "settings.ignoreDRARequests",
            "settings.minValuesPolicy",
        ],
    ),
    (
        "1.2",
        &[
            "controller.securityContext",
            "initContainers",
            "podSecurityContext.seccompProfile",
            "serviceMonitor.metricRelabelings",
            "serviceMonitor.relabelings",
            "settings.featureGates.reservedCapacity",
            "settings.preferencePolicy",
        ],
    ),
    (
        "1.0",
        &[
            "controller.containerName",
            "schedulerName",
            "service",
            "settings.eksControlPlane",
            "settings.featureGates.nodeRepair",
        ],
    ),
    ("0.37", &["logErrorOutputPaths", "logOutputPaths"]),
    (
        "0.33",
        &["podSecurityContext", "settings.featureGates.spotToSpotConsolidation"],
    ),
];

/// The values of the chart of an upstream release.
fn values_of(release: &str) -> Value {
    let text = fs::read_to_string(repository().join("charts/karpenter/values.yaml")).expect("values");
    let mut values: Value = serde_saphyr::from_str(&text).expect("YAML");
    for (older, paths) in LACKING {
        for path in paths {
            let (group, key) = path.rsplit_once('.').unwrap_or(("", path));
            let pointer = group.split('.').filter(|step| !step.is_empty());
            let pointer: String = pointer.map(|step| format!("/{step}")).collect();
            let group = values.pointer_mut(&pointer).and_then(Value::as_object_mut);
            let lost = group.and_then(|group| group.remove(key));
            assert!(lost.is_some(), "{path} is no value of a later release");
        }
        if older == release {
            return values;
        }
    }
    panic!("{release} is not told of");
}

/// What `helm template` says of our chart with these values in the place of its own.
fn rendered(values: &Value, set: &[&str]) -> Output {
    let folder = earlier::copies();
    let chart = folder.path().join("karpenter");
    fs::write(chart.join("values.yaml"), values.to_string()).expect("a file");
    let chart = chart.to_str().expect("a path");
    let fixed = ["template", "karpenter", chart, "--namespace", "kube-system"];
    helm(&[&fixed, set].concat())
}

/// §4.1, §14: whoever changes only the chart keeps the values of the release before.
#[test]
fn values_of_every_earlier_release_are_enough() {
    for (release, _) in LACKING {
        let set = ["--set", "settings.clusterName=demo,serviceMonitor.enabled=true"];
        let output = rendered(
            &values_of(release),
            &[&set[..], &["--api-versions", "monitoring.coreos.com/v1"]].concat(),
        );
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{release}: {complaint}");
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(object(&text, "Service")["spec"]["ports"][0]["port"], 8080, "{release}");
        assert_eq!(object(&text, "ServiceMonitor")["metadata"]["name"], "karpenter");
        let container = &object(&text, "Deployment")["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["name"], "controller", "{release}");
        let variables = environment(&text);
        assert!(
            variables.contains(&("CLUSTER_NAME".to_owned(), Some("demo".to_owned()))),
            "{release}: {variables:?}"
        );
    }
}

/// Their settings stood elsewhere: where the cluster is not named that is said, and nothing breaks before it can be.
#[test]
fn values_from_before_the_settings_moved_are_told_where_to() {
    let mut values = values_of("0.33");
    values["settings"] = json!({"aws": {"clusterName": "demo"}});
    let mut oldest = values.clone();
    oldest.as_object_mut().expect("a map").remove("settings");
    oldest["clusterName"] = json!("demo");
    let controller = oldest["controller"].as_object_mut().expect("a map");
    controller.retain(|key, _| !["metrics", "healthProbe", "envFrom"].contains(&key.as_str()));
    let mut of_one_piece = oldest.clone();
    of_one_piece["controller"]["image"] = json!("public.ecr.aws/karpenter/controller:v0.16.3");
    let cases = [
        (&values, "settings.aws.clusterName is now settings.clusterName"),
        (&oldest, "clusterName is now settings.clusterName"),
        (&of_one_piece, "controller.image is now controller.image.repository"),
    ];
    for (values, expected) in cases {
        let output = rendered(values, &[]);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && complaint.contains(expected), "{complaint}");
    }
    for values in [&values, &oldest] {
        let output = rendered(values, &["--set", "settings.clusterName=demo"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
