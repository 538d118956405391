//! `karpenter schedule`: one scheduling round on files or on a live cluster, without acting.
//!
//! `round` is which pods need a place, `report` what is printed for programs, `table` what is printed for people. What is
//! decided comes from [`scheduler::solve`], which the controller calls as well.

#[cfg(test)]
mod fuzz;
mod report;
mod round;
mod table;

use std::time::Instant;

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use scheduler::{Options, solve};

use crate::{exit::Failure, input::Selector, output, question::Question};
use report::Report;

#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    question: Question,
    /// How to print the plan.
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
    /// Place only pods with these labels, such as app=web.
    #[arg(long, value_name = "SELECTOR", visible_alias = "selector", short = 'l')]
    pods: Option<Selector>,
    /// Say of each pod that cannot be placed what every node pool has against it.
    #[arg(long)]
    explain: bool,
    /// Plan as if these nodes were gone; their pods need a place.
    #[arg(long, value_name = "NODE,…", value_delimiter = ',')]
    without: Option<Vec<String>>,
    /// Nodes that are still under consolidateAfter take no pods of the nodes that are gone.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", action = clap::ArgAction::Set)]
    enforce_consolidate_after: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Table,
    /// The table with requests, alternatives and names of pods.
    Wide,
    Json,
    Yaml,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let question = &arguments.question;
    let (cluster, catalog) = question.cluster()?;
    let gone = round::machines_named(&cluster.snapshot, arguments.without.as_deref().unwrap_or_default())
        .map_err(|name| Failure::Input(anyhow!("--without: there is no node or node claim {name}")))?;
    let mut round = round::round(&cluster, &gone, arguments.pods.as_ref(), question.now());
    round.options = Options {
        // The question what would come in the place of nodes is a simulation, even if there are none.
        reserved_fallback: arguments.without.is_some(),
        enforce_consolidate_after: arguments.enforce_consolidate_after,
        ..question.options()
    };
    let snapshot = cluster.snapshot.without(&gone);

    let begun = Instant::now();
    let plan = solve(&snapshot, &round);
    let solve_millis = begun.elapsed().as_secs_f64() * 1000.0;

    for note in cluster
        .notes
        .iter()
        .chain(catalog.spot_prices.note().map(str::to_owned).iter())
    {
        eprintln!("note: {note}");
    }
    let mut report = Report::new(&snapshot, &plan, solve_millis);
    report.refuse(round::unplannable(&cluster, arguments.pods.as_ref()));
    let text = match arguments.output {
        Output::Table => table::narrow(&snapshot, &plan, &report, arguments.explain),
        Output::Wide => table::wide(&snapshot, &plan, &report, arguments.explain),
        Output::Json => output::json(&report)?,
        Output::Yaml => output::yaml(&report)?,
    };
    output::print(&text)
}
