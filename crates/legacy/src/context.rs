//! What is known of the cluster around the objects: from flags, the settings ConfigMap, Helm values.

use api::aws::Tags;

use crate::alpha::launch_template::Description;
use crate::notes::{Notes, Reason};
use crate::options::Options;

/// Stands for the cluster's name where a chart leaves it to its user.
pub const CLUSTER_PLACEHOLDER: &str = "${CLUSTER_NAME}";
/// Stands for the role of nodes, as in the output of upstream's converter.
pub const ROLE_PLACEHOLDER: &str = "$KARPENTER_NODE_ROLE";

/// Facts that settings of the time stated for all objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    pub cluster_name: Option<String>,
    pub default_instance_profile: Option<String>,
    pub tags: Tags,
    /// Pods were not limited by network interfaces.
    pub unlimited_density: bool,
}

impl Facts {
    /// Adds what another source says; what is known already stays.
    pub fn fill(&mut self, other: Facts) {
        self.cluster_name = self.cluster_name.take().or(other.cluster_name);
        self.default_instance_profile = self.default_instance_profile.take().or(other.default_instance_profile);
        for (key, value) in other.tags {
            self.tags.entry(key).or_insert(value);
        }
        self.unlimited_density |= other.unlimited_density;
    }
}

#[derive(Debug)]
pub struct Context<'a> {
    pub options: &'a Options,
    pub facts: Facts,
    pub launch_templates: Vec<Description>,
}

impl Context<'_> {
    /// The cluster's name for an object that may state it. Two names for one cluster are a mistake somewhere.
    pub fn cluster_name(&self, stated: Option<&str>, field: &str, notes: &mut Notes) -> Option<String> {
        let stated = stated.filter(|name| !name.is_empty());
        if let (Some(found), Some(given)) = (stated, self.facts.cluster_name.as_deref())
            && found != given
        {
            let (found, given) = (found.to_owned(), given.to_owned());
            notes.refuse(field, Reason::ClusterNameDiffers { found, given });
        }
        stated.map(str::to_owned).or_else(|| self.facts.cluster_name.clone())
    }
}
