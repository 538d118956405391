//! The search for devices: depth first over claims, requests and the places of each request, for one instance type.
//!
//! Published devices come before those that come with the type, so that types differ in as little as possible. The places
//! of one request are alike, so they are filled in the order of the devices, and a device is not tried where one that
//! equals it in all but its name has failed.

use std::{collections::BTreeMap, sync::Arc};

use model::{
    InstanceType, InstanceTypeName, NodeName, Quantity, Requirements,
    dra::{Amounts, AttributeBinding, Device, DeviceId, NodeTerms, Reach, ResourceSliceTemplate},
    requirements::AllowUndefined,
};

use super::{
    capacity,
    constraint::Match,
    inventory::{self, CounterKey, Inventory, Visible, draws},
    ledger::{Draw, Grant, Host, Ledger, Use},
    request::{MOST_PER_CLAIM, Wanted, Wish},
    selectors::Selectors,
};

/// How many devices are tried for one instance type before it is given up. Upstream stops after five seconds; a count
/// gives the same answer on every machine.
pub(super) const MOST_STEPS: u32 = 50_000;

/// The most devices that are looked for at once. Every one of them is a level of the search, and a level of the stack.
pub(super) const MOST_PER_POD: usize = 256;

/// A host and what can be known of it before a type is looked at.
pub(super) struct Terrain<'t> {
    pub inventory: &'t Inventory,
    pub ledger: &'t Ledger,
    pub selectors: &'t Selectors,
    pub host: Host,
    pub name: Option<&'t NodeName>,
    pub allow: AllowUndefined<'t>,
    pub wanted: &'t [Arc<Wanted>],
    pub visible: &'t Visible<'t>,
}

/// A device that might be taken. `reach` is absent for one that comes with the instance type.
#[derive(Clone, Copy)]
struct Candidate<'t> {
    id: &'t DeviceId,
    device: &'t Arc<Device>,
    reach: Option<&'t Reach>,
}

/// The devices that match, by claim, request and option.
pub(super) struct Matching<'t>(Vec<Vec<Vec<Vec<Candidate<'t>>>>>);

impl<'t> Matching<'t> {
    fn at(&self, at: At) -> &[Candidate<'t>] {
        &self.0[at.claim][at.request][at.option]
    }
}

/// Devices for all claims, in the claims' order.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub grants: Vec<Vec<Grant>>,
    pub used: Use,
    /// What reaching the devices demands of the node.
    pub demands: Requirements,
}

/// Why there are none.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Miss {
    /// The claim and the request at which even the best attempt failed.
    Nothing {
        claim: usize,
        request: usize,
    },
    TooLong,
}

impl<'t> Terrain<'t> {
    /// The first term that can hold for the host, with what it demands of labels.
    pub fn pick<'n>(&self, terms: &'n NodeTerms, requirements: &Requirements) -> Option<&'n Requirements> {
        let holds = |names: Option<&std::collections::BTreeSet<NodeName>>| {
            names.is_none_or(|names| self.name.is_some_and(|name| names.contains(name)))
        };
        let mut terms = terms.0.iter();
        let term =
            terms.find(|term| holds(term.names.as_ref()) && requirements.is_compatible(&term.labels, self.allow))?;
        Some(&term.labels)
    }

    pub fn published(&self) -> Matching<'t> {
        let candidate = |published: &&'t inventory::Published| Candidate {
            id: &published.id,
            device: &published.device,
            reach: Some(&*published.reach),
        };
        self.matching(&self.visible.devices.iter().map(candidate).collect::<Vec<_>>())
    }

    fn matching<'d>(&self, devices: &[Candidate<'d>]) -> Matching<'d> {
        let of_wish = |wish: &Wish| {
            let matches = |candidate: &&Candidate<'_>| {
                let driver = &candidate.id.driver;
                self.selectors.hold(&wish.conditions, driver, candidate.device)
            };
            devices.iter().filter(matches).copied().collect()
        };
        let of_claim = |claim: &Arc<Wanted>| {
            let requests = claim.requests.iter();
            requests
                .map(|request| request.options.iter().map(of_wish).collect())
                .collect()
        };
        Matching(self.wanted.iter().map(of_claim).collect())
    }

    /// Devices for one instance type of the host, which may bring devices of its own.
    pub fn search(
        &self,
        published: &Matching<'t>,
        kind: &InstanceTypeName,
        own: Option<&InstanceType>,
        bindings: &[AttributeBinding],
        requirements: &Requirements,
    ) -> Result<Found, Miss> {
        let resources = own.and_then(|own| own.dynamic_resources.as_deref());
        let templates = resources.map_or(&[][..], |resources| &resources.templates);
        let of_type = template_devices(templates);
        let of_type: Vec<Candidate<'_>> = of_type
            .iter()
            .map(|(id, device)| Candidate {
                id,
                device,
                reach: None,
            })
            .collect();
        let mut search = Search {
            terrain: self,
            published,
            templates: self.matching(&of_type),
            counters: template_counters(templates),
            bindings,
            own: self.ledger.of(&self.host, kind),
            requirements: requirements.clone(),
            demands: Requirements::new(),
            trial: Use::default(),
            grants: vec![Vec::new(); self.wanted.len()],
            matches: self.wanted.iter().map(|claim| claim.constraints.clone()).collect(),
            steps: MOST_STEPS,
            furthest: (0, 0),
        };
        if search.request(0, 0) {
            return Ok(Found {
                grants: search.grants,
                used: search.trial,
                demands: search.demands,
            });
        }
        if search.steps == 0 {
            return Err(Miss::TooLong);
        }
        let (claim, request) = search.furthest;
        Err(Miss::Nothing { claim, request })
    }
}

