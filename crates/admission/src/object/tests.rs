use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{defaulted, validated};
use crate::{Rules, review::Admission};

fn provisioner(spec: Value) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1alpha5", "kind": "Provisioner", "metadata": {"name": "default"}, "spec": spec,
    })
}

fn created(object: Value) -> Admission {
    Admission {
        uid: "1".to_owned(),
        object: Some(object),
        old_object: None,
    }
}

/// The patch of the answer, with requirements as `path key operator values`.
fn patched(object: Value, rules: &Rules) -> Vec<String> {
    let answer = defaulted(&created(object), rules);
    assert_eq!((&answer["uid"], &answer["allowed"]), (&json!("1"), &json!(true)));
    let Some(patch) = answer["patch"].as_str() else {
        return Vec::new();
    };
    assert_eq!(answer["patchType"], "JSONPatch");
    let patch = STANDARD.decode(patch).expect("base64");
    let steps: Vec<Value> = serde_json::from_slice(&patch).expect("a JSON patch");
    let mut lines = Vec::new();
    for step in steps {
        assert_eq!(step["op"], "add");
        let value = &step["value"];
        let list = value.get("requirements").unwrap_or(value);
        for one in list.as_array().cloned().unwrap_or_else(|| vec![list.clone()]) {
            let words = [&one["key"], &one["operator"]].map(|word| word.as_str().unwrap_or_default().to_owned());
            lines.push(format!(
                "{} {} {}",
                step["path"].as_str().unwrap_or_default(),
                words.join(" "),
                one["values"]
            ));
        }
    }
    lines
}

/// LE18.2
#[test]
fn a_bare_provisioner_gets_its_defaults_in_order() {
    let whole = [
        r#"kubernetes.io/os In ["linux"]"#,
        r#"kubernetes.io/arch In ["amd64"]"#,
        r#"karpenter.sh/capacity-type In ["on-demand"]"#,
        r#"karpenter.k8s.aws/instance-category In ["c","m","r"]"#,
        r#"karpenter.k8s.aws/instance-generation Gt ["2"]"#,
    ];
    let at = |path: &str| whole.map(|line| format!("{path} {line}")).to_vec();
    let rules = Rules::default();
    assert_eq!(patched(provisioner(json!({})), &rules), at("/spec/requirements"));
    assert_eq!(
        patched(provisioner(json!({"requirements": []})), &rules),
        at("/spec/requirements/-")
    );
    assert_eq!(patched(provisioner(Value::Null), &rules), at("/spec"));
}

/// LE18.3, LE18.4
#[test]
fn what_is_required_already_is_not_added_again() {
    let some = json!([
        {"key": "kubernetes.io/arch", "operator": "Exists"},
        {"key": "node.kubernetes.io/instance-family", "operator": "In", "values": ["m5"]},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
    ]);
    assert_eq!(
        patched(provisioner(json!({"requirements": some})), &Rules::default()),
        [
            r#"/spec/requirements/- kubernetes.io/os In ["linux"]"#,
            r#"/spec/requirements/- karpenter.k8s.aws/instance-category In ["c","m","r"]"#,
            r#"/spec/requirements/- karpenter.k8s.aws/instance-generation Gt ["2"]"#,
        ]
    );
    let all = json!([
        {"key": "beta.kubernetes.io/os", "operator": "In", "values": ["linux"]},
        {"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]},
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.large"]},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
    ]);
    assert!(patched(provisioner(json!({"requirements": all})), &Rules::default()).is_empty());
}

#[test]
fn another_cloud_gets_no_words_of_ec2() {
    let rules = Rules {
        words: api::vocabulary::kwok(),
        ..Rules::default()
    };
    let keys = patched(provisioner(json!({})), &rules).len();
    assert_eq!(keys, 3);
}

#[test]
fn nothing_is_added_to_other_objects_or_to_what_cannot_be_read() {
    let template = json!({"apiVersion": "karpenter.k8s.aws/v1alpha1", "kind": "AWSNodeTemplate", "spec": {}});
    assert!(patched(template, &Rules::default()).is_empty());
    assert!(patched(provisioner(json!({"requirements": "x"})), &Rules::default()).is_empty());
    let deleted = Admission {
        uid: "1".to_owned(),
        object: None,
        old_object: Some(provisioner(json!({}))),
    };
    assert_eq!(
        defaulted(&deleted, &Rules::default()),
        json!({"uid": "1", "allowed": true})
    );
}

#[test]
fn all_that_is_wrong_is_said_at_once() {
    let wrong = json!({"ttlSecondsUntilExpired": -1, "weight": 0, "providerRef": {"name": "default"}});
    let answer = validated(&created(provisioner(wrong)), &Rules::default());
    assert_eq!(
        answer,
        json!({
            "uid": "1",
            "allowed": false,
            "status": {
                "code": 422,
                "reason": "Invalid",
                "message": "spec.ttlSecondsUntilExpired: may not be negative; spec.weight: is not between 1 and 100",
            },
        })
    );
}

#[test]
fn what_was_there_before_the_webhook_can_still_be_labelled_and_deleted() {
    let mut labelled = provisioner(json!({"ttlSecondsUntilExpired": -1}));
    let old = labelled.clone();
    labelled["metadata"]["labels"] = json!({"a": "b"});
    let asked = |object: Option<Value>| Admission {
        uid: "1".to_owned(),
        object,
        old_object: Some(old.clone()),
    };
    let rules = Rules::default();
    let unchanged = asked(Some(labelled.clone()));
    assert_eq!(defaulted(&unchanged, &rules), json!({"uid": "1", "allowed": true}));
    assert_eq!(validated(&unchanged, &rules)["allowed"], true);
    assert_eq!(validated(&asked(None), &rules)["allowed"], true);
    labelled["spec"]["weight"] = json!(1);
    assert_eq!(validated(&asked(Some(labelled)), &rules)["allowed"], false);
}
