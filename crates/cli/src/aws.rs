//! `--cloud-provider aws`: finds out where the program is, and puts EC2 behind the controllers.

use std::{net::IpAddr, sync::Arc, time::Duration};

use anyhow::Context as _;
use async_trait::async_trait;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use clock::SystemClock;
use controllers_aws::{Window, refresh::ApiServer as _};
use k8s_openapi::api::core::v1::Service;
use kube::{Api, Client, config::Kubeconfig};
use operator::{Duties, Fleet, settings::Settings};
use provider_aws::{
    AwsProvider, Foundation, Services,
    options::Options,
    startup::{self, FromKubernetes},
};
use provider_aws_sdk::{Calls, Connection};
use scheduler::MinValuesPolicy;
use tracing::{debug, info, warn};

use crate::{controller::Provided, exit::Failure};

/// Where a pod finds the certificate of its API server.
const POD_CERTIFICATE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";
/// How long the first launch may be held up for prices of the day. Types and zones are chosen by price, so that a start
/// without them chooses badly; but an endpoint that hangs must not keep the controllers from starting.
const PRICES_AWAITED: Duration = Duration::from_secs(60);
/// How long to wait before an earlier process's launch templates are asked for again.
const ASK_AGAIN: Duration = Duration::from_secs(60);

pub async fn start(options: Box<Options>, settings: &Settings, client: &Client) -> Result<Provided, Failure> {
    let connected = provider_aws_sdk::connect(&Connection::default()).await;
    let connected = connected.context("AWS").map_err(Failure::Input)?;
    let version = client.version().await.context("the API server does not answer");
    let kubernetes = FromKubernetes {
        version: version.map_err(Failure::Unreachable)?,
        dns: dns(client).await,
        ca_certificate: ca_certificate(),
    };
    let discovered = startup::discover(&connected.aws, &options, &connected.region, &kubernetes).await;
    let discovered = discovered.map_err(|error| Failure::Unreachable(error.into()))?;
    info!(
        region = connected.region,
        cluster = options.cluster_name,
        endpoint = discovered.cluster.endpoint,
        version = %discovered.version,
        "found the cluster"
    );
    let services = Arc::new(Services::new(Foundation {
        aws: connected.aws,
        clock: Arc::new(SystemClock),
        options: Arc::from(options),
        cluster: discovered.cluster,
        shifted_cluster: discovered.shifted_cluster,
        version: discovered.version,
        reserved_capacity: settings.feature_gates.reserved_capacity,
        strict_min_values: settings.min_values_policy == MinValuesPolicy::Strict,
        node_overlay: settings.feature_gates.node_overlay,
        offering_sources: Vec::new(),
    }));
    let (types, prices) = tokio::join!(
        services.catalog.refresh_types(),
        tokio::time::timeout(PRICES_AWAITED, services.catalog.refresh_prices())
    );
    match prices {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            let error = anyhow::Error::from(error);
            warn!(error = format!("{error:#}"), "prices are the compiled-in ones for now");
        }
        Err(_) => warn!("prices take long to be told; they are the compiled-in ones for now"),
    }
    types
        .context("EC2 does not list its instance types")
        .map_err(Failure::Unreachable)?;
    let window = Arc::new(Window::default());
    Ok(Provided {
        cloud: Arc::new(AwsProvider::new(services.clone(), window.clone())),
        duties: Arc::new(Ec2 {
            services,
            window,
            client: client.clone(),
            calls: connected.calls,
        }),
    })
}

/// The address of the cluster's DNS service. Nodes come up without it, with what their image says.
async fn dns(client: &Client) -> Option<IpAddr> {
    let services: Api<Service> = Api::namespaced(client.clone(), "kube-system");
    match services.get_opt("kube-dns").await {
        Ok(found) => found?.spec?.cluster_ip?.parse().ok(),
        Err(error) => {
            debug!(%error, "the cluster's DNS service cannot be looked up");
            None
        }
    }
}

/// The certificate as it is written where the client found it. Its bytes go into the hash of node classes, so that it
/// matters that they are the file's own.
fn ca_certificate() -> Option<Vec<u8>> {
    let written = Kubeconfig::read().ok().and_then(|kubeconfig| {
        let current = kubeconfig.current_context.as_ref()?;
        let context = kubeconfig.contexts.iter().find(|context| context.name == *current)?;
        let cluster = &context.context.as_ref()?.cluster;
        let cluster = kubeconfig.clusters.iter().find(|known| known.name == *cluster)?;
        let cluster = cluster.cluster.as_ref()?;
        match (&cluster.certificate_authority_data, &cluster.certificate_authority) {
            (Some(data), _) => STANDARD.decode(data).ok(),
            (None, Some(file)) => std::fs::read(file).ok(),
            (None, None) => None,
        }
    });
    written.or_else(|| std::fs::read(POD_CERTIFICATE).ok())
}

/// What goes on beside the controllers.
struct Ec2 {
    services: Arc<Services>,
    window: Arc<Window>,
    client: Client,
    calls: Calls,
}

impl Ec2 {
    /// Launch templates of an earlier process are removed in their time.
    async fn take_over_templates(&self) {
        while let Err(error) = self.services.templates.take_over().await {
            warn!(%error, "launch templates cannot be listed yet");
            tokio::time::sleep(ASK_AGAIN).await;
        }
    }
}

#[async_trait]
impl Duties for Ec2 {
    async fn take_over(&self) {}

    async fn beside(&self) {
        tokio::join!(self.services.run(), self.take_over_templates());
    }

    fn join(&self, fleet: &mut Fleet) {
        let api_server = Arc::new(self.client.clone());
        controllers_aws::join(fleet, &self.services, &self.window, api_server);
    }

    fn metrics(&self) -> String {
        self.services.metrics.encoded() + &self.calls.encoded()
    }
}
