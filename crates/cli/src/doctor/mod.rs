//! `karpenter doctor`: what is wrong with a cluster and its account, and what helps.
//!
//! Observe (`facts`), decide (`checks`, pure functions over the facts), print (`finding`). The account is looked at through
//! the ports of the AWS provider (`account`), where the program was built with it.

#[cfg(any(test, feature = "aws"))]
mod account;
mod checks;
mod facts;
mod finding;
mod rights;

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use clock::{Clock as _, SystemClock};
use kube::Client;

use self::{
    facts::{Facts, observe},
    finding::{Finding, Report},
};
use crate::{
    exit::Failure,
    input::{Connection, connected},
    output,
};

#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    connection: Connection,
    /// How to print what was found.
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
    /// Leave the AWS account alone.
    #[arg(long)]
    skip_account: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Table,
    Json,
    Yaml,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let findings = connected(&arguments.connection, async |client: Client| {
        let facts = observe(&client, SystemClock.now()).await;
        let facts = facts.map_err(|why| Failure::Unreachable(anyhow!("the cluster does not answer: {why}")))?;
        let mut findings = checks::all(&facts);
        if !arguments.skip_account {
            findings.extend(account_findings(&facts).await);
        }
        Ok(findings)
    })?;
    let report = Report::new(findings);
    match arguments.output {
        Output::Table => output::print(&report.table())?,
        Output::Json => output::print(&output::json(&report)?)?,
        Output::Yaml => output::print(&output::yaml(&report)?)?,
    }
    match report.problems {
        0 => Ok(()),
        1 => Err(Failure::No(anyhow!("there is one problem"))),
        count => Err(Failure::No(anyhow!("there are {count} problems"))),
    }
}

#[cfg(feature = "aws")]
async fn account_findings(facts: &Facts) -> Vec<Finding> {
    let asked = account::Questions::of(facts);
    match provider_aws_sdk::connect(&provider_aws_sdk::Connection::default()).await {
        Ok(connected) => account::check(&connected.aws, &asked, std::sync::Arc::new(SystemClock)).await,
        Err(error) => vec![account::not_reached(&error)],
    }
}

#[cfg(not(feature = "aws"))]
async fn account_findings(_: &Facts) -> Vec<Finding> {
    let what = "the AWS account was not looked at: this build has no AWS provider";
    vec![Finding::unknown("account", what).fix("make build-aws builds a program that can")]
}
