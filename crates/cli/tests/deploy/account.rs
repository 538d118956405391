//! The Terraform module and the CloudFormation stack in an account.

use serde_json::{Value, json};

use crate::terraform::{Terraform, repository, run};

/// One thing after the other: moto's collections do not bear two threads.
const APPROVED: [&str; 2] = ["-auto-approve", "-parallelism=1"];

/// What AWS has of a cluster, with the name of the cluster taken out.
fn found(outputs: &Value, cluster: &str) -> Value {
    let text = outputs["found"]["value"][cluster].to_string();
    serde_json::from_str(&text.replace(cluster, "CLUSTER")).expect("still JSON")
}

/// The resources of the stack, as its template has them; functions are left out, what they are given stands in their place.
fn resources() -> Value {
    let path = repository().join("deploy/aws/cloudformation.yaml");
    let text = std::fs::read_to_string(path).expect("the template");
    let functions = ["!Sub ", "!Ref ", "!GetAtt ", "!Equals ", "!Not "];
    let plain = functions.iter().fold(text, |text, function| text.replace(function, ""));
    let template: Value = serde_saphyr::from_str(&plain).expect("YAML");
    template["Resources"].clone()
}

/// The policies that a role has in the account.
fn attached(terraform: &Terraform, role: &str) -> Value {
    let body = format!("Action=ListAttachedRolePolicies&RoleName={role}&Version=2010-05-08");
    let answer = terraform.ask("iam", &[], &body);
    let members = answer.split("<PolicyArn>").skip(1);
    let names = members.filter_map(|rest| {
        Some(
            rest.split_once("</PolicyArn>")?
                .0
                .replace(":aws:iam", ":${AWS::Partition}:iam"),
        )
    });
    plain(names.collect())
}

/// The policy of a queue in the account.
fn policy_of_queue(terraform: &Terraform, name: &str) -> Value {
    let url = format!("http://sqs/123456789012/{name}");
    let asked = json!({"QueueUrl": url, "AttributeNames": ["Policy"]});
    let answer = terraform.ask_json("sqs", "AmazonSQS.GetQueueAttributes", &asked);
    let policy = answer["Attributes"]["Policy"].as_str().expect("a policy");
    let arn = format!("arn:aws:sqs:us-west-2:123456789012:{name}");
    parsed(&policy.replace(&arn, "KarpenterInterruptionQueue.Arn"))
}

/// The rules that fill the queue of a cluster: their patterns and targets.
fn rules(terraform: &Terraform, cluster: &str) -> Value {
    let queue = format!("arn:aws:sqs:us-west-2:123456789012:{cluster}");
    let asked = json!({"TargetArn": queue});
    let answer = terraform.ask_json("events", "AWSEvents.ListRuleNamesByTarget", &asked);
    let names = answer["RuleNames"].as_array().expect("names").iter();
    let rules = names.map(|name| {
        let rule = terraform.ask_json("events", "AWSEvents.DescribeRule", &json!({"Name": name}));
        let targets = terraform.ask_json("events", "AWSEvents.ListTargetsByRule", &json!({"Rule": name}));
        let pattern = rule["EventPattern"].as_str().expect("a pattern");
        let text = json!({"pattern": parsed(pattern), "targets": targets["Targets"]}).to_string();
        parsed(&text.replace(&queue, "QUEUE"))
    });
    plain(rules.collect())
}

fn parsed(text: &str) -> Value {
    plain(serde_json::from_str(text).expect("a document"))
}

/// Without differences that mean nothing: a list of one, the order of a list, fields that are empty.
fn plain(value: Value) -> Value {
    let is_told = |value: &Value| !value.is_null() && value != "" && *value != json!({}) && *value != json!([]);
    match value {
        Value::Array(items) => {
            let mut items: Vec<Value> = items.into_iter().map(plain).collect();
            items.sort_by_key(Value::to_string);
            match <[Value; 1]>::try_from(items) {
                Ok([item]) => item,
                Err(items) => Value::Array(items),
            }
        }
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(key, value)| (key, plain(value)));
            Value::Object(fields.filter(|(_, value)| is_told(value)).collect())
        }
        other => other,
    }
}

