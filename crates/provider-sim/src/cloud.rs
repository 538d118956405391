//! The region: machines, what they cost, and everything that can happen to them.
//!
//! A [`SimCloud`] is a handle. It lives outside the controllers, as a cloud does: when a controller is torn down in
//! the middle of a call, its machines are still there for the next one. All decisions come from the seed
//! (`dice`) and all moments from the clock, so a run can be repeated exactly.

use std::{
    collections::{BTreeMap, VecDeque},
    pin::pin,
    sync::Arc,
};

use clock::Clock;
use jiff::{SignedDuration, Timestamp};
use model::{ClaimName, ProviderId};
use parking_lot::Mutex;
use provider::Termination;
use tokio::sync::Notify;

use crate::{
    dice::Dice,
    fate::{Fate, after, built},
    faults::Faults,
    ledger::{Deed, Entry, Ledger},
    machine::{Ending, Machine, MachineState, NodeObject, OfferingKey, Reclaim, provider_id},
    market::Market,
    order::{Bid, Delivery, NoDelivery, Order, Reservation},
};

/// How long a finished machine is remembered, so that a late repetition of its launch finds it. Launch tokens of EC2
/// last about as long.
const REMEMBERED: SignedDuration = SignedDuration::from_hours(1);

/// The cloud did not answer a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the simulated cloud did not answer this call on purpose")]
pub struct Unanswered;

/// A warning that a machine will be taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub id: ProviderId,
    pub claim: Option<ClaimName>,
    pub offering: OfferingKey,
    pub sent: Timestamp,
    pub gone: Timestamp,
}

#[derive(Clone, Debug)]
pub struct SimCloud(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    seed: u64,
    clock: Arc<dyn Clock>,
    region: Mutex<Region>,
    /// Tells [`crate::join`] that there are newcomers.
    arrivals: Notify,
    /// Tells those who wait for warnings that there may be one earlier than they thought.
    warnings: Notify,
}

#[derive(Debug, Default)]
struct Region {
    faults: Faults,
    machines: BTreeMap<ProviderId, Record>,
    newcomers: VecDeque<ProviderId>,
    ledger: Ledger,
    /// Counts calls, so that each has dice of its own.
    calls: u64,
    /// What the forgotten machines have cost.
    spent: f64,
}

#[derive(Debug)]
struct Record {
    machine: Arc<Machine>,
    /// Tells the machine's life in [`crate::join`] that its end has changed.
    changed: Arc<Notify>,
    /// Somebody has acted on the warning about this machine.
    heeded: bool,
}

