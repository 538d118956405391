use api::convert;
use k8s_openapi::api::resource::v1 as resource;
use model::dra::{
    Ask, AttributeValue, ConstraintRule, Consumer, DeviceCount, DeviceSelector, NodeTerms, Portions, Reach,
    ResourceClaim, ResourceSlice,
};
use serde_json::{Value, json};

use crate::{fields, object};

fn slice(spec: Value) -> ResourceSlice {
    let parsed = convert::resource_slice(&object::<resource::ResourceSlice>(written_slice(spec)));
    assert_eq!(parsed.errors, []);
    parsed.value
}

fn written_slice(mut spec: Value) -> Value {
    spec["driver"] = "gpu.example.com".into();
    spec["pool"] = json!({ "name": "gpus", "generation": 3, "resourceSliceCount": 2 });
    json!({
        "metadata": {
            "name": "slice",
            "ownerReferences": [{ "apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u" }],
        },
        "spec": spec,
    })
}

fn claim(spec: Value, status: Value) -> ResourceClaim {
    let parsed = convert::resource_claim(&object::<resource::ResourceClaim>(written_claim(spec, status)));
    assert_eq!(parsed.errors, []);
    parsed.value
}

fn written_claim(spec: Value, status: Value) -> Value {
    json!({ "metadata": { "name": "c", "namespace": "ml" }, "spec": { "devices": spec }, "status": status })
}

#[test]
fn a_slice_tells_its_pool_its_devices_and_its_owner() {
    let slice = slice(json!({
        "allNodes": true,
        "devices": [{
            "name": "gpu-0",
            "allowMultipleAllocations": true,
            "attributes": {
                "model": { "string": "A100" }, "cores": { "int": 108 }, "mig": { "bool": false },
                "driverVersion": { "version": "1.2.3" }, "lanes": { "ints": [1, 2] },
            },
            "capacity": {
                "memory": { "value": "40Gi", "requestPolicy": { "default": "4Gi", "validValues": ["8Gi", "4Gi"] } },
                "bandwidth": { "value": "100", "requestPolicy": { "validRange": { "min": "1", "step": "2" } } },
            },
            "consumesCounters": [{ "counterSet": "set", "counters": { "bytes": { "value": "1Gi" } } }],
        }],
    }));
    assert_eq!((&*slice.driver, &*slice.pool), ("gpu.example.com", "gpus"));
    assert_eq!((slice.generation, slice.slice_count), (3, 2));
    assert_eq!(slice.owner_node, Some("n1".into()));
    assert_eq!(*slice.devices[0].reach, Reach::Everywhere);
    let device = &slice.devices[0].device;
    assert!(device.shareable);
    assert_eq!(device.attributes["model"], AttributeValue::Text("A100".into()));
    assert_eq!(device.attributes["cores"], AttributeValue::Int(108));
    assert_eq!(device.attributes["mig"], AttributeValue::Bool(false));
    assert_eq!(
        device.attributes["driverVersion"],
        AttributeValue::Version("1.2.3".into())
    );
    assert!(!device.attributes.contains_key("lanes"), "lists are left out");
    let policy = device.capacity["memory"].policy.as_ref().unwrap();
    assert_eq!(policy.default.unwrap().to_string(), "4Gi");
    let ascending = ["4Gi", "8Gi"].map(|text| text.parse().unwrap()).to_vec();
    assert_eq!(policy.portions, Portions::OneOf(ascending));
    let range = &device.capacity["bandwidth"].policy.as_ref().unwrap().portions;
    assert!(matches!(
        range,
        Portions::Range {
            max: None,
            step: Some(_),
            ..
        }
    ));
    assert_eq!(device.consumes[0].counters["bytes"].to_string(), "1Gi");
}

#[test]
fn a_slice_says_from_where_its_devices_are_reached() {
    let device = json!([{ "name": "a" }]);
    let reach = |spec: Value| (*slice(spec).devices[0].reach).clone();
    assert_eq!(reach(json!({ "devices": device })), Reach::Nowhere);
    assert_eq!(
        reach(json!({ "devices": device, "nodeName": "n1" })),
        Reach::Node("n1".into())
    );
    let per_device = json!({
        "perDeviceNodeSelection": true,
        "devices": [{ "name": "a", "nodeName": "n2" }, { "name": "b", "allNodes": true }],
    });
    assert_eq!(*slice(per_device.clone()).devices[1].reach, Reach::Everywhere);
    assert_eq!(reach(per_device), Reach::Node("n2".into()));
}

fn terms(written: Value) -> NodeTerms {
    let spec = json!({ "devices": [{ "name": "a" }], "nodeSelector": { "nodeSelectorTerms": written } });
    match &*slice(spec).devices[0].reach {
        Reach::Nodes(terms) => terms.clone(),
        reach => panic!("{reach:?}"),
    }
}

