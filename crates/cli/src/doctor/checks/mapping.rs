//! Whether the role of new nodes may join the cluster: by an access entry, or by the ConfigMap `aws-auth`.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;

use super::or_ok;
use crate::doctor::{
    facts::{AWS_AUTH, Access, AccessEntry, CONFIG_MAP, EC2_CLASSES, Facts, called, role_name, text},
    finding::Finding,
};

const CHECK: &str = "role-mapping";
const GROUPS: [&str; 2] = ["system:bootstrappers", "system:nodes"];
const USER: &str = "system:node:{{EC2PrivateDNSName}}";
/// Entries of these types bring the groups.
const OF_NODES: [&str; 2] = ["EC2_LINUX", "EC2_WINDOWS"];
/// The mode of a cluster that does not read the ConfigMap.
const API: &str = "API";
const EDIT: &str = "kubectl edit configmap aws-auth -n kube-system";
const ALLOW: &str = "allow eks:ListAccessEntries and eks:DescribeAccessEntry to whoever runs the doctor";
const LIST: &str =
    "aws eks list-access-entries --cluster-name <cluster> shows whether an access entry of type EC2_LINUX is there";

#[derive(Deserialize)]
struct Mapping {
    #[serde(default)]
    rolearn: String,
    #[serde(default)]
    username: String,
    #[serde(default)]
    groups: Vec<String>,
}

pub fn node_roles(facts: &Facts) -> Vec<Finding> {
    let classes = facts.of(EC2_CLASSES).iter();
    let roles: BTreeSet<&str> = classes
        .map(|class| role_name(text(class, "/spec/role")))
        .filter(|role| !role.is_empty())
        .collect();
    if roles.is_empty() {
        return vec![Finding::unknown(CHECK, "no EC2NodeClass names a role")];
    }
    let access = facts.access.as_ref().and_then(|access| access.as_ref().ok());
    let mut findings = Vec::new();
    let mut others = Vec::new();
    for role in &roles {
        match access.and_then(|access| access.entries.get(*role)) {
            Some(entry) => findings.extend(of_entry(role, entry)),
            None => others.push(*role),
        }
    }
    if !others.is_empty() {
        findings.extend(match access {
            Some(access) => without_entry(&others, access, facts),
            None => perhaps_without_entry(&others, facts),
        });
    }
    let all = roles.into_iter().collect::<Vec<_>>().join(", ");
    or_ok(findings, CHECK, format!("{all} may join"))
}

fn of_entry(role: &str, entry: &AccessEntry) -> Option<Finding> {
    let lets_join = OF_NODES.contains(&&*entry.kind) || entry.groups.iter().any(|group| group == GROUPS[1]);
    (!lets_join).then(|| {
        let what = format!(
            "the access entry of {role} is of type {}, by which no node joins",
            entry.kind
        );
        let fix = format!("aws eks delete-access-entry --cluster-name <cluster> --principal-arn <ARN of {role}>");
        Finding::problem(CHECK, what).fix(format!("{fix}\n{}", new_entry(role)))
    })
}

/// Roles that are known to have no access entry.
fn without_entry(roles: &[&str], access: &Access, facts: &Facts) -> Vec<Finding> {
    let none = |role: &str, but: &str| {
        let fix = match &*access.mode {
            CONFIG_MAP => new_mapping(role),
            _ => new_entry(role),
        };
        Finding::problem(CHECK, format!("{role} has no access entry, and {but}")).fix(fix)
    };
    let each = |but: &str| roles.iter().map(|role| none(role, but)).collect();
    if access.mode == API {
        return each("the cluster lets nobody in by aws-auth");
    }
    match aws_auth(facts) {
        Err(finding) => vec![finding],
        Ok(None) => each("there is no ConfigMap aws-auth"),
        Ok(Some((map, mapped))) => by_map(roles, map, &mapped, |role| none(role, "is not in mapRoles")),
    }
}

/// Roles of which nobody knows whether they have an access entry.
fn perhaps_without_entry(roles: &[&str], facts: &Facts) -> Vec<Finding> {
    match (aws_auth(facts), &facts.access) {
        (Err(finding), _) => vec![finding],
        (Ok(Some((map, mapped))), _) => by_map(roles, map, &mapped, |role| {
            let what = format!("{role} is not in mapRoles; unless it has an access entry, its nodes stay away");
            Finding::warning(CHECK, what).fix(format!("{}\n{LIST}", new_mapping(role)))
        }),
        (Ok(None), Some(Err(why))) => {
            let what = format!("no ConfigMap aws-auth, and EKS does not tell who has an access entry: {why}");
            vec![Finding::unknown(CHECK, what).fix(ALLOW)]
        }
        (Ok(None), _) => {
            let what = "no ConfigMap aws-auth: nodes join by access entries, which Kubernetes does not show";
            vec![Finding::unknown(CHECK, what).fix(LIST)]
        }
    }
}