impl SimCloud {
    pub fn new(seed: u64, clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Shared {
            seed,
            clock,
            region: Mutex::default(),
            arrivals: Notify::new(),
            warnings: Notify::new(),
        }))
    }

    #[must_use]
    pub fn with_faults(self, faults: Faults) -> Self {
        self.change_faults(|present| *present = faults);
        self
    }

    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.0.clock
    }

    pub fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    pub fn faults(&self) -> Faults {
        self.0.region.lock().faults.clone()
    }

    /// Counts for what is decided from now on; moments that are settled stay.
    pub fn change_faults(&self, change: impl FnOnce(&mut Faults)) {
        change(&mut self.0.region.lock().faults);
    }

    /// The machine of this launch, if there has been one.
    pub fn repeated(&self, claim: &ClaimName, token: &str) -> Option<Arc<Machine>> {
        let now = self.now();
        let mut region = self.0.region.lock();
        let record = region.machines.get(&provider_id(claim.as_str()))?;
        let machine = record.machine.clone();
        (machine.token == token).then(|| {
            let (token, id) = (token.to_owned(), machine.provider_id.clone());
            region.ledger.write(now, Deed::Repeated { token, id });
            machine
        })
    }

    /// Launches a machine under the first bid that can be had.
    ///
    /// Idempotent on the token, whatever became of the machine since.
    pub fn launch(&self, order: Order) -> Result<Delivery, NoDelivery> {
        if let Some(machine) = self.repeated(&order.claim, &order.token) {
            let short = Vec::new();
            return Ok(Delivery { machine, short });
        }
        let now = self.now();
        let mut region = self.0.region.lock();
        region.forget_the_finished(now);
        let outcome = region.launch(self.0.seed, &order, now);
        if let Err(refusal) = &outcome
            && *refusal != NoDelivery::Lost
        {
            let deed = match refusal {
                NoDelivery::NameTaken { id } => Deed::Doubled {
                    token: order.token,
                    claim: order.claim,
                    id: id.clone(),
                },
                other => Deed::Refused {
                    token: order.token,
                    claim: order.claim,
                    why: other.to_string(),
                },
            };
            region.ledger.write(now, deed);
        }
        drop(region);
        self.0.arrivals.notify_one();
        self.0.warnings.notify_waiters();
        outcome
    }

    /// Asks for the end of a machine. A machine that the cloud does not know is gone.
    pub fn terminate(&self, id: &ProviderId) -> Result<Termination, Unanswered> {
        let now = self.now();
        let mut region = self.0.region.lock();
        region.answer(self.0.seed)?;
        let latency = region.faults.termination_latency;
        let Some(record) = region.machines.get_mut(id) else {
            return Ok(Termination::Gone);
        };
        let machine = Arc::make_mut(&mut record.machine);
        if machine.is_live(now) {
            let gone = after(now, Dice::new(self.0.seed, "end", &machine.token).latency(latency));
            machine.ending = Some(Ending { requested: now, gone });
            record.changed.notify_one();
        }
        let gone = machine.state(now) == MachineState::Gone;
        let id = id.clone();
        region.ledger.write(now, Deed::TerminationAsked { id });
        Ok(if gone {
            Termination::Gone
        } else {
            Termination::Requested
        })
    }

    /// The cloud takes the machine back. False when there is nothing to take.
    pub fn interrupt(&self, id: &ProviderId, notice: SignedDuration) -> bool {
        let now = self.now();
        let interrupted = self.change(id, |machine| {
            let live = machine.is_live(now) && machine.reclaim.is_none_or(|reclaim| reclaim.notice > now);
            if live {
                let gone = after(now, notice);
                machine.reclaim = Some(Reclaim { notice: now, gone });
            }
            live.then(|| Deed::Interrupted { id: id.clone() })
        });
        self.0.warnings.notify_waiters();
        interrupted
    }

    /// The warnings that stand now, in the order of the ids.
    pub fn notices(&self) -> Vec<Notice> {
        let now = self.now();
        self.live().iter().filter_map(|machine| warning(machine, now)).collect()
    }

    /// Waits for warnings that nobody has heeded yet.
    pub async fn unheeded(&self) -> Vec<Notice> {
        loop {
            // Listening before looking: a change in between is not missed.
            let mut changed = pin!(self.0.warnings.notified());
            changed.as_mut().enable();
            let (standing, next) = self.0.region.lock().unheeded(self.now());
            if !standing.is_empty() {
                return standing;
            }
            tokio::select! {
                biased;
                () = changed => {}
                () = self.sleep_until(next) => {}
            }
        }
    }

    /// The warning about this machine need not be told again.
    pub fn heed(&self, id: &ProviderId) {
        if let Some(record) = self.0.region.lock().machines.get_mut(id) {
            record.heeded = true;
        }
    }

    /// Every machine that is neither ended nor ending, in the order of the ids.
    pub fn live(&self) -> Vec<Arc<Machine>> {
        let now = self.now();
        let mut machines = self.machines();
        machines.retain(|machine| machine.is_live(now));
        machines
    }

    /// Every machine that the cloud remembers, gone ones among them.
    pub fn machines(&self) -> Vec<Arc<Machine>> {
        let region = self.0.region.lock();
        region.machines.values().map(|record| record.machine.clone()).collect()
    }

    /// The machine with this id, gone or not.
    pub fn machine(&self, id: &ProviderId) -> Option<Arc<Machine>> {
        self.0
            .region
            .lock()
            .machines
            .get(id)
            .map(|record| record.machine.clone())
    }

    /// How many more machines a reservation holds.
    pub fn left(&self, reservation: &Reservation, offering: &OfferingKey) -> u32 {
        let now = self.now();
        let held = self.0.region.lock().held(reservation, offering, now);
        reservation.size().saturating_sub(held)
    }

    /// What an offering costs per hour at a moment, if the market is as it is now.
    pub fn price(&self, offering: &OfferingKey, listed: f64, moment: Timestamp) -> f64 {
        match self.0.region.lock().faults.market {
            Some(market) => market.price(self.0.seed, offering, listed, market.period_at(moment)),
            None => listed,
        }
    }

    /// The market and its period at a moment.
    pub fn market(&self, moment: Timestamp) -> Option<(Market, i64)> {
        let market = self.0.region.lock().faults.market?;
        Some((market, market.period_at(moment)))
    }

    /// Whether a call gets an answer now.
    pub fn answer(&self) -> Result<(), Unanswered> {
        self.0.region.lock().answer(self.0.seed)
    }

    pub fn ledger(&self) -> Vec<Entry> {
        self.0.region.lock().ledger.entries().cloned().collect()
    }

    /// What all machines have cost until now, in US dollars.
    pub fn spent(&self) -> f64 {
        let now = self.now();
        let region = self.0.region.lock();
        let remembered = region.machines.values().map(|record| record.machine.cost(now));
        region.spent + remembered.sum::<f64>()
    }

    /// Takes over a machine that an earlier process launched. One that is known already stays as it is.
    pub fn adopt(&self, machine: Machine) {
        let mut region = self.0.region.lock();
        if !region.machines.contains_key(&machine.provider_id) {
            region.insert(machine);
            drop(region);
            self.0.arrivals.notify_one();
            self.0.warnings.notify_waiters();
        }
    }

    /// Whether a machine with this token would ever join, and how long its boot takes.
    pub(crate) fn fate(&self, token: &str) -> Fate {
        Fate::of(self.0.seed, token, &self.0.region.lock().faults)
    }

    /// Machines whose life has to be looked after from now on.
    pub(crate) fn take_newcomers(&self) -> Vec<ProviderId> {
        self.0.region.lock().newcomers.drain(..).collect()
    }

    /// Puts every machine with a life left before the next [`take_newcomers`](Self::take_newcomers).
    pub(crate) fn all_are_newcomers(&self) {
        let mut region = self.0.region.lock();
        let unfinished = |record: &&Record| record.machine.node_object != NodeObject::Removed;
        region.newcomers = region
            .machines
            .values()
            .filter(unfinished)
            .map(|record| record.machine.provider_id.clone())
            .collect();
    }

    pub(crate) async fn arrival(&self) {
        self.0.arrivals.notified().await;
    }

    /// Records what became of the machine's Node object.
    pub(crate) fn node_is(&self, id: &ProviderId, state: NodeObject) {
        self.change(id, |machine| {
            machine.node_object = state;
            let id = id.clone();
            match state {
                NodeObject::NotYet => None,
                NodeObject::Created => Some(Deed::Joined { id }),
                NodeObject::Removed => Some(Deed::NodeRemoved { id }),
            }
        });
    }

    /// Waits for the earlier of a moment and the machine's end, and says whether the machine was still there.
    /// Without a moment it waits for the end.
    pub(crate) async fn outlives(&self, id: &ProviderId, moment: Option<Timestamp>) -> bool {
        loop {
            let found = {
                let region = self.0.region.lock();
                region
                    .machines
                    .get(id)
                    .map(|record| (record.machine.gone_at(), record.changed.clone()))
            };
            let Some((gone, changed)) = found else { return false };
            let now = self.now();
            if gone.is_some_and(|gone| gone <= now) {
                return false;
            }
            if moment.is_some_and(|moment| moment <= now) {
                return true;
            }
            let next = moment.into_iter().chain(gone).min();
            tokio::select! {
                biased;
                () = changed.notified() => {}
                () = self.sleep_until(next) => {}
            }
        }
    }

    async fn sleep_until(&self, moment: Option<Timestamp>) {
        match moment {
            Some(moment) => tokio::time::sleep(moment.duration_since(self.now()).unsigned_abs()).await,
            None => std::future::pending().await,
        }
    }

    /// Changes a machine; true when there was something to write down.
    fn change(&self, id: &ProviderId, change: impl FnOnce(&mut Machine) -> Option<Deed>) -> bool {
        let now = self.now();
        let mut region = self.0.region.lock();
        let Some(record) = region.machines.get_mut(id) else {
            return false;
        };
        let deed = change(Arc::make_mut(&mut record.machine));
        record.changed.notify_one();
        let written = deed.is_some();
        deed.into_iter().for_each(|deed| region.ledger.write(now, deed));
        written
    }
}

