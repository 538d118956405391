//! What the solve itself has given away.
//!
//! A planned node may still become one of several instance types, and for each of them it may have been promised other
//! devices. Only one of the types will exist, so a published device may be promised to several types of one host, but
//! to one host only; and what a host draws from counters and shared devices is what its greediest type draws.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use imbl::OrdMap;
use model::{
    InstanceTypeName, NodeKey, PodKey, Quantity, Requirements,
    dra::{Amounts, DeviceId, Reach},
};

use super::inventory::CounterKey;

/// Where a pod is tried.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Host {
    /// A machine of the snapshot.
    Node(NodeKey),
    /// A node that this solve plans, by its number.
    Claim(usize),
}

/// A device that a claim is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The claim's request, or `request/alternative`.
    pub request: String,
    pub device: DeviceId,
    /// The device comes with the instance type and is not published yet.
    pub template: bool,
    /// What it takes of a device that others may have, too.
    pub consumed: Option<Amounts>,
    /// What reaching the device demands of the node.
    pub(super) demands: Option<Requirements>,
    /// Only this host reaches it.
    pub(super) local: bool,
}

impl Grant {
    pub(super) fn new(request: &str, device: DeviceId, reach: Option<&Reach>, consumed: Option<Amounts>) -> Self {
        Self {
            request: request.to_owned(),
            device,
            template: reach.is_none(),
            consumed,
            demands: None,
            local: matches!(reach, None | Some(Reach::Node(_))),
        }
    }
}

/// Devices, portions and counters that are in use.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Draw {
    /// Had whole.
    pub devices: BTreeSet<DeviceId>,
    pub portions: BTreeMap<(DeviceId, Arc<str>), Quantity>,
    pub counters: BTreeMap<CounterKey, Quantity>,
}

impl Draw {
    pub fn portion(&self, device: &DeviceId, dimension: &Arc<str>) -> Quantity {
        let key = (device.clone(), dimension.clone());
        self.portions.get(&key).copied().unwrap_or_default()
    }

    pub fn counter(&self, key: &CounterKey) -> Quantity {
        self.counters.get(key).copied().unwrap_or_default()
    }

    pub fn add(&mut self, other: &Draw) {
        self.devices.extend(other.devices.iter().cloned());
        combine(&mut self.portions, &other.portions, Quantity::saturating_add);
        combine(&mut self.counters, &other.counters, Quantity::saturating_add);
    }

    fn subtract(&mut self, other: &Draw) {
        combine(&mut self.portions, &other.portions, Quantity::saturating_sub);
        combine(&mut self.counters, &other.counters, Quantity::saturating_sub);
    }

    fn raise(&mut self, other: &Draw) {
        combine(&mut self.portions, &other.portions, Ord::max);
        combine(&mut self.counters, &other.counters, Ord::max);
    }
}

fn combine<K: Ord + Clone>(
    into: &mut BTreeMap<K, Quantity>,
    from: &BTreeMap<K, Quantity>,
    with: fn(Quantity, Quantity) -> Quantity,
) {
    for (key, amount) in from {
        let present = into.entry(key.clone()).or_default();
        *present = with(*present, *amount);
    }
}

/// What one type of a host uses: of published devices, and of those that come with the type.
#[derive(Clone, Debug, Default)]
pub(super) struct Use {
    pub published: Draw,
    pub templates: Draw,
}

#[derive(Clone, Debug, Default)]
struct HostUse {
    kinds: BTreeMap<InstanceTypeName, Use>,
    /// Per portion and counter of published devices, the most that one of the types uses.
    peak: Draw,
}

/// A claim that was given devices in this solve.
#[derive(Clone, Debug)]
pub(super) struct Given {
    pub host: Host,
    pub kinds: BTreeMap<InstanceTypeName, Vec<Grant>>,
}

impl Given {
    /// Nobody but the host reaches the devices.
    pub fn is_bound(&self) -> bool {
        self.kinds.values().flatten().any(|grant| grant.local)
    }

