//! What is kept of an object.
//!
//! Lists of what is kept, not of what is removed: a field that Kubernetes invents tomorrow is not in anybody's snapshot.
//! Environment, commands, arguments, probes, user data, parameters of storage and devices, and annotations of others stay
//! where they are.

use clap::{Args as _, Command};
use serde_json::{Map, Value};

/// Annotations that decisions are made from, or that Karpenter writes, by the domain of their key.
const ANNOTATIONS: [&str; 12] = [
    "karpenter.sh",
    "karpenter.k8s.aws",
    "compatibility.karpenter.k8s.aws",
    "karpenter.kwok.sh",
    "kwok.x-k8s.io",
    "controller.kubernetes.io",
    "pv.kubernetes.io",
    "volume.kubernetes.io",
    "volume.beta.kubernetes.io",
    "storageclass.kubernetes.io",
    "storageclass.beta.kubernetes.io",
    "node.alpha.kubernetes.io",
];

const METADATA: [&str; 10] = [
    "name",
    "namespace",
    "uid",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "creationTimestamp",
    "deletionTimestamp",
    "generation",
];

const CONTAINER: [&str; 5] = ["name", "image", "resources", "restartPolicy", "ports"];

/// Sources of a volume that decide where a pod can go.
const VOLUME: [&str; 8] = [
    "name",
    "persistentVolumeClaim",
    "ephemeral",
    "awsElasticBlockStore",
    "azureDisk",
    "cinder",
    "gcePersistentDisk",
    "vsphereVolume",
];

/// What an ephemeral volume asks of its storage.
const STORAGE: [&str; 5] = [
    "accessModes",
    "resources",
    "storageClassName",
    "volumeMode",
    "volumeName",
];

/// Of controllers of pods. Claims that a StatefulSet makes are objects of their own.
const WORKLOAD: [&str; 3] = ["replicas", "selector", "template"];

/// What a claim asks for, and what it was given; not how its devices are set up.
const DEVICE_CLAIM: [&str; 2] = ["constraints", "requests"];
const DEVICE_CLAIM_STATUS: [&str; 2] = ["allocation", "reservedFor"];
const DEVICE_ALLOCATION: [&str; 2] = ["devices", "nodeSelector"];

const POD_SPEC: [&str; 17] = [
    "affinity",
    "hostNetwork",
    "nodeName",
    "nodeSelector",
    "os",
    "overhead",
    "preemptionPolicy",
    "priority",
    "priorityClassName",
    "resourceClaims",
    "resources",
    "restartPolicy",
    "schedulerName",
    "schedulingGates",
    "terminationGracePeriodSeconds",
    "tolerations",
    "topologySpreadConstraints",
];

const POD_STATUS: [&str; 7] = [
    "phase",
    "conditions",
    "nominatedNodeName",
    "startTime",
    "qosClass",
    "resourceClaimStatuses",
    "reason",
];

const VOLUME_SPEC: [&str; 7] = [
    "accessModes",
    "capacity",
    "claimRef",
    "nodeAffinity",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "volumeMode",
];

/// Settings of the AWS provider, which may not be part of this build.
const AWS_SETTINGS: [&str; 13] = [
    "CLUSTER_NAME",
    "CLUSTER_ENDPOINT",
    "CLUSTER_CA_BUNDLE",
    "ISOLATED_VPC",
    "EKS_CONTROL_PLANE",
    "VM_MEMORY_OVERHEAD_PERCENT",
    "INTERRUPTION_QUEUE",
    "RESERVED_ENIS",
    "DISABLE_DRY_RUN",
    "ENABLE_ZONAL_SHIFT",
    "AMI_REFRESH_INTERVAL",
    "SUBNET_REFRESH_INTERVAL",
    "AWS_FEATURE_GATES",
];

/// The object without what is nobody's business; none where nothing of it is wanted.
pub fn kept(object: Value) -> Option<Value> {
    let kind = object["kind"].as_str()?.to_owned();
    let mut object = object;
    if let Some(metadata) = object.get_mut("metadata") {
        keep(metadata, &METADATA);
        only_known_annotations(metadata);
    }
    match kind.as_str() {
        "Pod" => {
            keep(&mut object, &["apiVersion", "kind", "metadata", "spec", "status"]);
            pod_spec(&mut object["spec"]);
            keep(&mut object["status"], &POD_STATUS);
        }
        "Deployment" => deployment(&mut object),
        "DaemonSet" | "ReplicaSet" | "StatefulSet" | "ReplicationController" => {
            keep(&mut object["spec"], &WORKLOAD);
            template(&mut object["spec"]["template"]);
        }
        "PodTemplate" => template(&mut object["template"]),
        "Service" => {
            keep(&mut object["spec"], &["selector", "type"]);
            remove(&mut object, &["status"]);
        }
        "EC2NodeClass" => user_data(&mut object["spec"]),
        "PersistentVolume" => {
            let mut driver = object["spec"]["csi"].take();
            keep(&mut object["spec"], &VOLUME_SPEC);
            if driver.is_object() {
                keep(&mut driver, &["driver", "volumeHandle"]);
                object["spec"]["csi"] = driver;
            }
        }
        "StorageClass" => remove(&mut object, &["parameters", "mountOptions"]),
        "VolumeAttachment" => {
            keep(&mut object["spec"]["source"], &["persistentVolumeName"]);
            keep(&mut object["status"], &["attached"]);
        }
        "ResourceClaim" => device_claim(&mut object),
        "DeviceClass" => remove(&mut object["spec"], &["config"]),
        "CustomResourceDefinition" => return definition(object),
        "Node" => remove(&mut object["status"], &["images"]),
        "Event" => remove(&mut object, &["related", "series"]),
        _ => {}
    }
    Some(object)
}

