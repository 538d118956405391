//! The devices that drivers have published, and which of them are taken.
//!
//! Built once per solve and not changed by it: what the solve itself gives away is in [`super::ledger`].

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use model::{
    NodeName, PodUid, Quantity, Snapshot,
    dra::{Amounts, Consumer, CounterUse, Device, DeviceId, Reach, ResourceClaim, ResourceSlice},
};

use super::refusal::PoolProblem;

/// A counter: driver, pool, set, name.
pub(super) type CounterKey = (Arc<str>, Arc<str>, Arc<str>, Arc<str>);

/// The counters that a device draws on, with what it draws.
pub(super) fn draws<'d>(id: &'d DeviceId, device: &'d Device) -> impl Iterator<Item = (CounterKey, Quantity)> + 'd {
    let key = move |set: &Arc<str>, name: &Arc<str>| (id.driver.clone(), id.pool.clone(), set.clone(), name.clone());
    let draw = move |uses: &'d CounterUse| {
        uses.counters
            .iter()
            .map(move |(name, amount)| (key(&uses.set, name), *amount))
    };
    device.consumes.iter().flat_map(draw)
}

/// The slices of one driver and pool, newest generation.
#[derive(Debug)]
struct Pool {
    name: String,
    complete: bool,
    valid: bool,
    /// Some device has a name that another one has.
    repeats: bool,
}

/// A published device.
#[derive(Debug)]
pub(super) struct Published {
    pool: usize,
    pub id: DeviceId,
    pub device: Arc<Device>,
    pub reach: Arc<Reach>,
}

#[derive(Debug, Default)]
pub(super) struct Inventory {
    pools: Vec<Pool>,
    /// In the order of driver, pool, slice, and place in the slice.
    devices: Vec<Published>,
    /// Places in `devices` of what only one node reaches.
    local: BTreeMap<NodeName, Vec<usize>>,
    /// Places in `devices` of everything else.
    wide: Vec<usize>,
    pub counters: BTreeMap<CounterKey, Quantity>,
    /// Held alone by claims that stay.
    taken: BTreeSet<DeviceId>,
    /// Portions of devices held by claims that stay.
    pub portions: BTreeMap<DeviceId, Amounts>,
}

/// What one host sees.
pub(super) struct Visible<'i> {
    /// Of complete and valid pools.
    pub devices: Vec<&'i Published>,
    /// A pool that the host sees, and that cannot be used.
    pub unusable: Option<(&'i str, PoolProblem)>,
}

impl Inventory {
    /// Pods that move give their devices back.
    pub fn new(snapshot: &Snapshot, moving: &BTreeSet<PodUid>) -> Self {
        let mut inventory = Self::default();
        for claim in snapshot.resource_claims.values() {
            inventory.note_allocation(claim, moving);
        }
        let mut pools: BTreeMap<(&str, &str), Vec<&ResourceSlice>> = BTreeMap::new();
        for slice in snapshot
            .resource_slices
            .values()
            .filter(|slice| counts(snapshot, slice))
        {
            pools.entry((&slice.driver, &slice.pool)).or_default().push(slice);
        }
        for ((driver, name), slices) in pools {
            inventory.add_pool(format!("{driver}/{name}"), &slices);
        }
        inventory
    }

    fn note_allocation(&mut self, claim: &ResourceClaim, moving: &BTreeSet<PodUid>) {
        if gives_back(claim, moving) {
            return;
        }
        for device in claim.allocation.iter().flat_map(|allocation| &allocation.devices) {
            let Some(consumed) = &device.consumed else {
                self.taken.insert(device.id.clone());
                continue;
            };
            let portions = self.portions.entry(device.id.clone()).or_default();
            for (name, amount) in consumed {
                let sum = portions.entry(name.clone()).or_default();
                *sum = sum.saturating_add(*amount);
            }
        }
    }

