//! Claims leave a capacity block before EC2 takes it back.

use std::{collections::BTreeSet, time::Duration};

use api::{aws::CapacityReservationSelectorTerm, labels::aws::CAPACITY_RESERVATION_ID, v1::NodeClaim};
use async_trait::async_trait;
use controllers::error::StepError;
use kube::ResourceExt;
use model::ClaimName;
use provider_aws::{discovery::reservation_status, housekeeping};
use tracing::info;

use crate::{AwsCtx, chore::Chore, failed};

const EVERY: Duration = Duration::from_secs(60);

pub struct ReservationExpiry;

#[async_trait]
impl Chore for ReservationExpiry {
    const NAME: &'static str = "capacityreservation.expiration";

    async fn run(&self, aws: &AwsCtx) -> Result<Duration, StepError> {
        let view = aws.ctx.index.view();
        let reservation = |claim: &NodeClaim| {
            let id = claim.labels().get(CAPACITY_RESERVATION_ID)?;
            Some((ClaimName::from(claim.name_any()), id.clone()))
        };
        let claims: Vec<(ClaimName, String)> = view.claims.values().filter_map(|claim| reservation(claim)).collect();
        let ids: BTreeSet<&String> = claims.iter().map(|(_, id)| id).collect();
        let terms: Vec<CapacityReservationSelectorTerm> = ids
            .into_iter()
            .map(|id| CapacityReservationSelectorTerm {
                id: Some(id.clone()),
                ..CapacityReservationSelectorTerm::default()
            })
            .collect();
        let found = aws.services.resolver.reservations.of(&terms).await;
        let found = found.map_err(|error| failed("list capacity reservations", error))?;
        let now = aws.ctx.clock.now();
        let known: Vec<_> = found
            .iter()
            .filter_map(|info| reservation_status(info, now).ok())
            .collect();
        let named = claims.iter().map(|(claim, id)| (claim, id.as_str()));
        for name in housekeeping::expiring(named, &known) {
            let claim = view.claims.named(name.as_str());
            if let Some(claim) = claim.filter(|claim| claim.metadata.deletion_timestamp.is_none()) {
                aws.ctx.writer.delete::<NodeClaim>(claim).await?;
                info!(NodeClaim = %name, "deleting nodeclaim, its capacity block is about to end");
            }
        }
        Ok(EVERY)
    }
}
