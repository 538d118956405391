//! `karpenter plan`: what the controllers would do next, on files or on a live cluster, without acting.
//!
//! What is decided comes from [`disruption::decide_watched`] and [`scheduler::solve`], which the controllers call as well.
//! `advance` is the cluster after a pass, `report` what is printed for programs, `table` what is printed for people,
//! `rest` the objects at the end.

mod advance;
mod report;
mod rest;
mod table;

use std::{collections::BTreeSet, path::PathBuf, time::Instant};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use disruption::{Prices, Settings};
use jiff::Timestamp;
use model::{NodeKey, Snapshot};
use scheduler::{Options, Round, solve};

use crate::{exit::Failure, input::machine_name, output, question::Question};
use advance::Ahead;
use report::{PassReport, Report};

#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    question: Question,
    /// How to print the plan.
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
    /// Apply each pass as if it had succeeded, and go on until a pass has nothing to do.
    #[arg(long)]
    until_rest: bool,
    /// Write the objects of the end state to this file.
    #[arg(long, value_name = "FILE", requires = "filename")]
    r#final: Option<PathBuf>,
    /// Exit with code 1 when there is something to do.
    #[arg(long)]
    check: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Table,
    Json,
    Yaml,
}

/// A pass for each of thousands of nodes would be too many for any cluster: something goes round in circles.
const MOST_PASSES: usize = 1_000;

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let question = &arguments.question;
    let (mut cluster, _) = question.cluster()?;
    for note in cluster.notes.iter().chain(&unpriced(&cluster.snapshot)) {
        eprintln!("note: {note}");
    }
    let now = question.now();
    if cluster.from_files {
        advance::judge(&mut cluster.snapshot, now);
    }
    let begun = Instant::now();
    let mut ahead = Ahead::new(cluster.snapshot);
    let mut report = Report::new(&ahead.snapshot);
    let settings = Settings {
        solver: question.options(),
        spot_to_spot: question.gates().spot_to_spot_consolidation,
        ..Settings::default()
    };
    loop {
        let pass = one_pass(&settings, &mut ahead, now);
        let done = pass.commands.is_empty();
        report.passes.push(pass);
        if done || !arguments.until_rest || report.passes.len() >= MOST_PASSES {
            break;
        }
    }
    report.finish(&ahead, begun.elapsed());
    if let Some(path) = &arguments.r#final {
        let text = rest::objects(&question.source.raw()?, &ahead).map_err(Failure::No)?;
        std::fs::write(path, text)
            .with_context(|| format!("--final {}", path.display()))
            .map_err(Failure::No)?;
    }
    let text = match arguments.output {
        Output::Table => table::shown(&report),
        Output::Json => output::json(&report)?,
        Output::Yaml => output::yaml(&report)?,
    };
    output::print(&text)?;
    let busy = report.passes.iter().any(|pass| !pass.commands.is_empty());
    if arguments.check && busy {
        return Err(Failure::No(anyhow::anyhow!("there is something to do")));
    }
    Ok(())
}

/// Said of nodes that the catalog has no price for. They count as free of charge, so that nothing is cheaper.
fn unpriced(snapshot: &Snapshot) -> Option<String> {
    let prices = Prices::new(snapshot);
    let registered = || {
        let machines = snapshot.nodes.values();
        machines.filter(|machine| machine.is_managed() && machine.is_registered())
    };
    let mut unpriced = registered().filter(|machine| prices.of(machine).is_none());
    let first = machine_name(snapshot, &unpriced.next()?.key);
    Some(format!(
        "the catalog has no price for {} of {} nodes, such as {first}: they count as free of charge, and nothing is cheaper than \
         they are; hint: --instance-types",
        1 + unpriced.count(),
        registered().count()
    ))
}

/// Provisioning first, as in the controller: pods that wait take room that disruption cannot count on. Nodes that come for them
/// are not there yet when it looks.
fn one_pass(settings: &Settings, ahead: &mut Ahead, now: Timestamp) -> PassReport {
    let waiting = waiting(&ahead.snapshot, &settings.solver, now);
    let provisioned = (!waiting.pods.is_empty()).then(|| solve(&ahead.snapshot, &waiting));
    let provisioned = provisioned.filter(|plan| plan.placed().next().is_some());
    let there = ahead.launched.len();
    let snapshot = match &provisioned {
        Some(plan) => ahead.provision(plan, now),
        None => ahead.snapshot.clone(),
    };
    let coming: BTreeSet<NodeKey> = ahead.launched[there..].iter().cloned().collect();
    let begun = Instant::now();
    let mut looked = None;
    let pass = disruption::decide_watched(&snapshot, settings, &coming, now, &mut || {
        looked = Some(begun.elapsed());
    });
    let took = begun.elapsed();
    let mut report = PassReport::new(&snapshot, &pass, looked.unwrap_or(took), took);
    if let Some(plan) = provisioned {
        report.provision(&snapshot, &plan);
    }
    for command in &pass.commands {
        ahead.command(command);
    }
    report
}

fn waiting(snapshot: &Snapshot, options: &Options, now: Timestamp) -> Round {
    Round {
        pods: snapshot.pods_to_place(now),
        now,
        options: options.clone(),
    }
}
