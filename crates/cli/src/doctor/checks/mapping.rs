//! Whether the role of new nodes may join the cluster.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::or_ok;
use crate::doctor::{
    facts::{AWS_AUTH, EC2_CLASSES, Facts, called, text},
    finding::Finding,
};

const CHECK: &str = "role-mapping";
const GROUPS: [&str; 2] = ["system:bootstrappers", "system:nodes"];

#[derive(Deserialize)]
struct Mapping {
    #[serde(default)]
    rolearn: String,
    #[serde(default)]
    groups: Vec<String>,
}

pub fn node_roles(facts: &Facts) -> Vec<Finding> {
    let classes = facts.of(EC2_CLASSES).iter();
    let roles: BTreeSet<&str> = classes
        .map(|class| text(class, "/spec/role"))
        .filter(|role| !role.is_empty())
        .collect();
    if roles.is_empty() {
        return vec![Finding::unknown(CHECK, "no EC2NodeClass names a role")];
    }
    if let Some(why) = facts.unread(AWS_AUTH) {
        return vec![Finding::unknown(
            CHECK,
            format!("the ConfigMap aws-auth cannot be read: {why}"),
        )];
    }
    let entries =
        "aws eks list-access-entries --cluster-name <cluster> shows whether an access entry of type EC2_LINUX is there";
    let Some(map) = facts
        .of(AWS_AUTH)
        .iter()
        .find(|map| text(map, "/metadata/namespace") == "kube-system")
    else {
        let what = "no ConfigMap aws-auth: nodes join by access entries, which Kubernetes does not show";
        return vec![Finding::unknown(CHECK, what).fix(entries)];
    };
    let mapped: Vec<Mapping> = match serde_saphyr::from_str(text(map, "/data/mapRoles")) {
        Ok(mapped) => mapped,
        Err(_) => {
            let fix = "kubectl edit configmap aws-auth -n kube-system; until then no role in it may join";
            return vec![
                Finding::problem(CHECK, "mapRoles is not a list of roles")
                    .about(called(map))
                    .fix(fix),
            ];
        }
    };
    let findings = roles
        .iter()
        .filter_map(|role| complaint(role, &mapped, entries))
        .map(|finding| finding.about(called(map)));
    or_ok(
        findings.collect(),
        CHECK,
        format!("{} may join", roles.iter().copied().collect::<Vec<_>>().join(", ")),
    )
}

fn complaint(role: &str, mapped: &[Mapping], entries: &str) -> Option<Finding> {
    // A class names a role with or without its path; the map has its ARN, which must come without.
    let name = role.rsplit('/').next().unwrap_or(role);
    let Some(found) = mapped
        .iter()
        .find(|mapping| mapping.rolearn.rsplit('/').next() == Some(name))
    else {
        let fix = format!(
            "eksctl create iamidentitymapping --cluster <cluster> --arn <ARN of {name}> --username 'system:node:{{{{EC2PrivateDNSName}}}}' --group system:bootstrappers --group system:nodes\n{entries}"
        );
        return Some(
            Finding::warning(
                CHECK,
                format!("{name} is not in mapRoles; unless it has an access entry, its nodes stay away"),
            )
            .fix(fix),
        );
    };
    let missing: Vec<&str> = GROUPS
        .into_iter()
        .filter(|group| !found.groups.iter().any(|has| has == group))
        .collect();
    (!missing.is_empty()).then(|| {
        let fix = "kubectl edit configmap aws-auth -n kube-system";
        Finding::problem(CHECK, format!("{name} is mapped without {}", missing.join(" and "))).fix(fix)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        super::situation::{Situation, check},
        *,
    };

    fn mapped(map: &str) -> Situation {
        let class = json!({"kind": "EC2NodeClass", "metadata": {"name": "default"}, "spec": {"role": "KarpenterNodeRole-demo"}});
        let map = json!({"kind": "ConfigMap", "metadata": {"name": "aws-auth", "namespace": "kube-system"}, "data": {"mapRoles": map}});
        Situation::default()
            .with(EC2_CLASSES, vec![class])
            .with(AWS_AUTH, vec![map])
    }

    const GOOD: &str = "- {rolearn: 'arn:aws:iam::1:role/KarpenterNodeRole-demo', username: 'system:node:{{EC2PrivateDNSName}}', \
        groups: ['system:bootstrappers', 'system:nodes']}";

    #[test]
    fn a_role_has_to_be_mapped_with_its_groups() {
        check(node_roles, mapped(GOOD), "ok: KarpenterNodeRole-demo may join");
        check(
            node_roles,
            mapped(&GOOD.replace(", 'system:nodes'", "")),
            "problem configmap/kube-system/aws-auth: KarpenterNodeRole-demo is mapped without system:nodes",
        );
        check(
            node_roles,
            mapped("[]"),
            "warning configmap/kube-system/aws-auth: KarpenterNodeRole-demo is not in mapRoles; unless it has an access \
             entry, its nodes stay away",
        );
        check(
            node_roles,
            mapped("{a: b}"),
            "problem configmap/kube-system/aws-auth: mapRoles is not a list of roles",
        );
        check(
            node_roles,
            mapped("").with(AWS_AUTH, vec![]),
            "unknown: no ConfigMap aws-auth: nodes join by access entries, which Kubernetes does not show",
        );
    }
}
