//! Instances and their states: a function of the moments at which things happened to them.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::{
    Region, Tags,
    filter::{Filter, Filtered, admit},
    market::{Capacity, Pool},
};
use crate::{facts::InstanceType, refusal::Refusal};

/// Terminated instances can be described for about an hour.
const REMEMBERED: SignedDuration = SignedDuration::from_hours(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    Pending,
    Running,
    ShuttingDown,
    Terminated,
}

impl State {
    pub fn name(self) -> &'static str {
        match self {
            State::Pending => "pending",
            State::Running => "running",
            State::ShuttingDown => "shutting-down",
            State::Terminated => "terminated",
        }
    }

    pub fn code(self) -> u32 {
        match self {
            State::Pending => 0,
            State::Running => 16,
            State::ShuttingDown => 32,
            State::Terminated => 48,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachedInterface {
    pub id: String,
    pub device: u32,
    pub card: u32,
    pub kind: String,
    /// Ids of security groups.
    pub groups: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachedVolume {
    pub id: String,
    pub device: String,
    pub gibibytes: u32,
}

/// How an instance came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    pub shutting_down_at: Timestamp,
    pub terminated_at: Timestamp,
    pub code: &'static str,
    pub message: String,
}

/// What DescribeInstanceStatus tells of an instance that is not well.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    pub instance_impaired_since: Option<Timestamp>,
    pub system_impaired_since: Option<Timestamp>,
    pub events: Vec<ScheduledEvent>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduledEvent {
    pub id: String,
    pub code: String,
    pub description: String,
    pub not_before: Timestamp,
}

/// How far a booted instance has come with the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Joined {
    /// Nobody lets instances join, or it is too early.
    #[default]
    NotYet,
    As(String),
    /// It has ended and its node was removed.
    Left,
    /// Why it never will.
    Never(String),
}

#[derive(Clone, Debug)]
pub struct Instance {
    pub id: String,
    pub reservation_id: String,
    pub fact: Arc<InstanceType>,
    pub image: String,
    pub architecture: String,
    pub windows: bool,
    pub vpc: String,
    pub subnet: String,
    pub zone: String,
    pub zone_id: String,
    pub address: String,
    pub capacity: Capacity,
    pub spot_request: Option<String>,
    pub tags: Tags,
    /// Its ARN and its id.
    pub profile: Option<(String, String)>,
    /// Ids and names.
    pub groups: Vec<(String, String)>,
    pub interfaces: Vec<AttachedInterface>,
    pub volumes: Vec<AttachedVolume>,
    pub monitoring: bool,
    pub metadata: Vec<(String, String)>,
    /// As it came, in base64.
    pub user_data: Option<String>,
    pub tenancy: String,
    /// Its id and its name.
    pub placement_group: Option<(String, String)>,
    pub partition: Option<u32>,
    pub reservation: Option<String>,
    pub reservation_preference: Option<String>,
    pub client_token: Option<String>,
    pub launched: Timestamp,
    pub running_at: Timestamp,
    pub visible_at: Timestamp,
    /// When a spot instance that has been warned is taken away.
    pub reclaimed_at: Option<Timestamp>,
    pub end: Option<End>,
    pub health: Health,
    pub joined: Joined,
    /// The last state that was told to the queue.
    pub(super) told: Option<State>,
}

impl Instance {
    pub fn state(&self, now: Timestamp) -> State {
        match &self.end {
            Some(end) if end.terminated_at <= now => State::Terminated,
            Some(end) if end.shutting_down_at <= now => State::ShuttingDown,
            _ if self.running_at <= now => State::Running,
            _ => State::Pending,
        }
    }

    /// Whether calls other than the launch know of it: not at once, and not for ever.
    pub fn is_known(&self, now: Timestamp) -> bool {
        let forgotten = |end: &End| end.terminated_at + REMEMBERED <= now;
        self.visible_at <= now && !self.end.as_ref().is_some_and(forgotten)
    }

    pub fn private_dns(&self, region: &str) -> String {
        format!("ip-{}.{region}.compute.internal", self.address.replace('.', "-"))
    }

    pub fn provider_id(&self) -> String {
        format!("aws:///{}/{}", self.zone, self.id)
    }

    pub(super) fn pool(&self) -> Pool<'_> {
        Pool {
            instance_type: &self.fact.name,
            zone: &self.zone,
            capacity: self.capacity,
        }
    }
}