/// The ConfigMap and the roles in it; none where there is no ConfigMap.
fn aws_auth(facts: &Facts) -> Result<Option<(&Value, Vec<Mapping>)>, Finding> {
    if let Some(why) = facts.unread(AWS_AUTH) {
        let what = format!("the ConfigMap aws-auth cannot be read: {why}");
        return Err(Finding::unknown(CHECK, what));
    }
    let mut maps = facts.of(AWS_AUTH).iter();
    let Some(map) = maps.find(|map| text(map, "/metadata/namespace") == "kube-system") else {
        return Ok(None);
    };
    match serde_saphyr::from_str(text(map, "/data/mapRoles")) {
        Ok(mapped) => Ok(Some((map, mapped))),
        Err(_) => Err(Finding::problem(CHECK, "mapRoles is not a list of roles")
            .about(called(map))
            .fix(format!("{EDIT}; until then no role in it may join"))),
    }
}

fn by_map(roles: &[&str], map: &Value, mapped: &[Mapping], absent: impl Fn(&str) -> Finding) -> Vec<Finding> {
    let of_role = |role: &&str| complaints(role, mapped).unwrap_or_else(|| vec![absent(role)]);
    let findings = roles.iter().flat_map(of_role);
    findings.map(|finding| finding.about(called(map))).collect()
}

/// What is wrong with the mapping of a role; nothing where there is no mapping.
fn complaints(role: &str, mapped: &[Mapping]) -> Option<Vec<Finding>> {
    // EKS compares without case.
    let is_role = |name: &str| name.eq_ignore_ascii_case(role);
    let is_whole = |mapping: &Mapping| {
        let name = mapping.rolearn.rsplit_once(":role/").map(|(_, name)| name);
        name.is_some_and(is_role)
    };
    // Among several the one that can work counts.
    let whole = mapped.iter().find(|mapping| is_whole(mapping));
    let found = whole.or_else(|| mapped.iter().find(|mapping| is_role(role_name(&mapping.rolearn))))?;
    let mut wrong = Vec::new();
    if whole.is_none() {
        let what = format!(
            "{role} is mapped as {}, which is not the ARN of a role without its path",
            found.rolearn
        );
        wrong.push((what, format!("{EDIT}: rolearn: arn:aws:iam::<account>:role/{role}")));
    }
    if found.username != USER {
        let what = format!("{role} is mapped to the user {:?}, who is no node", found.username);
        wrong.push((what, format!("{EDIT}: username: {USER}")));
    }
    let lacks = |group: &&str| !found.groups.iter().any(|has| has == group);
    let missing: Vec<&str> = GROUPS.into_iter().filter(lacks).collect();
    if !missing.is_empty() {
        let what = format!("{role} is mapped without {}", missing.join(" and "));
        wrong.push((what, EDIT.to_owned()));
    }
    let findings = wrong
        .into_iter()
        .map(|(what, fix)| Finding::problem(CHECK, what).fix(fix));
    Some(findings.collect())
}

fn new_entry(role: &str) -> String {
    format!("aws eks create-access-entry --cluster-name <cluster> --principal-arn <ARN of {role}> --type EC2_LINUX")
}

