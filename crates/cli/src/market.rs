//! Where it is known from what can be launched: a list, or the region that the environment names.

use std::{convert::Infallible, str::FromStr, sync::Arc};

use operator::settings::FeatureGates;
use provider_sim::Catalog;

use crate::{
    exit::Failure,
    input::{self, Cluster, Wanted},
    instance_types,
};

#[derive(Clone, Debug)]
pub enum Market {
    Listed(instance_types::Source),
    /// What EC2 sells there to the node classes of the cluster.
    Region,
}

impl FromStr for Market {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "aws" => Ok(Market::Region),
            list => list.parse().map(Market::Listed),
        }
    }
}

impl Market {
    /// The cluster and what its pools can launch.
    pub fn visit(
        &self,
        source: &input::Source,
        selectors: bool,
        gates: &FeatureGates,
    ) -> Result<(Cluster, Catalog), Failure> {
        match self {
            Market::Listed(list) => {
                let catalog = list.load()?;
                let wanted = Wanted {
                    selectors,
                    ..Wanted::default()
                };
                let cluster = source.read(Arc::new(catalog.vocabulary()), wanted)?;
                Ok((cluster, catalog))
            }
            Market::Region => region(source, selectors, gates),
        }
    }
}

#[cfg(feature = "aws")]
fn region(source: &input::Source, selectors: bool, gates: &FeatureGates) -> Result<(Cluster, Catalog), Failure> {
    let wanted = Wanted {
        selectors,
        ec2_classes: true,
    };
    let mut cluster = source.read(provider_aws::vocabulary(), wanted)?;
    let catalog = crate::region::catalog(&mut cluster, gates)?;
    Ok((cluster, catalog))
}

#[cfg(not(feature = "aws"))]
fn region(_: &input::Source, _: bool, _: &FeatureGates) -> Result<(Cluster, Catalog), Failure> {
    let built = "--instance-types aws: this program was built without the AWS provider; hint: make build-aws";
    Err(Failure::Input(anyhow::anyhow!(built)))
}
