//! What holds for every object.

use legacy::{Input, Options, Target, convert};
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

use crate::fixtures::schema;

/// An object without the fields that are null.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key, without_nulls(value))).collect())
        }
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        other => other,
    }
}

fn requirement() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64", "arm64"]})),
        Just(
            json!({"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["m5", "c5"], "minValues": 2})
        ),
        Just(json!({"key": "karpenter.k8s.aws/instance-generation", "operator": "Gt", "values": ["2"]})),
        Just(json!({"key": "example.com/team", "operator": "Exists"})),
        Just(json!({"key": "topology.kubernetes.io/zone", "operator": "NotIn", "values": ["us-west-2a"]})),
    ]
}

/// Disruption that v1beta1 can say.
fn disruption() -> impl Strategy<Value = Value> {
    let policy = prop_oneof![
        Just(json!({"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s"})),
        Just(json!({"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "Never"})),
        select(vec!["0s", "30s", "1h30m", "Never"])
            .prop_map(|after| json!({"consolidationPolicy": "WhenEmpty", "consolidateAfter": after})),
        Just(json!({"consolidateAfter": "Never"})),
        Just(json!({})),
    ];
    let budgets = of(prop::collection::vec(
        prop_oneof![
            Just(json!({"nodes": "20%"})),
            Just(json!({"nodes": "0", "schedule": "@daily", "duration": "1h"})),
        ],
        0..3,
    ));
    (policy, budgets).prop_map(|(mut disruption, budgets)| {
        disruption["budgets"] = json!(budgets);
        disruption
    })
}

fn taints() -> impl Strategy<Value = Option<Value>> {
    of(select(vec![
        json!([{"key": "a", "effect": "NoSchedule"}]),
        json!([{"key": "a", "effect": "NoExecute", "value": "b"}, {"key": "c", "effect": "PreferNoSchedule"}]),
    ]))
}

prop_compose! {
    fn pool(name: usize)(
        class in select(vec!["one", "two"]),
        requirements in prop::collection::vec(requirement(), 0..4),
        taints in taints(),
        startup in of(Just(json!([{"key": "starting", "effect": "NoSchedule"}]))),
        labels in of(Just(json!({"team": "a"}))),
        expire_after in of(select(vec!["720h", "1h", "Never"])),
        disruption in of(disruption()),
        weight in of(1..=100),
        limits in of(Just(json!({"cpu": "100", "memory": "1000Gi"}))),
        annotations in of(Just(json!({"example.com/a": "b"}))),
    ) -> Value {
        without_nulls(json!({
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": format!("pool-{name}"), "annotations": annotations},
            "spec": {
                "template": {
                    "metadata": labels.map(|labels| json!({"labels": labels})),
                    "spec": {
                        "requirements": requirements,
                        "taints": taints,
                        "startupTaints": startup,
                        "expireAfter": expire_after,
                        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": class},
                    },
                },
                "disruption": disruption,
                "weight": weight,
                "limits": limits,
            },
        }))
    }
}

/// Images that v1beta1 can say.
fn images() -> impl Strategy<Value = Value> {
    prop_oneof![
        select(vec![
            "al2@latest",
            "al2023@v20240807",
            "bottlerocket@1.20.5",
            "bottlerocket@latest",
            "windows2022@latest"
        ])
        .prop_map(|alias| json!({"amiSelectorTerms": [{"alias": alias}]})),
        select(vec!["AL2", "AL2023", "Bottlerocket", "Windows2019", "Custom"]).prop_map(
            |family| json!({"amiFamily": family, "amiSelectorTerms": [{"id": "ami-1"}, {"name": "x", "owner": "self"}]})
        ),
    ]
}

prop_compose! {
    fn class(name: &'static str)(
        images in images(),
        identity in select(vec![("role", "nodes"), ("instanceProfile", "profile")]),
        user_data in of(Just("#!/bin/bash\necho hi\n")),
        tags in of(Just(json!({"team": "a"}))),
        kubelet in of(select(vec![json!({"maxPods": 10}), json!({"clusterDNS": ["10.0.0.10"], "kubeReserved": {"cpu": "100m"}})])),
        volumes in of(Just(json!([{"deviceName": "/dev/xvda", "rootVolume": true, "ebs": {"volumeSize": "20Gi", "volumeType": "gp3"}}]))),
        options in of(select(vec![json!({"httpTokens": "optional"}), json!({"httpPutResponseHopLimit": 5})])),
        public in of(any::<bool>()),
        policy in of(Just("RAID0")),
    ) -> Value {
        let mut spec = json!({
            "subnetSelectorTerms": [{"tags": {"a": "b"}}, {"id": "subnet-1"}],
            "securityGroupSelectorTerms": [{"name": "nodes"}],
            "userData": user_data,
            "tags": tags,
            "kubelet": kubelet,
            "blockDeviceMappings": volumes,
            "metadataOptions": options,
            "associatePublicIPAddress": public,
            "instanceStorePolicy": policy,
        });
        spec[identity.0] = identity.1.into();
        for (key, value) in images.as_object().expect("fields") {
            spec[key] = value.clone();
        }
        without_nulls(json!({
            "apiVersion": "karpenter.k8s.aws/v1",
            "kind": "EC2NodeClass",
            "metadata": {"name": name},
            "spec": spec,
        }))
    }
}

fn stored(object: &Value) -> Value {
    let mut object = object.clone();
    schema(&object).expect("a kind of v1").default(&mut object);
    object
}

fn inputs(objects: impl IntoIterator<Item = Value>) -> Vec<Input> {
    objects
        .into_iter()
        .map(|object| Input {
            place: String::new(),
            object,
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Down to v1beta1 and up again: the server would store the same objects as before.
    #[test]
    fn what_v1beta1_can_say_comes_back_as_it_was(
        pools in (pool(0), pool(1), pool(2)),
        classes in (class("one"), class("two")),
    ) {
        let pools = [pools.0, pools.1, pools.2];
        let used = |class: &Value| {
            pools.iter().any(|pool| pool["spec"]["template"]["spec"]["nodeClassRef"]["name"] == class["metadata"]["name"])
        };
        let classes: Vec<Value> = [classes.0, classes.1].into_iter().filter(used).collect();
        let objects: Vec<Value> = pools.into_iter().chain(classes).collect();

        let to_beta = Options { target: Target::V1Beta1, ..Options::default() };
        let down = convert(&inputs(objects.clone()), &to_beta).expect("nothing is lost");
        prop_assert!(down.objects().all(|object| object["apiVersion"].as_str().is_some_and(|version| version.ends_with("/v1beta1"))));
        let up = convert(&inputs(down.objects().cloned()), &Options::default()).expect("nothing is lost");
        prop_assert_eq!(
            up.objects().map(stored).collect::<Vec<_>>(),
            objects.iter().map(stored).collect::<Vec<_>>()
        );
    }

    /// Whatever stands in an object, the answer is a result or a reason.
    #[test]
    fn no_document_is_too_odd_to_be_answered(documents in prop::collection::vec(odd(), 1..4), target in select(vec![Target::V1, Target::V1Beta1]), force in any::<bool>()) {
        let options = Options { target, force, ..Options::default() };
        if let Ok(converted) = convert(&inputs(documents), &options) {
            let again = convert(&inputs(converted.objects().cloned()), &options);
            prop_assert!(again.is_ok_and(|again| !again.changes_anything()));
        }
    }
}

/// An object of a kind that we know, with fields that we know and values that nobody expects.
fn odd() -> impl Strategy<Value = Value> {
    let kinds = vec![
        ("karpenter.sh/v1alpha3", "Provisioner"),
        ("karpenter.sh/v1alpha4", "Provisioner"),
        ("karpenter.sh/v1alpha5", "Provisioner"),
        ("karpenter.sh/v1alpha5", "Machine"),
        ("karpenter.k8s.aws/v1alpha1", "AWSNodeTemplate"),
        ("karpenter.sh/v1beta1", "NodePool"),
        ("karpenter.sh/v1beta1", "NodeClaim"),
        ("karpenter.k8s.aws/v1beta1", "EC2NodeClass"),
        ("karpenter.sh/v1", "NodePool"),
        ("karpenter.sh/v1", "NodeClaim"),
        ("karpenter.k8s.aws/v1", "EC2NodeClass"),
        ("v1", "ConfigMap"),
        ("v1", "Pod"),
    ];
    let named = prop_oneof![
        Just(json!({"name": "karpenter-global-settings"})),
        Just(json!({"name": "a", "labels": {"x": "y"}})),
        leaf()
    ];
    let object = (select(kinds), named, fields()).prop_map(|((version, kind), metadata, spec)| {
        json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec, "data": spec, "status": spec})
    });
    prop_oneof![4 => object, 1 => fields(), 1 => leaf()]
}

fn leaf() -> impl Strategy<Value = Value> {
    select(vec![
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(1.5),
        json!(""),
        json!("text"),
        json!("Never"),
        json!("20Gi"),
        json!([]),
        json!({}),
        json!(["x"]),
        json!({"name": "a"}),
        json!([{"name": "CLUSTER_NAME", "value": 1}]),
    ])
}

fn fields() -> impl Strategy<Value = Value> {
    let names = vec![
        "template",
        "spec",
        "metadata",
        "labels",
        "annotations",
        "requirements",
        "nodeClassRef",
        "kubelet",
        "disruption",
        "provider",
        "providerRef",
        "cluster",
        "zones",
        "subnetSelector",
        "securityGroupSelector",
        "amiSelector",
        "amiFamily",
        "launchTemplate",
        "blockDeviceMappings",
        "ttlSecondsAfterEmpty",
        "consolidation",
        "kubeletConfiguration",
        "limits",
        "conditions",
        "controller",
        "settings",
        "aws",
        "env",
        "image",
        "defaultProvisioner",
        "create",
        "webhook",
        "name",
        "aws.tags",
        "budgets",
        "metadataOptions",
        "subnetSelectorTerms",
        "securityGroupSelectorTerms",
        "amiSelectorTerms",
    ];
    leaf().prop_recursive(4, 40, 6, move |inner| {
        prop::collection::vec((select(names.clone()), inner), 0..6).prop_map(|fields| {
            Value::Object(
                fields
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value))
                    .collect::<Map<_, _>>(),
            )
        })
    })
}
