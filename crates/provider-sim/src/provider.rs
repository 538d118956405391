//! The simulated cloud behind the trait that the controllers know.
//!
//! Launching is choosing: of the offerings that the request admits and that hold it, the cheapest that can be had.
//! Equal prices are decided by the launch token, so that nodes of one price spread over the zones and a repeated
//! story spreads them alike.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::labels::annotations::CAPACITY_OVERLAY_APPLIED;
use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use model::{
    CapacityType, InstanceType, LabelKey, NodeName, Offering, PoolName, ProviderId, Resources, Vocabulary,
    node::NodeClassRef, pool::Pool, snapshot::Catalog as Shapes,
};
use parking_lot::Mutex;
use provider::{
    CloudProvider, Instance, LaunchRequest, Launched, NodeClassKind, Notice, NoticeKind, ProviderError,
    RegistrationHook, RepairPolicy, Termination,
};

use crate::{
    catalog::Catalog,
    cloud::{self, SimCloud, Unanswered},
    dice::fingerprint,
    fate::after,
    machine::{Machine, MachineState, OfferingKey},
    market::Market,
    node::TOKEN_ANNOTATION,
    node_class::{self, NodeClasses},
    order::{Bid, NoDelivery, Order, Reservation},
};

/// How long an offering that was short is reported as unavailable. Long enough that the next rounds plan around it,
/// short enough that it is tried again while it is still wanted; the AWS provider uses the same figure.
pub const SHORT_FOR: SignedDuration = SignedDuration::from_mins(3);

/// How long a node may be unready before it is given up, as with upstream's KWOK provider.
const UNREADY_FOR: SignedDuration = SignedDuration::from_mins(10);

/// Why a machine with an old image has drifted.
const IMAGE_DRIFT: &str = "ImageDrift";

pub struct SimProvider {
    cloud: SimCloud,
    catalog: Arc<Catalog>,
    vocabulary: Arc<Vocabulary>,
    classes: Arc<dyn NodeClasses>,
    repair_policies: Vec<RepairPolicy>,
    hooks: Vec<Arc<dyn RegistrationHook>>,
    /// Whether what is left of the catalog depends on what is running.
    has_reservations: bool,
    /// Until when an offering counts as unavailable because a launch found it short.
    short: Mutex<BTreeMap<OfferingKey, Timestamp>>,
    /// The catalogs at the prices of one period, so that who asks twice in it gets the same.
    priced: Mutex<Option<Priced>>,
}

struct Priced {
    market: (Market, i64),
    shelves: BTreeMap<PoolName, Shapes>,
}

impl SimProvider {
    pub fn new(cloud: SimCloud, catalog: Arc<Catalog>, classes: Arc<dyn NodeClasses>) -> Self {
        let unready = |status: &str| RepairPolicy {
            condition: "Ready".to_owned(),
            status: status.to_owned(),
            toleration: UNREADY_FOR,
        };
        let is_reserved = |offering: &Offering| offering.capacity_type == CapacityType::Reserved;
        let has_reservations = catalog
            .all_shapes()
            .any(|shape| shape.offerings.iter().any(is_reserved));
        Self {
            has_reservations,
            vocabulary: Arc::new(catalog.vocabulary()),
            repair_policies: vec![unready("False"), unready("Unknown")],
            hooks: Vec::new(),
            short: Mutex::default(),
            priced: Mutex::default(),
            cloud,
            catalog,
            classes,
        }
    }

    /// Nodes are registered once these agree.
    #[must_use]
    pub fn with_hooks(self, hooks: Vec<Arc<dyn RegistrationHook>>) -> Self {
        Self { hooks, ..self }
    }

    pub fn cloud(&self) -> &SimCloud {
        &self.cloud
    }

    /// Every offering that the request admits and that holds it, the cheapest first.
    fn bids(&self, request: &LaunchRequest) -> Vec<Bid> {
        let needed = self.checked_requests(request);
        let shapes: Vec<Arc<InstanceType>> = match &request.pool {
            Some(pool) => self.shapes(pool).to_vec(),
            // A claim that a user made belongs to no pool and may be anything.
            None => {
                let now = self.cloud.now();
                match self.cloud.market(now) {
                    Some(_) => self
                        .catalog
                        .all_shapes()
                        .map(|shape| self.repriced(shape, now))
                        .collect(),
                    None => self.catalog.all_shapes().cloned().collect(),
                }
            }
        };
        let mut bids = Vec::new();
        for shape in shapes
            .iter()
            .filter(|shape| shape.requirements.overlaps(&request.requirements))
        {
            for (index, offering) in shape.offerings.iter().enumerate() {
                let holds = || needed.fits(&shape.allocatable_under(offering));
                if offering.available && offering.admitted_by(&request.requirements) && holds() {
                    bids.push(Bid {
                        shape: shape.clone(),
                        offering: index,
                        reservation: self.reservation(offering),
                    });
                }
            }
        }
        bids.sort_by_cached_key(|bid| {
            let offering = bid.offering();
            // Prices are never negative, and so their bits sort as they do.
            let price = offering.price.to_bits();
            (
                price,
                fingerprint(&[&request.token, bid.shape.name.as_str(), offering.zone.as_str()]),
            )
        });
        bids
    }

