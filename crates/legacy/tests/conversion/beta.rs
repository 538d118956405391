//! v1beta1 up to v1, and v1 down again.

use legacy::beta::{EC2NodeClassSpec, NodePoolSpec, annotations, node_class, node_pool};
use legacy::{Change, Notes, Options, Reason, Subject};
use serde_json::{Map, Value, json};

use crate::fixtures::{beta, object, reasons, to_v1, to_v1beta1, warns};

fn notes() -> Notes {
    Notes::on(Subject {
        place: String::new(),
        object: String::new(),
    })
}

const CLASS: &str = "
apiVersion: karpenter.k8s.aws/v1beta1
kind: EC2NodeClass
metadata: {name: default}
spec:
  amiFamily: AL2023
  role: nodes
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: demo}}]
  securityGroupSelectorTerms: [{name: nodes}]
";

fn pool(disruption: &str) -> String {
    format!(
        "apiVersion: karpenter.sh/v1beta1
kind: NodePool
metadata: {{name: default}}
spec:
  template:
    spec:
      nodeClassRef: {{apiVersion: karpenter.k8s.aws/v1beta1, kind: EC2NodeClass, name: default}}
      requirements: [{{key: karpenter.k8s.aws/instance-family, operator: In, values: [m5, m6i], minValues: 2}}]
      kubelet: {{maxPods: 20, kubeReserved: {{cpu: 1}}}}
  disruption: {disruption}
  limits: {{cpu: 100}}
  weight: 5
---{CLASS}"
    )
}

