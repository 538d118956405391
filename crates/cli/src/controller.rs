//! `karpenter controller`: the controllers against a cluster; what the chart starts.

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use api::kwok::KwokNodeClass;
use async_trait::async_trait;
use clap::{Args, ValueEnum};
use clock::{Clock, SystemClock};
use kube::{Api, Client};
use operator::{
    Duties, Operator, OperatorError, Provide, Provided, logging,
    requests::Requests,
    settings::{Flags, Settings, retired_variables},
};
use provider_sim::{SimCloud, SimProvider, catalog::Catalog};
use tracing::{debug, info, warn};

use crate::{COMMIT, exit::Failure, instance_types::Source, kubeconfig, signals};

const NO_CLUSTER: &str = "no cluster: the kubeconfig cannot be used";

#[derive(Debug, Args)]
pub struct Arguments {
    /// Whose machines to launch.
    #[arg(long, value_enum, default_value_t = Provider::Aws)]
    cloud_provider: Provider,
    /// What the simulated provider sells: generic (upstream's KWOK shapes), ec2, or a file in the KWOK format.
    #[arg(
        long,
        value_name = "CATALOG",
        default_value = "generic",
        env = "INSTANCE_TYPES_FILE_PATH"
    )]
    instance_types: Source,
    #[command(flatten)]
    flags: Flags,
    #[cfg(feature = "aws")]
    #[command(flatten)]
    aws: provider_aws::options::Flags,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Provider {
    Aws,
    /// Simulated machines whose kubelets are kwok's.
    Sim,
}

/// Upstream's flags may be written with one dash, and manifests in the field do so. Only what follows the subcommand is
/// read this way; a single letter is a short flag as everywhere.
pub fn with_two_dashes(arguments: impl Iterator<Item = String>) -> Vec<String> {
    let mut is_ours = false;
    let mut read = Vec::new();
    for (place, argument) in arguments.enumerate() {
        is_ours |= place == 1 && argument == "controller";
        let long = argument
            .strip_prefix('-')
            .filter(|name| name.len() > 1 && name.starts_with(|letter: char| letter.is_ascii_lowercase()));
        read.push(match long {
            Some(name) if is_ours => format!("--{name}"),
            _ => argument,
        });
    }
    read
}

pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let variable = |name: &str| std::env::var(name).ok();
    let settings = Settings::resolve(&arguments.flags, variable).map_err(|error| Failure::Input(error.into()))?;
    let machines = machines(&arguments)?;
    let level = logging::init(&settings, COMMIT)
        .context("logging")
        .map_err(Failure::Input)?;
    let usual = settings.log_level;
    debug!(version = env!("CARGO_PKG_VERSION"), "discovered karpenter version");
    for warning in retired_variables(variable).into_iter().chain(settings.warnings()) {
        warn!("{warning}");
    }
    keep_pages_small();
    let runtime = tokio::runtime::Runtime::new()
        .context("no runtime")
        .map_err(Failure::No)?;
    let settings = Arc::new(settings);
    runtime.block_on(async {
        // Before anything is waited for: the first process of a container is spared signals that it has not asked for.
        signals::log_level(level, usual)
            .context("signals cannot be received")
            .map_err(Failure::No)?;
        let stop = signals::stop()
            .context("signals cannot be received")
            .map_err(Failure::No)?;
        let config = kubeconfig::config(None, None)
            .await
            .context(NO_CLUSTER)
            .map_err(Failure::Input)?;
        let requests = Requests::default();
        let client = operator::throttle::client(config.clone(), &settings, env!("CARGO_PKG_VERSION"), &requests);
        let client = client.context(NO_CLUSTER).map_err(Failure::Input)?;
        let provide: Box<dyn Provide> = match machines {
            Machines::Simulated(catalog) => {
                let cloud = SimCloud::new(seed(), Arc::new(SystemClock));
                Box::new(simulated(cloud, catalog, &client))
            }
            #[cfg(feature = "aws")]
            Machines::Ec2(options) => Box::new(crate::aws::Account {
                options: Arc::from(options),
                settings: settings.clone(),
                client: client.clone(),
            }),
        };
        let operator = Operator {
            client,
            clock: Arc::new(SystemClock),
            settings,
            seed: seed(),
            provide,
            namespace: variable("SYSTEM_NAMESPACE").unwrap_or_else(|| config.default_namespace.clone()),
            lease_client: Client::try_from(config).context(NO_CLUSTER).map_err(Failure::Input)?,
            identity: identity(),
            version: env!("CARGO_PKG_VERSION"),
            commit: COMMIT,
            requests,
        };
        operator.run(stop).await.map_err(failure)
    })
}

