//! Dynamic resource allocation: which devices the claims of a pod get, and what that demands of its node.
//!
//! ```text
//!   claims_of(pod) ──► try_allocate(claims, host) ──► commit(host, allocation)
//!   names resolved,      a search per type of the      devices are promised to the
//!   classes, selectors   host; nothing is changed      host and its remaining types
//! ```
//!
//! A host is a machine of the snapshot or a node that the solve plans. A machine that is initialized has published its
//! devices; before that, and for planned nodes, the templates of the instance type stand for them. A published device may
//! be reachable from several nodes: taking it narrows the labels that the node may have.
//!
//! [`Devices`] is built when the first pod with a claim comes up. Trying leaves no trace, so candidates may be tried in
//! any order; a clone is a fork.

mod capacity;
mod cel;
mod constraint;
mod inventory;
mod ledger;
mod refusal;
mod request;
mod search;
mod selectors;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use model::{
    InstanceType, InstanceTypeName, NodeKey, NodeName, Pod, PodKey, PodUid, Requirements, Snapshot,
    dra::{AttributeBinding, NodeTerms, Reach, ResourceClaim},
    pod::PodClaimSource,
    requirements::AllowUndefined,
    vocabulary,
};

use self::{
    inventory::{Inventory, Visible, gives_back},
    ledger::{Given, Ledger},
    request::Wanted,
    search::{Found, MOST_PER_POD, MOST_STEPS, Miss, Terrain},
    selectors::Selectors,
};
pub use self::{
    ledger::{Grant, Host},
    refusal::{DraRefusal, PoolProblem},
};

/// Where a pod is tried.
#[derive(Clone, Copy, Debug)]
pub enum HostView<'h> {
    /// A machine of the snapshot.
    Node {
        key: &'h NodeKey,
        /// Present once its node has joined.
        name: Option<&'h NodeName>,
        initialized: bool,
        /// Where the catalog of its pool knows it.
        kind: Option<&'h InstanceType>,
        labels: &'h Requirements,
    },
    /// A node that is planned.
    Claim {
        /// Different for every node that the solve plans.
        id: usize,
        /// What it may still become.
        kinds: &'h [&'h InstanceType],
        requirements: &'h Requirements,
    },
}

impl<'h> HostView<'h> {
    fn host(&self) -> Host {
        match self {
            HostView::Node { key, .. } => Host::Node((*key).clone()),
            HostView::Claim { id, .. } => Host::Claim(*id),
        }
    }

    fn name(&self) -> Option<&'h NodeName> {
        match self {
            HostView::Node { name, .. } => *name,
            HostView::Claim { .. } => None,
        }
    }

    fn requirements(&self) -> &'h Requirements {
        match self {
            HostView::Node { labels, .. } => labels,
            HostView::Claim { requirements, .. } => requirements,
        }
    }

    /// What the host may be. A machine is one thing only, even where nobody knows what.
    fn kinds(&self) -> Vec<Kind<'h>> {
        match *self {
            HostView::Node {
                kind,
                labels,
                initialized,
                ..
            } => {
                let named = labels.get(vocabulary::INSTANCE_TYPE).single();
                let name = match kind {
                    Some(kind) => kind.name.clone(),
                    None => named.map_or_else(|| "".into(), |name| name.as_str().into()),
                };
                vec![Kind {
                    name,
                    shape: kind,
                    unpublished: !initialized,
                }]
            }
            HostView::Claim { kinds, .. } => {
                let kinds = kinds.iter();
                kinds
                    .map(|kind| Kind {
                        name: kind.name.clone(),
                        shape: Some(kind),
                        unpublished: true,
                    })
                    .collect()
            }
        }
    }
}

/// One thing that a host may be.
struct Kind<'h> {
    name: InstanceTypeName,
    shape: Option<&'h InstanceType>,
    /// Its devices are the templates'.
    unpublished: bool,
}

impl Kind<'_> {
    fn bindings(&self) -> &[AttributeBinding] {
        let resources = self.shape.and_then(|shape| shape.dynamic_resources.as_deref());
        resources.map_or(&[], |resources| &resources.bindings)
    }
}