fn new_mapping(role: &str) -> String {
    let groups = GROUPS.map(|group| format!("--group {group}")).join(" ");
    format!("eksctl create iamidentitymapping --cluster <cluster> --arn <ARN of {role}> --username '{USER}' {groups}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        super::situation::{Situation, check, says},
        *,
    };
    use crate::reader::Unread;

    fn mapped(map: &str) -> Situation {
        let class = json!({"kind": "EC2NodeClass", "metadata": {"name": "default"}, "spec": {"role": "team/KarpenterNodeRole-demo"}});
        let map = json!({"kind": "ConfigMap", "metadata": {"name": "aws-auth", "namespace": "kube-system"}, "data": {"mapRoles": map}});
        Situation::default()
            .with(EC2_CLASSES, vec![class])
            .with(AWS_AUTH, vec![map])
    }

    const GOOD: &str = "- {rolearn: 'arn:aws:iam::1:role/KarpenterNodeRole-demo', username: 'system:node:{{EC2PrivateDNSName}}', \
        groups: ['system:bootstrappers', 'system:nodes']}";
    const FINE: &str = "ok: KarpenterNodeRole-demo may join";

    #[test]
    fn a_role_has_to_be_mapped_with_its_groups() {
        let about = "problem configmap/kube-system/aws-auth: KarpenterNodeRole-demo is mapped";
        let ungrouped = GOOD.replace(", 'system:nodes'", "");
        let with_path = GOOD.replace(":role/", ":role/team/");
        let of_session = |map: &str| map.replace("EC2PrivateDNSName", "SessionName");
        let path = format!(
            "{about} as arn:aws:iam::1:role/team/KarpenterNodeRole-demo, which is not the ARN of a role without its path"
        );
        let user = format!("{about} to the user \"system:node:{{{{SessionName}}}}\", who is no node");
        check(node_roles, mapped(GOOD), FINE);
        check(node_roles, mapped(&ungrouped), &format!("{about} without system:nodes"));
        check(node_roles, mapped(&with_path), &path);
        check(node_roles, mapped(&format!("{with_path}\n{GOOD}")), FINE);
        check(node_roles, mapped(&of_session(GOOD)), &user);
        check(node_roles, mapped(&of_session(&with_path)), &format!("{path}\n{user}"));
        check(
            node_roles,
            mapped("{a: b}"),
            "problem configmap/kube-system/aws-auth: mapRoles is not a list of roles",
        );
    }

    #[test]
    fn a_role_that_is_not_mapped_may_have_an_access_entry() {
        check(
            node_roles,
            mapped("[]"),
            "warning configmap/kube-system/aws-auth: KarpenterNodeRole-demo is not in mapRoles; unless it has an access \
             entry, its nodes stay away",
        );
        check(
            node_roles,
            mapped("").with(AWS_AUTH, vec![]),
            "unknown: no ConfigMap aws-auth: nodes join by access entries, which Kubernetes does not show",
        );
    }

    /// What EKS answered: its mode and the type of the role's entry, or why not.
    #[track_caller]
    fn asked(situation: Situation, answer: Result<(&str, Option<&str>), &str>, expected: &str) {
        let mut facts = situation.facts();
        let entry = |kind: &str| {
            let (kind, groups) = (kind.to_owned(), Vec::new());
            ("KarpenterNodeRole-demo".to_owned(), AccessEntry { kind, groups })
        };
        facts.access = Some(match answer {
            Ok((mode, kind)) => Ok(Access {
                mode: mode.to_owned(),
                entries: kind.map(entry).into_iter().collect(),
            }),
            Err(why) => Err(why.to_owned()),
        });
        says(node_roles, &facts, expected);
    }

    #[test]
    fn where_eks_was_asked_the_access_entries_count() {
        let none = || mapped("").with(AWS_AUTH, vec![]);
        let both = "API_AND_CONFIG_MAP";
        asked(none(), Ok((both, Some("EC2_LINUX"))), FINE);
        asked(none(), Ok((API, Some("EC2_WINDOWS"))), FINE);
        asked(mapped(GOOD), Ok((both, None)), FINE);
        asked(mapped(GOOD), Ok((CONFIG_MAP, None)), FINE);
        asked(
            none(),
            Ok((API, Some("STANDARD"))),
            "problem: the access entry of KarpenterNodeRole-demo is of type STANDARD, by which no node joins",
        );
        let lacks = "KarpenterNodeRole-demo has no access entry, and";
        let no_map = format!("problem: {lacks} there is no ConfigMap aws-auth");
        asked(
            mapped(GOOD),
            Ok((API, None)),
            &format!("problem: {lacks} the cluster lets nobody in by aws-auth"),
        );
        asked(none(), Ok((both, None)), &no_map);
        asked(none(), Ok((CONFIG_MAP, None)), &no_map);
        asked(
            mapped("[]"),
            Ok((both, None)),
            &format!("problem configmap/kube-system/aws-auth: {lacks} is not in mapRoles"),
        );
        asked(
            none().without(AWS_AUTH, Unread::Forbidden("no".to_owned())),
            Ok((both, None)),
            "unknown: the ConfigMap aws-auth cannot be read: not allowed: no",
        );
        asked(mapped(GOOD), Err("AccessDeniedException"), FINE);
        asked(
            none(),
            Err("AccessDeniedException"),
            "unknown: no ConfigMap aws-auth, and EKS does not tell who has an access entry: AccessDeniedException",
        );
    }
}
