//! The AWS account as the controller will find it, asked through the ports of the provider.

use std::{collections::BTreeSet, fmt::Display, sync::Arc, time::Duration};

use api::aws::EC2NodeClass;
use clock::Clock;
use kube::ResourceExt as _;
use provider_aws::{
    discovery::{SecurityGroups, Subnets},
    error::AwsError,
    ports::{AccessEntryInfo, Aws},
};
use serde_json::Value;

use super::{
    facts::{Access, AccessEntry, CONFIG_MAP, EC2_CLASSES, Facts, containers, list, role_name, text},
    finding::Finding,
};

const CHECK: &str = "account";
/// The doctor asks once; this only has to outlast it.
const REMEMBERED: Duration = Duration::from_secs(60);
/// Fewer free addresses than one large node uses.
const FEW_ADDRESSES: i64 = 32;

/// What the cluster says about the account.
#[derive(Debug, Default)]
pub struct Questions {
    pub cluster: Option<String>,
    pub queue: Option<String>,
    pub classes: Vec<EC2NodeClass>,
}

impl Questions {
    pub fn of(facts: &Facts) -> Self {
        let set = |wanted: &str| {
            let mut variables = facts
                .controllers()
                .flat_map(containers)
                .flat_map(|container| list(container, "/env"));
            let found = variables.find(|variable| variable["name"] == wanted)?;
            Some(text(found, "/value").to_owned()).filter(|value| !value.is_empty())
        };
        let read = |class: &Value| serde_json::from_value(class.clone()).ok();
        Self {
            cluster: set("CLUSTER_NAME"),
            queue: set("INTERRUPTION_QUEUE"),
            classes: facts.of(EC2_CLASSES).iter().filter_map(read).collect(),
        }
    }
}

/// There is nothing to ask.
pub fn not_reached(error: &dyn Display) -> Finding {
    Finding::unknown(CHECK, format!("AWS cannot be asked: {error}")).fix(
        "set AWS_REGION and credentials, or --skip-account\n\
            of a profile with single sign-on: eval \"$(aws configure export-credentials --format env)\"",
    )
}

pub async fn check(aws: &Aws, asked: &Questions, clock: Arc<dyn Clock>) -> Vec<Finding> {
    if let Err(error) = aws.ec2.check_access().await
        && !error.is_passed_dry_run()
    {
        return vec![not_reached(&error)];
    }
    let mut findings = Vec::new();
    if let Some(cluster) = &asked.cluster {
        findings.push(match aws.eks.cluster(cluster).await {
            Ok(found) => Finding::ok(CHECK, format!("EKS cluster {cluster} {}", found.version)),
            Err(error) => {
                let fix = "check settings.clusterName and eks:DescribeCluster; clusters that are not EKS's set settings.clusterEndpoint";
                refused(&error, format!("EKS does not describe cluster {cluster}: {error}"), fix)
            }
        });
    }
    if let Some(queue) = &asked.queue {
        findings.push(match aws.queue.url(queue).await {
            Ok(_) => Finding::ok(CHECK, format!("interruption queue {queue}")),
            Err(error) => {
                let fix = "settings.interruptionQueue is a name, not a URL; deploy/aws makes the queue and its rules";
                refused(
                    &error,
                    format!("the interruption queue {queue} does not answer: {error}"),
                    fix,
                )
            }
        });
    }
    let subnets = Subnets::new(aws.ec2.clone(), clock.clone(), REMEMBERED);
    let groups = SecurityGroups::new(aws.ec2.clone(), clock);
    for class in &asked.classes {
        let about = format!("ec2nodeclass/{}", class.name_any());
        let mut found = vec![subnets_of(&subnets, class).await, groups_of(&groups, class).await];
        found.extend(role_of(aws, class).await);
        found.extend(profile_of(aws, class).await);
        findings.extend(found.into_iter().map(|finding| finding.about(&about)));
    }
    findings
}

/// How the cluster lets nodes join, as far as the roles of the classes go; none where nobody knows which cluster or role it is.
pub async fn access(aws: &Aws, asked: &Questions) -> Option<Result<Access, String>> {
    let cluster = asked.cluster.as_deref()?;
    let roles = asked.classes.iter().filter_map(|class| class.spec.role.as_deref());
    let roles: BTreeSet<&str> = roles.map(role_name).collect();
    if roles.is_empty() {
        return None;
    }
    let access = access_of(aws, cluster, &roles).await;
    Some(access.map_err(|error| error.to_string()))
}