fn keep(value: &mut Value, fields: &[&str]) {
    if let Some(object) = value.as_object_mut() {
        object.retain(|name, _| fields.contains(&name.as_str()));
    }
}

fn remove(value: &mut Value, fields: &[&str]) {
    if let Some(object) = value.as_object_mut() {
        object.retain(|name, _| !fields.contains(&name.as_str()));
    }
}

fn only_known_annotations(metadata: &mut Value) {
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.retain(|key, _| {
            let domain = key.split_once('/').map_or("", |(domain, _)| domain);
            ANNOTATIONS.contains(&domain)
        });
    }
}

fn template(template: &mut Value) {
    if let Some(metadata) = template.get_mut("metadata") {
        only_known_annotations(metadata);
    }
    if template.get("spec").is_some() {
        pod_spec(&mut template["spec"]);
    }
}

fn pod_spec(spec: &mut Value) {
    let Some(fields) = spec.as_object_mut() else {
        return;
    };
    let lists = [
        ("containers", &CONTAINER[..]),
        ("initContainers", &CONTAINER[..]),
        ("volumes", &VOLUME[..]),
    ];
    let mut rest = Map::new();
    for (name, wanted) in lists {
        let Some(mut list) = fields.remove(name) else {
            continue;
        };
        for item in list.as_array_mut().into_iter().flatten() {
            let driver = item.pointer("/csi/driver").cloned();
            keep(item, wanted);
            if let Some(volume) = item.get_mut("ephemeral") {
                ephemeral(volume);
            }
            if let Some(driver) = driver {
                item["csi"] = serde_json::json!({"driver": driver});
            }
        }
        rest.insert(name.to_owned(), list);
    }
    keep(spec, &POD_SPEC);
    if let Some(fields) = spec.as_object_mut() {
        fields.extend(rest);
    }
}

fn ephemeral(volume: &mut Value) {
    keep(volume, &["volumeClaimTemplate"]);
    if let Some(template) = volume.get_mut("volumeClaimTemplate") {
        keep(template, &["spec"]);
        keep(&mut template["spec"], &STORAGE);
    }
}

/// Karpenter's own deployment: how it is set is what a report is about. Only names that are settings keep their values.
fn deployment(deployment: &mut Value) {
    let settings = known_settings();
    let containers = deployment
        .pointer("/spec/template/spec/containers")
        .and_then(Value::as_array);
    let environments: Vec<Value> = containers
        .into_iter()
        .flatten()
        .map(|container| {
            let variables = container["env"].as_array().into_iter().flatten();
            let known = variables.filter(|variable| {
                let name = variable["name"].as_str().unwrap_or_default();
                settings.iter().any(|setting| setting == name) && variable["value"].is_string()
            });
            Value::Array(known.cloned().collect())
        })
        .collect();
    template(&mut deployment["spec"]["template"]);
    let containers = deployment
        .pointer_mut("/spec/template/spec/containers")
        .and_then(Value::as_array_mut);
    for (container, environment) in containers.into_iter().flatten().zip(environments) {
        container["env"] = environment;
    }
}

fn known_settings() -> Vec<String> {
    let controller = operator::settings::Flags::augment_args(Command::new("controller"));
    let flags = controller.get_arguments().filter_map(|argument| argument.get_long());
    let ours = flags.map(|flag| flag.to_uppercase().replace('-', "_"));
    ours.chain(AWS_SETTINGS.map(str::to_owned)).collect()
}

fn user_data(spec: &mut Value) {
    if let Some(text) = spec.get_mut("userData").filter(|text| text.is_string()) {
        let length = text.as_str().map_or(0, str::len);
        *text = Value::from(format!("# {length} bytes left out of the snapshot"));
    }
}

fn device_claim(claim: &mut Value) {
    keep(&mut claim["spec"], &["devices"]);
    keep(&mut claim["spec"]["devices"], &DEVICE_CLAIM);
    let Some(status) = claim.get_mut("status") else {
        return;
    };
    keep(status, &DEVICE_CLAIM_STATUS);
    if let Some(allocation) = status.get_mut("allocation") {
        keep(allocation, &DEVICE_ALLOCATION);
        if let Some(devices) = allocation.get_mut("devices") {
            keep(devices, &["results"]);
        }
    }
}

