//! Where it is known from what can be launched: a list, or the region that the environment names.

use std::{convert::Infallible, str::FromStr, sync::Arc};

use model::Vocabulary;
use operator::settings::FeatureGates;
use provider_sim::Catalog;

use crate::{
    exit::Failure,
    input::{self, Cluster, Sellers, Wanted},
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
                let cluster = source.read(|_| Arc::new(catalog.vocabulary()), wanted)?;
                Ok((cluster, catalog))
            }
            Market::Region => region(source, selectors, gates),
        }
    }

    /// The same where nobody has said which market: the region for a cluster that buys on EC2, and a list for all else. A list
    /// for pools that buy on EC2 has a note.
    pub fn visit_usual(
        source: &input::Source,
        selectors: bool,
        gates: &FeatureGates,
    ) -> Result<(Cluster, Catalog), Failure> {
        let is_asked = cfg!(feature = "aws") && source.is_live();
        let catalog = instance_types::Source::Ec2.load()?;
        let mut sellers = Sellers::Others;
        let vocabulary = |found| {
            sellers = found;
            match is_asked && found == Sellers::Ec2 {
                true => words_of_region(),
                false => Arc::new(catalog.vocabulary()),
            }
        };
        let wanted = Wanted {
            selectors,
            ec2_classes: is_asked,
        };
        let mut cluster = source.read(vocabulary, wanted)?;
        if sellers == Sellers::Others {
            return Ok((cluster, catalog));
        }
        if is_asked {
            let catalog = stock(&mut cluster, gates).map_err(|failure| failure.context(NOT_ASKED))?;
            return Ok((cluster, catalog));
        }
        cluster.notes.push(NOT_THE_REGIONS.to_owned());
        Ok((cluster, catalog))
    }
}

const NOT_ASKED: &str = "the region that the node pools buy in is to be asked what it sells; hint: set AWS_REGION and credentials, or \
    plan with a list: --instance-types ec2";
const NOT_THE_REGIONS: &str = "types, zones and prices are those of a list of us-west-2, and not what the region of these node pools \
    sells; hint: --instance-types aws asks it, in a build with the AWS provider";

fn region(source: &input::Source, selectors: bool, gates: &FeatureGates) -> Result<(Cluster, Catalog), Failure> {
    let wanted = Wanted {
        selectors,
        ec2_classes: true,
    };
    let mut cluster = source.read(|_| words_of_region(), wanted)?;
    let catalog = stock(&mut cluster, gates)?;
    Ok((cluster, catalog))
}

#[cfg(feature = "aws")]
fn words_of_region() -> Arc<Vocabulary> {
    provider_aws::vocabulary()
}

#[cfg(feature = "aws")]
fn stock(cluster: &mut Cluster, gates: &FeatureGates) -> Result<Catalog, Failure> {
    crate::region::catalog(cluster, gates)
}

#[cfg(not(feature = "aws"))]
fn words_of_region() -> Arc<Vocabulary> {
    Arc::default()
}

#[cfg(not(feature = "aws"))]
fn stock(_: &mut Cluster, _: &FeatureGates) -> Result<Catalog, Failure> {
    let built = "--instance-types aws: this program was built without the AWS provider; hint: make build-aws";
    Err(Failure::Input(anyhow::anyhow!(built)))
}