async fn access_of(aws: &Aws, cluster: &str, roles: &BTreeSet<&str>) -> Result<Access, AwsError> {
    let mut access = Access {
        mode: aws.eks.cluster(cluster).await?.authentication_mode.unwrap_or_default(),
        ..Access::default()
    };
    // Such a cluster has no entries, and EKS refuses to list them.
    if access.mode == CONFIG_MAP {
        return Ok(access);
    }
    for principal in aws.eks.access_entries(cluster).await? {
        let name = role_name(&principal);
        if principal.contains(":role/") && roles.contains(name) {
            let AccessEntryInfo { kind, groups } = aws.eks.access_entry(cluster, &principal).await?;
            access.entries.insert(name.to_owned(), AccessEntry { kind, groups });
        }
    }
    Ok(access)
}

/// Something that does not exist is a problem; a question that we may not ask is not.
fn refused(error: &AwsError, what: String, fix: &str) -> Finding {
    if error.is_not_found() || error.code == "ResourceNotFoundException" {
        Finding::problem(CHECK, what).fix(fix)
    } else {
        Finding::unknown(CHECK, what).fix(fix)
    }
}

async fn subnets_of(subnets: &Subnets, class: &EC2NodeClass) -> Finding {
    let tag = "tag the cluster's subnets: aws ec2 create-tags --tags Key=karpenter.sh/discovery,Value=<cluster> --resources <subnets>";
    match subnets.of(class).await {
        Err(error) => refused(
            &error,
            format!("subnets cannot be listed: {error}"),
            "check ec2:DescribeSubnets",
        ),
        Ok(found) if found.is_empty() => Finding::problem(CHECK, "its terms select no subnet").fix(tag),
        Ok(found) => {
            let free: i64 = found.iter().map(|subnet| subnet.available_addresses).sum();
            let zones: BTreeSet<&str> = found.iter().map(|subnet| subnet.zone.as_str()).collect();
            let what = format!(
                "{} subnets in {} zones with {free} free addresses",
                found.len(),
                zones.len()
            );
            match free < FEW_ADDRESSES {
                true => Finding::warning(CHECK, what)
                    .fix("add subnets, or give pods addresses of their own (prefix delegation, custom networking)"),
                false => Finding::ok(CHECK, what),
            }
        }
    }
}

async fn groups_of(groups: &SecurityGroups, class: &EC2NodeClass) -> Finding {
    let tag =
        "tag one group: aws ec2 create-tags --tags Key=karpenter.sh/discovery,Value=<cluster> --resources <group>";
    match groups.of(class).await {
        Err(error) => refused(
            &error,
            format!("security groups cannot be listed: {error}"),
            "check ec2:DescribeSecurityGroups",
        ),
        Ok(found) if found.is_empty() => Finding::problem(CHECK, "its terms select no security group").fix(tag),
        Ok(found) => Finding::ok(CHECK, format!("{} security groups", found.len())),
    }
}

/// The role that nodes of the class get, where the class names one.
async fn role_of(aws: &Aws, class: &EC2NodeClass) -> Option<Finding> {
    // A class names a role with or without its path; IAM is asked by the name.
    let role = role_name(class.spec.role.as_deref()?);
    Some(match aws.iam.role(role).await {
        Ok(()) => Finding::ok(CHECK, format!("node role {role}")),
        Err(error) => {
            let fix = "create the role (deploy/aws has it), or correct spec.role";
            refused(&error, format!("node role {role}: {error}"), fix)
        }
    })
}

/// The controller makes the profile of a class with a role; until it has, there is nothing to say about it.
async fn profile_of(aws: &Aws, class: &EC2NodeClass) -> Option<Finding> {
    let made = class.status.as_ref().and_then(|status| status.instance_profile.clone());
    let profile = class.spec.instance_profile.clone().or(made)?;
    Some(match aws.iam.profile(&profile).await {
        Err(error) => {
            let fix = "create it with the node role in it, or set spec.role and let Karpenter make one";
            refused(&error, format!("instance profile {profile}: {error}"), fix)
        }
        Ok(found) if found.roles.is_empty() => {
            let fix = format!(
                "aws iam add-role-to-instance-profile --instance-profile-name {profile} --role-name <node role>"
            );
            Finding::problem(CHECK, format!("instance profile {profile} has no role")).fix(fix)
        }
        Ok(found) => Finding::ok(
            CHECK,
            format!("instance profile {profile} with role {}", found.roles.join(", ")),
        ),
    })
}

#[cfg(test)]
mod tests {
    use provider_aws::{
        ports::ClusterInfo,
        testing::fake::{FakeAws, FakeProfile},
    };
    use serde_json::json;

    use super::*;
    use crate::doctor::{checks::situation::Situation, facts::DEPLOYMENTS};

