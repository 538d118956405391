//! What the controller has to be allowed, read from the manifests that the chart renders.

use serde::Deserialize;

use super::facts::{Account, LEASE};
use crate::reader::Right;

/// The chart as plain manifests, rendered for `kube-system`.
const MANIFESTS: &str = include_str!("../../../../deploy/manifests/karpenter.yaml");
const RENDERED_FOR: &str = "kube-system";
/// For people, not for the controller.
const FOR_ADMINISTRATORS: &str = "karpenter-admin";
/// Where the cluster's DNS lives, wherever the controller does.
const DNS_ROLE: &str = "karpenter-dns";

#[derive(Deserialize)]
struct Role {
    kind: String,
    metadata: Metadata,
    #[serde(default)]
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    api_groups: Vec<String>,
    resources: Vec<String>,
    #[serde(default)]
    resource_names: Vec<String>,
    verbs: Vec<String>,
}

/// Without which a controller that is left the choice does not follow Provisioners.
pub fn list_provisioners() -> Right {
    Right {
        group: "karpenter.sh".to_owned(),
        resource: "provisioners".to_owned(),
        verb: "list".to_owned(),
        namespace: None,
        name: None,
    }
}

/// Every single right that the roles of the chart give to a controller with this account.
pub fn needed(account: &Account) -> Vec<Right> {
    let mut rights = Vec::new();
    for role in roles() {
        for rule in &role.rules {
            let name = rule.resource_names.first().map(String::as_str);
            let is_lease = rule.resources.iter().any(|resource| resource == "leases");
            let within = match role.kind.as_str() {
                "ClusterRole" => None,
                _ if role.metadata.name == DNS_ROLE => Some(RENDERED_FOR),
                _ if is_lease => Some(&*account.lease_namespace),
                _ => Some(&*account.namespace),
            };
            for (group, resource, verb) in each(rule) {
                rights.push(Right {
                    group: group.clone(),
                    resource: resource.clone(),
                    verb: verb.clone(),
                    namespace: within.map(str::to_owned),
                    name: name.map(|name| if name == LEASE { &*account.lease } else { name }.to_owned()),
                });
            }
        }
    }
    rights
}

fn each(rule: &Rule) -> impl Iterator<Item = (&String, &String, &String)> {
    let groups = rule.api_groups.iter();
    groups.flat_map(move |group| {
        let resources = rule.resources.iter();
        resources.flat_map(move |resource| rule.verbs.iter().map(move |verb| (group, resource, verb)))
    })
}

fn roles() -> Vec<Role> {
    let documents = MANIFESTS.split("\n---");
    documents
        .filter_map(|text| serde_saphyr::from_str::<Role>(text).ok())
        .filter(|role| role.kind == "ClusterRole" || role.kind == "Role")
        .filter(|role| role.metadata.name != FOR_ADMINISTRATORS)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_those_of_the_charts_roles() {
        let account = Account {
            namespace: "elsewhere".to_owned(),
            name: "karpenter".to_owned(),
            lease: "ours".to_owned(),
            lease_namespace: "leases".to_owned(),
        };
        let rights: Vec<String> = needed(&account)
            .iter()
            .map(|right| {
                let namespace = right.namespace.as_deref().unwrap_or("*");
                let name = right.name.as_deref().unwrap_or("*");
                format!("{} {}.{} {namespace}/{name}", right.verb, right.resource, right.group)
            })
            .collect();
        for expected in [
            "create nodeclaims.karpenter.sh */*",
            "create pods/eviction. */*",
            "patch ec2nodeclasses/status.karpenter.k8s.aws */*",
            "update leases.coordination.k8s.io leases/ours",
            "get services. kube-system/kube-dns",
        ] {
            assert!(
                rights.iter().any(|right| right == expected),
                "{expected} is not in {rights:#?}"
            );
        }
        assert!(!rights.iter().any(|right| right.starts_with("create nodepools.")));
    }
}