#[test]
fn module_and_stack_make_the_same_and_leave_nothing() {
    let terraform = Terraform::initialised();
    // A plan validates, too. By default, Pod Identity and an access entry, which moto does not know.
    let planned = run(terraform.with_account("plan").args([
        "-target=module.karpenter",
        "-var=controller_identity=pod-identity",
        "-var=node_access=access-entry",
    ]));
    for resource in [
        "aws_eks_pod_identity_association.controller[0]",
        "aws_eks_access_entry.node[0]",
    ] {
        assert!(
            planned.contains(&format!("module.karpenter.{resource} will be created")),
            "{resource} is not planned: {planned}"
        );
    }
    assert!(
        planned.contains("pods.eks.amazonaws.com") && planned.contains("\"EC2_LINUX\""),
        "{planned}"
    );

    run(terraform.with_account("apply").args(APPROVED));
    let outputs = terraform.outputs();
    assert_eq!(found(&outputs, "by-module"), found(&outputs, "by-stack"));

    // moto takes neither of the two over from a stack.
    let resources = resources();
    let of_stack = |resource: &str, property: &str| plain(resources[resource]["Properties"][property].clone());
    let nodes = attached(&terraform, "KarpenterNodeRole-by-module");
    assert_eq!(nodes.as_array().map(Vec::len), Some(4), "{nodes}");
    assert_eq!(nodes, of_stack("KarpenterNodeRole", "ManagedPolicyArns"));
    let queue = policy_of_queue(&terraform, "by-module");
    assert_eq!(queue, of_stack("KarpenterInterruptionQueuePolicy", "PolicyDocument"));

    let filled = rules(&terraform, "by-module");
    assert_eq!(filled.as_array().map(Vec::len), Some(5), "{filled}");
    assert_eq!(filled, rules(&terraform, "by-stack"));

    let controller = &found(&outputs, "by-module")["trust"]["Controller"]["Statement"][0];
    let account = json!({
        "oidc.example.com/id/1:aud": "sts.amazonaws.com",
        "oidc.example.com/id/1:sub": "system:serviceaccount:kube-system:karpenter",
    });
    assert_eq!(controller["Condition"]["StringEquals"], account);
    assert_eq!(
        (&outputs["subnets"]["value"], &outputs["security_groups"]["value"]),
        (&json!(2), &json!(1))
    );

    // What goes into the chart, the class and the ConfigMap aws-auth.
    let module = &outputs["module"]["value"];
    let values: Value = serde_saphyr::from_str(module["helm_values"].as_str().expect("text")).expect("YAML");
    let role = "arn:aws:iam::123456789012:role/KarpenterControllerRole-by-module";
    let expected = json!({
        "settings": {"clusterName": "by-module", "interruptionQueue": "by-module"},
        "serviceAccount": {"name": "karpenter", "annotations": {"eks.amazonaws.com/role-arn": role}},
    });
    assert_eq!(values, expected);
    assert_eq!(module["node_role_name"], "KarpenterNodeRole-by-module");
    assert_eq!(module["aws_auth_role"]["username"], "system:node:{{EC2PrivateDNSName}}");
    let stack = json!({
        "ClusterName": "by-stack",
        "InterruptionQueue": "by-stack",
        "ControllerRoleArn": "arn:aws:iam::123456789012:role/KarpenterControllerRole-by-stack",
        "NodeRoleArn": "arn:aws:iam::123456789012:role/KarpenterNodeRole-by-stack",
        "NodeRoleName": "KarpenterNodeRole-by-stack",
    });
    assert_eq!(outputs["stack"]["value"], stack);

    // Everything was made a moment ago, so there is no need to look before it goes.
    let said = run(terraform.with_account("destroy").args(APPROVED).arg("-refresh=false"));
    assert!(said.contains("Destroy complete! Resources: 33 destroyed."), "{said}");
}