/// The devices of an instance type, as they will be called.
fn template_devices(templates: &[ResourceSliceTemplate]) -> Vec<(DeviceId, &Arc<Device>)> {
    let devices = templates.iter().flat_map(|template| {
        template.devices.iter().map(|device| {
            let id = DeviceId {
                driver: template.driver.clone(),
                pool: template.pool.clone(),
                device: device.name.clone(),
            };
            (id, device)
        })
    });
    devices.collect()
}

fn template_counters(templates: &[ResourceSliceTemplate]) -> BTreeMap<CounterKey, Quantity> {
    let mut counters = BTreeMap::new();
    for template in templates {
        for set in &template.shared_counters {
            for (name, amount) in &set.counters {
                let key = (
                    template.driver.clone(),
                    template.pool.clone(),
                    set.name.clone(),
                    name.clone(),
                );
                counters.insert(key, *amount);
            }
        }
    }
    counters
}

struct Search<'s, 't> {
    terrain: &'s Terrain<'t>,
    published: &'s Matching<'t>,
    /// Of the devices that come with the type.
    templates: Matching<'s>,
    /// What the type's counters have before anything is taken.
    counters: BTreeMap<CounterKey, Quantity>,
    bindings: &'s [AttributeBinding],
    /// What earlier pods have been given on this host, should it become this type.
    own: Option<&'s Use>,
    requirements: Requirements,
    demands: Requirements,
    trial: Use,
    grants: Vec<Vec<Grant>>,
    matches: Vec<Vec<Match>>,
    steps: u32,
    furthest: (usize, usize),
}

/// What has to be put back when a device is given back.
struct Before {
    requirements: Option<(Requirements, Requirements)>,
}

/// Which request is being filled.
#[derive(Clone, Copy)]
struct At {
    claim: usize,
    request: usize,
    option: usize,
}

