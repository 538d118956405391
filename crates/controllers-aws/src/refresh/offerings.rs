//! What the pools could buy, for whoever watches the figures.

use std::time::Duration;

use async_trait::async_trait;
use controllers::error::StepError;

use crate::{AwsCtx, chore::Chore};

const EVERY: Duration = Duration::from_secs(60);

/// Renews the series of offerings.
pub struct Offerings;

#[async_trait]
impl Chore for Offerings {
    const NAME: &'static str = "cloudprovider.metrics";

    async fn run(&self, aws: &AwsCtx) -> Result<Duration, StepError> {
        let view = aws.ctx.index.view();
        let catalogs = view.snapshot.catalogs.values().map(|catalog| &catalog[..]);
        aws.services.metrics.offered(catalogs, aws.services.reserved_capacity);
        Ok(EVERY)
    }
}