    /// What a pool may launch, at the prices of the moment.
    fn shapes(&self, pool: &PoolName) -> Shapes {
        let now = self.cloud.now();
        let Some(market) = self.cloud.market(now) else {
            return self.catalog.shapes(pool);
        };
        let mut priced = self.priced.lock();
        let current = priced.take().filter(|priced| priced.market == market);
        let current = priced.insert(current.unwrap_or_else(|| Priced {
            market,
            shelves: BTreeMap::new(),
        }));
        let shelf = current.shelves.entry(pool.clone()).or_insert_with(|| {
            let listed = self.catalog.shapes(pool);
            listed.iter().map(|shape| self.repriced(shape, now)).collect()
        });
        shelf.clone()
    }

    fn repriced(&self, shape: &InstanceType, now: Timestamp) -> Arc<InstanceType> {
        let mut shape = shape.clone();
        for offering in &mut shape.offerings {
            let key = OfferingKey {
                instance_type: shape.name.clone(),
                zone: offering.zone.clone(),
                capacity_type: offering.capacity_type,
            };
            offering.price = self.cloud.price(&key, offering.price, now);
        }
        Arc::new(shape)
    }

    /// What a shape has to hold. Resources that an overlay added are not in this catalog; the plan has counted them.
    fn checked_requests(&self, request: &LaunchRequest) -> Resources {
        let overlaid = request.annotations.contains_key(CAPACITY_OVERLAY_APPLIED);
        let checked = |name: &model::ResourceName| !overlaid || self.vocabulary.well_known_resources.contains(name);
        let requests = request.requests.iter().filter(|(name, _)| checked(name));
        requests.map(|(name, amount)| (name.clone(), amount)).collect()
    }

    fn reservation(&self, offering: &Offering) -> Option<Reservation> {
        if offering.capacity_type != CapacityType::Reserved {
            return None;
        }
        let size = offering.reservation_capacity.unwrap_or(0);
        let named = self.catalog.reservation_id.as_ref().and_then(|label: &LabelKey| {
            let id = offering.requirements.get(label.as_str()).single()?.clone();
            let label = label.clone();
            Some(Reservation::Labelled { label, id, size })
        });
        Some(named.unwrap_or(Reservation::Unlabelled { size }))
    }

    fn remember_short(&self, offerings: Vec<OfferingKey>) {
        let until = after(self.cloud.now(), SHORT_FOR);
        self.short
            .lock()
            .extend(offerings.into_iter().map(|offering| (offering, until)));
    }

    /// What is short now; what is over is forgotten.
    fn short_now(&self) -> BTreeSet<OfferingKey> {
        let now = self.cloud.now();
        let mut short = self.short.lock();
        short.retain(|_, until| now < *until);
        short.keys().cloned().collect()
    }

    /// The shape as it can be bought now, if that differs from the catalog.
    fn as_of_now(&self, shape: &InstanceType, short: &BTreeSet<OfferingKey>) -> Option<InstanceType> {
        let mut changed = None;
        for (index, offering) in shape.offerings.iter().enumerate() {
            let key = OfferingKey {
                instance_type: shape.name.clone(),
                zone: offering.zone.clone(),
                capacity_type: offering.capacity_type,
            };
            let left = self
                .reservation(offering)
                .map(|reservation| self.cloud.left(&reservation, &key));
            let available = offering.available && !short.contains(&key) && left != Some(0);
            if available != offering.available || left != offering.reservation_capacity {
                let now = &mut changed.get_or_insert_with(|| shape.clone()).offerings[index];
                now.available = available;
                now.reservation_capacity = left;
            }
        }
        changed
    }
}

