//! What can be said of the files without an account.

use std::{collections::BTreeSet, process::Command};

use serde_json::Value;

use crate::terraform::{repository, run};

fn read(path: &str) -> String {
    std::fs::read_to_string(repository().join("deploy").join(path)).expect("the file is there")
}

const POLICIES: [(&str, &str); 6] = [
    ("NodeLifecycle", "node-lifecycle"),
    ("IAMIntegration", "iam-integration"),
    ("EKSIntegration", "eks-integration"),
    ("Interruption", "interruption"),
    ("ZonalShift", "zonal-shift"),
    ("ResourceDiscovery", "resource-discovery"),
];

#[test]
fn the_template_passes_cfn_lint() {
    let tool = repository().join("tools/cfn-lint/check");
    run(Command::new(tool).arg(repository().join("deploy/aws/cloudformation.yaml")));
}

#[test]
fn terraform_files_are_formatted() {
    run(Command::new("terraform")
        .args(["fmt", "-check", "-recursive"])
        .arg(repository().join("deploy")));
}

fn actions(document: &str) -> BTreeSet<String> {
    let policy: Value = serde_json::from_str(&read(&format!("aws/{document}.json"))).expect("JSON");
    let mut actions = BTreeSet::new();
    for statement in policy["Statement"].as_array().expect("statements") {
        assert_eq!(statement["Effect"], "Allow");
        match &statement["Action"] {
            Value::Array(list) => actions.extend(list.iter().filter_map(Value::as_str).map(str::to_owned)),
            one => actions.extend(one.as_str().map(str::to_owned)),
        }
    }
    actions
}

/// Users match on the actions: whoever runs upstream has granted these and no others.
#[test]
fn the_actions_are_those_of_upstream() {
    let actions: BTreeSet<String> = POLICIES
        .iter()
        .flat_map(|(_, document)| actions(&format!("iam/{document}")))
        .collect();
    // The simplified policy lacks what only a queue and a zonal shift need.
    let optional = [
        "arc-zonal-shift:GetManagedResource",
        "sqs:DeleteMessage",
        "sqs:GetQueueUrl",
        "sqs:ReceiveMessage",
    ];
    let mut simplified = self::actions("iam-simplified");
    simplified.extend(optional.map(str::to_owned));
    assert_eq!(simplified, actions);
    let expected = [
        "arc-zonal-shift:GetManagedResource",
        "ec2:CreateFleet",
        "ec2:CreateLaunchTemplate",
        "ec2:CreateTags",
        "ec2:DeleteLaunchTemplate",
        "ec2:DescribeCapacityReservations",
        "ec2:DescribeImages",
        "ec2:DescribeInstanceStatus",
        "ec2:DescribeInstanceTypeOfferings",
        "ec2:DescribeInstanceTypes",
        "ec2:DescribeInstances",
        "ec2:DescribeLaunchTemplates",
        "ec2:DescribePlacementGroups",
        "ec2:DescribeSecurityGroups",
        "ec2:DescribeSpotPriceHistory",
        "ec2:DescribeSubnets",
        "ec2:RunInstances",
        "ec2:TerminateInstances",
        "eks:DescribeCluster",
        "iam:AddRoleToInstanceProfile",
        "iam:CreateInstanceProfile",
        "iam:DeleteInstanceProfile",
        "iam:GetInstanceProfile",
        "iam:ListInstanceProfiles",
        "iam:PassRole",
        "iam:RemoveRoleFromInstanceProfile",
        "iam:TagInstanceProfile",
        "pricing:GetProducts",
        "sqs:DeleteMessage",
        "sqs:GetQueueUrl",
        "sqs:ReceiveMessage",
        "ssm:GetParameter",
    ];
    assert_eq!(actions.iter().map(String::as_str).collect::<Vec<_>>(), expected);
}

#[test]
fn all_three_ways_know_the_same_policies() {
    let (stack, module) = (read("aws/cloudformation.yaml"), read("aws/terraform/main.tf"));
    let eksctl = ["eksctl/cluster.yaml", "eksctl/cluster-fargate.yaml"].map(read);
    for (name, document) in POLICIES {
        let policy = format!("KarpenterController{name}Policy-");
        assert!(
            stack.contains(&format!("{policy}${{ClusterName}}")),
            "the stack lacks {name}"
        );
        assert!(
            stack.contains(&format!("# iam/{document}.json")),
            "the stack lacks {document}"
        );
        let attached = format!("{policy}${{CLUSTER_NAME}}");
        assert!(
            eksctl.iter().all(|file| file.contains(&attached)),
            "eksctl's files lack {name}"
        );
        let line = module.lines().find(|line| line.trim_start().starts_with(name));
        assert!(
            line.is_some_and(|line| line.contains(document)),
            "the module lacks {name}"
        );
    }
}

#[test]
fn stack_and_module_listen_to_the_same_events() {
    let (stack, module) = (read("aws/cloudformation.yaml"), read("aws/terraform/main.tf"));
    let in_stack = stack
        .lines()
        .filter_map(|line| line.trim().strip_prefix("detail-type: [")?.strip_suffix(']'));
    let in_module = module
        .lines()
        .filter_map(|line| line.split("type = \"").nth(1)?.split('"').next());
    let (in_stack, in_module): (BTreeSet<&str>, BTreeSet<&str>) = (in_stack.collect(), in_module.collect());
    assert_eq!(in_stack, in_module);
    assert_eq!(in_stack.len(), 5);
}
