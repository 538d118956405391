//! What people are told about claims that come to life, or do not.

use api::v1::NodeClaim;
use kube::ResourceExt;
use provider::ProviderError;

use crate::{
    error::chain,
    objects::about_claim,
    outbox::{Notice, cut},
};

/// A launch that will not be tried again for this claim.
pub fn launch_refused(claim: &NodeClaim, refusal: &ProviderError) -> Notice {
    let reason = match refusal {
        ProviderError::NodeClassNotReady { .. } => "NodeClassNotReady",
        _ => "InsufficientCapacityError",
    };
    let message = format!(
        "NodeClaim {} event: {}",
        claim.name_any(),
        cut(&chain(refusal).to_string(), 300)
    );
    Notice::warning(reason, about_claim(claim), message)
}

pub fn unregistered_taint_missing(claim: &NodeClaim) -> Notice {
    let message = "the node joined without taint karpenter.sh/unregistered:NoExecute, so pods could be placed on it \
                   before its labels and taints were complete; let the node's start-up set the taint";
    Notice::warning("UnregisteredTaintMissing", about_claim(claim), message.to_owned())
}