impl Region {
    /// The instances that a call asks for, by id or all of them, as far as they are known and the filters admit them.
    pub fn instances(&self, ids: &[String], filters: &[Filter], now: Timestamp) -> Result<Vec<&Instance>, Refusal> {
        let asked: Vec<&Instance> = if ids.is_empty() {
            self.instances
                .values()
                .filter(|instance| instance.is_known(now))
                .collect()
        } else {
            self.known(ids, now)?
        };
        let mut found = Vec::new();
        for instance in asked {
            if admit(
                &Seen {
                    instance,
                    now,
                    region: &self.plan.region,
                },
                filters,
            )? {
                found.push(instance);
            }
        }
        found.sort_by(|one, other| (one.launched, &one.id).cmp(&(other.launched, &other.id)));
        Ok(found)
    }

    /// All of these instances.
    ///
    /// # Errors
    ///
    /// Names those that are not known, as EC2 does: one is enough to refuse the whole call.
    pub fn known(&self, ids: &[String], now: Timestamp) -> Result<Vec<&Instance>, Refusal> {
        if let Some(bad) = ids.iter().find(|id| !id.starts_with("i-")) {
            let message = format!("Invalid id: \"{bad}\" (expecting \"i-...\")");
            return Err(Refusal::new("InvalidInstanceID.Malformed", message));
        }
        let find = |id: &String| self.instances.get(id).filter(|instance| instance.is_known(now));
        let missing: Vec<&str> = ids.iter().filter(|id| find(id).is_none()).map(String::as_str).collect();
        if !missing.is_empty() {
            let (noun, verb) = if missing.len() == 1 {
                ("ID", "does")
            } else {
                ("IDs", "do")
            };
            let message = format!("The instance {noun} '{}' {verb} not exist", missing.join(", "));
            return Err(Refusal::new("InvalidInstanceID.NotFound", message));
        }
        Ok(ids.iter().filter_map(find).collect())
    }

    /// Ends an instance; one that has ended stays as it is.
    pub fn terminate(&mut self, id: &str, code: &'static str, message: &str, now: Timestamp) {
        let shutdown = self.timing.shutdown;
        if let Some(instance) = self.instances.get_mut(id)
            && instance.end.is_none()
        {
            instance.end = Some(End {
                shutting_down_at: now,
                terminated_at: now + shutdown,
                code,
                message: message.to_owned(),
            });
        }
    }

    /// Gives back what a terminated instance held.
    pub(super) fn release(&mut self, id: &str) {
        let Some(instance) = self.instances.get(id) else { return };
        self.network.give_back(&instance.subnet, &instance.address);
        match instance
            .reservation
            .as_ref()
            .and_then(|id| self.reservations.get_mut(id))
        {
            Some(reservation) => reservation.available = (reservation.available + 1).min(reservation.total),
            None => self.market.give_back(instance.pool()),
        }
    }
}

/// An instance as the filters of one moment see it.
struct Seen<'a> {
    instance: &'a Instance,
    now: Timestamp,
    region: &'a str,
}

impl Filtered for Seen<'_> {
    fn tags(&self) -> &Tags {
        &self.instance.tags
    }

    fn field(&self, name: &str) -> Option<Vec<String>> {
        let instance = self.instance;
        let state = instance.state(self.now);
        let value = match name {
            "instance-state-name" => state.name().to_owned(),
            "instance-state-code" => state.code().to_string(),
            "instance-id" => instance.id.clone(),
            "instance-type" => instance.fact.name.clone(),
            "image-id" => instance.image.clone(),
            "subnet-id" => instance.subnet.clone(),
            "vpc-id" => instance.vpc.clone(),
            "availability-zone" => instance.zone.clone(),
            "availability-zone-id" => instance.zone_id.clone(),
            "architecture" => instance.architecture.clone(),
            "private-dns-name" => instance.private_dns(self.region),
            "private-ip-address" => instance.address.clone(),
            "tenancy" => instance.tenancy.clone(),
            "instance-lifecycle" => {
                let lifecycle =
                    (instance.capacity != Capacity::OnDemand).then(|| instance.capacity.lifecycle().to_owned());
                return Some(lifecycle.into_iter().collect());
            }
            "instance.group-id" => return Some(instance.groups.iter().map(|(id, _)| id.clone()).collect()),
            "instance.group-name" => return Some(instance.groups.iter().map(|(_, name)| name.clone()).collect()),
            "capacity-reservation-id" => return Some(instance.reservation.iter().cloned().collect()),
            "client-token" => return Some(instance.client_token.iter().cloned().collect()),
            _ => return None,
        };
        Some(vec![value])
    }
}