    /// What a cluster asks whose controller is set for `demo`.
    fn asked() -> Questions {
        let class = json!({"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "default"}, "spec": {
            "instanceProfile": "nodes", "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "demo"}}],
            "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": "demo"}}]}});
        let controller = json!({"kind": "Deployment", "metadata": {"labels": {"app.kubernetes.io/name": "karpenter"}}, "spec":
            {"template": {"spec": {"containers": [{"env": [{"name": "CLUSTER_NAME", "value": "demo"}, {"name": "INTERRUPTION_QUEUE", "value": "demo"}]}]}}}});
        let situation = Situation::default()
            .with(EC2_CLASSES, vec![class])
            .with(DEPLOYMENTS, vec![controller]);
        Questions::of(&situation.facts())
    }

    async fn lines(aws: &FakeAws) -> String {
        let findings = check(&aws.ports(), &asked(), aws.clock()).await;
        let lines = findings
            .iter()
            .map(|finding| format!("{:?}: {}", finding.level, finding.what));
        lines.collect::<Vec<_>>().join("\n")
    }

    #[tokio::test]
    async fn an_account_as_the_guides_leave_it_is_fine() {
        let aws = FakeAws::new();
        let tags = [("karpenter.sh/discovery", "demo")];
        aws.set_cluster(ClusterInfo {
            version: "1.35".to_owned(),
            ..ClusterInfo::default()
        });
        aws.add_subnet("subnet-a", "a", 200, &tags);
        aws.add_subnet("subnet-b", "b", 200, &tags);
        aws.add_group("sg-1", "nodes", &tags);
        aws.add_profile(
            "nodes",
            FakeProfile {
                role: Some("KarpenterNodeRole-demo".to_owned()),
                ..FakeProfile::default()
            },
        );
        assert_eq!(
            lines(&aws).await,
            "Ok: EKS cluster demo 1.35\n\
             Ok: interruption queue demo\n\
             Ok: 2 subnets in 2 zones with 400 free addresses\n\
             Ok: 1 security groups\n\
             Ok: instance profile nodes with role KarpenterNodeRole-demo"
        );
    }

    #[tokio::test]
    async fn access_entries_are_looked_up_for_the_roles_of_nodes_alone() {
        let mut asked = asked();
        asked.classes[0].spec.role = Some("team/KarpenterNodeRole-demo".to_owned());
        let aws = FakeAws::new();
        let entry = |kind: &str| AccessEntryInfo {
            kind: kind.to_owned(),
            ..AccessEntryInfo::default()
        };
        aws.add_access_entry("arn:aws:iam::1:role/admin", entry("STANDARD"));
        aws.add_access_entry("arn:aws:iam::1:role/team/KarpenterNodeRole-demo", entry("EC2_LINUX"));
        aws.add_access_entry("arn:aws:iam::1:user/KarpenterNodeRole-demo", entry("STANDARD"));
        let found = access(&aws.ports(), &asked)
            .await
            .expect("a cluster")
            .expect("an answer");
        let found: Vec<_> = found
            .entries
            .iter()
            .map(|(role, entry)| (&**role, &*entry.kind))
            .collect();
        assert_eq!(found, [("KarpenterNodeRole-demo", "EC2_LINUX")]);

        aws.set_cluster(ClusterInfo {
            authentication_mode: Some("CONFIG_MAP".to_owned()),
            ..ClusterInfo::default()
        });
        let found = access(&aws.ports(), &asked)
            .await
            .expect("a cluster")
            .expect("an answer");
        assert!(found.entries.is_empty());
        aws.set_cluster(ClusterInfo::default());
        aws.fail("ListAccessEntries", AwsError::new("AccessDeniedException", "no"));
        let refused = access(&aws.ports(), &asked).await.expect("a cluster");
        assert_eq!(refused.expect_err("not allowed"), "AccessDeniedException: no");
        asked.cluster = None;
        assert!(access(&aws.ports(), &asked).await.is_none());
    }

    #[tokio::test]
    async fn what_the_account_lacks_is_told() {
        let aws = FakeAws::new();
        aws.fail("GetQueueUrl", AwsError::new("QueueDoesNotExist", "no such queue"));
        aws.add_subnet("subnet-a", "a", 3, &[("karpenter.sh/discovery", "demo")]);
        aws.fail("GetInstanceProfile", AwsError::new("AccessDenied", "no"));
        assert_eq!(
            lines(&aws).await,
            "Ok: EKS cluster demo \n\
             Problem: the interruption queue demo does not answer: QueueDoesNotExist: no such queue\n\
             Warning: 1 subnets in 1 zones with 3 free addresses\n\
             Problem: its terms select no security group\n\
             Unknown: instance profile nodes: AccessDenied: no"
        );
        let aws = FakeAws::new();
        aws.fail("DescribeInstanceTypes", AwsError::new("AuthFailure", "who are you"));
        assert_eq!(
            lines(&aws).await,
            "Unknown: AWS cannot be asked: AuthFailure: who are you"
        );
    }
}
