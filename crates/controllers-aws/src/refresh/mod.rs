//! What is asked again from time to time: types, prices, parameters, the cluster's version, zones.

pub mod memory;
pub mod offerings;
pub mod zonal_shift;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use controllers::error::StepError;
use jiff::Timestamp;
use provider_aws::startup;
use tracing::{error, info};

use crate::{AwsCtx, chore::Chore, failed};

const MINUTE: Duration = Duration::from_secs(60);
/// Spot prices follow the market, and the cheapest capacity is chosen by them.
const HOUR: Duration = Duration::from_secs(60 * 60);
/// Types come a few times a year, and lists of prices with them.
const HALF_A_DAY: Duration = Duration::from_secs(12 * 60 * 60);

/// What is left of an answer's time. The program has asked before the first of its controllers runs.
fn left(aws: &AwsCtx, as_of: Option<Timestamp>, good_for: Duration) -> Option<Duration> {
    let age = aws.ctx.clock.now().duration_since(as_of?);
    let left = good_for.checked_sub(age.unsigned_abs())?;
    (!left.is_zero()).then_some(left)
}

/// Types, and where they are sold.
pub struct InstanceTypes;

#[async_trait]
impl Chore for InstanceTypes {
    const NAME: &'static str = "providers.instancetype";

    async fn run(&self, aws: &AwsCtx) -> Result<Duration, StepError> {
        if let Some(left) = left(aws, aws.services.catalog.types_as_of(), HALF_A_DAY) {
            return Ok(left);
        }
        let done = aws.services.catalog.refresh_types().await;
        done.map_err(|error| failed("list instance types", error))?;
        Ok(HALF_A_DAY)
    }
}

/// On-demand and spot prices.
pub struct Pricing;

#[async_trait]
impl Chore for Pricing {
    const NAME: &'static str = "providers.pricing";

    async fn run(&self, aws: &AwsCtx) -> Result<Duration, StepError> {
        let catalog = &aws.services.catalog;
        let on_demand = async {
            match left(aws, catalog.on_demand_prices_as_of(), HALF_A_DAY) {
                Some(_) => Ok(()),
                None => catalog.refresh_on_demand_prices().await,
            }
        };
        let spot = async {
            match left(aws, catalog.spot_prices_as_of(), HOUR) {
                Some(_) => Ok(()),
                None => catalog.refresh_spot_prices().await,
            }
        };
        let (on_demand, spot) = futures::join!(on_demand, spot);
        on_demand.and(spot).map_err(|error| failed("tell prices", error))?;
        // Spot prices are the first to age.
        Ok(left(aws, catalog.spot_prices_as_of(), HOUR).unwrap_or(HOUR))
    }
}

/// Aliases whose image has been taken back.
pub struct Parameters;

#[async_trait]
impl Chore for Parameters {
    const NAME: &'static str = "providers.ssm.invalidation";

    async fn run(&self, aws: &AwsCtx) -> Result<Duration, StepError> {
        let done = aws.services.resolver.images.forget_deprecated().await;
        done.map_err(|error| failed("describe images", error))?;
        Ok(30 * MINUTE)
    }
}

/// Launch templates that nobody has used for long.
pub struct Templates;

#[async_trait]
impl Chore for Templates {
    const NAME: &'static str = "providers.launchtemplate";

    async fn run(&self, aws: &AwsCtx) -> Result<Duration, StepError> {
        let done = aws.services.templates.sweep().await;
        done.map_err(|error| failed("delete a launch template", error))?;
        Ok(MINUTE)
    }
}

/// The version that the API server has now.
#[async_trait]
pub trait ApiServer: Send + Sync + 'static {
    /// `major.minor`.
    async fn version(&self) -> Result<String, kube::Error>;
}

#[async_trait]
impl ApiServer for kube::Client {
    async fn version(&self) -> Result<String, kube::Error> {
        let found = self.apiserver_version().await?;
        Ok(format!("{}.{}", found.major, found.minor))
    }
}

/// The version of the cluster, which images are chosen by.
pub struct Versions(pub Arc<dyn ApiServer>);

#[async_trait]
impl Chore for Versions {
    const NAME: &'static str = "providers.version";

    async fn run(&self, aws: &AwsCtx) -> Result<Duration, StepError> {
        let action = "tell the version of the cluster";
        let services = &aws.services;
        let told = self.0.version().await.map_err(|error| failed(action, error))?;
        let version = startup::version(&services.aws, &services.options, &told).await;
        let version = version.map_err(|error| failed(action, error))?;
        if services.set_version(version) {
            info!(%version, "the cluster has another version");
            if !version.is_supported() {
                error!(%version, error = "not supported", "this version of Kubernetes has not been tried with this release");
            }
        }
        Ok(5 * MINUTE)
    }
}
