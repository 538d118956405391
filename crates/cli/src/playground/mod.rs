//! `karpenter playground`: the whole system on one machine, without a cluster.
//!
//! An API server in memory, simulated kubelets, scheduler and workload controllers, a simulated cloud or an AWS region on
//! this machine, and the production controllers between them. `session.rs` puts it together, `story.rs` and `teller.rs` play scenarios on it.

mod cloud;
mod faults;
mod keep;
mod objects;
mod session;
mod speed;
mod story;
mod summary;
mod teller;

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use operator::settings::Settings;

use crate::{exit::Failure, instance_types::Source};
use cloud::{CloudName, Order};
use faults::Switches;
use session::{Session, Setup};
use speed::Speed;
use story::Story;

#[derive(Debug, Args)]
pub struct Arguments {
    /// Play a story and end: inflate, or a file.
    #[arg(long, value_name = "NAME|FILE")]
    scenario: Option<String>,
    /// Whose machines to launch.
    #[arg(long, value_enum, default_value_t = CloudName::Sim)]
    cloud: CloudName,
    /// How fast time runs: a factor, or max for as fast as this machine can. [default: 1; with a scenario max]
    #[arg(long)]
    speed: Option<Speed>,
    /// Port of the API server on loopback. [default: any free one]
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// Where to write the kubeconfig. [default: a temporary file]
    #[arg(long, value_name = "FILE")]
    kubeconfig_out: Option<PathBuf>,
    /// Keep the cluster in this folder, and go on where it stopped.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// ec2 (real shapes of us-west-2), generic (upstream's KWOK shapes), or a file in the KWOK format. [default: ec2]
    #[arg(long, value_name = "CATALOG")]
    instance_types: Option<Source>,
    /// Everything that chance decides follows from this number.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Show the controllers' log on standard error.
    #[arg(long)]
    verbose: bool,
    #[command(flatten)]
    switches: Switches,
}

impl Arguments {
    fn cloud(&self) -> Result<Order, Failure> {
        match self.cloud {
            CloudName::Sim => Ok(Order::Simulated {
                catalog: Box::new(self.instance_types.as_ref().unwrap_or(&Source::Ec2).load()?),
                faults: Box::new(self.switches.faults().map_err(Failure::Input)?),
            }),
            #[cfg(feature = "aws")]
            CloudName::AwsFake => {
                let refused = [
                    (
                        self.instance_types.is_some(),
                        "instance-types",
                        "aws-fake sells what EC2 sells",
                    ),
                    (self.data.is_some(), "data", "the region is not kept"),
                ];
                for (given, flag, reason) in refused {
                    if given {
                        let message = format!("--{flag} is for --cloud sim: {reason}");
                        return Err(Failure::Input(anyhow::anyhow!(message)));
                    }
                }
                let orders = self.switches.orders().map_err(Failure::Input)?;
                Ok(Order::AwsFake(orders))
            }
            #[cfg(not(feature = "aws"))]
            CloudName::AwsFake => Err(Failure::Input(anyhow::anyhow!(
                "this build has no AWS provider; hint: make build-aws, or --cloud sim"
            ))),
        }
    }
}

pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let story = arguments
        .scenario
        .as_deref()
        .map(Story::find)
        .transpose()
        .map_err(Failure::Input)?;
    let cloud = arguments.cloud()?;
    let speed = arguments
        .speed
        .unwrap_or(if story.is_some() { Speed::Max } else { Speed::Times(1) });
    if arguments.verbose {
        let settings = Settings {
            log_output_paths: vec!["stderr".to_owned()],
            ..Settings::default()
        };
        operator::logging::init(&settings, crate::COMMIT)
            .context("logging")
            .map_err(Failure::No)?;
    }
    let setup = Setup {
        cloud,
        api_faults: arguments.switches.api_faults,
        seed: arguments.seed,
        port: arguments.port,
        kubeconfig: arguments.kubeconfig_out,
        data: arguments.data,
    };
    let runtime = speed.runtime().context("no runtime").map_err(Failure::No)?;
    runtime.block_on(async {
        tokio::select! {
            biased;
            outcome = play(setup, story) => outcome,
            () = speed.drive() => Ok(()),
        }
    })
}

async fn play(setup: Setup, story: Option<Story>) -> Result<(), Failure> {
    let session = Session::start(setup).await?;
    match story {
        Some(story) => {
            let told = session.tell(&story).await;
            session.stop().await?;
            told.map_err(Failure::No)
        }
        None => {
            session.welcome();
            session.until_interrupted().await?;
            session.stop().await
        }
    }
}
