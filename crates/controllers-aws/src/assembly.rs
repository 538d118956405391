//! Finds out where the program is, and puts EC2 behind the controllers.

use std::{sync::Arc, time::Duration};

use clock::Clock;
use controllers::fleet::Fleet;
use provider_aws::{
    AwsProvider, Foundation, Services,
    error::AwsError,
    options::Options,
    ports::Aws,
    startup::{self, FromKubernetes, StartupError},
};
use tracing::{info, warn};

use crate::{Window, refresh::ApiServer};

/// How long the first launch may be held up for prices of the day. Types and zones are chosen by price, so that a start
/// without them chooses badly; but an endpoint that hangs must not keep the controllers from starting.
const PRICES_AWAITED: Duration = Duration::from_secs(60);
/// How long to wait before an earlier process's launch templates are asked for again.
const ASK_AGAIN: Duration = Duration::from_secs(60);

#[derive(Debug, thiserror::Error)]
pub enum AssemblyError {
    #[error(transparent)]
    Startup(#[from] StartupError),
    #[error("EC2 does not list its instance types")]
    Types(#[source] AwsError),
}

impl AssemblyError {
    /// Whether asking again is in vain.
    pub fn is_final(&self) -> bool {
        matches!(self, AssemblyError::Startup(error) if error.is_final())
    }
}

/// What is known before AWS has been asked anything.
pub struct Setup {
    pub aws: Aws,
    pub region: String,
    pub options: Arc<Options>,
    pub kubernetes: FromKubernetes,
    pub clock: Arc<dyn Clock>,
    pub reserved_capacity: bool,
    /// Whether a launch keeps the variety of types that a claim asks for, even if it then fails.
    pub strict_min_values: bool,
    pub node_overlay: bool,
}

/// EC2, ready to serve controllers.
pub struct Ec2 {
    pub services: Arc<Services>,
    window: Arc<Window>,
}

impl Ec2 {
    /// Asks AWS for the cluster, for what the region sells and for prices.
    pub async fn assemble(setup: Setup) -> Result<Self, AssemblyError> {
        let discovered = startup::discover(&setup.aws, &setup.options, &setup.region, &setup.kubernetes).await?;
        info!(
            region = setup.region,
            cluster = setup.options.cluster_name,
            endpoint = discovered.cluster.endpoint,
            version = %discovered.version,
            "found the cluster"
        );
        let services = Arc::new(Services::new(Foundation {
            aws: setup.aws,
            clock: setup.clock,
            options: setup.options,
            cluster: discovered.cluster,
            shifted_cluster: discovered.shifted_cluster,
            version: discovered.version,
            reserved_capacity: setup.reserved_capacity,
            strict_min_values: setup.strict_min_values,
            node_overlay: setup.node_overlay,
            offering_sources: Vec::new(),
        }));
        let (types, prices) = tokio::join!(
            services.catalog.refresh_types(),
            tokio::time::timeout(PRICES_AWAITED, services.catalog.refresh_prices())
        );
        match prices {
            Ok(Ok(())) => {}
            Ok(Err(error)) => warn!(%error, "prices are the compiled-in ones for now"),
            Err(_) => warn!("prices take long to be told; they are the compiled-in ones for now"),
        }
        types.map_err(AssemblyError::Types)?;
        Ok(Self {
            services,
            window: Arc::default(),
        })
    }

    pub fn provider(&self) -> AwsProvider {
        AwsProvider::new(self.services.clone(), self.window.clone())
    }

    /// Adds the controllers of this crate.
    pub fn join(&self, fleet: &mut Fleet, versions: Arc<dyn ApiServer>) {
        crate::join(fleet, &self.services, &self.window, versions);
    }

    /// What goes on beside the controllers. Never returns.
    pub async fn beside(&self) {
        tokio::join!(self.services.run(), self.take_over_templates());
    }

    /// Launch templates of an earlier process are removed in their time.
    async fn take_over_templates(&self) {
        while let Err(error) = self.services.templates.take_over().await {
            warn!(%error, "launch templates cannot be listed yet");
            tokio::time::sleep(ASK_AGAIN).await;
        }
    }
}