impl Region {
    fn launch(&mut self, seed: u64, order: &Order, now: Timestamp) -> Result<Delivery, NoDelivery> {
        self.calls += 1;
        let mut luck = Dice::new(seed, "launch", &self.calls.to_string());
        if luck.chance(self.faults.launch_failure) {
            return Err(NoDelivery::Failed);
        }
        let id = provider_id(order.claim.as_str());
        if let Some(holder) = self.machines.get(&id)
            && holder.machine.node_object != NodeObject::Removed
        {
            return Err(NoDelivery::NameTaken { id });
        }
        let mut short = Vec::new();
        let Some(bid) = order.bids.iter().find(|bid| {
            let to_be_had = self.can_sell(seed, bid, now);
            if !to_be_had {
                short.push(bid.key());
            }
            to_be_had
        }) else {
            return Err(NoDelivery::Short { short });
        };
        let machine = built(seed, &self.faults, order, bid, now);
        self.ledger.write(
            now,
            Deed::Launched {
                token: order.token.clone(),
                claim: order.claim.clone(),
                id,
                offering: machine.offering.clone(),
            },
        );
        let machine = self.insert(machine);
        if luck.chance(self.faults.lost_answer) {
            return Err(NoDelivery::Lost);
        }
        Ok(Delivery { machine, short })
    }

