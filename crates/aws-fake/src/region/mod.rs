//! One region of one account, as a state machine: calls change it, and the present moment is an argument.
//!
//! What is there from the start: [`network`] (a VPC with three private subnets and the nodes' security group), [`images`]
//! (those of EKS, Bottlerocket and Windows with their parameters), [`identity`] (the nodes' role), [`queue`] (interruptions),
//! the cluster. What calls and scripts make: [`templates`], [`fleet`] launching into [`instances`], [`reserved`].
//! [`market`] has prices and capacity.

pub mod filter;
pub mod fleet;
pub mod identity;
pub mod ids;
pub mod images;
pub mod instances;
pub mod launch;
pub mod market;
pub mod network;
pub mod notices;
pub mod queue;
pub mod reserved;
pub mod start;
pub mod templates;

use std::{collections::BTreeMap, sync::Arc};

use jiff::{SignedDuration, Timestamp};

use self::{
    identity::Identity,
    ids::Ids,
    images::Images,
    instances::Instance,
    market::Market,
    network::Network,
    queue::Queue,
    reserved::{PlacementGroup, Reservation},
    templates::Template,
};
use crate::{
    facts::{self, InstanceType},
    glob,
    refusal::Refusal,
};

pub type Tags = BTreeMap<String, String>;

/// What a region is made for.
#[derive(Clone, Debug)]
pub struct Plan {
    pub region: String,
    pub account: String,
    pub cluster: String,
    /// Where the cluster's API server answers.
    pub endpoint: String,
    /// The certificate of its authority, base64 of PEM.
    pub authority: String,
    /// `1.35`.
    pub version: String,
    /// Which instance types the region sells: a pattern.
    pub types: String,
}

impl Plan {
    pub fn new(region: &str, cluster: &str) -> Self {
        Self {
            region: region.to_owned(),
            account: "123456789012".to_owned(),
            cluster: cluster.to_owned(),
            endpoint: format!("https://{cluster}.gr7.{region}.eks.amazonaws.com"),
            authority: "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==".to_owned(),
            version: "1.35".to_owned(),
            types: "*".to_owned(),
        }
    }
}

/// How long things take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// From the launch to `running`.
    pub boot: SignedDuration,
    /// From `running` to the moment when the kubelet asks to join.
    pub join: SignedDuration,
    /// From `shutting-down` to `terminated`.
    pub shutdown: SignedDuration,
    /// How long new instances, launch templates and instance profiles are not seen by other calls.
    pub propagation: SignedDuration,
    /// From the warning to the end of a spot instance.
    pub reclaim: SignedDuration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            boot: SignedDuration::from_secs(2),
            join: SignedDuration::from_secs(3),
            shutdown: SignedDuration::from_secs(2),
            propagation: SignedDuration::ZERO,
            reclaim: SignedDuration::from_mins(2),
        }
    }
}

/// A zone from which the cluster has been shifted away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZonalShift {
    pub id: String,
    pub zone_id: String,
    pub started: Timestamp,
    pub expires: Timestamp,
}

#[derive(Debug)]
pub struct Region {
    pub plan: Plan,
    pub timing: Timing,
    pub network: Network,
    pub images: Images,
    pub identity: Identity,
    pub queue: Queue,
    pub market: Market,
    /// By id.
    pub templates: BTreeMap<String, Template>,
    /// By id.
    pub instances: BTreeMap<String, Instance>,
    pub reservations: BTreeMap<String, Reservation>,
    pub placement_groups: BTreeMap<String, PlacementGroup>,
    pub shifts: Vec<ZonalShift>,
    pub made: Timestamp,
    ids: Ids,
}

impl Region {
    pub fn new(plan: Plan, now: Timestamp) -> Self {
        let mut ids = Ids::default();
        Self {
            network: Network::of(&plan, &mut ids),
            images: Images::of_all_families(),
            identity: Identity::of(&plan, &mut ids, now),
            queue: Queue::named(&plan.cluster),
            market: Market::default(),
            templates: BTreeMap::new(),
            instances: BTreeMap::new(),
            reservations: BTreeMap::new(),
            placement_groups: BTreeMap::new(),
            shifts: Vec::new(),
            timing: Timing::default(),
            made: now,
            plan,
            ids,
        }
    }

    pub fn cluster_arn(&self) -> String {
        let Plan {
            region,
            account,
            cluster,
            ..
        } = &self.plan;
        format!("arn:aws:eks:{region}:{account}:cluster/{cluster}")
    }

    /// The types that are sold here, by name.
    pub fn types(&self) -> impl Iterator<Item = &'static Arc<InstanceType>> {
        let all = facts::instance_types().iter();
        all.filter(|fact| glob::fits(&self.plan.types, &fact.name))
    }

    pub fn create_profile(
        &mut self,
        name: &str,
        path: Option<&str>,
        tags: Tags,
        now: Timestamp,
    ) -> Result<&identity::Profile, Refusal> {
        let id = self.ids.iam("AIPA");
        self.identity.create(name, path, tags, id, now)
    }

    pub fn add_role(&mut self, name: &str, now: Timestamp) {
        let id = self.ids.iam("AROA");
        self.identity.add_role(name, id, now);
    }

    /// An identifier for something that a script makes.
    pub fn new_id(&mut self, kind: &str) -> String {
        self.ids.ec2(kind)
    }

    /// Lets everything happen that is due.
    pub fn advance(&mut self, now: Timestamp) {
        self.reclaim_and_report(now);
        self.queue.forget_old(now);
        self.shifts.retain(|shift| shift.expires > now);
    }

    /// The tags of any resource that can have some, for changing.
    pub fn tags_mut(&mut self, id: &str, now: Timestamp) -> Result<&mut Tags, Refusal> {
        let missing = |code: &str, kind: &str| Refusal::new(code, format!("The {kind} ID '{id}' does not exist"));
        let kind = id.split_once('-').map_or("", |(kind, _)| kind);
        match kind {
            "i" => self
                .instances
                .get_mut(id)
                .filter(|instance| instance.is_known(now))
                .map(|instance| &mut instance.tags)
                .ok_or_else(|| missing("InvalidInstanceID.NotFound", "instance")),
            "lt" => self
                .templates
                .get_mut(id)
                .map(|template| &mut template.tags)
                .ok_or_else(|| missing("InvalidLaunchTemplateId.NotFound", "launch template")),
            "subnet" => self
                .network
                .subnets
                .iter_mut()
                .find(|subnet| subnet.id == id)
                .map(|subnet| &mut subnet.tags)
                .ok_or_else(|| missing("InvalidSubnetID.NotFound", "subnet")),
            "sg" => self
                .network
                .groups
                .iter_mut()
                .find(|group| group.id == id)
                .map(|group| &mut group.tags)
                .ok_or_else(|| missing("InvalidGroup.NotFound", "security group")),
            "ami" => self
                .images
                .by_id
                .get_mut(id)
                .map(|image| &mut image.tags)
                .ok_or_else(|| missing("InvalidAMIID.NotFound", "image")),
            "cr" => self
                .reservations
                .get_mut(id)
                .map(|reservation| &mut reservation.tags)
                .ok_or_else(|| missing("InvalidCapacityReservationId.NotFound", "capacity reservation")),
            "pg" => self
                .placement_groups
                .get_mut(id)
                .map(|group| &mut group.tags)
                .ok_or_else(|| missing("InvalidPlacementGroup.Unknown", "placement group")),
            _ => Err(Refusal::new("InvalidID", format!("The ID '{id}' is not valid"))),
        }
    }
}
