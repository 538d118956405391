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

use anyhow::{Context as _, anyhow};
use clap::{Args, ValueEnum};
use clock::{Clock as _, SystemClock};
use jiff::Timestamp;
use model::overlay;
use operator::settings::{FeatureGates, SchedulerConfig};
use scheduler::{MinValuesPolicy, Options, PreferencePolicy, Surcharge, solve};

use crate::{
    exit::Failure,
    input::{self, Cluster, Selector, Wanted},
    instance_types, output,
};
use report::Report;

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
    /// Place only pods with these labels, such as app=web.
    #[arg(long, value_name = "SELECTOR", visible_alias = "selector", short = 'l')]
    pods: Option<Selector>,
    /// Say of each pod that cannot be placed what every node pool has against it.
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    settings: Settings,
    /// Plan as if these nodes were gone; their pods need a place.
    #[arg(long, value_name = "NODE,…", value_delimiter = ',')]
    without: Option<Vec<String>>,
    /// Nodes that are still under consolidateAfter take no pods of the nodes that are gone.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", action = clap::ArgAction::Set)]
    enforce_consolidate_after: bool,
    /// The present moment. [default: now]
    #[arg(long, value_name = "RFC3339")]
    now: Option<Timestamp>,
}

/// Settings of the controller that change where pods go.
#[derive(Debug, Args)]
#[command(next_help_heading = "Settings of the controller")]
struct Settings {
    /// Whether preferences of pods count: Respect or Ignore.
    #[arg(long, value_name = "POLICY", value_enum, default_value_t = Preferences::Respect)]
    preference_policy: Preferences,
    /// What happens when minValues cannot be met: Strict or BestEffort.
    #[arg(long, value_name = "POLICY", value_enum, default_value_t = MinValues::Strict)]
    min_values_policy: MinValues,
    /// Optional features, such as NodeOverlay=true,ReservedCapacity=false.
    #[arg(long, value_name = "NAME=BOOL,…", default_value = "", hide_default_value = true)]
    feature_gates: FeatureGates,
    /// Dollars per hour that a node costs beside its price; more makes fewer and larger nodes.
    #[arg(long, value_name = "DOLLARS", default_value_t)]
    node_surcharge: Surcharge,
    /// Spreads for pods that have none, as YAML or JSON.
    #[arg(long, value_name = "DOCUMENT", default_value = "", hide_default_value = true)]
    scheduler_config: SchedulerConfig,
    /// Leave pods with resource claims alone.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    ignore_dra_requests: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Table,
    /// The table with requests, alternatives and names of pods.
    Wide,
    Json,
    Yaml,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
enum Preferences {
    Respect,
    Ignore,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
enum MinValues {
    Strict,
    BestEffort,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let catalog = arguments.instance_types.load()?;
    let wanted = if arguments.settings.scheduler_config.default_spreads.is_empty() {
        Wanted::Usual
    } else {
        Wanted::WithSelectors
    };
    let mut cluster = arguments.source.read(&catalog, wanted)?;
    if arguments.settings.feature_gates.node_overlay {
        apply_overlays(&mut cluster);
    }
    let now = arguments.now.unwrap_or_else(|| SystemClock.now());
    let gone = round::machines_named(&cluster.snapshot, arguments.without.as_deref().unwrap_or_default())
        .map_err(|name| Failure::Input(anyhow!("--without: there is no node or node claim {name}")))?;
    let mut round = round::round(&cluster, &gone, arguments.pods.as_ref(), now);
    round.options = arguments.options();
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
    output::print(&text)
}

impl Arguments {
    fn options(&self) -> Options {
        let settings = &self.settings;
        Options {
            preference_policy: match settings.preference_policy {
                Preferences::Respect => PreferencePolicy::Respect,
                Preferences::Ignore => PreferencePolicy::Ignore,
            },
            min_values_policy: match settings.min_values_policy {
                MinValues::Strict => MinValuesPolicy::Strict,
                MinValues::BestEffort => MinValuesPolicy::BestEffort,
            },
            node_surcharge: settings.node_surcharge,
            ignore_dra: settings.ignore_dra_requests,
            reserved_capacity: settings.feature_gates.reserved_capacity,
            // The question what would come in the place of nodes is a simulation, even if there are none.
            reserved_fallback: self.without.is_some(),
            enforce_consolidate_after: self.enforce_consolidate_after,
            default_spreads: settings.scheduler_config.default_spreads.clone(),
            ..Options::default()
        }
    }
}

fn apply_overlays(cluster: &mut Cluster) {
    let snapshot = &mut cluster.snapshot;
    let overlaid = overlay::apply(
        &snapshot.catalogs,
        &snapshot.pools,
        &cluster.overlays,
        &snapshot.vocabulary,
    );
    snapshot.catalogs = overlaid.catalogs;
    let invalid = cluster
        .invalid_overlays
        .iter()
        .map(|(name, why)| format!("node overlay {name} is not in force: {why}"));
    let conflicts = overlaid.conflicts.iter();
    let conflicts = conflicts.map(|name| format!("node overlay {name} is not in force: conflict with another overlay"));
    cluster.notes.extend(invalid.chain(conflicts));
}
