//! A small cluster with something of every kind that is read.

use serde_json::{Value, json};

pub fn objects() -> Vec<Value> {
    let mut objects = vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": {"team": "blue"}}}),
        json!({"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"},
            "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}),
        pool(),
        json!({"apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": {"name": "dearer"},
            "spec": {"requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}],
                "priceAdjustment": "+10%", "capacity": {"example.com/device": "1"}, "weight": 3}}),
        node(),
        claim(),
        daemon_set(),
        json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"},
            "value": 1000, "globalDefault": false}),
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web", "namespace": "default"},
            "spec": {"maxUnavailable": "50%", "selector": {"matchLabels": {"app": "web"}}},
            "status": {"disruptionsAllowed": 1, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "default"},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}),
        json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web", "namespace": "default"},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"},
                "matchExpressions": [{"key": "old", "operator": "DoesNotExist"}]}}}),
    ];
    objects.extend(storage());
    objects.extend(devices());
    objects.extend([picky(), attached(), claiming(), bound()]);
    objects.extend((0..3).map(|number| json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("plain-{number}"), "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "700m", "memory": "1Gi"}}}]},
    })));
    objects
}

fn pool() -> Value {
    json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "general", "uid": "p"},
    "spec": {
        "weight": 10, "limits": {"cpu": "100", "nodes": "20"},
        "disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "30s",
            "budgets": [{"nodes": "10%", "schedule": "0 9 * * *", "duration": "1h", "reasons": ["Empty"]}]},
        "template": {
            "metadata": {"labels": {"team": "blue"}, "annotations": {"note": "kept"}},
            "spec": {
                "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
                "requirements": [
                    {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
                    {"key": "node.kubernetes.io/instance-type", "operator": "Exists", "minValues": 2},
                    {"key": "karpenter.kwok.sh/instance-cpu", "operator": "Gt", "values": ["1"]},
                ],
                "taints": [{"key": "soft", "value": "x", "effect": "PreferNoSchedule"}],
                "startupTaints": [{"key": "boot", "effect": "NoSchedule"}],
                "expireAfter": "720h", "terminationGracePeriod": "5m",
            },
        },
    }})
}

fn node() -> Value {
    json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "n1", "labels": {
            "kubernetes.io/hostname": "n1", "topology.kubernetes.io/zone": "a", "karpenter.sh/nodepool": "general",
            "node.kubernetes.io/instance-type": "m.large", "karpenter.sh/capacity-type": "spot",
            "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"}},
        "spec": {"providerID": "kwok://n1", "taints": [{"key": "soft", "effect": "PreferNoSchedule"}]},
        "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "10"}, "allocatable": {"cpu": "3900m", "memory": "7Gi", "pods": "10"},
            "conditions": [{"type": "Ready", "status": "True"}]}})
}

fn claim() -> Value {
    json!({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {"name": "c1", "uid": "c1", "labels": {"karpenter.sh/nodepool": "general"}},
        "spec": {
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
            "requirements": [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m.large", "m.2xlarge"]}],
            "resources": {"requests": {"cpu": "1"}}, "expireAfter": "Never"},
        "status": {"conditions": []}})
}

fn daemon_set() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "logs", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "logs"}}, "template": {"metadata": {"labels": {"app": "logs"}},
            "spec": {"tolerations": [{"operator": "Exists"}], "containers": [
                {"name": "c", "image": "i", "resources": {"limits": {"cpu": "50m"}}, "ports": [{"containerPort": 9, "hostPort": 9}]}]}}}})
}

fn storage() -> [Value; 5] {
    let term = json!({"nodeSelectorTerms": [{"matchExpressions": [
        {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}]}]});
    [
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"}, "provisioner": "disk.csi",
            "volumeBindingMode": "WaitForFirstConsumer",
            "allowedTopologies": [{"matchLabelExpressions": [{"key": "topology.kubernetes.io/zone", "values": ["a", "b"]}]}]}),
        json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv1"}, "spec": {
            "csi": {"driver": "disk.csi", "volumeHandle": "h"}, "capacity": {"storage": "1Gi"}, "nodeAffinity": {"required": term}}}),
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "default"},
            "spec": {"volumeName": "pv1", "storageClassName": "fast"}, "status": {"phase": "Bound"}}),
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "n1"}, "spec": {"drivers": [
            {"name": "disk.csi", "nodeID": "n1", "allocatable": {"count": 2}}]}}),
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": "va"},
            "spec": {"attacher": "disk.csi", "nodeName": "n1", "source": {"persistentVolumeName": "pv1"}}}),
    ]
}

