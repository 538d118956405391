//! What a user may decide about a conversion.

use api::aws::Tags;

/// The generation to convert to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Target {
    #[default]
    V1,
    V1Beta1,
}

/// What becomes of a reference to a launch template, which v1 does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LaunchTemplates {
    #[default]
    Refuse,
    /// The class says what the template says.
    Resolve,
    /// The class names the template, for a controller that uses it.
    Keep,
}

/// The choices of one conversion. The default is to change no meaning that can be kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    pub target: Target,
    /// Requirements that admission used to add are left out.
    pub ignore_defaults: bool,
    /// The role of all nodes, in place of instance profiles.
    pub node_role: Option<String>,
    pub cluster_name: Option<String>,
    pub default_instance_profile: Option<String>,
    pub global_tags: Tags,
    /// The image family of v1alpha3 objects, which do not say it.
    pub ami_family: Option<String>,
    /// Write budgets that come near to the parallelism of the releases before 0.34.
    pub preserve_parallelism: bool,
    /// Leave metadata options out where they were absent, and so to v1's defaults.
    pub v1_metadata_defaults: bool,
    pub launch_templates: LaunchTemplates,
    /// Rename labels and annotations in other objects.
    pub rewrite_workloads: bool,
    /// Drop what cannot be kept instead of refusing.
    pub force: bool,
}
