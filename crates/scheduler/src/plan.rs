//! What a solver decided: a value that can be printed, compared, audited and acted upon.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use model::{CapacityType, InstanceTypeName, Labels, NodeKey, PodKey, PoolName, Requirements, Resources, Zone};

use crate::{dra::ClaimAllocation, refusal::Refusal, zones::EffectiveZone};

/// A place for every pod of a round, or the reason why it has none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Machines to launch, in the order in which they were opened.
    pub launches: Vec<Launch>,
    /// Machines that are there or on their way and take pods, in the order of their keys.
    pub placements: Vec<Placement>,
    pub refusals: BTreeMap<PodKey, Refusal>,
    /// How many pending pods of the round can only go to which zone.
    pub zones: BTreeMap<EffectiveZone, usize>,
    /// Which devices the claims of the pods get.
    pub devices: Vec<ClaimAllocation>,
}

/// A machine to launch, still open as to which of several instance types it will be.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    pub pool: PoolName,
    /// What the machine has to be, as it is written into its claim: the pool's requirements, narrowed by the pods, and
    /// the instance types and capacity types that are left.
    pub requirements: Arc<Requirements>,
    /// Cheapest first. Every one of them has room for all the pods and for the daemons that come with it.
    pub instance_types: Arc<[InstanceTypeName]>,
    /// What the pods ask for, and the least that daemons add on any of the instance types.
    pub requests: Resources,
    pub pods: Vec<PodKey>,
    /// Labels of the claim: the pool's, and one concrete value for every custom label that is still open.
    pub labels: Arc<Labels>,
    /// What would be bought at the present prices. The provider decides.
    pub choice: Choice,
    /// The pool's demand for variety was lowered to what there is.
    pub min_values_relaxed: bool,
    /// Drivers whose devices its pods have been promised: the machine is not ready before they have published them.
    pub device_drivers: BTreeSet<Arc<str>>,
}

/// One way to buy a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    pub instance_type: InstanceTypeName,
    pub zone: Zone,
    pub capacity_type: CapacityType,
    /// US dollars per hour.
    pub price: f64,
}

/// Pods for a machine that is there or on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    pub node: NodeKey,
    pub pods: Vec<PodKey>,
}

impl Plan {
    /// Every pod has a place, and no new machine is needed for it.
    pub fn fits_existing(&self) -> bool {
        self.launches.is_empty() && self.refusals.is_empty()
    }

    /// Pods that have a place.
    pub fn placed(&self) -> impl Iterator<Item = &PodKey> {
        let launched = self.launches.iter().flat_map(|launch| &launch.pods);
        launched.chain(self.placements.iter().flat_map(|placement| &placement.pods))
    }

    /// What the launches cost per hour at the present prices.
    pub fn launch_price(&self) -> f64 {
        let prices = self.launches.iter().map(|launch| launch.choice.price);
        // The sum of no floats at all is minus zero, which would be shown with its sign.
        prices.fold(0.0, |sum, price| sum + price)
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.instance_type, self.zone, self.capacity_type)
    }
}

/// One line per launch, placement and refusal.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, launch) in self.launches.iter().enumerate() {
            let number = index + 1;
            writeln!(
                f,
                "launch {}#{number}  {}  <- {}",
                launch.pool,
                launch.choice,
                names(&launch.pods)
            )?;
        }
        for placement in &self.placements {
            writeln!(f, "place {}  <- {}", placement.node, names(&placement.pods))?;
        }
        for (pod, refusal) in &self.refusals {
            writeln!(f, "refuse {}: {refusal}", name(pod))?;
        }
        Ok(())
    }
}

fn names(pods: &[PodKey]) -> String {
    pods.iter().map(name).collect::<Vec<_>>().join(" ")
}

/// As short as kubectl shows it: the default namespace goes without saying.
fn name(pod: &PodKey) -> String {
    if &*pod.namespace == "default" {
        pod.name.to_string()
    } else {
        pod.to_string()
    }
}
