//! EC2NodeClass: what can be judged without asking AWS.

use crate::aws::EC2NodeClassSpec;
use crate::field_error::FieldError;
use crate::labels;

/// Tags that Karpenter sets itself. The schema refuses them too, but objects may be older than the schema.
const RESERVED: &[&str] = &[
    "eks:eks-cluster-name",
    labels::NODE_POOL,
    "karpenter.sh/nodeclaim",
    labels::aws::NODE_CLASS,
];

/// Every tag that is not for users to set.
pub fn restricted_tags(spec: &EC2NodeClassSpec) -> Vec<FieldError> {
    let keys = spec.tags.iter().flatten().map(|(key, _)| key.as_str());
    keys.filter(|key| RESERVED.contains(key) || is_cluster_tag(key))
        .map(|key| FieldError::new(format!("spec.tags[{key}]"), "this tag is set by Karpenter"))
        .collect()
}

/// `kubernetes.io/cluster/<name>`, where the name is one that a cluster can have.
fn is_cluster_tag(key: &str) -> bool {
    let Some(name) = key.strip_prefix("kubernetes.io/cluster/") else {
        return false;
    };
    name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_that_karpenter_sets_are_restricted() {
        let tags = [
            ("karpenter.sh/custom-key", false),
            ("kubernetes.io/role/key", false),
            ("kubernetes.io/cluster/", false),
            ("kubernetes.io/cluster/test", true),
            ("eks:eks-cluster-name", true),
            ("karpenter.sh/nodepool", true),
            ("karpenter.sh/nodeclaim", true),
            ("karpenter.k8s.aws/ec2nodeclass", true),
        ];
        for (key, restricted) in tags {
            let spec = EC2NodeClassSpec {
                tags: Some([(key.to_owned(), "x".to_owned())].into()),
                ..EC2NodeClassSpec::default()
            };
            assert_eq!(!restricted_tags(&spec).is_empty(), restricted, "{key}");
        }
    }
}