fn devices() -> [Value; 3] {
    [
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {"selectors": [
            {"cel": {"expression": "device.driver == 'gpu.example.com' && device.attributes['gpu.example.com'].model == 'x'"}}]}}),
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "s1"}, "spec": {
            "driver": "gpu.example.com", "nodeName": "n1", "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "g0", "attributes": {"model": {"string": "x"}}, "capacity": {"memory": {"value": "8Gi"}}}]}}),
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "one", "namespace": "default"}, "spec": {
            "devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": 1, "allocationMode": "ExactCount"}}]}}}),
    ]
}

/// A pod with every rule there is.
fn picky() -> Value {
    let web = json!({"matchLabels": {"app": "web"}});
    let near = json!({"topologyKey": "topology.kubernetes.io/zone", "labelSelector": web, "namespaces": ["default"],
        "namespaceSelector": {"matchLabels": {"team": "blue"}}, "matchLabelKeys": ["app"]});
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "picky", "namespace": "default", "labels": {"app": "web"}, "creationTimestamp": "2026-01-01T00:00:00Z",
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs", "controller": true}],
            "annotations": {"karpenter.sh/do-not-disrupt": "1h", "controller.kubernetes.io/pod-deletion-cost": "5"}},
        "spec": {
            "priorityClassName": "high", "nodeSelector": {"kubernetes.io/arch": "amd64"},
            "tolerations": [{"key": "soft", "operator": "Equal", "value": "x", "effect": "PreferNoSchedule"}],
            "topologySpreadConstraints": [{"maxSkew": 1, "minDomains": 1, "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "DoNotSchedule", "labelSelector": web, "nodeAffinityPolicy": "Honor", "nodeTaintsPolicy": "Ignore"}],
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [
                        {"key": "karpenter.kwok.sh/instance-cpu", "operator": "Lt", "values": ["64"]}]}]},
                    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "preference": {"matchExpressions": [
                        {"key": "topology.kubernetes.io/zone", "operator": "NotIn", "values": ["b"]}]}}]},
                "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 3, "podAffinityTerm": near}]},
                "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "kubernetes.io/hostname", "labelSelector": web}]}},
            "initContainers": [{"name": "i", "image": "i", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}}],
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
                "ports": [{"containerPort": 80, "hostPort": 8080, "hostIP": "10.0.0.1", "protocol": "TCP"}]}],
            "overhead": {"cpu": "10m"}}})
}

fn attached() -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "attached", "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "500m"}}}],
            "volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}},
                {"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "fast"}}}}]}})
}

fn claiming() -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "claiming", "namespace": "default"},
        "spec": {"resourceClaims": [{"name": "gpu", "resourceClaimName": "one"}],
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}, "claims": [{"name": "gpu"}]}}]}})
}

fn bound() -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bound", "namespace": "default", "labels": {"app": "db"}},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
            "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "topology.kubernetes.io/zone", "labelSelector": {"matchLabels": {"app": "other"}}}]}}},
        "status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}})
}

pub fn types() -> Value {
    let offering = |zone: &str, kind: &str, price: f64| {
        json!({"Price": price, "Available": true, "Requirements": [
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": [kind]},
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}]})
    };
    let shape = |name: &str, cpu: u32, price: f64| {
        json!({"name": name, "architecture": "amd64", "operatingSystems": ["linux"],
            "resources": {"cpu": cpu.to_string(), "memory": format!("{}Gi", cpu * 4), "pods": "20"},
            "overhead": {"kubeReserved": {"cpu": "100m"}, "systemReserved": {}, "evictionThreshold": {"memory": "100Mi"}},
            "offerings": [offering("a", "on-demand", price), offering("b", "spot", price / 2.0)]})
    };
    let mut reserved = shape("m.2xlarge", 8, 0.8);
    reserved["offerings"][0] = json!({"Price": 0.01, "Available": true, "ReservationCapacity": 1,
        "CapacityOverride": {"cpu": "6"}, "OverheadOverride": {"kubeReserved": {"cpu": "10m"}}, "Requirements": [
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["reserved"]},
            {"key": "example.com/reservation", "operator": "In", "values": ["r1"]},
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}]});
    json!({"byNodePool": {"general": [shape("m.large", 2, 0.2), reserved, shape("m.4xlarge", 16, 1.6)]},
        "reservationIDLabel": "example.com/reservation"})
}
