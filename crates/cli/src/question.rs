//! What `schedule` and `plan` are asked about: a cluster, what can be launched, and how the controller is set.

use clap::{Args, ValueEnum};
use clock::{Clock as _, SystemClock};
use jiff::Timestamp;
use model::overlay;
use operator::settings::{FeatureGates, SchedulerConfig};
use provider_sim::Catalog;
use scheduler::{MinValuesPolicy, Options, PreferencePolicy, Surcharge};

use crate::{
    exit::Failure,
    input::{self, Cluster},
    market::Market,
};

#[derive(Debug, Args)]
pub struct Question {
    #[command(flatten)]
    pub source: input::Source,
    /// What can be launched: aws (what the region sells to the pools' node classes, asked with the credentials of the
    /// environment), ec2 (a list of real shapes of us-west-2), generic (upstream's KWOK shapes), or a file in the KWOK
    /// format. [default: aws for a live cluster whose pools name an EC2NodeClass, where the build has the AWS provider; ec2
    /// otherwise]
    #[arg(long, value_name = "CATALOG")]
    instance_types: Option<Market>,
    #[command(flatten)]
    settings: Settings,
    /// The present moment. [default: now]
    #[arg(long, value_name = "RFC3339")]
    now: Option<Timestamp>,
}

/// Settings of the controller that change where pods go and which nodes stay. Those of a running controller are not read.
#[derive(Debug, Args)]
#[command(next_help_heading = "Settings of the controller")]
struct Settings {
    /// Whether preferences of pods count: Respect or Ignore.
    #[arg(long, value_name = "POLICY", value_enum, default_value_t = Preferences::Respect)]
    preference_policy: Preferences,
    /// What happens when minValues cannot be met: Strict or BestEffort.
    #[arg(long, value_name = "POLICY", value_enum, default_value_t = MinValues::Strict)]
    min_values_policy: MinValues,
    /// Optional features, such as NodeOverlay=true,SpotToSpotConsolidation=true.
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

impl Question {
    /// The cluster with what its pools can launch, overlays in force, and the catalog that this is from.
    pub fn cluster(&self) -> Result<(Cluster, Catalog), Failure> {
        let selectors = !self.settings.scheduler_config.default_spreads.is_empty();
        let (mut cluster, catalog) = match &self.instance_types {
            Some(market) => market.visit(&self.source, selectors, self.gates())?,
            None => Market::visit_usual(&self.source, selectors, self.gates())?,
        };
        input::offer(&mut cluster, &catalog);
        if self.gates().node_overlay {
            apply_overlays(&mut cluster);
        }
        Ok((cluster, catalog))
    }

    pub fn now(&self) -> Timestamp {
        self.now.unwrap_or_else(|| SystemClock.now())
    }

    pub fn gates(&self) -> &FeatureGates {
        &self.settings.feature_gates
    }

    pub fn options(&self) -> Options {
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
            default_spreads: settings.scheduler_config.default_spreads.clone(),
            ..Options::default()
        }
    }
}

pub fn apply_overlays(cluster: &mut Cluster) {
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
