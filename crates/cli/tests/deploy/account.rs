//! The Terraform module and the CloudFormation stack in an account.

use serde_json::{Value, json};

use crate::terraform::{Terraform, run};

/// One thing after the other: moto's collections do not bear two threads.
const APPROVED: [&str; 2] = ["-auto-approve", "-parallelism=1"];

/// What AWS has of a cluster, with the name of the cluster taken out.
fn found(outputs: &Value, cluster: &str) -> Value {
    let text = outputs["found"]["value"][cluster].to_string();
    serde_json::from_str(&text.replace(cluster, "CLUSTER")).expect("still JSON")
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
