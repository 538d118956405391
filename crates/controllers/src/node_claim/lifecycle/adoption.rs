//! The first step of a claim that takes an instance over: nothing is launched.

use k8s_openapi::api::core::v1::NodeStatus;
use kube::ResourceExt;
use model::{ProviderId, Resources};
use provider::{Instance, Launched};
use state::View;
use tracing::{error, info};

use super::{act::Launch, launch};
use crate::{
    context::Ctx,
    error::{CloudError, StepError},
    metrics::DisruptedWhy,
    node_claim::{Draft, remove},
};

/// Records the instance as if it had been launched for the claim. One that the cloud does not have any more leaves
/// nothing to take over.
pub async fn adopt(ctx: &Ctx, view: &View, draft: &mut Draft, id: &ProviderId) -> Result<Launch, StepError> {
    match ctx.cloud.instance(id).await {
        Ok(Some(instance)) => {
            let status = view.nodes_of(id.as_str()).first().and_then(|node| node.status.clone());
            launch::record(draft, launched(instance, status.unwrap_or_default()), ctx.clock.now());
            info!(NodeClaim = %draft.claim.name_any(), instance = %id, "adopted instance");
            Ok(Launch::Done)
        }
        Ok(None) => {
            error!(NodeClaim = %draft.claim.name_any(), instance = %id, "the instance to adopt is gone");
            remove(ctx, &draft.claim, DisruptedWhy::GarbageCollected).await?;
            Ok(Launch::Abandoned)
        }
        Err(cause) => {
            launch::record_failure(draft, &cause, ctx.clock.now());
            let action = "find the instance to adopt";
            Ok(Launch::Failed(CloudError { action, cause }))
        }
    }
}

/// What the node reports is what its machine has.
fn launched(instance: Instance, status: NodeStatus) -> Launched {
    Launched {
        provider_id: instance.provider_id,
        image_id: None,
        capacity: resources(status.capacity),
        allocatable: resources(status.allocatable),
        labels: instance.labels,
        annotations: model::Labels::default(),
    }
}

fn resources(written: Option<api::v1::Quantities>) -> Resources {
    let amounts = written.into_iter().flatten();
    let read = amounts.filter_map(|(name, amount)| Some((name.into(), model::Quantity::parse(&amount.0).ok()?)));
    read.collect()
}
