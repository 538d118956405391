//! `karpenter.kwok.sh/v1alpha1`: the node class of the simulated provider.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::absent_spec::absent_spec_is_default;
use crate::duration::DurationText;

/// How simulated nodes behave.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "karpenter.kwok.sh",
    version = "v1alpha1",
    kind = "KWOKNodeClass",
    root = "KwokNodeClass",
    plural = "kwoknodeclasses",
    singular = "kwoknodeclass",
    shortname = "kwoknc",
    shortname = "kwokncs",
    category = "karpenter",
    status = "KwokNodeClassStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "How the nodes of the simulated provider behave."
)]
#[serde(rename_all = "camelCase", remote = "Self")]
pub struct KwokNodeClassSpec {
    /// How long an instance takes from its launch until its node appears.
    pub node_registration_delay: Option<DurationText>,
}

absent_spec_is_default!(KwokNodeClassSpec);

/// Whether the class may be used.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KwokNodeClassStatus {
    /// The state of the class.
    pub conditions: Option<Vec<Condition>>,
}
