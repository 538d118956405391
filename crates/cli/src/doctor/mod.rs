//! `karpenter doctor`: what is wrong with a cluster and its account, and what helps.
//!
//! Observe (`facts`), decide (`checks`, pure functions over the facts), print (`finding`). The account is looked at through
//! the ports of the AWS provider (`account`), where the program was built with it. `downgrade` answers a question of its own:
//! what another release's definitions would lose.

#[cfg(any(test, feature = "aws"))]
mod account;
mod checks;
mod downgrade;
mod facts;
mod finding;
mod rights;

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use clock::{Clock as _, SystemClock};
use kube::Client;
use serde_json::Value;

use self::{
    facts::{DEFINITIONS, Facts, OUR_KINDS, lists, observe},
    finding::{Finding, Report},
};
use crate::{
    exit::Failure,
    input::{self, Connection, connected},
    output,
    reader::{Reader as _, Unread},
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
    /// Only say what would be lost if the definitions of FILE (or a directory, or - for standard input) took the place of
    /// those in the cluster.
    #[arg(long, value_name = "FILE")]
    downgrade_to: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Table,
    Json,
    Yaml,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let target = arguments.downgrade_to.as_deref().map(definitions).transpose()?;
    let findings = connected(&arguments.connection, async |client: Client| {
        let silent = |why: Unread| Failure::Unreachable(anyhow!("the cluster does not answer: {why}"));
        if let Some(target) = &target {
            let installed = client.list(&DEFINITIONS).await.map_err(silent)?;
            let objects = lists(&client, &OUR_KINDS).await;
            return Ok(downgrade::losses(&OUR_KINDS, &objects, &installed, target));
        }
        let mut facts = observe(&client, SystemClock.now()).await.map_err(silent)?;
        let of_account = match arguments.skip_account {
            true => Vec::new(),
            false => account_findings(&mut facts).await,
        };
        let mut findings = checks::all(&facts);
        findings.extend(of_account);
        Ok(findings)
    })?;
    let report = Report::new(findings);
    match arguments.output {
        Output::Table => output::print(&report.table())?,
        Output::Json => output::print(&output::json(&report)?)?,
        Output::Yaml => output::print(&output::yaml(&report)?)?,
    }
    verdict(&report, target.is_some())
}

/// Who asks what would be lost goes on when nothing would: what could not be looked at may be lost, too.
fn verdict(report: &Report, is_about_loss: bool) -> Result<(), Failure> {
    match report.problems {
        0 if is_about_loss && report.unknown > 0 => Err(Failure::No(anyhow!(
            "not everything could be looked at, and may be lost"
        ))),
        0 => Ok(()),
        1 => Err(Failure::No(anyhow!("there is one problem"))),
        count => Err(Failure::No(anyhow!("there are {count} problems"))),
    }
}

/// The definitions that a release brings, as Helm or we print them.
fn definitions(file: &str) -> Result<Vec<Value>, Failure> {
    let mut objects = input::objects(&[file.to_owned()])?;
    objects.retain(|object| object["kind"] == "CustomResourceDefinition");
    if objects.is_empty() {
        return Err(Failure::Input(anyhow!(
            "--downgrade-to {file}: has no CustomResourceDefinition"
        )));
    }
    Ok(objects)
}

/// What is wrong with the account, and into the facts what it knows of the cluster.
#[cfg(feature = "aws")]
async fn account_findings(facts: &mut Facts) -> Vec<Finding> {
    let asked = account::Questions::of(facts);
    match provider_aws_sdk::connect(&provider_aws_sdk::Connection::default()).await {
        Ok(connected) => {
            facts.access = account::access(&connected.aws, &asked).await;
            account::check(&connected.aws, &asked, std::sync::Arc::new(SystemClock)).await
        }
        Err(error) => vec![account::not_reached(&error)],
    }
}

#[cfg(not(feature = "aws"))]
async fn account_findings(_: &mut Facts) -> Vec<Finding> {
    let what = "the AWS account was not looked at: this build has no AWS provider";
    vec![Finding::unknown("account", what).fix("make build-aws builds a program that can")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_said_to_be_safe_that_nobody_has_seen() {
        let of = |findings| Report::new(findings);
        let unknown = || of(vec![Finding::unknown("downgrade", "nodepools cannot be read")]);
        let problem = of(vec![Finding::problem("downgrade", "would lose spec.replicas")]);
        let fine = of(vec![Finding::ok("downgrade", "2 objects would lose nothing")]);
        verdict(&fine, true).expect("nothing is lost");
        verdict(&unknown(), false).expect("what cannot be looked at is no problem by itself");
        verdict(&unknown(), true).expect_err("it may be lost");
        verdict(&problem, true).expect_err("it is lost");
    }
}
