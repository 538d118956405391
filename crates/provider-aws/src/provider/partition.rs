//! Which partition of its placement group an instance is in, where EC2 chose it.

use std::sync::Arc;

use api::labels::aws::{PLACEMENT_GROUP_ID, PLACEMENT_GROUP_PARTITION};
use async_trait::async_trait;
use jiff::SignedDuration;
use provider::{Admission, ProviderError, Registering, RegistrationHook};

use super::{gone, refused};
use crate::{instances::Freshness, provider_id, services::Services};

/// EC2 tells the partition within seconds of the launch.
const AGAIN: SignedDuration = SignedDuration::from_secs(5);

/// Holds a node of a partitioned group up until its label says which partition it is in: pods may spread over them.
pub(super) struct Partition(pub Arc<Services>);

#[async_trait]
impl RegistrationHook for Partition {
    fn name(&self) -> &str {
        "PlacementGroupRegistrationHook"
    }

    async fn admit(&self, node: &Registering) -> Result<Admission, ProviderError> {
        let label = |key: &str| node.labels.get(key).map(AsRef::as_ref);
        let is_open = label(PLACEMENT_GROUP_ID).is_some() && label(PLACEMENT_GROUP_PARTITION) == Some("");
        if !is_open {
            return Ok(Admission::passed());
        }
        let Some(id) = provider_id::instance_id(&node.instance) else {
            return Ok(Admission::pending(AGAIN));
        };
        let info = self.0.instances.get(id, Freshness::Asked).await.map_err(refused)?;
        let info = info.ok_or_else(|| gone(&node.instance))?;
        match info.partition.filter(|partition| *partition > 0) {
            Some(partition) => Ok(Admission::Passed {
                labels: [(PLACEMENT_GROUP_PARTITION.into(), partition.to_string().into())].into(),
            }),
            None => Ok(Admission::pending(AGAIN)),
        }
    }
}
