use serde_json::{Value, json};

use super::*;

fn base() -> Value {
    json!({
        "role": "role-1",
        "tags": { "keyTag-1": "valueTag-1", "keyTag-2": "valueTag-2" },
        "context": "fake-context",
        "detailedMonitoring": false,
        "associatePublicIPAddress": false,
        "metadataOptions": {
            "httpEndpoint": "disabled",
            "httpProtocolIPv6": "disabled",
            "httpPutResponseHopLimit": 1,
            "httpTokens": "optional",
        },
        "userData": "userdata-test-1",
        "blockDeviceMappings": [
            {
                "deviceName": "map-device-1",
                "ebs": {
                    "deleteOnTermination": false,
                    "encrypted": false,
                    "iops": 0,
                    "kmsKeyID": "fakeKMSKeyID",
                    "snapshotID": "fakeSnapshot",
                    "throughput": 0,
                    "volumeSize": "2G",
                    "volumeType": "standard",
                },
            },
            { "deviceName": "map-device-2" },
        ],
    })
}

/// The vectors of AP13.4, as upstream publishes them. A change is a JSON merge patch of the base.
#[track_caller]
fn check(change: Value, v6: &str, v5: &str) {
    let mut object = base();
    merge(&mut object, &change);
    let spec: EC2NodeClassSpec = serde_json::from_value(object).expect("a node class spec");
    assert_eq!(
        ec2_node_class(&spec, "test-ca-bundle", Ec2Version::V6).as_deref(),
        Ok(v6),
        "v6 of {change}"
    );
    assert_eq!(
        ec2_node_class(&spec, "test-ca-bundle", Ec2Version::V5).as_deref(),
        Ok(v5),
        "v5 of {change}"
    );
}

fn merge(target: &mut Value, change: &Value) {
    match change {
        Value::Object(fields) => {
            if !target.is_object() {
                *target = json!({});
            }
            for (name, value) in fields {
                match value {
                    Value::Null => drop(target.as_object_mut().map(|target| target.remove(name))),
                    value => merge(&mut target[name], value),
                }
            }
        }
        value => *target = value.clone(),
    }
}

fn first_device(change: Value) -> Value {
    let mut devices = base()["blockDeviceMappings"].take();
    merge(&mut devices[0], &change);
    json!({ "blockDeviceMappings": devices })
}

#[test]
fn classes_hash_as_upstream_hashes_them() {
    const NONE: (&str, &str) = ("11148166120438674859", "2608468723537941485");
    check(json!({}), NONE.0, NONE.1);
    let mut devices = base()["blockDeviceMappings"].take();
    devices.as_array_mut().expect("a list").reverse();
    check(json!({ "blockDeviceMappings": devices }), NONE.0, NONE.1);
    check(
        json!({
            "amiSelectorTerms": [{ "id": "ami-1" }],
            "subnetSelectorTerms": [{ "id": "subnet-1" }],
            "securityGroupSelectorTerms": [{ "id": "sg-1" }],
            "ipPrefixCount": 1,
        }),
        NONE.0,
        NONE.1,
    );
    check(
        json!({ "userData": "userdata-test-2" }),
        "11774429238106843388",
        "2153344579995979450",
    );
    check(
        json!({ "tags": { "keyTag-test-3": "valueTag-test-3" } }),
        "9327338697296909506",
        "4608386791045313156",
    );
    check(
        json!({ "context": "context-2" }),
        "2279761750428738028",
        "11612053647989098410",
    );
    check(
        json!({ "detailedMonitoring": true }),
        "1936848126751988570",
        "11845605438531206428",
    );
    check(
        json!({ "instanceStorePolicy": "RAID0" }),
        "16697988646989909967",
        "6430637013089544585",
    );
    check(
        json!({ "associatePublicIPAddress": true }),
        "16141801171825097963",
        "6811176403923819181",
    );
    check(
        json!({ "metadataOptions": { "httpEndpoint": "enabled" } }),
        "14969742554812447671",
        "8158886403801636337",
    );
    check(
        json!({ "metadataOptions": { "httpPutResponseHopLimit": 10 } }),
        "14046948658064232764",
        "8968306366664488826",
    );
    check(
        first_device(json!({ "deviceName": "map-device-test-3" })),
        "8979166653850509463",
        "13986335469721503441",
    );
    check(
        first_device(json!({ "ebs": { "volumeSize": "10G" } })),
        "10372902467896351912",
        "3564293065344858862",
    );
    check(
        json!({ "connectionTracking": { "tcpEstablishedTimeout": 300 } }),
        "1619669030802245540",
        "12177489405137904098",
    );
    check(
        json!({ "cpuOptions": { "nestedVirtualization": "enabled" } }),
        "6157846767212910604",
        "17001101224536964682",
    );
    check(
        json!({ "role": null, "instanceProfile": "test-instance-profile" }),
        "10323991363677716244",
        "3585768058063247698",
    );
}