    fn can_sell(&self, seed: u64, bid: &Bid, now: Timestamp) -> bool {
        let key = bid.key();
        let sold_out = |market: &Market| market.is_sold_out(seed, &key, now);
        if self.faults.shortages.iter().any(|shortage| shortage.covers(&key, now))
            || self.faults.market.as_ref().is_some_and(sold_out)
        {
            return false;
        }
        bid.reservation.as_ref().is_none_or(|reservation| {
            let held = self.held(reservation, &key, now);
            held < reservation.size()
        })
    }

    fn held(&self, reservation: &Reservation, offering: &OfferingKey, now: Timestamp) -> u32 {
        let counts = |record: &&Record| {
            reservation.counts(&record.machine, offering) && record.machine.state(now) != MachineState::Gone
        };
        u32::try_from(self.machines.values().filter(counts).count()).unwrap_or(u32::MAX)
    }

    fn insert(&mut self, machine: Machine) -> Arc<Machine> {
        let machine = Arc::new(machine);
        let id = machine.provider_id.clone();
        self.newcomers.push_back(id.clone());
        let record = Record {
            machine: machine.clone(),
            changed: Arc::default(),
            heeded: false,
        };
        self.machines.insert(id, record);
        machine
    }

    /// The warnings that stand and that nobody has heeded, and when the next one is due.
    fn unheeded(&self, now: Timestamp) -> (Vec<Notice>, Option<Timestamp>) {
        let records = self.machines.values().filter(|record| !record.heeded);
        let doomed: Vec<&Machine> = records
            .map(|record| &*record.machine)
            .filter(|machine| machine.is_live(now) && machine.reclaim.is_some())
            .collect();
        let standing = doomed.iter().filter_map(|machine| warning(machine, now)).collect();
        let notices = doomed
            .iter()
            .filter_map(|machine| machine.reclaim)
            .map(|reclaim| reclaim.notice);
        (standing, notices.filter(|notice| *notice > now).min())
    }

    fn answer(&mut self, seed: u64) -> Result<(), Unanswered> {
        self.calls += 1;
        if self.faults.unanswered > 0.0
            && Dice::new(seed, "answer", &self.calls.to_string()).chance(self.faults.unanswered)
        {
            return Err(Unanswered);
        }
        Ok(())
    }

    fn forget_the_finished(&mut self, now: Timestamp) {
        let finished = |machine: &Machine| {
            machine.node_object == NodeObject::Removed
                && machine
                    .gone_at()
                    .is_some_and(|gone| now.duration_since(gone) > REMEMBERED)
        };
        let spent = &mut self.spent;
        self.machines.retain(|_, record| {
            let forget = finished(&record.machine);
            if forget {
                *spent += record.machine.cost(now);
            }
            !forget
        });
    }
}

/// The warning about this machine, if there is one by now.
fn warning(machine: &Machine, now: Timestamp) -> Option<Notice> {
    let reclaim = machine.reclaim.filter(|reclaim| reclaim.notice <= now)?;
    Some(Notice {
        id: machine.provider_id.clone(),
        claim: machine.claim.clone(),
        offering: machine.offering.clone(),
        sent: reclaim.notice,
        gone: reclaim.gone,
    })
}