    /// What reaching the devices demands, whichever type the host becomes.
    pub fn demands(&self) -> Requirements {
        let mut all = Requirements::new();
        for demands in self.kinds.values().flatten().filter_map(|grant| grant.demands.as_ref()) {
            all.merge(demands);
        }
        all
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    hosts: OrdMap<Host, Arc<HostUse>>,
    /// Published devices that are promised whole.
    holders: OrdMap<DeviceId, Host>,
    /// The sum of the hosts' peaks.
    peaks: Draw,
    pub claims: OrdMap<PodKey, Arc<Given>>,
}

impl Ledger {
    pub fn of(&self, host: &Host, kind: &InstanceTypeName) -> Option<&Use> {
        self.hosts.get(host)?.kinds.get(kind)
    }

    pub fn held_by_another(&self, device: &DeviceId, host: &Host) -> bool {
        self.holders.get(device).is_some_and(|holder| holder != host)
    }

    /// What other hosts use of a portion.
    pub fn portion_of_others(&self, host: &Host, device: &DeviceId, dimension: &Arc<str>) -> Quantity {
        let own = self.hosts.get(host).map(|used| used.peak.portion(device, dimension));
        self.peaks
            .portion(device, dimension)
            .saturating_sub(own.unwrap_or_default())
    }

    /// What other hosts use of a counter.
    pub fn counter_of_others(&self, host: &Host, key: &CounterKey) -> Quantity {
        let own = self.hosts.get(host).map(|used| used.peak.counter(key));
        self.peaks.counter(key).saturating_sub(own.unwrap_or_default())
    }

    /// Adds what a type of the host uses from now on.
    pub fn add(&mut self, host: &Host, kind: &InstanceTypeName, used: &Use) {
        for device in &used.published.devices {
            self.holders.insert(device.clone(), host.clone());
        }
        self.change(host, |kinds| {
            let present = kinds.entry(kind.clone()).or_default();
            present.published.add(&used.published);
            present.templates.add(&used.templates);
        });
    }

    /// The host will not become any type but these: what was promised to others is free again.
    pub fn keep(&mut self, host: &Host, kinds: &BTreeSet<&InstanceTypeName>) {
        let stays = |kind: &InstanceTypeName| kinds.contains(kind);
        if self.hosts.get(host).is_some_and(|used| !used.kinds.keys().all(stays)) {
            self.change(host, |kinds| kinds.retain(|kind, _| stays(kind)));
            let held = self.hosts.get(host).cloned().unwrap_or_default();
            let still = |device: &DeviceId| held.kinds.values().any(|used| used.published.devices.contains(device));
            let freed: Vec<DeviceId> = self
                .holders
                .iter()
                .filter(|(device, holder)| *holder == host && !still(device))
                .map(|(device, _)| device.clone())
                .collect();
            for device in freed {
                self.holders.remove(&device);
            }
        }
        let relaxed: Vec<(PodKey, Arc<Given>)> = self
            .claims
            .iter()
            .filter(|(_, given)| given.host == *host && !given.kinds.keys().all(stays))
            .map(|(key, given)| (key.clone(), given.clone()))
            .collect();
        for (key, mut given) in relaxed {
            Arc::make_mut(&mut given).kinds.retain(|kind, _| stays(kind));
            self.claims.insert(key, given);
        }
    }

    fn change(&mut self, host: &Host, with: impl FnOnce(&mut BTreeMap<InstanceTypeName, Use>)) {
        let mut used = self.hosts.get(host).cloned().unwrap_or_default();
        let changed = Arc::make_mut(&mut used);
        self.peaks.subtract(&changed.peak);
        with(&mut changed.kinds);
        changed.peak = Draw::default();
        for kind in changed.kinds.values() {
            changed.peak.raise(&kind.published);
        }
        self.peaks.add(&changed.peak);
        self.hosts.insert(host.clone(), used);
    }
}
