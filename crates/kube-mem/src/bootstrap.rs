//! What a cluster has before anyone writes to it.

use serde_json::{Value, json};

use crate::cluster::Cluster;

/// Creates the namespaces, the service of the API server and the priority classes of the system.
pub(crate) fn fill(cluster: &mut Cluster) {
    for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
        create(cluster, ("", "namespaces"), json!({ "metadata": { "name": name } }));
    }
    create(
        cluster,
        ("", "services"),
        json!({
            "metadata": {
                "name": "kubernetes",
                "namespace": "default",
                "labels": { "component": "apiserver", "provider": "kubernetes" },
            },
            "spec": {
                "clusterIP": "10.96.0.1",
                "clusterIPs": ["10.96.0.1"],
                "type": "ClusterIP",
                "ports": [{ "name": "https", "port": 443, "protocol": "TCP", "targetPort": 443 }],
            },
        }),
    );
    for (name, value, description) in [
        (
            "system-cluster-critical",
            2_000_000_000,
            "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
        ),
        (
            "system-node-critical",
            2_000_001_000,
            "Used for system critical pods that must not be moved from their current node.",
        ),
    ] {
        create(
            cluster,
            ("scheduling.k8s.io", "priorityclasses"),
            json!({ "metadata": { "name": name }, "value": value, "description": description }),
        );
    }
    cluster.settle();
}

fn create(cluster: &mut Cluster, (group, plural): (&str, &str), object: Value) {
    let ty = cluster
        .registry
        .find(group, "v1", plural)
        .cloned()
        .expect("only built-in kinds are created at the start");
    cluster.create_own(&ty, object);
}
