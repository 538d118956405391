//! The clouds that a playground can stand in.

#[cfg(feature = "aws")]
mod aws_fake;
mod simulated;

use std::{collections::BTreeMap, sync::Arc};

use api::crds::Variant;
use clap::ValueEnum;
use clock::Clock;
use kube::Client;
use operator::Provided;
use provider_sim::{Catalog, Faults};
use tokio::task::JoinSet;
use world::kubelet::Machines;

use crate::exit::Failure;

/// Whose machines are launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CloudName {
    /// Machines of no cloud in particular.
    Sim,
    /// An AWS region on this machine: the AWS provider, over AWS's own protocols.
    AwsFake,
}

/// A cloud as it was ordered.
pub enum Order {
    Simulated {
        catalog: Box<Catalog>,
        faults: Box<Faults>,
    },
    #[cfg(feature = "aws")]
    AwsFake(Vec<::aws_fake::control::Command>),
}

/// What a cloud is built into.
pub struct Site<'a> {
    pub client: &'a Client,
    pub clock: &'a Arc<dyn Clock>,
    pub seed: u64,
}

/// A cloud that runs.
pub struct Cloud {
    pub provided: Provided,
    /// Tells the kubelets which machines run.
    pub machines: Arc<dyn Machines>,
    /// What goes on in the cloud by itself.
    pub tasks: JoinSet<()>,
    pub ledger: Arc<dyn Ledger>,
    /// Where else it can be reached, for people.
    pub endpoint: Option<String>,
}

/// Remembers every machine that was launched.
pub trait Ledger: Send + Sync {
    fn bill(&self) -> Bill;
}

/// What has been launched so far, and what it costs.
#[derive(Debug)]
pub struct Bill {
    /// How many of each kind: `m5.large spot`.
    pub launched: BTreeMap<String, usize>,
    pub left: usize,
    pub dollars: f64,
    /// What has to stand beside the figures.
    pub note: Option<&'static str>,
}

impl Order {
    /// Which resource definitions the cluster needs.
    pub fn variant(&self) -> Variant {
        match self {
            Order::Simulated { .. } => Variant::Kwok,
            #[cfg(feature = "aws")]
            Order::AwsFake(_) => Variant::Aws,
        }
    }

    /// The class and the pool of a new playground.
    pub fn defaults(&self) -> [&'static str; 2] {
        match self {
            Order::Simulated { .. } => simulated::DEFAULTS,
            #[cfg(feature = "aws")]
            Order::AwsFake(_) => aws_fake::DEFAULTS,
        }
    }

    pub async fn start(self, site: Site<'_>) -> Result<Cloud, Failure> {
        match self {
            Order::Simulated { catalog, faults } => Ok(simulated::start(*catalog, *faults, &site)),
            #[cfg(feature = "aws")]
            Order::AwsFake(orders) => aws_fake::start(orders, &site).await,
        }
    }
}
