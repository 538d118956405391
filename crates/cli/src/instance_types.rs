//! `karpenter instance-types`: what the simulated provider or a region of EC2 sells, as a table or as the file that
//! `schedule`, `plan` and the simulated provider read.

use std::{path::PathBuf, str::FromStr, sync::Arc};

use anyhow::{Context as _, anyhow};
use clap::{Args, ValueEnum};
use model::{CapacityType, InstanceType, vocabulary};
use operator::settings::FeatureGates;
use provider_sim::Catalog;

use crate::{exit::Failure, input, market::Market, output};

/// Which catalog the simulated provider sells from.
#[derive(Clone, Debug)]
pub enum Source {
    /// Real EC2 shapes of us-west-2 with their on-demand prices.
    Ec2,
    /// The made-up shapes of upstream's KWOK provider.
    Generic,
    File(PathBuf),
}

impl FromStr for Source {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "ec2" => Source::Ec2,
            "generic" => Source::Generic,
            path => Source::File(path.into()),
        })
    }
}

impl Source {
    pub fn load(&self) -> Result<Catalog, Failure> {
        match self {
            Source::Ec2 => Ok(Catalog::ec2()),
            Source::Generic => Ok(Catalog::generic()),
            Source::File(path) => Catalog::load(path).context("--instance-types").map_err(Failure::Input),
        }
    }
}

#[derive(Debug, Args)]
pub struct Arguments {
    /// ec2 (a list of real shapes of us-west-2), generic (upstream's KWOK shapes), a file in the KWOK format, or aws (what
    /// the region sells to the node pools of the cluster or of the files, asked with the credentials of the environment).
    #[arg(long, value_name = "CATALOG", default_value = "ec2")]
    instance_types: Market,
    #[command(flatten)]
    source: input::Source,
    /// How to print the types.
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Table,
    /// The file that --instance-types reads.
    Json,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let catalog = match &arguments.instance_types {
        Market::Listed(list) => {
            refuse_cluster(&arguments.source)?;
            list.load()?
        }
        Market::Region => {
            let gates = FeatureGates::default();
            let (cluster, catalog) = arguments.instance_types.visit(&arguments.source, false, &gates)?;
            for note in &cluster.notes {
                eprintln!("note: {note}");
            }
            catalog
        }
    };
    if arguments.output == Output::Json {
        return output::print(&format!("{}\n", catalog.to_json()));
    }
    let mut text = String::new();
    for pool in catalog.pools() {
        text += &format!("node pool {pool}:\n{}\n", table(catalog.shapes(pool).iter()));
    }
    if text.is_empty() {
        text = table(catalog.all_shapes());
    }
    output::print(&text)?;
    if let Some(note) = catalog.spot_prices.note() {
        eprintln!("hint: {note}");
    }
    Ok(())
}

/// Whoever names a cluster wants to know what that cluster can launch, which no list says.
fn refuse_cluster(source: &input::Source) -> Result<(), Failure> {
    let given = source.given();
    if given.is_empty() {
        return Ok(());
    }
    Err(Failure::Input(anyhow!(
        "{}: a list is the same for every cluster; hint: --instance-types aws asks what the region sells to this one",
        given.join(", ")
    )))
}

fn table<'a>(shapes: impl Iterator<Item = &'a Arc<InstanceType>>) -> String {
    let header = ["NAME", "ARCH", "CPU", "MEMORY", "PODS", "ON-DEMAND", "SPOT"].map(str::to_owned);
    let rows = std::iter::once(header).chain(shapes.map(|shape| row(shape)));
    rows.map(|row| line(&row)).collect()
}

fn line([name, arch, cpu, memory, pods, on_demand, spot]: &[String; 7]) -> String {
    format!("{name:<24} {arch:<6} {cpu:>6} {memory:>10} {pods:>5} {on_demand:>10} {spot:>10}\n")
}

fn row(shape: &InstanceType) -> [String; 7] {
    let arch = shape
        .requirements
        .get(vocabulary::ARCH)
        .single()
        .map_or_else(String::new, ToString::to_string);
    let capacity = |resource| shape.capacity.get(resource).to_string();
    let price = |capacity_type| {
        let prices = shape
            .offerings
            .iter()
            .filter(|o| o.capacity_type == capacity_type)
            .map(|o| o.price);
        prices
            .min_by(f64::total_cmp)
            .map_or_else(|| "-".to_owned(), |price| format!("{price:.4}"))
    };
    [
        shape.name.to_string(),
        arch,
        capacity("cpu"),
        capacity("memory"),
        capacity("pods"),
        price(CapacityType::OnDemand),
        price(CapacityType::Spot),
    ]
}
