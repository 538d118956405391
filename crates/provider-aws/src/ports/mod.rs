//! The calls that the provider makes, as narrow traits over plain values.
//!
//! Nothing behind these traits decides anything: a request says all that matters, an answer is what AWS said. Whoever
//! implements them follows the pages of an answer to the end, so that callers see whole lists.

mod cluster;
mod ec2;
mod fleet;
mod iam;
mod instance;
mod instance_type;
mod market;
mod queue;
mod template;

use std::{collections::BTreeMap, sync::Arc};

pub use cluster::{AccessEntryInfo, ClusterInfo, Eks, Shift, Ssm, ZonalShift};
pub use ec2::{
    Ec2, ImageInfo, ImageQuery, PlacementGroupInfo, PlacementGroupQuery, ReservationInfo, ReservationQuery,
    SecurityGroupInfo, SubnetInfo,
};
pub use fleet::{
    Allocation, DryLaunch, FleetAnswer, FleetError, FleetGroup, FleetInstances, FleetOverride, FleetRequest, Market,
};
pub use iam::{Iam, ProfileInfo};
pub use instance::{
    EventInfo, InstanceInfo, InstanceQuery, InstanceStatusInfo, StateChange, StatusDetail, StatusQuery,
};
pub use instance_type::{
    AcceleratorInfo, GpuInfo, InstanceStorage, InstanceTypeInfo, NetworkCard, NetworkInfo, NeuronInfo, TypeOffering,
};
pub use market::{PriceList, PriceQuery, SpotPrice};
pub use queue::{Message, Sqs};
pub use template::{
    Ebs, Interface, MarketType, Metadata, Placement, ReservationPreference, Template, TemplateData, TemplateKey,
    TemplateQuery, Volume,
};

/// Tags by key.
pub type Tags = BTreeMap<String, String>;

/// One condition on what a listing returns: any of the values.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Filter {
    pub name: String,
    pub values: Vec<String>,
}

impl Filter {
    pub fn new<V: Into<String>>(name: &str, values: impl IntoIterator<Item = V>) -> Self {
        Self {
            name: name.to_owned(),
            values: values.into_iter().map(Into::into).collect(),
        }
    }

    /// What is tagged so; `*` as a value stands for any.
    pub fn tag(key: &str, value: &str) -> Self {
        match value {
            "*" => Self::new("tag-key", [key]),
            value => Self::new(&format!("tag:{key}"), [value]),
        }
    }

    /// What has all of these tags.
    pub fn tags<'a>(tags: impl IntoIterator<Item = (&'a String, &'a String)>) -> Vec<Self> {
        tags.into_iter().map(|(key, value)| Self::tag(key, value)).collect()
    }
}

/// Everything that the provider can reach.
#[derive(Clone)]
pub struct Aws {
    pub ec2: Arc<dyn Ec2>,
    pub iam: Arc<dyn Iam>,
    pub ssm: Arc<dyn Ssm>,
    pub eks: Arc<dyn Eks>,
    pub prices: Arc<dyn PriceList>,
    pub queue: Arc<dyn Sqs>,
    pub zonal_shift: Arc<dyn ZonalShift>,
}