fn hash_of(spec: Value, version: Ec2Version) -> String {
    let spec: EC2NodeClassSpec = serde_json::from_value(spec).expect("a node class spec");
    ec2_node_class(&spec, "", version).expect("a hash")
}

#[test]
fn equal_sizes_hash_alike_whatever_their_text() {
    let sized = |size: &str| json!({ "blockDeviceMappings": [{ "ebs": { "volumeSize": size } }] });
    assert_eq!(
        hash_of(sized("1024Gi"), Ec2Version::V5),
        hash_of(sized("1Ti"), Ec2Version::V5)
    );
    assert_eq!(
        hash_of(sized("1000G"), Ec2Version::V5),
        hash_of(sized("1T"), Ec2Version::V5)
    );
    assert_ne!(
        hash_of(sized("1T"), Ec2Version::V5),
        hash_of(sized("1Ti"), Ec2Version::V5)
    );
}

#[test]
fn kubelet_settings_count_in_both_versions() {
    for version in [Ec2Version::V5, Ec2Version::V6] {
        let with = |kubelet: Value| hash_of(json!({ "kubelet": kubelet }), version);
        assert_ne!(with(json!({ "maxPods": 10 })), with(json!({ "maxPods": 11 })));
        assert_ne!(
            with(json!({ "evictionSoftGracePeriod": { "memory.available": "1m" } })),
            with(json!({ "evictionSoftGracePeriod": { "memory.available": "2m" } })),
        );
        assert_ne!(with(json!({ "maxPods": "10" })), with(json!({ "maxPods": 10 })));
        assert_ne!(
            with(json!({ "maxPods": "vcpus" })),
            with(json!({ "maxPods": "vcpus * 2" }))
        );
        assert_ne!(
            with(json!({ "seccompDefault": true })),
            with(json!({ "seccompDefault": false }))
        );
    }
}

#[test]
fn kubelet_text_is_what_go_would_write() {
    let kubelet: KubeletConfiguration = serde_json::from_value(json!({
        "maxPods": 10,
        "clusterDNS": ["<a&b>"],
    }))
    .expect("kubelet settings");
    assert_eq!(
        kubelet_text(Some(&kubelet)),
        "{\"clusterDNS\":[\"\\u003ca\\u0026b\\u003e\"],\"maxPods\":10}"
    );
    assert_eq!(kubelet_text(Some(&KubeletConfiguration::default())), "null");
    assert_eq!(kubelet_text(None), "null");
}

#[test]
fn an_unreadable_size_is_reported_with_its_field() {
    let spec = json!({ "blockDeviceMappings": [{ "ebs": { "volumeSize": "large" } }] });
    let spec: EC2NodeClassSpec = serde_json::from_value(spec).expect("a node class spec");
    let error = ec2_node_class(&spec, "", Ec2Version::V5).expect_err("no number");
    assert_eq!(error.field, "spec.blockDeviceMappings[0].ebs.volumeSize");
}

#[test]
fn the_family_comes_from_the_spec_then_the_alias() {
    let family = |spec: Value| {
        let spec: EC2NodeClassSpec = serde_json::from_value(spec).expect("a node class spec");
        ami_family(&spec).to_string()
    };
    assert_eq!(
        family(json!({ "amiFamily": "AL2", "amiSelectorTerms": [{ "alias": "al2023@latest" }] })),
        "AL2"
    );
    assert_eq!(
        family(json!({ "amiSelectorTerms": [{ "alias": "bottlerocket@1.10.0" }] })),
        "Bottlerocket"
    );
    assert_eq!(family(json!({ "amiSelectorTerms": [{ "id": "ami-1" }] })), "Custom");
}