#[test]
fn a_pool_goes_up_and_its_kubelet_moves_to_the_class() {
    let converted = to_v1(
        &pool(
            "{consolidationPolicy: WhenUnderutilized, expireAfter: 100h, budgets: [{nodes: '0', schedule: '0 9 * * *', duration: 8h}]}",
        ),
        &Options::default(),
    );
    assert_eq!(
        object(&converted, "NodePool", "default")["spec"],
        json!({
            "disruption": {
                "budgets": [{"nodes": "0", "schedule": "0 9 * * *", "duration": "8h"}],
                "consolidateAfter": "0s",
                "consolidationPolicy": "WhenEmptyOrUnderutilized",
            },
            "limits": {"cpu": "100"},
            "template": {"spec": {
                "expireAfter": "100h",
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                "requirements": [{"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["m5", "m6i"], "minValues": 2}],
            }},
            "weight": 5,
        })
    );
    let class = &object(&converted, "EC2NodeClass", "default")["spec"];
    assert_eq!(class["kubelet"], json!({"maxPods": 20, "kubeReserved": {"cpu": "1"}}));
    assert_eq!(class["amiSelectorTerms"], json!([{"alias": "al2023@latest"}]));
    assert_eq!(class["metadataOptions"]["httpPutResponseHopLimit"], 2);
    assert!(warns(&converted, &Change::HopLimitWritten));
}

/// LE18.15
#[test]
fn never_to_consolidate_is_kept() {
    let converted = to_v1(
        &pool("{consolidationPolicy: WhenUnderutilized, consolidateAfter: Never}"),
        &Options::default(),
    );
    assert_eq!(
        object(&converted, "NodePool", "default")["spec"]["disruption"],
        json!({"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "Never"})
    );
    let converted = to_v1(
        &pool("{consolidationPolicy: WhenEmpty, consolidateAfter: 30s}"),
        &Options::default(),
    );
    assert_eq!(
        object(&converted, "NodePool", "default")["spec"]["disruption"],
        json!({"consolidationPolicy": "WhenEmpty", "consolidateAfter": "30s"})
    );
}

/// LE18.14
#[test]
fn ubuntu_goes_up_with_and_without_images_and_comes_back_as_it_was() {
    let base = json!({
        "amiFamily": "Ubuntu",
        "role": "nodes",
        "subnetSelectorTerms": [{"tags": {"a": "b"}}],
        "securityGroupSelectorTerms": [{"id": "sg-1"}],
    });
    let volumes = json!([{"deviceName": "/dev/sdb", "ebs": {"volumeSize": "10Gi"}}]);
    for (terms, own_volumes, remembered) in [
        (Some("ami-1"), false, "amiFamily,blockDeviceMappings"),
        (None, false, "amiFamily,blockDeviceMappings,incompatible"),
        (Some("ami-1"), true, "amiFamily"),
        (None, true, "amiFamily,incompatible"),
    ] {
        let mut written = base.clone();
        if let Some(id) = terms {
            written["amiSelectorTerms"] = json!([{"id": id}]);
        }
        if own_volumes {
            written["blockDeviceMappings"] = volumes.clone();
        }
        let spec: EC2NodeClassSpec = serde_json::from_value(written.clone()).expect("a spec");
        let mut metadata = Map::from_iter([("name".to_owned(), json!("x"))]);
        let up = node_class::up(spec, &mut metadata, &mut notes());
        assert_eq!(metadata["annotations"][annotations::UBUNTU], remembered);
        let v1 = serde_json::to_value(&up).expect("JSON");
        assert_eq!(v1["amiFamily"], "AL2");
        assert_eq!(v1["amiSelectorTerms"][0]["id"], terms.unwrap_or("ami-placeholder"));
        let root = if own_volumes { json!(null) } else { json!(true) };
        assert_eq!(v1["blockDeviceMappings"][0]["rootVolume"], root);
        let down = node_class::down(up, &mut metadata, false, &mut notes());
        assert_eq!(serde_json::to_value(&down).expect("JSON"), written);
        assert_eq!(Value::Object(metadata), json!({"name": "x"}));
    }
    let yaml = CLASS.replace("AL2023", "Ubuntu");
    assert!(warns(&to_v1(&yaml, &Options::default()), &Change::UbuntuWithoutImages));
}

#[test]
fn a_single_pool_travels_with_annotations_and_comes_back_as_it_was() {
    let written = json!({
        "template": {"spec": {
            "nodeClassRef": {"apiVersion": "karpenter.k8s.aws/v1beta1", "kind": "EC2NodeClass", "name": "x"},
            "requirements": [],
            "kubelet": {"maxPods": 5},
        }},
        "disruption": {"consolidationPolicy": "WhenUnderutilized", "expireAfter": "Never"},
    });
    let spec: NodePoolSpec = serde_json::from_value(written.clone()).expect("a spec");
    let mut metadata = Map::new();
    let up = node_pool::up(spec, &mut metadata);
    assert_eq!(metadata["annotations"][annotations::KUBELET], "{\"maxPods\":5}");
    let down = node_pool::down(up, &mut metadata, false, &mut notes());
    assert_eq!(serde_json::to_value(&down).expect("JSON"), written);
    assert!(metadata.is_empty());
}

#[test]
fn what_a_webhook_of_1_0_left_on_a_pool_finds_its_place() {
    let yaml = "apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: default
  annotations:
    compatibility.karpenter.sh/v1beta1-kubelet-conversion: '{\"maxPods\":7}'
    compatibility.karpenter.sh/v1beta1-nodeclass-reference: '{\"name\":\"default\"}'
spec:
  template: {spec: {requirements: [], nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}}
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec: {role: nodes, amiSelectorTerms: [{alias: al2023@latest}], subnetSelectorTerms: [{id: subnet-1}], securityGroupSelectorTerms: [{id: sg-1}]}
";
    let converted = to_v1(yaml, &Options::default());
    assert_eq!(
        object(&converted, "NodePool", "default")["metadata"],
        json!({"name": "default"})
    );
    assert_eq!(
        object(&converted, "EC2NodeClass", "default")["spec"]["kubelet"],
        json!({"maxPods": 7})
    );
}

const V1: &str = "apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default, annotations: {karpenter.sh/stored-version-migrated: 'true'}}
spec:
  template:
    spec:
      requirements: [{key: karpenter.k8s.aws/instance-cpu, operator: Gte, values: ['4']}]
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      expireAfter: 720h
  disruption: {consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 30s}
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec:
  role: nodes
  amiSelectorTerms: [{alias: al2023@v20240807}]
  subnetSelectorTerms: [{id: subnet-1}]
  securityGroupSelectorTerms: [{id: sg-1}]
  kubelet: {maxPods: 9}
";

#[test]
fn a_pool_goes_down_with_the_kubelet_of_its_class() {
    let converted = to_v1beta1(V1);
    let pool = object(&converted, "NodePool", "default");
    assert_eq!(pool["apiVersion"], "karpenter.sh/v1beta1");
    assert_eq!(pool["metadata"], json!({"name": "default"}));
    assert_eq!(pool["spec"]["template"]["spec"]["kubelet"], json!({"maxPods": 9}));
    assert_eq!(
        pool["spec"]["template"]["spec"]["nodeClassRef"],
        json!({"kind": "EC2NodeClass", "name": "default"})
    );
    assert_eq!(
        pool["spec"]["template"]["spec"]["requirements"][0],
        json!({"key": "karpenter.k8s.aws/instance-cpu", "operator": "Gt", "values": ["3"]})
    );
    assert_eq!(
        pool["spec"]["disruption"],
        json!({"consolidationPolicy": "WhenUnderutilized", "expireAfter": "720h"})
    );
    assert!(warns(&converted, &Change::DelayLost { from: "30s".to_owned() }));
    let class = object(&converted, "EC2NodeClass", "default");
    assert_eq!(
        class["metadata"]["annotations"][annotations::ALIAS_VERSION],
        "v20240807"
    );
    assert_eq!(class["spec"]["amiFamily"], "AL2023");
    assert_eq!(class["spec"].get("kubelet"), None);
    assert_eq!(class["spec"]["metadataOptions"]["httpPutResponseHopLimit"], 1);
}

#[test]
fn what_v1beta1_cannot_say_is_a_loss_unless_it_is_accepted() {
    let lost = Reason::WouldBeLost { to: "v1beta1" };
    for (old, new) in [
        ("expireAfter: 720h", "terminationGracePeriod: 1h"),
        (
            "consolidateAfter: 30s}",
            "consolidateAfter: 0s, budgets: [{nodes: '1', reasons: [Empty]}]}",
        ),
        ("  disruption:", "  replicas: 2\n  disruption:"),
        ("  role: nodes", "  role: nodes\n  ipPrefixCount: 1"),
        (
            "  role: nodes",
            "  role: nodes\n  cpuOptions: {nestedVirtualization: enabled}",
        ),
        ("  role: nodes", "  role: nodes\n  novelField: 1"),
        ("{alias: al2023@v20240807}", "{alias: windows2025@latest}"),
        ("values: ['4']", "values: ['0']"),
    ] {
        let yaml = V1.replacen(old, new, 1);
        assert_ne!(yaml, V1, "{old}");
        assert_eq!(reasons(&yaml, &beta()), std::slice::from_ref(&lost), "{new}");
        let force = Options { force: true, ..beta() };
        let forced = legacy::convert(&crate::fixtures::inputs(&yaml), &force).expect("what is lost is accepted");
        assert!(warns(&forced, &Change::Forced { to: "v1beta1" }), "{new}");
    }
    let balanced = to_v1beta1(&V1.replace("WhenEmptyOrUnderutilized", "Balanced"));
    assert!(warns(&balanced, &Change::BalanceLost));
    let alone = V1.split("---").nth(1).expect("the class");
    assert_eq!(reasons(alone, &beta()), [Reason::KubeletWithoutPool]);
}

#[test]
fn objects_of_v1beta1_stay_as_they_are_when_v1beta1_is_asked_for() {
    let converted = to_v1beta1(&pool("{consolidationPolicy: WhenUnderutilized}"));
    assert!(!converted.changes_anything());
}