#[async_trait]
impl CloudProvider for SimProvider {
    fn name(&self) -> &'static str {
        "kwok"
    }

    fn node_classes(&self) -> &[NodeClassKind] {
        &[node_class::KIND]
    }

    fn vocabulary(&self) -> Arc<Vocabulary> {
        self.vocabulary.clone()
    }

    async fn launch(&self, request: &LaunchRequest) -> Result<Launched, ProviderError> {
        // Before anything can refuse: the class may have gone since, the machine has not.
        if let Some(machine) = self.cloud.repeated(&request.claim, &request.token) {
            return Ok(launched(&machine));
        }
        let registration_delay = node_class::registration_delay(&*self.classes, &request.class.name).await?;
        let bids = self.bids(request);
        if bids.is_empty() {
            let details = format!(
                "no offering is compatible with the claim and holds {}",
                request.requests
            );
            return Err(ProviderError::InsufficientCapacity { details });
        }
        let mut labels = request.labels.clone();
        labels.extend(request.requirements.labels());
        let order = Order {
            token: request.token.clone(),
            claim: request.claim.clone(),
            pool: request.pool.clone(),
            bids,
            registration_delay,
            requests: request.requests.clone(),
            labels,
            annotations: request.annotations.clone(),
            taints: request.taints.iter().chain(&request.startup_taints).cloned().collect(),
        };
        match self.cloud.launch(order) {
            Ok(delivery) => {
                self.remember_short(delivery.short);
                Ok(launched(&delivery.machine))
            }
            Err(NoDelivery::Short { short }) => {
                let details = short_details(&short);
                self.remember_short(short);
                Err(ProviderError::InsufficientCapacity { details })
            }
            Err(failed @ NoDelivery::Failed) => Err(ProviderError::Refused {
                reason: "SimulatedFailure".to_owned(),
                message: failed.to_string(),
            }),
            Err(other @ (NoDelivery::Lost | NoDelivery::NameTaken { .. })) => Err(unavailable(other)),
        }
    }

    async fn terminate(&self, id: &ProviderId) -> Result<Termination, ProviderError> {
        self.cloud.terminate(id).map_err(unanswered)
    }

    async fn instance(&self, id: &ProviderId) -> Result<Option<Instance>, ProviderError> {
        self.cloud.answer().map_err(unanswered)?;
        let now = self.cloud.now();
        let machine = self
            .cloud
            .machine(id)
            .filter(|machine| machine.state(now) != MachineState::Gone);
        Ok(machine.as_deref().map(instance))
    }

    async fn instances(&self) -> Result<Vec<Instance>, ProviderError> {
        self.cloud.answer().map_err(unanswered)?;
        Ok(self.cloud.live().iter().map(|machine| instance(machine)).collect())
    }

    async fn node_name(&self, id: &ProviderId) -> Result<Option<NodeName>, ProviderError> {
        self.cloud.answer().map_err(unanswered)?;
        Ok(self.cloud.machine(id).map(|machine| machine.node.clone()))
    }

    async fn catalog(&self, pool: &Pool) -> Result<Shapes, ProviderError> {
        let shapes = self.shapes(&pool.name);
        let short = self.short_now();
        if short.is_empty() && !self.has_reservations {
            return Ok(shapes);
        }
        let now = |shape: &Arc<InstanceType>| self.as_of_now(shape, &short).map_or_else(|| shape.clone(), Arc::new);
        Ok(shapes.iter().map(now).collect())
    }

    async fn drift(&self, id: &ProviderId, _: &NodeClassRef) -> Result<Option<String>, ProviderError> {
        self.cloud.answer().map_err(unanswered)?;
        let (Some(since), Some(machine)) = (self.cloud.faults().image_since, self.cloud.machine(id)) else {
            return Ok(None);
        };
        let outdated = machine.launched < since && since <= self.cloud.now();
        Ok(outdated.then(|| IMAGE_DRIFT.to_owned()))
    }

    async fn notices(&self) -> Result<Vec<Notice>, ProviderError> {
        let warnings = self.cloud.unheeded().await;
        self.cloud.answer().map_err(unanswered)?;
        // Capacity that is taken back is short: replacements are better sought elsewhere.
        self.remember_short(warnings.iter().map(|warning| warning.offering.clone()).collect());
        let notice = |warning: cloud::Notice| Notice {
            kind: match warning.offering.capacity_type {
                CapacityType::Spot => NoticeKind::SpotInterrupted,
                CapacityType::Reserved => NoticeKind::ReservationInterrupted,
                CapacityType::OnDemand => NoticeKind::InstanceTerminated,
            },
            receipt: warning.id.to_string(),
            instances: vec![warning.id],
            sent: warning.sent,
        };
        Ok(warnings.into_iter().map(notice).collect())
    }

    async fn acknowledge(&self, notice: &Notice) -> Result<(), ProviderError> {
        self.cloud.answer().map_err(unanswered)?;
        self.cloud.heed(&ProviderId::from(&*notice.receipt));
        Ok(())
    }

    fn repair_policies(&self) -> &[RepairPolicy] {
        &self.repair_policies
    }

    fn registration_hooks(&self) -> &[Arc<dyn RegistrationHook>] {
        &self.hooks
    }
}

fn launched(machine: &Machine) -> Launched {
    let mut annotations = machine.annotations.clone();
    annotations.remove(TOKEN_ANNOTATION);
    Launched {
        provider_id: machine.provider_id.clone(),
        image_id: None,
        capacity: machine.capacity.clone(),
        allocatable: machine.allocatable.clone(),
        labels: machine.labels.clone(),
        annotations,
    }
}

fn instance(machine: &Machine) -> Instance {
    Instance {
        provider_id: machine.provider_id.clone(),
        claim: machine.claim.clone(),
        launched: machine.launched,
        labels: machine.labels.clone(),
    }
}

fn short_details(short: &[OfferingKey]) -> String {
    const SHOWN: usize = 5;
    let shown: Vec<String> = short.iter().take(SHOWN).map(ToString::to_string).collect();
    let rest = match short.len().saturating_sub(SHOWN) {
        0 => String::new(),
        rest => format!(" and {rest} others"),
    };
    format!("{}{rest}", shown.join(", "))
}

fn unanswered(cause: Unanswered) -> ProviderError {
    unavailable(cause)
}

fn unavailable(cause: impl std::error::Error + Send + Sync + 'static) -> ProviderError {
    ProviderError::Unavailable { cause: Box::new(cause) }
}