impl<'s> Search<'s, '_> {
    fn request(&mut self, claim: usize, request: usize) -> bool {
        let Some(wanted) = self.terrain.wanted.get(claim) else {
            return true;
        };
        let Some(asked) = wanted.requests.get(request) else {
            return self.request(claim + 1, 0);
        };
        self.furthest = self.furthest.max((claim, request));
        for option in 0..asked.options.len() {
            let at = At { claim, request, option };
            let found = match asked.options[option].count {
                Some(count) => self.enough(at, count) && self.place(at, count, 0),
                // Only who sees every device can have all of them.
                None => self.terrain.visible.unusable.is_none() && self.candidates(at) > 0 && self.every(at, 0),
            };
            if found || self.steps == 0 {
                return found;
            }
        }
        false
    }

    fn wish(&self, at: At) -> &'s Wish {
        &self.terrain.wanted[at.claim].requests[at.request].options[at.option]
    }

    fn candidates(&self, at: At) -> usize {
        self.published.at(at).len() + self.templates.at(at).len()
    }

    fn candidate(&self, at: At, place: usize) -> Candidate<'s> {
        let published = self.published.at(at);
        match published.get(place) {
            Some(candidate) => *candidate,
            None => self.templates.at(at)[place - published.len()],
        }
    }

    /// Whether there are as many devices as are asked for, taken or not.
    fn enough(&self, at: At, count: usize) -> bool {
        let candidates = self.candidates(at);
        candidates >= count || (0..candidates).any(|place| self.candidate(at, place).device.shareable)
    }

    /// Fills the places that are left with devices from this one on.
    fn place(&mut self, at: At, left: usize, from: usize) -> bool {
        if left == 0 {
            return self.request(at.claim, at.request + 1);
        }
        let mut failed: Vec<Candidate<'s>> = Vec::new();
        for place in from..self.candidates(at) {
            let candidate = self.candidate(at, place);
            if failed.iter().any(|failed| self.alike(failed, &candidate)) {
                continue;
            }
            let Some(before) = self.take(at, candidate) else {
                if self.steps == 0 {
                    return false;
                }
                continue;
            };
            let next = if candidate.device.shareable { place } else { place + 1 };
            if self.place(at, left - 1, next) {
                return true;
            }
            self.give_back(at, candidate, before);
            if self.steps == 0 {
                return false;
            }
            failed.push(candidate);
        }
        false
    }

    /// Takes each candidate from this one on.
    fn every(&mut self, at: At, place: usize) -> bool {
        if place == self.candidates(at) {
            return self.request(at.claim, at.request + 1);
        }
        let candidate = self.candidate(at, place);
        let Some(before) = self.take(at, candidate) else {
            return false;
        };
        if self.every(at, place + 1) {
            return true;
        }
        self.give_back(at, candidate, before);
        false
    }

    /// Whether what failed with one fails with the other.
    fn alike(&self, a: &Candidate<'_>, b: &Candidate<'_>) -> bool {
        let (x, y) = (a.device, b.device);
        // Bindings tell devices apart by their names.
        self.bindings.is_empty()
            && !x.shareable
            && !y.shareable
            && a.reach == b.reach
            && a.id.driver == b.id.driver
            && a.id.pool == b.id.pool
            && x.attributes == y.attributes
            && x.capacity == y.capacity
            && x.consumes == y.consumes
    }

    fn take(&mut self, at: At, candidate: Candidate<'s>) -> Option<Before> {
        self.steps = self.steps.checked_sub(1)?;
        let (of_claim, of_pod) = (
            self.grants[at.claim].len(),
            self.grants.iter().map(Vec::len).sum::<usize>(),
        );
        if of_claim >= MOST_PER_CLAIM || of_pod >= MOST_PER_POD || !self.counters_allow(&candidate) {
            return None;
        }
        let wish = self.wish(at);
        let consumed = if candidate.device.shareable {
            Some(self.portion(wish, &candidate)?)
        } else if self.is_free(&candidate) && capacity::suffices(&wish.capacity, candidate.device) {
            None
        } else {
            return None;
        };
        let demands = match candidate.reach {
            Some(Reach::Nodes(terms)) => Some(self.terrain.pick(terms, &self.requirements)?),
            _ => None,
        };
        if !self.constraints_take(at, &candidate) {
            return None;
        }

        let mut grant = Grant::new(&wish.name, candidate.id.clone(), candidate.reach, consumed);
        grant.demands = demands.cloned();
        let before = Before {
            requirements: demands.map(|demands| {
                let before = (self.requirements.clone(), self.demands.clone());
                self.requirements.merge(demands);
                self.demands.merge(demands);
                before
            }),
        };
        let trial = self.trial_mut(&candidate);
        match &grant.consumed {
            Some(consumed) => {
                for (name, amount) in consumed {
                    let sum = trial.portions.entry((candidate.id.clone(), name.clone())).or_default();
                    *sum = sum.saturating_add(*amount);
                }
            }
            None => {
                trial.devices.insert(candidate.id.clone());
            }
        }
        for (key, amount) in draws(candidate.id, candidate.device) {
            let sum = trial.counters.entry(key).or_default();
            *sum = sum.saturating_add(amount);
        }
        self.grants[at.claim].push(grant);
        Some(before)
    }

    fn give_back(&mut self, at: At, candidate: Candidate<'_>, before: Before) {
        let grant = self.grants[at.claim].pop();
        let trial = self.trial_mut(&candidate);
        trial.devices.remove(candidate.id);
        for (name, amount) in grant.and_then(|grant| grant.consumed).into_iter().flatten() {
            let sum = trial.portions.entry((candidate.id.clone(), name)).or_default();
            *sum = sum.saturating_sub(amount);
        }
        for (key, amount) in draws(candidate.id, candidate.device) {
            let sum = trial.counters.entry(key).or_default();
            *sum = sum.saturating_sub(amount);
        }
        if let Some((requirements, demands)) = before.requirements {
            self.requirements = requirements;
            self.demands = demands;
        }
        let name = &self.wish(at).name;
        for constraint in self.matches[at.claim]
            .iter_mut()
            .filter(|constraint| constraint.covers(name))
        {
            constraint.give_back();
        }
    }

    fn trial_mut(&mut self, candidate: &Candidate<'_>) -> &mut Draw {
        match candidate.reach {
            Some(_) => &mut self.trial.published,
            None => &mut self.trial.templates,
        }
    }

    /// What this host, as this type, uses already of the candidate's kind of devices: given to earlier pods, and taken in
    /// this search.
    fn in_use(&self, candidate: &Candidate<'_>) -> impl Iterator<Item = &Draw> {
        let published = candidate.reach.is_some();
        [self.own, Some(&self.trial)]
            .into_iter()
            .flatten()
            .map(move |used| if published { &used.published } else { &used.templates })
    }

    /// Whether nobody has the device, which is had whole.
    fn is_free(&self, candidate: &Candidate<'_>) -> bool {
        let (inventory, ledger) = (self.terrain.inventory, self.terrain.ledger);
        let elsewhere = candidate.reach.is_some()
            && (inventory.is_taken(candidate.id)
                || inventory.portions.contains_key(candidate.id)
                || ledger.held_by_another(candidate.id, &self.terrain.host));
        !elsewhere && self.in_use(candidate).all(|draw| !draw.devices.contains(candidate.id))
    }

    /// The portion of a shared device that the wish gets, if that much is left.
    fn portion(&self, wish: &Wish, candidate: &Candidate<'_>) -> Option<Amounts> {
        let portion = capacity::portion(&wish.capacity, candidate.device)?;
        let left = |(name, amount): (&Arc<str>, &Quantity)| {
            let mut used = *amount;
            for draw in self.in_use(candidate) {
                used = used.saturating_add(draw.portion(candidate.id, name));
            }
            if candidate.reach.is_some() {
                let (inventory, ledger) = (self.terrain.inventory, self.terrain.ledger);
                let cluster = inventory
                    .portions
                    .get(candidate.id)
                    .and_then(|portions| portions.get(name));
                let others = ledger.portion_of_others(&self.terrain.host, candidate.id, name);
                used = used
                    .saturating_add(others)
                    .saturating_add(cluster.copied().unwrap_or_default());
            }
            candidate
                .device
                .capacity
                .get(name)
                .is_some_and(|capacity| used <= capacity.value)
        };
        portion.iter().all(left).then_some(portion)
    }

    fn counters_allow(&self, candidate: &Candidate<'_>) -> bool {
        draws(candidate.id, candidate.device).all(|(key, amount)| {
            let mut used = amount;
            for draw in self.in_use(candidate) {
                used = used.saturating_add(draw.counter(&key));
            }
            let total = if candidate.reach.is_some() {
                used = used.saturating_add(self.terrain.ledger.counter_of_others(&self.terrain.host, &key));
                self.terrain.inventory.counters.get(&key)
            } else {
                self.counters.get(&key)
            };
            total.is_some_and(|total| used <= *total)
        })
    }

    /// All constraints take the device, or none.
    fn constraints_take(&mut self, at: At, candidate: &Candidate<'_>) -> bool {
        let name = &self.wish(at).name;
        let constraints = &mut self.matches[at.claim];
        for place in 0..constraints.len() {
            if !constraints[place].covers(name)
                || constraints[place].take(candidate.id, candidate.device, self.bindings)
            {
                continue;
            }
            for earlier in constraints[..place]
                .iter_mut()
                .filter(|constraint| constraint.covers(name))
            {
                earlier.give_back();
            }
            return false;
        }
        true
    }
}
