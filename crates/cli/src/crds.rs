//! `karpenter crds`: the custom resource definitions, ready for `kubectl apply -f -`.

use anyhow::Context as _;
use api::crds::Variant;
use clap::{Args, ValueEnum};

use crate::{exit::Failure, output};

#[derive(Debug, Args)]
pub struct Arguments {
    /// Whose node class comes along: the charts install aws, the simulated provider needs kwok.
    #[arg(long, value_enum, default_value_t = Provider::Aws)]
    provider: Provider,
    /// The kinds before v1 as well: Provisioner, AWSNodeTemplate and Machine.
    #[arg(long)]
    legacy: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Provider {
    Aws,
    Kwok,
    Core,
}

impl From<Provider> for Variant {
    fn from(provider: Provider) -> Self {
        match provider {
            Provider::Aws => Variant::Aws,
            Provider::Kwok => Variant::Kwok,
            Provider::Core => Variant::Core,
        }
    }
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let legacy = arguments.legacy.then(api::crds::legacy).unwrap_or_default();
    for crd in api::crds::all(arguments.provider.into()).into_iter().chain(legacy) {
        let text = serde_saphyr::to_string(&crd)
            .context("a CRD cannot be written as YAML")
            .map_err(Failure::No)?;
        output::print(&format!("---\n{text}\n"))?;
    }
    Ok(())
}
