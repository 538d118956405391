//! `aws-fake`: an AWS region on a port of this machine.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context;
use aws_fake::{Fake, control::Command, join, region::Plan, server::serve};
use clap::Parser;
use clock::{Clock, SystemClock};
use tokio::task::JoinSet;

/// Serves an AWS region on loopback, for Karpenter and any other AWS client.
///
/// Prints its endpoint when it serves. Set AWS_ENDPOINT_URL to it; any credentials will do.
#[derive(Debug, Parser)]
#[command(name = "aws-fake", version)]
struct Options {
    /// The port; 0 takes a free one
    #[arg(long, default_value_t = 4599)]
    port: u16,
    #[arg(long, default_value = "us-west-2")]
    region: String,
    /// The name of the EKS cluster, of its queue and of the tag karpenter.sh/discovery
    #[arg(long)]
    cluster: String,
    /// Which instance types the region sells: a pattern, such as m5.*
    #[arg(long, default_value = "*")]
    types: String,
    /// Booted instances join this cluster
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// Orders to carry out before serving: a YAML list of what POST /_fake/… takes
    #[arg(long)]
    script: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into()))
        .with_writer(std::io::stderr)
        .init();
    let options = Options::parse();
    let mut plan = Plan::new(&options.region, &options.cluster);
    plan.types.clone_from(&options.types);
    let mut client = None;
    if let Some(path) = &options.kubeconfig {
        client = Some(join::connect(path, &mut plan).await?);
    }
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let fake = Fake::new(plan, Arc::clone(&clock));
    if let Some(path) = &options.script {
        run_script(&fake, path)?;
    }
    let mut tasks = JoinSet::new();
    if let Some(client) = client {
        tasks = join::kubelets(&fake, &client, &clock);
        tasks.spawn(join::run(fake.clone(), client));
    }
    let served = serve(fake, options.port).await?;
    println!("{}", served.endpoint());
    tokio::signal::ctrl_c()
        .await
        .context("could not wait for an interrupt")?;
    tasks.abort_all();
    Ok(())
}

fn run_script(fake: &Fake, path: &Path) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(path).with_context(|| format!("could not read {}", path.display()))?;
    let commands: Vec<Command> =
        serde_saphyr::from_str(&text).with_context(|| format!("{} is not a list of orders", path.display()))?;
    for command in commands {
        let shown = format!("{command:?}");
        fake.with(|state, now| command.carry_out(state, now))
            .with_context(|| format!("could not carry out {shown}"))?;
    }
    Ok(())
}