#[test]
fn terms_on_one_label_are_one_term() {
    let zone = |zone: &str| json!({ "key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone] });
    let joined = terms(json!([{ "matchExpressions": [zone("a")] }, { "matchExpressions": [zone("b")] }]));
    assert_eq!(joined.0.len(), 1);
    assert_eq!(joined.0[0].labels.to_string(), "topology.kubernetes.io/zone In [a b]");
    let apart = terms(json!([
        { "matchExpressions": [zone("a")] },
        { "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["n1", "n2"] }] },
        {},
    ]));
    assert_eq!(apart.0.len(), 2, "a term without conditions selects nothing");
    assert_eq!(apart.0[1].names, Some(["n1".into(), "n2".into()].into()));
}

#[test]
fn a_claim_tells_what_it_asks_for() {
    let claim = claim(
        json!({
            "requests": [
                { "name": "one", "exactly": {
                    "deviceClassName": "gpu",
                    "selectors": [{ "cel": { "expression": "true" } }, {}],
                    "capacity": { "requests": { "memory": "4Gi" } },
                } },
                { "name": "all", "exactly": { "deviceClassName": "gpu", "allocationMode": "All" } },
                { "name": "either", "firstAvailable": [
                    { "name": "big", "deviceClassName": "big", "count": 1 },
                    { "name": "small", "deviceClassName": "small", "allocationMode": "ExactCount", "count": 2 },
                ] },
                { "name": "odd" },
            ],
            "constraints": [
                { "matchAttribute": "example.com/root", "requests": ["one"] },
                { "distinctAttribute": "example.com/id" },
            ],
        }),
        json!({}),
    );
    assert_eq!(claim.key.to_string(), "ml/c");
    let [one, all, either, odd] = &claim.requests[..] else {
        panic!("{:?}", claim.requests);
    };
    let Ask::Exactly(ask) = &one.ask else { panic!("{one:?}") };
    assert_eq!(ask.count, DeviceCount::Exactly(1));
    assert_eq!(
        ask.selectors,
        [DeviceSelector::Cel("true".into()), DeviceSelector::Unknown]
    );
    assert_eq!(ask.capacity["memory"].to_string(), "4Gi");
    assert!(matches!(&all.ask, Ask::Exactly(ask) if ask.count == DeviceCount::All));
    let Ask::FirstAvailable(options) = &either.ask else {
        panic!("{either:?}")
    };
    assert_eq!(
        (&*options[1].0, &options[1].1.count),
        ("small", &DeviceCount::Exactly(2))
    );
    assert_eq!(odd.ask, Ask::Unknown);
    assert_eq!(
        claim.constraints[0].rule,
        ConstraintRule::MatchAttribute("example.com/root".into())
    );
    assert_eq!(claim.constraints[1].rule, ConstraintRule::Unknown("distinctAttribute"));
    assert_eq!(claim.allocation, None);
}

#[test]
fn a_claim_tells_what_it_holds_and_for_whom() {
    let claim = claim(
        json!({}),
        json!({
            "allocation": { "devices": { "results": [
                { "request": "r", "driver": "d", "pool": "p", "device": "whole" },
                { "request": "r", "driver": "d", "pool": "p", "device": "part", "consumedCapacity": { "memory": "1Gi" } },
            ] } },
            "reservedFor": [
                { "resource": "pods", "name": "web", "uid": "u1" },
                { "apiGroup": "batch", "resource": "jobs", "name": "train", "uid": "u2" },
            ],
        }),
    );
    let allocation = claim.allocation.unwrap();
    assert_eq!(allocation.nodes, None);
    assert_eq!(allocation.devices[0].id.to_string(), "d/p/whole");
    assert_eq!(allocation.devices[0].consumed, None);
    assert_eq!(
        allocation.devices[1].consumed.as_ref().unwrap()["memory"].to_string(),
        "1Gi"
    );
    let users = [Consumer::Pod("u1".into()), Consumer::Other("jobs/train".to_owned())];
    assert_eq!(claim.reserved_for, users);
}

#[test]
fn what_cannot_be_read_is_reported_and_does_not_count() {
    let parsed = convert::resource_slice(&object(written_slice(json!({
        "nodeSelector": { "nodeSelectorTerms": [
            { "matchExpressions": [{ "key": "a", "operator": "Near", "values": ["b"] }] },
            { "matchFields": [{ "key": "metadata.uid", "operator": "In", "values": ["b"] }] },
        ] },
        "devices": [{ "name": "odd", "capacity": { "memory": { "value": "much" } } }, { "name": "plain" }],
        "sharedCounters": [{ "name": "set", "counters": { "bytes": { "value": "few" } } }],
    }))));
    assert_eq!(
        fields(&parsed),
        [
            "spec.nodeSelector.nodeSelectorTerms[0].matchExpressions[0].operator",
            "spec.nodeSelector.nodeSelectorTerms[1].matchFields[0]",
            "spec.devices[0].capacity[memory].value",
            "spec.sharedCounters[0].counters[bytes].value",
        ]
    );
    assert_eq!(parsed.value.devices.len(), 1);
    assert_eq!(*parsed.value.devices[0].reach, Reach::Nodes(NodeTerms::default()));

    let parsed = convert::resource_claim(&object(written_claim(
        json!({ "requests": [
            { "name": "a", "exactly": { "deviceClassName": "gpu", "count": -1 } },
            { "name": "b", "exactly": { "deviceClassName": "gpu", "capacity": { "requests": { "m": "much" } } } },
        ] }),
        json!({ "allocation": { "devices": { "results": [
            { "request": "r", "driver": "d", "pool": "p", "device": "x", "consumedCapacity": { "m": "some" } },
        ] } } }),
    )));
    assert_eq!(
        fields(&parsed),
        [
            "spec.devices.requests[0].exactly.count",
            "spec.devices.requests[1].exactly.capacity.requests[m]",
            "status.allocation.devices.results[0].consumedCapacity[m]",
        ]
    );
    assert!(parsed.value.requests.iter().all(|request| request.ask == Ask::Unknown));
    assert_eq!(parsed.value.allocation.unwrap().devices[0].consumed, None, "held alone");
}

#[test]
fn a_class_has_selectors() {
    let class = convert::device_class(&object(json!({
        "metadata": { "name": "gpu" },
        "spec": { "selectors": [{ "cel": { "expression": "device.driver == 'x'" } }] },
    })));
    assert_eq!(&*class.name, "gpu");
    assert_eq!(class.selectors, [DeviceSelector::Cel("device.driver == 'x'".into())]);
}
