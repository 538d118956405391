//! Tags. Permissions are scoped by them and clusters are told apart by them, so that they are upstream's to the letter.

use api::{FieldError, aws::EC2NodeClass, labels};

use model::Labels;

use crate::ports::Tags;

pub const CLUSTER_NAME: &str = "eks:eks-cluster-name";
pub const NODE_POOL: &str = labels::NODE_POOL;
pub const NODE_CLASS: &str = labels::aws::NODE_CLASS;
pub const NODE_CLAIM: &str = "karpenter.sh/nodeclaim";
pub const NAME: &str = "Name";
/// Set by EC2 on what it launches from a template.
pub const LAUNCH_TEMPLATE_ID: &str = "aws:ec2launchtemplate:id";

fn ownership(cluster: &str) -> (String, String) {
    (format!("kubernetes.io/cluster/{cluster}"), "owned".to_owned())
}

fn class_name(class: &EC2NodeClass) -> String {
    class.metadata.name.clone().unwrap_or_default()
}

/// The tags of everything that a launch creates. A dry run has no pool, and an empty tag in its place.
///
/// # Errors
///
/// If the class sets tags that are Karpenter's to set.
pub fn launch(class: &EC2NodeClass, cluster: &str, pool: &str) -> Result<Tags, Vec<FieldError>> {
    let restricted = api::validate::restricted_tags(&class.spec);
    if !restricted.is_empty() {
        return Err(restricted);
    }
    let mut tags = class.spec.tags.clone().unwrap_or_default();
    tags.extend([
        ownership(cluster),
        (NODE_POOL.to_owned(), pool.to_owned()),
        (CLUSTER_NAME.to_owned(), cluster.to_owned()),
        (NODE_CLASS.to_owned(), class_name(class)),
    ]);
    Ok(tags)
}

/// The tag that policies of the time of Provisioners look at, for nodes that bear the name of one.
pub fn of_provisioner(labels: &Labels) -> Option<(String, String)> {
    let name = labels.get(labels::PROVISIONER_NAME)?;
    Some((labels::PROVISIONER_NAME.to_owned(), name.to_string()))
}

/// The tags that an instance of the time of Provisioners lacks once it has been adopted. The published policy does not
/// allow to add them later; without them it is known by its id alone.
pub fn missing_after_adoption(present: &Tags, class: &str, pool: &str) -> Tags {
    let wanted = [(NODE_POOL, pool), (NODE_CLASS, class)];
    let missing = wanted.into_iter().filter(|(key, _)| !present.contains_key(*key));
    missing.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// The tags of an instance profile.
pub fn profile(class: &EC2NodeClass, cluster: &str, region: &str) -> Tags {
    let mut tags = class.spec.tags.clone().unwrap_or_default();
    tags.extend([
        ownership(cluster),
        (CLUSTER_NAME.to_owned(), cluster.to_owned()),
        (NODE_CLASS.to_owned(), class_name(class)),
        (labels::REGION.to_owned(), region.to_owned()),
    ]);
    tags
}

/// Whether an instance with these tags belongs to the cluster's Karpenter.
pub fn is_owned(tags: &Tags, cluster: &str) -> bool {
    tags.contains_key(NODE_POOL)
        && tags.contains_key(NODE_CLASS)
        && tags.get(CLUSTER_NAME).is_some_and(|name| name == cluster)
}

/// The tags that a node's instance still lacks once the node is known. What is there is not overwritten.
pub fn missing_after_registration(present: &Tags, cluster: &str, claim: &str, node: &str) -> Tags {
    let wanted = [(NAME, node), (NODE_CLAIM, claim), (CLUSTER_NAME, cluster)];
    let missing = wanted.into_iter().filter(|(key, _)| !present.contains_key(*key));
    missing.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::samples;

    #[test]
    fn a_node_of_a_provisioner_has_the_tags_of_both_generations() {
        assert_eq!(of_provisioner(&Labels::default()), None);
        let labels = Labels::from_iter([(labels::PROVISIONER_NAME.into(), "default".into())]);
        let expected = ("karpenter.sh/provisioner-name".to_owned(), "default".to_owned());
        assert_eq!(of_provisioner(&labels), Some(expected));
        let present = Tags::from([(NODE_CLASS.to_owned(), "own".to_owned())]);
        let missing = missing_after_adoption(&present, "shared", "default");
        assert_eq!(missing, Tags::from([(NODE_POOL.to_owned(), "default".to_owned())]));
    }

    #[test]
    fn karpenters_tags_come_over_the_users() {
        let mut class = samples::class();
        class.spec.tags = Some([("team".to_owned(), "a".to_owned())].into());
        let tags = launch(&class, "demo", "pool").unwrap();
        let shown: Vec<String> = tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(
            shown,
            [
                "eks:eks-cluster-name=demo",
                "karpenter.k8s.aws/ec2nodeclass=default",
                "karpenter.sh/nodepool=pool",
                "kubernetes.io/cluster/demo=owned",
                "team=a"
            ]
        );
        assert!(is_owned(&tags, "demo") && !is_owned(&tags, "other"));
        assert_eq!(
            profile(&class, "demo", "us-west-2")["topology.kubernetes.io/region"],
            "us-west-2"
        );
        class.spec.tags = Some([("karpenter.sh/nodepool".to_owned(), "x".to_owned())].into());
        assert!(launch(&class, "demo", "pool").is_err());
    }

    /// AW24.14.6
    #[test]
    fn only_missing_tags_are_added_later() {
        let present = [
            (NAME.to_owned(), "mine".to_owned()),
            (CLUSTER_NAME.to_owned(), "demo".to_owned()),
        ]
        .into();
        let missing = missing_after_registration(&present, "demo", "claim-1", "node-1");
        assert_eq!(missing, [(NODE_CLAIM.to_owned(), "claim-1".to_owned())].into());
    }
}