    fn add_pool(&mut self, name: String, slices: &[&ResourceSlice]) {
        let Some(newest) = slices.iter().map(|slice| slice.generation).max() else {
            return;
        };
        let slices: Vec<&ResourceSlice> = slices
            .iter()
            .copied()
            .filter(|slice| slice.generation == newest)
            .collect();
        let expected = slices.first().map_or(0, |slice| slice.slice_count);
        let mut valid = true;
        let mut sets = BTreeSet::new();
        for slice in &slices {
            for set in &slice.shared_counters {
                valid &= sets.insert(&set.name);
                for (counter, amount) in &set.counters {
                    let key = (
                        slice.driver.clone(),
                        slice.pool.clone(),
                        set.name.clone(),
                        counter.clone(),
                    );
                    self.counters.insert(key, *amount);
                }
            }
        }
        // A slice with counters has no devices of its own.
        let with_devices = slices.iter().filter(|slice| slice.shared_counters.is_empty());
        let pool = self.pools.len();
        let first = self.devices.len();
        for slice in with_devices {
            for published in &slice.devices {
                let id = DeviceId {
                    driver: slice.driver.clone(),
                    pool: slice.pool.clone(),
                    device: published.device.name.clone(),
                };
                valid &= draws(&id, &published.device).all(|(key, _)| self.counters.contains_key(&key));
                self.devices.push(Published {
                    pool,
                    id,
                    device: published.device.clone(),
                    reach: published.reach.clone(),
                });
            }
        }
        let mut names = BTreeSet::new();
        let mut repeats = false;
        for place in first..self.devices.len() {
            let published = &self.devices[place];
            repeats |= !names.insert(published.id.device.clone());
            match &*published.reach {
                Reach::Node(node) => self.local.entry(node.clone()).or_default().push(place),
                _ => self.wide.push(place),
            }
            if self.taken.contains(&published.id) || self.portions.contains_key(&published.id) {
                for (key, amount) in draws(&published.id, &published.device) {
                    let left = self.counters.entry(key).or_default();
                    *left = left.saturating_sub(amount);
                }
            }
        }
        self.pools.push(Pool {
            name,
            complete: i64::try_from(slices.len()) == Ok(expected),
            valid,
            repeats,
        });
    }

    /// Whether a claim that stays holds the device alone.
    pub fn is_taken(&self, id: &DeviceId) -> bool {
        self.taken.contains(id)
    }

    /// What is seen from a node of this name, or from one that has none yet, if `admits` says which selections of nodes
    /// can hold for it.
    pub fn visible(&self, node: Option<&NodeName>, admits: impl Fn(&Reach) -> bool) -> Visible<'_> {
        let local = node.and_then(|node| self.local.get(node));
        let wide = self.wide.iter().filter(|place| admits(&self.devices[**place].reach));
        let mut places: Vec<usize> = local.into_iter().flatten().chain(wide).copied().collect();
        places.sort_unstable();

        let mut visible = Visible {
            devices: Vec::with_capacity(places.len()),
            unusable: None,
        };
        for run in places.chunk_by(|a, b| self.devices[*a].pool == self.devices[*b].pool) {
            let pool = &self.pools[self.devices[run[0]].pool];
            let problem = if !pool.valid || (pool.repeats && self.repeat(run)) {
                Some(PoolProblem::Invalid)
            } else if !pool.complete {
                Some(PoolProblem::Incomplete)
            } else {
                None
            };
            match problem {
                Some(problem) => visible.unusable = visible.unusable.or(Some((&pool.name, problem))),
                None => visible.devices.extend(run.iter().map(|place| &self.devices[*place])),
            }
        }
        visible
    }

    fn repeat(&self, places: &[usize]) -> bool {
        let mut names = BTreeSet::new();
        !places.iter().all(|place| names.insert(&self.devices[*place].id.device))
    }
}

/// A node's slices count while it stays and is initialized. Before that its instance type's templates stand for them,
/// and counting both would count every device twice.
fn counts(snapshot: &Snapshot, slice: &ResourceSlice) -> bool {
    slice.owner_node.as_ref().is_none_or(|owner| {
        snapshot
            .node_named(owner)
            .is_some_and(|node| node.is_initialized() && !node.is_leaving())
    })
}

/// Whether a claim is used by nobody but pods that move. A claim without users, or with one that is no pod, keeps what
/// it has.
pub(super) fn gives_back(claim: &ResourceClaim, moving: &BTreeSet<PodUid>) -> bool {
    let moves = |consumer: &Consumer| matches!(consumer, Consumer::Pod(uid) if moving.contains(uid));
    !claim.reserved_for.is_empty() && claim.reserved_for.iter().all(moves)
}
