//! `karpenter plan`: what the controllers would do next, on files or on a live cluster, without acting.
//!
//! What is decided comes from [`disruption::decide`] and [`scheduler::solve`], which the controllers call as well.
//! `advance` is the cluster after a pass, `report` what is printed for programs, `table` what is printed for people,
//! `rest` the objects at the end.

mod advance;
mod report;
mod rest;
mod table;

use std::{collections::BTreeSet, path::PathBuf, time::Instant};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use clock::{Clock as _, SystemClock};
use disruption::Settings;
use jiff::Timestamp;
use model::Snapshot;
use operator::settings::FeatureGates;
use scheduler::{Options, Round, solve};

use crate::{exit::Failure, input, instance_types, output};
use advance::Ahead;
use report::{PassReport, Report};

#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    source: input::Source,
    /// What can be launched: ec2 (real shapes of us-west-2), generic (upstream's KWOK shapes), or a file in the KWOK
    /// format.
    #[arg(long, value_name = "CATALOG", default_value = "ec2")]
    instance_types: instance_types::Source,
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
    /// Optional features, such as SpotToSpotConsolidation=true.
    #[arg(long, value_name = "NAME=BOOL,…", default_value = "", hide_default_value = true)]
    feature_gates: FeatureGates,
    /// The present moment. [default: now]
    #[arg(long, value_name = "RFC3339")]
    now: Option<Timestamp>,
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
    let catalog = arguments.instance_types.load()?;
    let mut cluster = arguments.source.read(&catalog, input::Wanted::Usual)?;
    for note in &cluster.notes {
        eprintln!("note: {note}");
    }
    let now = arguments.now.unwrap_or_else(|| SystemClock.now());
    if cluster.from_files {
        advance::judge(&mut cluster.snapshot, now);
    }
    let begun = Instant::now();
    let mut ahead = Ahead::new(cluster.snapshot);
    let mut report = Report::new(&ahead.snapshot);
    loop {
        let pass = one_pass(arguments, &mut ahead, now);
        let done = pass.commands.is_empty();
        report.passes.push(pass);
        if done || !arguments.until_rest || report.passes.len() >= MOST_PASSES {
            break;
        }
    }
    report.finish(&ahead, begun.elapsed());
    if let Some(path) = &arguments.r#final {
        let text = rest::objects(&arguments.source.raw()?, &ahead).map_err(Failure::No)?;
        std::fs::write(path, text)
            .with_context(|| format!("--final {}", path.display()))
            .map_err(Failure::No)?;
    }
    let text = match arguments.output {
        Output::Table => table::shown(&report),
        Output::Json => {
            serde_json::to_string_pretty(&report)
                .context("the plan as JSON")
                .map_err(Failure::No)?
                + "\n"
        }
        Output::Yaml => serde_saphyr::to_string(&report)
            .context("the plan as YAML")
            .map_err(Failure::No)?,
    };
    output::print(&text)?;
    let busy = report.passes.iter().any(|pass| !pass.commands.is_empty());
    if arguments.check && busy {
        return Err(Failure::No(anyhow::anyhow!("there is something to do")));
    }
    Ok(())
}

/// Provisioning first, as in the controller: pods that wait take room that disruption cannot count on.
fn one_pass(arguments: &Arguments, ahead: &mut Ahead, now: Timestamp) -> PassReport {
    let settings = arguments.settings();
    let waiting = waiting(&ahead.snapshot, &settings.solver, now);
    let provisioned = (!waiting.pods.is_empty()).then(|| solve(&ahead.snapshot, &waiting));
    let begun = Instant::now();
    let pass = disruption::decide(&ahead.snapshot, &settings, &BTreeSet::new(), now);
    let took = begun.elapsed();
    let mut report = PassReport::new(&ahead.snapshot, &pass, took);
    if let Some(plan) = provisioned.filter(|plan| plan.placed().next().is_some()) {
        report.provision(&ahead.snapshot, &plan);
        ahead.provision(&plan);
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

impl Arguments {
    fn settings(&self) -> Settings {
        Settings {
            solver: Options {
                reserved_capacity: self.feature_gates.reserved_capacity,
                ..Options::default()
            },
            spot_to_spot: self.feature_gates.spot_to_spot_consolidation,
            ..Settings::default()
        }
    }
}
