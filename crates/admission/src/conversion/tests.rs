use api::duration::DurationOrNever;
use serde_json::{Value, json};

use super::{converted, pools};
use crate::{Pools, review::Conversion};

fn asked(desired: &str, objects: Vec<Value>) -> Conversion {
    Conversion {
        uid: "1".to_owned(),
        desired: desired.to_owned(),
        objects,
    }
}

/// A pool as a server stores it.
fn beta_pool() -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1beta1", "kind": "NodePool",
        "metadata": {"name": "default", "uid": "u", "resourceVersion": "7", "generation": 2},
        "spec": {
            "disruption": {"consolidationPolicy": "WhenUnderutilized", "expireAfter": "720h"},
            "template": {"spec": {
                "requirements": [],
                "kubelet": {"maxPods": 20, "systemReserved": {"cpu": 1}},
                "nodeClassRef": {"apiVersion": "karpenter.k8s.aws/v1beta1", "kind": "EC2NodeClass", "name": "default"},
            }},
        },
        "status": {"resources": {"cpu": "4"}},
    })
}

fn beta_claim(pool: &str) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1beta1", "kind": "NodeClaim",
        "metadata": {"name": "default-1", "labels": {"karpenter.sh/nodepool": pool}},
        "spec": {"requirements": [], "nodeClassRef": {"name": "default"}},
        "status": {"providerID": "aws:///a/i-1"},
    })
}

#[track_caller]
fn only(answer: &Value) -> Value {
    assert_eq!(answer["result"], json!({"status": "Success"}), "{answer}");
    assert_eq!(answer["uid"], "1");
    answer["convertedObjects"][0].clone()
}

#[test]
fn a_pool_goes_up_and_comes_down_as_it_was() {
    let up = only(&converted(&asked("karpenter.sh/v1", vec![beta_pool()]), &Pools::new()));
    assert_eq!(up["apiVersion"], "karpenter.sh/v1");
    assert_eq!(up["metadata"]["resourceVersion"], "7");
    assert_eq!(up["status"], beta_pool()["status"]);
    assert_eq!(
        up["spec"],
        json!({
            "disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s"},
            "template": {"spec": {
                "requirements": [],
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                "expireAfter": "720h",
            }},
        })
    );
    let down = only(&converted(&asked("karpenter.sh/v1beta1", vec![up]), &Pools::new()));
    let mut expected = beta_pool();
    // Quantities are texts, however they were written.
    expected["spec"]["template"]["spec"]["kubelet"]["systemReserved"]["cpu"] = "1".into();
    assert_eq!(down, expected);
}

/// LE18.15
#[test]
fn a_pool_that_never_consolidates_still_does_not() {
    let mut pool = beta_pool();
    pool["spec"]["disruption"]["consolidateAfter"] = "Never".into();
    let up = only(&converted(&asked("karpenter.sh/v1", vec![pool]), &Pools::new()));
    assert_eq!(up["spec"]["disruption"]["consolidateAfter"], "Never");
}

/// LE18.14
#[test]
fn an_ubuntu_class_comes_down_as_it_was() {
    for terms in [None, Some(json!([{"id": "ami-1"}]))] {
        let mut class = json!({
            "apiVersion": "karpenter.k8s.aws/v1beta1", "kind": "EC2NodeClass",
            "metadata": {"name": "default", "annotations": {"a": "b"}},
            "spec": {
                "amiFamily": "Ubuntu", "role": "nodes",
                "subnetSelectorTerms": [{"id": "subnet-1"}], "securityGroupSelectorTerms": [{"id": "sg-1"}],
            },
            "status": {"instanceProfile": "p"},
        });
        if let Some(terms) = terms {
            class["spec"]["amiSelectorTerms"] = terms;
        }
        let up = only(&converted(
            &asked("karpenter.k8s.aws/v1", vec![class.clone()]),
            &Pools::new(),
        ));
        assert_eq!(up["spec"]["amiFamily"], "AL2");
        let down = only(&converted(&asked("karpenter.k8s.aws/v1beta1", vec![up]), &Pools::new()));
        assert_eq!(down, class);
    }
}

#[test]
fn a_claim_expires_when_its_pool_says() {
    let claims = asked(
        "karpenter.sh/v1",
        vec![beta_claim("default"), beta_claim("gone"), beta_pool()],
    );
    assert_eq!(pools(&claims), ["default", "gone"]);
    let known = Pools::from([("default".to_owned(), DurationOrNever::from("24h"))]);
    let answer = converted(&claims, &known);
    let times: Vec<&Value> = (0..2)
        .map(|index| &answer["convertedObjects"][index]["spec"]["expireAfter"])
        .collect();
    assert_eq!(times, [&json!("24h"), &Value::Null]);
    let down = asked("karpenter.sh/v1beta1", vec![answer["convertedObjects"][0].clone()]);
    assert_eq!(only(&converted(&down, &known)), beta_claim("default"));
}

#[test]
fn what_is_of_that_version_already_stays() {
    let same = converted(&asked("karpenter.sh/v1beta1", vec![beta_pool()]), &Pools::new());
    assert_eq!(only(&same), beta_pool());
}

#[test]
fn what_has_no_other_version_is_named() {
    let message = |desired: &str, object: Value| {
        let answer = converted(&asked(desired, vec![beta_pool(), object]), &Pools::new());
        assert_eq!(answer["result"]["status"], "Failure");
        assert_eq!(answer["convertedObjects"], Value::Null);
        answer["result"]["message"].as_str().unwrap_or_default().to_owned()
    };
    let provisioner = json!({"apiVersion": "karpenter.sh/v1alpha5", "kind": "Provisioner", "metadata": {"name": "p"}});
    assert_eq!(
        message("karpenter.sh/v1", provisioner),
        "Provisioner p: apiVersion: is none that converts to v1 and v1beta1"
    );
    let mut broken = beta_pool();
    broken["spec"]["weight"] = "heavy".into();
    assert_eq!(
        message("karpenter.sh/v1", broken),
        "NodePool default: spec.weight: invalid type: string \"heavy\", expected i32"
    );
    assert_eq!(
        message("karpenter.sh/v2", beta_pool()),
        "nothing is converted to \"karpenter.sh/v2\""
    );
}
