//! Machines and claims: the state of a running cluster.

use legacy::{Change, Options, Reason};
use serde_json::json;

use crate::fixtures::{object, provisioner, reasons, to_v1, to_v1beta1, warns};

const MACHINE: &str = "apiVersion: karpenter.sh/v1alpha5
kind: Machine
metadata:
  name: default-abc
  labels: {karpenter.sh/provisioner-name: default, team: a}
  annotations: {karpenter.sh/linked: 'aws:///a/i-1'}
  finalizers: [karpenter.sh/termination]
  ownerReferences: [{apiVersion: karpenter.sh/v1alpha5, kind: Provisioner, name: default, uid: x}]
spec:
  requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}]
  resources: {requests: {cpu: 1}}
  kubelet: {maxPods: 10}
  machineTemplateRef: {name: default}
status:
  nodeName: node-1
  providerID: aws:///a/i-1
  capacity: {cpu: '2'}
  conditions:
  - {type: MachineLaunched, status: 'True', lastTransitionTime: '2023-01-01T00:00:00Z', severity: Info}
  - {type: MachineEmpty, status: 'True', lastTransitionTime: '2023-01-01T00:00:00Z'}
";

#[test]
fn a_machine_becomes_a_claim_for_the_same_instance() {
    let converted = to_v1(
        &format!("{MACHINE}---\n{}", provisioner("ttlSecondsUntilExpired: 60")),
        &Options::default(),
    );
    assert_eq!(
        *object(&converted, "NodeClaim", "default-abc"),
        json!({
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": {
                "name": "default-abc",
                "labels": {"karpenter.sh/provisioner-name": "default", "karpenter.sh/nodepool": "default", "team": "a"},
                "finalizers": ["karpenter.sh/termination"],
            },
            "spec": {
                "expireAfter": "1m0s",
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                "requirements": [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.large"]}],
                "resources": {"requests": {"cpu": "1"}},
            },
            "status": {
                "nodeName": "node-1",
                "providerID": "aws:///a/i-1",
                "capacity": {"cpu": "2"},
                "conditions": [{
                    "type": "Launched", "status": "True", "reason": "Launched", "message": "",
                    "lastTransitionTime": "2023-01-01T00:00:00Z",
                }],
            },
        })
    );
    assert!(warns(&converted, &Change::IsState { kind: "Machine" }));
    let alone = to_v1(MACHINE, &Options::default());
    assert!(warns(&alone, &Change::PoolUnknown));
    let lost = MACHINE.replace("  machineTemplateRef: {name: default}\n", "");
    assert_eq!(reasons(&lost, &Options::default()), [Reason::ClassUnknown]);
    let beta = to_v1beta1(MACHINE);
    assert_eq!(
        object(&beta, "NodeClaim", "default-abc")["apiVersion"],
        "karpenter.sh/v1beta1"
    );
}

#[test]
fn a_claim_goes_up_with_the_expiry_of_its_pool_and_down_again() {
    let claim = "apiVersion: karpenter.sh/v1beta1
kind: NodeClaim
metadata:
  name: default-abc
  labels: {karpenter.sh/nodepool: default}
  annotations: {karpenter.sh/nodepool-hash: '1', karpenter.sh/nodepool-hash-version: v2}
  ownerReferences: [{apiVersion: karpenter.sh/v1beta1, kind: NodePool, name: default, uid: x, blockOwnerDeletion: true}]
spec:
  requirements: []
  resources: {requests: {cpu: '1'}}
  nodeClassRef: {name: default}
status: {providerID: 'aws:///a/i-1', imageID: ami-1}
---
apiVersion: karpenter.sh/v1beta1
kind: NodePool
metadata: {name: default}
spec: {template: {spec: {requirements: [], nodeClassRef: {name: default}}}, disruption: {expireAfter: 5h}}
";
    let converted = to_v1(claim, &Options::default());
    let up = object(&converted, "NodeClaim", "default-abc");
    assert_eq!(up["spec"]["expireAfter"], "5h");
    assert_eq!(up["metadata"]["ownerReferences"][0]["apiVersion"], "karpenter.sh/v1");
    assert_eq!(
        up["metadata"]["annotations"]["karpenter.sh/nodepool-hash-version"],
        "v2"
    );
    assert_eq!(up["status"], json!({"providerID": "aws:///a/i-1", "imageID": "ami-1"}));
    let down = to_v1beta1(&serde_json::to_string(up).expect("JSON"));
    let down = object(&down, "NodeClaim", "default-abc");
    assert_eq!(
        down["spec"]["nodeClassRef"],
        json!({"kind": "EC2NodeClass", "name": "default"})
    );
    assert_eq!(
        down["metadata"]["ownerReferences"][0]["apiVersion"],
        "karpenter.sh/v1beta1"
    );
}