/// The claims of one pod, ready to be tried.
#[derive(Clone, Debug)]
pub struct PodClaims(Vec<PodClaim>);

#[derive(Clone, Debug)]
struct PodClaim {
    key: PodKey,
    standing: Standing,
}

#[derive(Clone, Debug)]
enum Standing {
    /// The cluster has given it devices, which are reached from these nodes or from everywhere.
    Allocated(Option<NodeTerms>),
    Wanted(Arc<Wanted>),
}

/// What a host can offer to the claims of a pod.
#[derive(Clone, Debug)]
pub struct Allocation {
    /// What reaching the devices demands of the node, beyond what was asked with.
    pub requirements: Requirements,
    /// Places of the host's instance types for which there are devices, in their order. For a machine: place 0.
    pub kinds: Vec<usize>,
    /// The claims that get devices by this allocation; others have theirs already.
    claims: Vec<PodKey>,
    found: Vec<(InstanceTypeName, Found)>,
}

/// The devices of a claim, for the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimAllocation {
    pub claim: PodKey,
    pub host: Host,
    /// By what the host may become.
    pub devices: BTreeMap<InstanceTypeName, Vec<Grant>>,
}

/// All devices, during one solve.
#[derive(Clone, Debug)]
pub struct Devices<'a> {
    snapshot: &'a Snapshot,
    /// Pods that will be somewhere else: claims that only they use are free to get other devices.
    moving: Arc<BTreeSet<PodUid>>,
    inventory: Arc<Inventory>,
    selectors: Arc<Selectors>,
    ledger: Ledger,
}

