//! Metadata service, volumes, network and processor.

use serde_json::{Value, json};

use crate::row::{Table, set};

const METADATA: &str = "spec.metadataOptions";
const DEVICES: &str = "spec.blockDeviceMappings";
const INTERFACES: &str = "spec.networkInterfaces";
const TRACKING: &str = "spec.connectionTracking";
const PROCESSOR: &str = "spec.cpuOptions";

/// AW24.2.9, AW24.2.13
pub fn rows(t: &mut Table) {
    t.admits(
        "AP17.5.39",
        [set(
            METADATA,
            json!({
                "httpEndpoint": "disabled",
                "httpProtocolIPv6": "enabled",
                "httpPutResponseHopLimit": 34,
                "httpTokens": "optional",
            }),
        )],
    );
    for field in ["httpEndpoint", "httpProtocolIPv6", "httpTokens"] {
        t.refuses(
            "AP17.5.40",
            "spec.metadataOptions.http",
            [set(METADATA, json!({ field: "test" }))],
        );
    }
    for hops in [-5, 0, 65] {
        t.refuses(
            "AP17.5.40",
            "spec.metadataOptions.httpPutResponseHopLimit",
            [set(METADATA, json!({ "httpPutResponseHopLimit": hops }))],
        );
    }
    volumes(t);
    interfaces(t);
    tracking(t);
    for switch in ["enabled", "disabled"] {
        t.admits("AP17.5.50", [set(PROCESSOR, json!({ "nestedVirtualization": switch }))]);
    }
    t.admits("AP17.5.50", [set(PROCESSOR, json!({}))]);
    t.refuses(
        "AP17.5.51",
        "spec.cpuOptions.nestedVirtualization",
        [set(PROCESSOR, json!({ "nestedVirtualization": "invalid" }))],
    );
    t.refuses(
        "AP17.5.51",
        "spec.instanceStorePolicy",
        [set("spec.instanceStorePolicy", "RAID1")],
    );
    t.refuses("AP17.5.51", "spec.ipPrefixCount", [set("spec.ipPrefixCount", -1)]);
}

/// AW24.2.10
fn volumes(t: &mut Table) {
    let sized = |size: &str| json!({ "deviceName": "map-device-1", "ebs": { "volumeSize": size } });
    let two = |roots: [bool; 2]| {
        let mut devices = json!([sized("50Gi"), sized("50Gi")]);
        for (index, root) in roots.into_iter().enumerate() {
            devices[index]["rootVolume"] = root.into();
        }
        devices
    };
    t.admits("AP17.5.41", [set(DEVICES, two([true, false]))]);
    for size in ["58G", "45T", "500G", "50T", "59000Gi", "1Gi", "58Ti"] {
        t.admits("AP17.5.41", [set(DEVICES, json!([sized(size)]))]);
    }
    t.refuses(
        "AP17.5.42",
        "must have only one blockDeviceMappings with rootVolume",
        [set(DEVICES, two([true, true]))],
    );
    for size in ["1m", "100T", "0", "18Ti", "500Mi", "1.5Ti"] {
        t.refuses(
            "AP17.5.43",
            "spec.blockDeviceMappings[0].ebs.volumeSize",
            [set(DEVICES, json!([sized(size)]))],
        );
    }
    let ebs = |ebs: Value| [set(DEVICES, json!([{ "deviceName": "map-device-1", "ebs": ebs }]))];
    t.refuses(
        "AP17.5.44",
        "snapshotID or volumeSize must be defined",
        ebs(json!({ "encrypted": true })),
    );
    t.refuses(
        "AP17.5.45",
        "snapshotID must be set when volumeInitializationRate is set",
        ebs(json!({ "volumeSize": "50Gi", "volumeInitializationRate": 100 })),
    );
    for rate in [99, 888] {
        t.refuses(
            "AP17.5.45",
            "spec.blockDeviceMappings[0].ebs.volumeInitializationRate",
            ebs(json!({ "snapshotID": "snap-1", "volumeInitializationRate": rate })),
        );
    }
}

/// AW24.2.11
fn interfaces(t: &mut Table) {
    let interface = |card: i32, device: i32, kind: &str| json!({ "networkCardIndex": card, "deviceIndex": device, "interfaceType": kind });
    let primary = || interface(0, 0, "interface");
    let list = |interfaces: Value| [set(INTERFACES, interfaces)];
    t.admits(
        "AP17.5.46",
        list(json!([
            primary(),
            interface(0, 1, "efa-only"),
            interface(1, 0, "efa-only"),
            interface(1, 1, "interface"),
        ])),
    );
    t.admits("AP17.5.46", list(json!([])));
    t.refuses(
        "AP17.5.47",
        "spec.networkInterfaces[1].interfaceType",
        list(json!([primary(), interface(0, 1, "efa")])),
    );
    t.refuses(
        "AP17.5.47",
        "networkCardIndex",
        list(json!([primary(), interface(-1, 1, "interface")])),
    );
    t.refuses(
        "AP17.5.47",
        "deviceIndex",
        list(json!([primary(), interface(0, -1, "interface")])),
    );
    let duplicate = "must not have duplicate networkCardIndex and deviceIndex pairs";
    t.refuses("AP17.5.47", duplicate, list(json!([primary(), primary()])));
    let no_primary = "must include a primary interface";
    t.refuses("AP17.5.47", no_primary, list(json!([interface(0, 1, "interface")])));
    t.refuses("AP17.5.47", no_primary, list(json!([interface(0, 0, "efa-only")])));
    t.refuses(
        "AP17.5.47",
        "at most one efa device per network card",
        list(json!([
            primary(),
            interface(0, 1, "efa-only"),
            interface(0, 2, "efa-only")
        ])),
    );
}

/// AW24.2.12
fn tracking(t: &mut Table) {
    t.refuses(
        "AP17.5.48",
        "at least one of tcpEstablishedTimeout, udpStreamTimeout, or udpTimeout must be set",
        [set(TRACKING, json!({}))],
    );
    for (field, seconds) in [
        ("tcpEstablishedTimeout", 59),
        ("tcpEstablishedTimeout", 432_001),
        ("udpStreamTimeout", 59),
        ("udpStreamTimeout", 181),
        ("udpTimeout", 29),
        ("udpTimeout", 61),
    ] {
        t.refuses(
            "AP17.5.48",
            "spec.connectionTracking.",
            [set(TRACKING, json!({ field: seconds }))],
        );
    }
    for tracking in [
        json!({ "tcpEstablishedTimeout": 60 }),
        json!({ "udpStreamTimeout": 120 }),
        json!({ "udpTimeout": 45 }),
        json!({ "tcpEstablishedTimeout": 432_000, "udpStreamTimeout": 180, "udpTimeout": 60 }),
    ] {
        t.admits("AP17.5.49", [set(TRACKING, tracking)]);
    }
}
