//! Variables that older releases read. Whoever still sets one should learn what took its place.

/// Each variable, and what to do instead.
pub const RETIRED: [(&str, &str); 12] = [
    ("LEADER_ELECT", "use DISABLE_LEADER_ELECTION, with the opposite value"),
    ("DISABLE_WEBHOOK", "webhooks are off unless LEGACY_WEBHOOKS is true"),
    ("WEBHOOK_METRICS_PORT", "use METRICS_PORT"),
    (
        "ASSUME_ROLE_ARN",
        "use a profile or role chaining of the AWS configuration",
    ),
    (
        "ASSUME_ROLE_DURATION",
        "use a profile or role chaining of the AWS configuration",
    ),
    ("LOGGING_CONFIG", "use LOG_LEVEL and LOG_OUTPUT_PATHS"),
    ("AWS_ISOLATED_VPC", "use ISOLATED_VPC"),
    (
        "AWS_DEFAULT_INSTANCE_PROFILE",
        "use spec.instanceProfile or spec.role of the EC2NodeClass",
    ),
    ("AWS_ENABLE_POD_ENI", "pod interfaces are found out from the node"),
    (
        "AWS_ENI_LIMITED_POD_DENSITY",
        "use spec.kubelet.maxPods of the EC2NodeClass",
    ),
    ("AWS_NODE_NAME_CONVENTION", "nodes are found by their provider id"),
    ("VM_MEMORY_OVERHEAD", "use VM_MEMORY_OVERHEAD_PERCENT"),
];

/// One line for every retired variable that is set.
pub fn warnings(variable: impl Fn(&str) -> Option<String>) -> Vec<String> {
    RETIRED
        .iter()
        .filter(|(name, _)| variable(name).is_some())
        .map(|(name, instead)| format!("environment variable {name} has no effect: {instead}"))
        .collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_retired_variable_names_its_successor() {
        let lines = super::warnings(|name| (name == "LEADER_ELECT").then(|| "false".to_owned()));
        assert_eq!(
            lines,
            ["environment variable LEADER_ELECT has no effect: use DISABLE_LEADER_ELECTION, with the opposite value"]
        );
    }
}