impl<'a> Devices<'a> {
    /// Of the round's pods, those that are bound to a node are moving.
    pub fn new<'p>(snapshot: &'a Snapshot, round: impl IntoIterator<Item = &'p Pod>) -> Self {
        let bound = round.into_iter().filter(|pod| pod.node.is_some());
        let moving: BTreeSet<PodUid> = bound.map(|pod| pod.uid.clone()).collect();
        Self {
            snapshot,
            inventory: Arc::new(Inventory::new(snapshot, &moving)),
            moving: Arc::new(moving),
            selectors: Arc::default(),
            ledger: Ledger::default(),
        }
    }

    /// The pod's claims by name, each once.
    ///
    /// # Errors
    /// When a claim does not exist yet, or asks for something that no host could give. The pod fails without being tried.
    pub fn claims_of(&self, pod: &Pod) -> Result<PodClaims, DraRefusal> {
        let mut claims: Vec<PodClaim> = Vec::new();
        for reference in &pod.shape.resource_claims {
            let name = match &reference.source {
                PodClaimSource::Claim(name) => name,
                PodClaimSource::Template => match pod.generated_claims.get(&reference.name) {
                    Some(Some(name)) => name,
                    Some(None) => continue,
                    None => {
                        return Err(DraRefusal::ClaimNotMade {
                            name: reference.name.clone(),
                        });
                    }
                },
            };
            let key = PodKey::new(&pod.key.namespace, name);
            if claims.iter().all(|claim| claim.key != key) {
                claims.push(self.claim(key)?);
            }
        }
        let least = |claim: &PodClaim| match &claim.standing {
            Standing::Wanted(wanted) => wanted.least.max(1),
            Standing::Allocated(_) => 0,
        };
        let devices = claims.iter().map(least).fold(0, usize::saturating_add);
        if devices > MOST_PER_POD {
            return Err(DraRefusal::TooManyForPod {
                devices,
                most: MOST_PER_POD,
            });
        }
        Ok(PodClaims(claims))
    }

    fn claim(&self, key: PodKey) -> Result<PodClaim, DraRefusal> {
        let Some(claim) = self.snapshot.resource_claims.get(&key) else {
            return Err(DraRefusal::ClaimMissing { claim: key });
        };
        let standing = match &claim.allocation {
            Some(allocation) if !self.gives_back(claim) => Standing::Allocated(allocation.nodes.clone()),
            _ if claim.deleting => return Err(DraRefusal::ClaimDeleting { claim: key }),
            _ => Standing::Wanted(Arc::new(Wanted::new(self.snapshot, &self.selectors, claim)?)),
        };
        Ok(PodClaim { key, standing })
    }

    fn gives_back(&self, claim: &ResourceClaim) -> bool {
        gives_back(claim, &self.moving)
    }

    /// Devices for the claims on this host, for each of the types that it may become. Changes nothing.
    ///
    /// What one type's devices demand of the node binds the types after it, because a node claim cannot say "this type in
    /// this zone or that type in that one".
    ///
    /// # Errors
    /// When no type is left.
    pub fn try_allocate(&self, claims: &PodClaims, host: HostView<'_>) -> Result<Allocation, DraRefusal> {
        let kinds = host.kinds();
        let mut requirements = host.requirements().clone();
        let nothing = Visible {
            devices: Vec::new(),
            unusable: None,
        };
        let terrain = |wanted, visible| Terrain {
            inventory: &self.inventory,
            ledger: &self.ledger,
            selectors: &self.selectors,
            host: host.host(),
            name: host.name(),
            allow: self.allowance(&host),
            wanted,
            visible,
        };
        let mut demands = Requirements::new();
        let wanted = self.settle(&terrain(&[], &nothing), claims, &mut requirements, &mut demands)?;
        let mut allocation = Allocation {
            requirements: demands,
            kinds: Vec::new(),
            claims: wanted.iter().map(|claim| claim.key.clone()).collect(),
            found: Vec::new(),
        };
        if wanted.is_empty() {
            allocation.kinds = (0..kinds.len()).collect();
            return Ok(allocation);
        }

        let visible = {
            let terrain = terrain(&[], &nothing);
            self.inventory.visible(host.name(), |reach| match reach {
                Reach::Nodes(terms) => terrain.pick(terms, &requirements).is_some(),
                Reach::Everywhere => true,
                Reach::Node(_) | Reach::Nowhere => false,
            })
        };
        check_pools(&wanted, &visible)?;
        let terrain = terrain(&wanted, &visible);
        let published = terrain.published();
        let mut best: Option<Miss> = None;
        for (place, kind) in kinds.iter().enumerate() {
            let own = kind.shape.filter(|_| kind.unpublished);
            match terrain.search(&published, &kind.name, own, kind.bindings(), &requirements) {
                Ok(found) => {
                    requirements.merge(&found.demands);
                    allocation.requirements.merge(&found.demands);
                    allocation.kinds.push(place);
                    allocation.found.push((kind.name.clone(), found));
                }
                Err(miss) => best = best.max(Some(miss)),
            }
        }
        if allocation.kinds.is_empty() {
            return Err(refusal(&wanted, best));
        }
        Ok(allocation)
    }

    /// A machine that is initialized has the labels it has. Others will get well-known labels that they lack.
    fn allowance(&self, host: &HostView<'_>) -> AllowUndefined<'a> {
        match host {
            HostView::Node { initialized: true, .. } => AllowUndefined::Nothing,
            _ => AllowUndefined::WellKnown(&self.snapshot.vocabulary),
        }
    }

    /// Takes out the claims that have their devices already, and adds what reaching those demands.
    fn settle(
        &self,
        terrain: &Terrain<'_>,
        claims: &PodClaims,
        requirements: &mut Requirements,
        demands: &mut Requirements,
    ) -> Result<Vec<Arc<Wanted>>, DraRefusal> {
        let mut wanted = Vec::new();
        for PodClaim { key, standing } in &claims.0 {
            let out_of_reach = || DraRefusal::OutOfReach { claim: key.clone() };
            let demanded = match (self.ledger.claims.get(key), standing) {
                (Some(given), _) if given.is_bound() => {
                    if given.host != terrain.host {
                        return Err(DraRefusal::BoundElsewhere { claim: key.clone() });
                    }
                    continue;
                }
                (Some(given), _) => {
                    let demanded = given.demands();
                    if !requirements.is_compatible(&demanded, terrain.allow) {
                        return Err(out_of_reach());
                    }
                    demanded
                }
                (None, Standing::Allocated(None)) => continue,
                (None, Standing::Allocated(Some(terms))) => {
                    terrain.pick(terms, requirements).ok_or_else(out_of_reach)?.clone()
                }
                (None, Standing::Wanted(claim)) => {
                    wanted.push(claim.clone());
                    continue;
                }
            };
            requirements.merge(&demanded);
            demands.merge(&demanded);
        }
        Ok(wanted)
    }

    /// The pod goes to the host, which is given as it is from now on: types that are not among its kinds any more keep
    /// nothing of what they were promised.
    pub fn commit(&mut self, host: HostView<'_>, allocation: Allocation) {
        let owner = host.host();
        let kinds = host.kinds();
        let staying: BTreeSet<&InstanceTypeName> = kinds.iter().map(|kind| &kind.name).collect();
        let mut given: Vec<BTreeMap<InstanceTypeName, Vec<Grant>>> = vec![BTreeMap::new(); allocation.claims.len()];
        for (kind, found) in allocation.found {
            if !staying.contains(&kind) {
                continue;
            }
            self.ledger.add(&owner, &kind, &found.used);
            for (claim, grants) in given.iter_mut().zip(found.grants) {
                claim.insert(kind.clone(), grants);
            }
        }
        for (key, kinds) in allocation.claims.into_iter().zip(given) {
            let host = owner.clone();
            self.ledger.claims.insert(key, Arc::new(Given { host, kinds }));
        }
        self.ledger.keep(&owner, &staying);
    }

    /// The planned node will not become any type but these. To be called whenever some are dropped, also for the sake of
    /// pods without claims.
    pub fn keep_kinds(&mut self, claim: usize, kinds: &[&InstanceType]) {
        let staying = kinds.iter().map(|kind| &kind.name).collect();
        self.ledger.keep(&Host::Claim(claim), &staying);
    }

    /// The drivers whose devices pods of the planned node will use, whichever type it becomes.
    pub fn drivers_of(&self, claim: usize) -> BTreeSet<Arc<str>> {
        let host = Host::Claim(claim);
        let given = self.ledger.claims.values().filter(|given| given.host == host);
        given
            .flat_map(|given| given.kinds.values().flatten())
            .map(|grant| grant.device.driver.clone())
            .collect()
    }

    /// Every claim that was given devices, in the order of their names.
    pub fn results(&self) -> Vec<ClaimAllocation> {
        let claims = self.ledger.claims.iter();
        claims
            .map(|(claim, given)| ClaimAllocation {
                claim: claim.clone(),
                host: given.host.clone(),
                devices: given.kinds.clone(),
            })
            .collect()
    }
}

