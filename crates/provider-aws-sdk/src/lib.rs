//! The ports of `provider-aws`, spoken to AWS by the official SDK.
//!
//! Nothing here decides anything. A request is written field by field as it was asked for, an answer is read into plain
//! values, a listing is followed to its last page, a refusal becomes an [`AwsError`](provider_aws::error::AwsError).
//! This is the only crate of the workspace that depends on the SDK, whose EC2 client alone takes minutes to build.
//!
//! [`in_process`] speaks to a function of this process instead. [`connect`] takes credentials, region and endpoints from where every AWS program takes them: the environment
//! (`AWS_ENDPOINT_URL` and its kin for one service included), the shared profile, a web identity, the pod's identity, or
//! the metadata of the instance.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let connected = provider_aws_sdk::connect(&provider_aws_sdk::Connection::default()).await?;
//! connected.aws.ec2.check_access().await?;
//! println!("EC2 answers in {}", connected.region);
//! # Ok(())
//! # }
//! ```

mod calls;
mod cluster;
mod ec2;
mod iam;
mod in_process;
mod prices;
mod queue;
mod refusal;
mod transport;
mod words;

use std::sync::Arc;

use aws_config::{BehaviorVersion, Region, SdkConfig};
use provider_aws::ports::Aws;

pub use calls::Calls;
pub use in_process::in_process;
pub use transport::{Patience, client as http_client};

/// What is said about ourselves, and for how long an answer is waited for.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Shows in the user agent as `karpenter.sh-<version>`, by which AWS's logs tell our requests from others.
    pub version: String,
    pub patience: Patience,
}

impl Default for Connection {
    fn default() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            patience: Patience::default(),
        }
    }
}

/// AWS in one region.
#[derive(Clone)]
pub struct Connected {
    pub aws: Aws,
    pub region: String,
    /// How often which call was made.
    pub calls: Calls,
}

/// Why there is nothing to speak to.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("no AWS region is set: not by AWS_REGION, not in the profile, and the instance metadata does not answer")]
    NoRegion,
    #[error("{0:?} cannot stand in a user agent")]
    BadVersion(String),
}

/// Finds out how to reach AWS. No call is made yet, except to the instance's metadata where the region is not set.
pub async fn connect(connection: &Connection) -> Result<Connected, ConnectError> {
    let config = aws_config::defaults(BehaviorVersion::latest())
        .http_client(transport::client())
        // For what fetches credentials; `over` sets it for the rest.
        .timeout_config(connection.patience.config())
        .load()
        .await;
    over(&config, connection)
}

/// The same over a configuration that the caller has made.
pub fn over(config: &SdkConfig, connection: &Connection) -> Result<Connected, ConnectError> {
    let config = &config.to_builder().timeout_config(connection.patience.config()).build();
    let region = config.region().ok_or(ConnectError::NoRegion)?.to_string();
    let calls = Calls::new(&connection.version).ok_or_else(|| ConnectError::BadVersion(connection.version.clone()))?;
    macro_rules! client {
        ($sdk:ident) => {
            $sdk::Client::from_conf(
                $sdk::config::Builder::from(config)
                    .interceptor(calls.clone())
                    .build(),
            )
        };
    }
    let prices = aws_sdk_pricing::config::Builder::from(config)
        .region(Region::new(prices::region_for(&region)))
        .interceptor(calls.clone())
        .build();
    let aws = Aws {
        ec2: Arc::new(ec2::SdkEc2::new(client!(aws_sdk_ec2))),
        iam: Arc::new(iam::SdkIam(client!(aws_sdk_iam))),
        ssm: Arc::new(cluster::SdkSsm(client!(aws_sdk_ssm))),
        eks: Arc::new(cluster::SdkEks(client!(aws_sdk_eks))),
        prices: Arc::new(prices::SdkPrices(aws_sdk_pricing::Client::from_conf(prices))),
        queue: Arc::new(queue::SdkQueue(client!(aws_sdk_sqs))),
        zonal_shift: Arc::new(cluster::SdkZonalShift(client!(aws_sdk_arczonalshift))),
    };
    Ok(Connected { aws, region, calls })
}
