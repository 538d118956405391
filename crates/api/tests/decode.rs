//! Objects are read as they are stored and written back as they were read.

use api::aws::EC2NodeClass;
use api::kwok::KwokNodeClass;
use api::v1::{NodeClaim, NodePool};
use serde_json::{Value, json};

/// AP17.5.4: the schema admits a class without a spec, and one such object must not spoil a list.
#[test]
fn a_node_class_without_a_spec_is_one_with_an_empty_spec() {
    let class: EC2NodeClass = serde_json::from_value(json!({ "metadata": { "name": "a" } })).expect("decodes");
    assert_eq!(class.spec, Default::default());
    let class: KwokNodeClass = serde_json::from_value(json!({ "metadata": {}, "spec": null })).expect("decodes");
    assert_eq!(class.spec.node_registration_delay, None);
}

#[test]
fn words_that_this_build_does_not_know_survive() {
    let pool = json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": { "name": "a" },
        "spec": {
            "template": { "spec": {
                "nodeClassRef": { "group": "g", "kind": "K", "name": "n" },
                "requirements": [{ "key": "a", "operator": "Near", "values": ["b"] }],
            } },
            "disruption": { "consolidationPolicy": "WhenCheap" },
        },
    });
    assert_eq!(read_and_written::<NodePool>(&pool), pool);
}

/// AP1.3: absent stays absent, empty stays empty, and text stays as it was written.
#[test]
fn objects_are_written_back_as_they_were_read() {
    let pool = json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": { "name": "a" },
        "spec": {
            "template": { "metadata": { "labels": {} }, "spec": {
                "nodeClassRef": { "group": "g", "kind": "K", "name": "n" },
                "requirements": [],
                "taints": [],
                "expireAfter": "60m",
                "terminationGracePeriod": "1h0m0s",
            } },
            "disruption": { "budgets": [{ "nodes": "10%", "reasons": [] }] },
            "limits": { "cpu": "1k" },
        },
        "status": { "nodes": 0 },
    });
    assert_eq!(read_and_written::<NodePool>(&pool), pool);
    let claim = json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": { "name": "a" },
        "spec": { "nodeClassRef": { "group": "g", "kind": "K", "name": "n" }, "requirements": [] },
        "status": { "providerID": "kwok://a", "imageID": "i", "lastPodEventTime": "2026-01-01T00:00:00Z" },
    });
    assert_eq!(read_and_written::<NodeClaim>(&claim), claim);
    let class = json!({
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": { "name": "a" },
        "spec": {
            "role": "r",
            "amiSelectorTerms": [{ "alias": "al2023@latest" }],
            "subnetSelectorTerms": [{ "tags": {} }],
            "securityGroupSelectorTerms": [{ "id": "sg-1" }],
            "capacityReservationSelectorTerms": [{ "ownerID": "012345678901", "tags": { "a": "b" } }],
            "associatePublicIPAddress": false,
            "ipPrefixCount": 1,
            "metadataOptions": { "httpProtocolIPv6": "enabled", "httpPutResponseHopLimit": 2 },
            "blockDeviceMappings": [{ "ebs": { "kmsKeyID": "k", "snapshotID": "s", "iops": 0 } }],
            "connectionTracking": { "tcpEstablishedTimeout": 60, "udpTimeout": 30 },
            "cpuOptions": {},
            "kubelet": { "clusterDNS": ["10.0.0.10"], "cpuCFSQuota": true, "imageGCHighThresholdPercent": 80 },
        },
        "status": { "subnets": [{ "id": "s", "zone": "z", "zoneID": "i" }], "amis": [{ "id": "a", "requirements": [] }] },
    });
    assert_eq!(read_and_written::<EC2NodeClass>(&class), class);
}

/// AP17.1.72: the server keeps a quantity that was written as a number.
#[test]
fn a_quantity_may_be_a_number() {
    let pool: NodePool = serde_json::from_value(json!({
        "metadata": {},
        "spec": {
            "template": { "spec": { "nodeClassRef": { "group": "g", "kind": "K", "name": "n" }, "requirements": [] } },
            "limits": { "cpu": 1000 },
        },
    }))
    .expect("decodes");
    assert_eq!(pool.spec.limits.expect("limits")["cpu"].0, "1000");
}

fn read_and_written<K: serde::de::DeserializeOwned + serde::Serialize>(object: &Value) -> Value {
    let object: K = serde_json::from_value(object.clone()).expect("the object decodes");
    serde_json::to_value(object).expect("the object encodes")
}