/// A request for all devices can only be met where all of them are known.
fn check_pools(wanted: &[Arc<Wanted>], visible: &Visible<'_>) -> Result<(), DraRefusal> {
    let Some((pool, problem)) = visible.unusable else {
        return Ok(());
    };
    for claim in wanted {
        let all = |request: &&request::Request| request.options.iter().all(|wish| wish.count.is_none());
        if let Some(request) = claim.requests.iter().find(all) {
            return Err(DraRefusal::PoolUnusable {
                claim: claim.key.clone(),
                request: request.name.to_string(),
                pool: pool.to_owned(),
                problem,
            });
        }
    }
    Ok(())
}

fn refusal(wanted: &[Arc<Wanted>], best: Option<Miss>) -> DraRefusal {
    let (claim, request) = match best {
        Some(Miss::TooLong) => {
            return DraRefusal::SearchTooLong {
                claim: wanted[0].key.clone(),
                steps: MOST_STEPS,
            };
        }
        Some(Miss::Nothing { claim, request }) => (claim, request),
        None => (0, 0),
    };
    let requests = &wanted[claim].requests;
    DraRefusal::NoDevices {
        claim: wanted[claim].key.clone(),
        request: requests
            .get(request)
            .map_or_else(String::new, |request| request.name.to_string()),
    }
}

#[cfg(test)]
mod tests;
