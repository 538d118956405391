//! `--cloud-provider aws`: what the program tells EC2's controllers about itself and its cluster.

use std::{net::IpAddr, sync::Arc};

use async_trait::async_trait;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use clock::{Clock, SystemClock};
use controllers_aws::{
    assembly::{AssemblyError, Ec2, Setup},
    refresh::ApiServer as _,
};
use k8s_openapi::api::core::v1::Service;
use kube::{Api, Client, config::Kubeconfig};
use operator::{Duties, Fleet, NotProvided, Provide, Provided, settings::Settings};
use provider_aws::{
    options::Options,
    startup::{FromKubernetes, StartupError},
};
use provider_aws_sdk::{Calls, ConnectError, Connected, Connection};
use scheduler::MinValuesPolicy;
use tracing::debug;

/// Where a pod finds the certificate of its API server.
const POD_CERTIFICATE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";

/// What upstream's log says of a start that AWS holds up, for whoever searches for it; what is wrong and what helps follow.
#[derive(Debug, thiserror::Error)]
enum Held {
    #[error("ec2 api connectivity check failed")]
    ByEc2(#[source] AssemblyError),
    #[error("failed detecting cluster endpoint")]
    ByEks(#[source] AssemblyError),
    #[error(transparent)]
    Otherwise(AssemblyError),
}

impl From<AssemblyError> for Held {
    fn from(error: AssemblyError) -> Self {
        match &error {
            AssemblyError::Startup(StartupError::NoAccess(_) | StartupError::NoAnswer(_)) => Held::ByEc2(error),
            AssemblyError::Startup(StartupError::NoCluster { .. } | StartupError::Unsaid { .. }) => Held::ByEks(error),
            _ => Held::Otherwise(error),
        }
    }
}

/// The account and region that the environment names.
pub struct Account {
    pub options: Arc<Options>,
    pub settings: Arc<Settings>,
    pub client: Client,
}

#[async_trait]
impl Provide for Account {
    async fn provide(&self) -> Result<Provided, NotProvided> {
        let connected = provider_aws_sdk::connect(&Connection::default()).await;
        let connected = connected.map_err(|error| match error {
            ConnectError::NoRegion => NotProvided::Yet(error.into()),
            ConnectError::BadVersion(_) => NotProvided::Ever(error.into()),
        })?;
        let surroundings = Surroundings {
            client: self.client.clone(),
            ca_certificate: ca_certificate(),
            clock: Arc::new(SystemClock),
        };
        assemble(connected, self.options.clone(), &self.settings, surroundings).await
    }
}

/// What the program runs in.
pub struct Surroundings {
    pub client: Client,
    pub ca_certificate: Option<Vec<u8>>,
    pub clock: Arc<dyn Clock>,
}

/// Puts an AWS that is connected behind the controllers.
pub async fn assemble(
    connected: Connected,
    options: Arc<Options>,
    settings: &Settings,
    surroundings: Surroundings,
) -> Result<Provided, NotProvided> {
    let client = surroundings.client;
    debug!(region = connected.region, "discovered region");
    let version = client.version().await;
    let version = version.map_err(|error| NotProvided::Yet(error.into()))?;
    debug!(version, "discovered kubernetes version");
    let setup = Setup {
        aws: connected.aws,
        region: connected.region,
        options,
        kubernetes: FromKubernetes {
            version,
            dns: dns(&client).await,
            ca_certificate: surroundings.ca_certificate,
        },
        clock: surroundings.clock,
        reserved_capacity: settings.feature_gates.reserved_capacity,
        strict_min_values: settings.min_values_policy == MinValuesPolicy::Strict,
        node_overlay: settings.feature_gates.node_overlay,
    };
    let ec2 = Ec2::assemble(setup).await.map_err(|error| match error.is_final() {
        true => NotProvided::Ever(Held::from(error).into()),
        false => NotProvided::Yet(Held::from(error).into()),
    })?;
    Ok(Provided {
        cloud: Arc::new(ec2.provider()),
        duties: Arc::new(OnEc2 {
            ec2,
            client,
            calls: connected.calls,
        }),
    })
}

/// The address of the cluster's DNS service. Nodes come up without it, with what their image says.
async fn dns(client: &Client) -> Option<IpAddr> {
    let services: Api<Service> = Api::namespaced(client.clone(), "kube-system");
    match services.get_opt("kube-dns").await {
        Ok(found) => {
            let address = found?.spec?.cluster_ip?.parse().ok()?;
            debug!(%address, "discovered kube dns");
            Some(address)
        }
        Err(error) => {
            debug!(%error, "the cluster's DNS service cannot be looked up");
            None
        }
    }
}

/// The certificate as it is written where the client found it. Its bytes go into the hash of node classes, so that it
/// matters that they are the file's own.
fn ca_certificate() -> Option<Vec<u8>> {
    let written = Kubeconfig::read().ok().as_ref().and_then(certificate);
    written.or_else(|| std::fs::read(POD_CERTIFICATE).ok())
}

/// What a kubeconfig trusts.
fn certificate(kubeconfig: &Kubeconfig) -> Option<Vec<u8>> {
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
}

struct OnEc2 {
    ec2: Ec2,
    client: Client,
    calls: Calls,
}

#[async_trait]
impl Duties for OnEc2 {
    async fn take_over(&self) {}

    async fn beside(&self) {
        self.ec2.beside().await;
    }

    fn join(&self, fleet: &mut Fleet) {
        self.ec2.join(fleet, Arc::new(self.client.clone()));
    }

    fn cluster_name(&self) -> Option<String> {
        Some(self.ec2.services.options.cluster_name.clone())
    }

    fn metrics(&self) -> String {
        self.ec2.services.metrics.encoded() + &self.calls.encoded()
    }
}