/// Which versions there are and how they are converted; schemas are this program's or another release's, and long.
fn definition(mut definition: Value) -> Option<Value> {
    let group = definition["spec"]["group"].as_str()?;
    if !group.contains("karpenter") && group != "autoscaling.x-k8s.io" {
        return None;
    }
    for version in definition["spec"]["versions"].as_array_mut().into_iter().flatten() {
        keep(version, &["name", "served", "storage"]);
    }
    if let Some(conversion) = definition["spec"].get_mut("conversion") {
        keep(conversion, &["strategy"]);
    }
    Some(definition)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn of_a_pod_only_what_places_it_is_kept() {
        let pod = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "web", "namespace": "shop", "managedFields": [{}],
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "secret", "karpenter.sh/do-not-disrupt": "true"}},
            "spec": {"nodeName": "n", "serviceAccountName": "s", "containers": [{"name": "c", "image": "i", "env": [{"name": "A", "value": "secret"}],
                "args": ["--password=secret"], "livenessProbe": {"exec": {"command": ["secret"]}}}],
                "volumes": [{"name": "v", "csi": {"driver": "ebs.csi.aws.com", "volumeAttributes": {"a": "secret"}}},
                    {"name": "w", "configMap": {"name": "x"}}]},
            "status": {"phase": "Running", "message": "secret"}});
        let kept = kept(pod).expect("a pod");
        expect![[r#"
            {"apiVersion":"v1","kind":"Pod","metadata":{"annotations":{"karpenter.sh/do-not-disrupt":"true"},"name":"web","namespace":"shop"},"spec":{"containers":[{"image":"i","name":"c"}],"nodeName":"n","volumes":[{"csi":{"driver":"ebs.csi.aws.com"},"name":"v"},{"name":"w"}]},"status":{"phase":"Running"}}"#]]
        .assert_eq(&kept.to_string());
    }

    #[test]
    fn of_a_claim_for_devices_only_what_allocates_them_is_kept() {
        let opaque = json!([{"opaque": {"driver": "gpu.example.com", "parameters": {"key": "secret"}}}]);
        let claim = json!({"kind": "ResourceClaim", "metadata": {"name": "gpu"},
            "spec": {"devices": {"requests": [{"name": "one"}], "config": opaque}},
            "status": {"reservedFor": [{"resource": "pods", "name": "a", "uid": "u"}],
                "allocation": {"devices": {"results": [{"device": "gpu-0"}], "config": opaque}},
                "devices": [{"device": "gpu-0", "data": {"key": "secret"}}]}});
        expect![[r#"
            {"kind":"ResourceClaim","metadata":{"name":"gpu"},"spec":{"devices":{"requests":[{"name":"one"}]}},"status":{"allocation":{"devices":{"results":[{"device":"gpu-0"}]}},"reservedFor":[{"name":"a","resource":"pods","uid":"u"}]}}"#]]
        .assert_eq(&kept(claim).expect("a claim").to_string());
    }

    #[test]
    fn of_the_storage_that_pods_bring_only_what_places_them_is_kept() {
        let leaky = json!({"annotations": {"example.com/token": "secret"}});
        let template =
            json!({"metadata": leaky, "spec": {"storageClassName": "gp3", "dataSource": {"name": "secret"}}});
        let set = json!({"kind": "StatefulSet", "metadata": {"name": "db"}, "spec": {"replicas": 1, "volumeClaimTemplates": [template],
            "template": {"spec": {"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": template}}]}}}});
        expect![[r#"
            {"kind":"StatefulSet","metadata":{"name":"db"},"spec":{"replicas":1,"template":{"spec":{"volumes":[{"ephemeral":{"volumeClaimTemplate":{"spec":{"storageClassName":"gp3"}}},"name":"v"}]}}}}"#]]
        .assert_eq(&kept(set).expect("a set").to_string());
    }

    #[test]
    fn of_the_controllers_environment_only_settings_are_kept() {
        let deployment = json!({"kind": "Deployment", "metadata": {"name": "karpenter"}, "spec": {"template": {"spec": {"containers": [{"name": "controller",
            "env": [{"name": "LOG_LEVEL", "value": "debug"}, {"name": "CLUSTER_NAME", "value": "demo"},
                {"name": "AWS_SECRET_ACCESS_KEY", "value": "secret"}, {"name": "CPU_REQUESTS", "valueFrom": {}}]}]}}}});
        let kept = kept(deployment).expect("a deployment");
        let env = &kept["spec"]["template"]["spec"]["containers"][0]["env"];
        assert_eq!(
            *env,
            json!([{"name": "LOG_LEVEL", "value": "debug"}, {"name": "CLUSTER_NAME", "value": "demo"}])
        );
    }

    #[test]
    fn every_setting_of_the_aws_provider_is_known() {
        let aws = provider_aws::options::Flags::augment_args(Command::new("controller"));
        let flags = aws.get_arguments().filter_map(|argument| argument.get_long());
        let mut names: Vec<String> = flags.map(|flag| flag.to_uppercase().replace('-', "_")).collect();
        let mut known = AWS_SETTINGS.map(str::to_owned);
        names.sort();
        known.sort();
        assert_eq!(names, known);
    }
}