/// The allocator asks for huge pages, and then a few bytes keep two megabytes: what a busy minute has touched would never be
/// given back. In the basic spec of upstream's performance suite that is 220 MB against 70 MB, for the same processor time.
#[cfg(target_os = "linux")]
fn keep_pages_small() {
    if let Err(cause) = rustix::thread::disable_transparent_huge_pages(true) {
        debug!(error = %cause, "huge pages stay on, and more memory will be in use");
    }
}

#[cfg(not(target_os = "linux"))]
fn keep_pages_small() {}

/// Whose machines are launched, with all that was said about them.
enum Machines {
    Simulated(Catalog),
    #[cfg(feature = "aws")]
    Ec2(Box<provider_aws::options::Options>),
}

fn machines(arguments: &Arguments) -> Result<Machines, Failure> {
    match arguments.cloud_provider {
        Provider::Sim => Ok(Machines::Simulated(arguments.instance_types.load()?)),
        #[cfg(feature = "aws")]
        Provider::Aws => {
            let variable = |name: &str| std::env::var(name).ok();
            let options = provider_aws::options::Options::resolve(&arguments.aws, variable);
            let options = options.map_err(|error| Failure::Input(error.into()))?;
            Ok(Machines::Ec2(Box::new(options)))
        }
        #[cfg(not(feature = "aws"))]
        Provider::Aws => Err(Failure::Input(anyhow::anyhow!(
            "this build has no AWS provider; hint: make build-aws, or --cloud-provider sim"
        ))),
    }
}

/// A simulated cloud behind the controllers.
pub fn simulated(cloud: SimCloud, catalog: Catalog, client: &Client) -> Provided {
    let classes: Api<KwokNodeClass> = Api::all(client.clone());
    let provider = SimProvider::new(cloud.clone(), Arc::new(catalog), Arc::new(classes));
    Provided {
        cloud: Arc::new(provider),
        duties: Arc::new(SimulatedMachines {
            cloud,
            client: client.clone(),
        }),
    }
}

/// Machines that an earlier process launched, and those that are about to join the cluster.
struct SimulatedMachines {
    cloud: SimCloud,
    client: Client,
}

#[async_trait]
impl Duties for SimulatedMachines {
    async fn take_over(&self) {
        loop {
            match self.cloud.recover(&self.client).await {
                Ok(recovered) => {
                    info!(?recovered, "took over simulated machines");
                    return;
                }
                Err(error) => warn!(%error, "simulated machines cannot be listed yet"),
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    async fn beside(&self) {
        provider_sim::join::run(self.cloud.clone(), self.client.clone()).await;
    }
}

fn failure(error: OperatorError) -> Failure {
    match error {
        OperatorError::Port(_) | OperatorError::Cloud(_) => Failure::Input(error.into()),
        OperatorError::Lease(_) | OperatorError::Broken(_) => Failure::No(error.into()),
    }
}

/// Two processes must not give claims the same names.
fn seed() -> u64 {
    let moment = SystemClock.now().as_nanosecond();
    (moment as u64).rotate_left(32) ^ u64::from(std::process::id())
}

/// The host, which in a cluster is the pod, and something that no other process has.
fn identity() -> String {
    let host = std::env::var("HOSTNAME").or_else(|_| std::fs::read_to_string("/proc/sys/kernel/hostname"));
    let host = host.map_or_else(|_| "karpenter".to_owned(), |name| name.trim().to_owned());
    format!("{host}_{:016x}", seed())
}

#[cfg(test)]
mod tests {
    use super::with_two_dashes;

    #[track_caller]
    fn check(line: &str, expected: &str) {
        let read = with_two_dashes(line.split(' ').map(str::to_owned));
        assert_eq!(read.join(" "), expected);
    }

    #[test]
    fn flags_of_the_controller_may_have_one_dash() {
        check(
            "karpenter controller -metrics-port=1 --log-level debug -memory-limit -1 -h",
            "karpenter controller --metrics-port=1 --log-level debug --memory-limit -1 -h",
        );
        check("karpenter schedule -output json", "karpenter schedule -output json");
    }
}
