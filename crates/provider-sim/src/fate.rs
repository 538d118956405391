//! What becomes of a machine, settled at its launch.

use jiff::{SignedDuration, Timestamp};
use model::CapacityType;

use crate::{
    dice::Dice,
    faults::Faults,
    machine::{Machine, NodeObject, Reclaim, provider_id},
    node,
    order::{Bid, Order},
};

/// What is settled about a machine by its token alone.
pub struct Fate {
    pub boot: SignedDuration,
    pub joins: bool,
    /// How long it runs if it is a spot machine, and how long before its end the notice comes.
    interruption: Option<(SignedDuration, SignedDuration)>,
}

impl Fate {
    pub fn of(seed: u64, token: &str, faults: &Faults) -> Self {
        let dice = |purpose: &str| Dice::new(seed, purpose, token);
        Self {
            boot: dice("boot").latency(faults.launch_latency),
            joins: !dice("join").chance(faults.never_joins),
            interruption: faults.interruption.map(|interruption| {
                let lifetime = dice("interruption").lifetime(interruption.mean_lifetime);
                (lifetime, interruption.notice)
            }),
        }
    }

    /// When the cloud takes the machine back. Only spot machines are ever taken back.
    pub fn reclaim(&self, boots: Timestamp, capacity_type: CapacityType) -> Option<Reclaim> {
        let (lifetime, warning) = self.interruption.filter(|_| capacity_type == CapacityType::Spot)?;
        let notice = after(boots, lifetime);
        let gone = after(notice, warning);
        Some(Reclaim { notice, gone })
    }
}

/// The machine that an order gets under a bid.
pub fn built(seed: u64, faults: &Faults, order: &Order, bid: &Bid, now: Timestamp) -> Machine {
    let fate = Fate::of(seed, &order.token, faults);
    let boots = after(now, fate.boot);
    let offering = bid.offering();
    let figures = node::figures(&bid.shape, offering, &order.requests);
    Machine {
        provider_id: provider_id(order.claim.as_str()),
        node: order.claim.as_str().into(),
        token: order.token.clone(),
        claim: Some(order.claim.clone()),
        pool: order.pool.clone(),
        offering: bid.key(),
        price: offering.price,
        labels: node::labels(order, &bid.shape, offering),
        annotations: node::annotations(order),
        taints: order.taints.clone(),
        capacity: figures.capacity,
        allocatable: figures.allocatable,
        launched: now,
        boots,
        joins: fate.joins.then(|| after(boots, order.registration_delay)),
        ending: None,
        reclaim: fate.reclaim(boots, offering.capacity_type),
        node_object: NodeObject::NotYet,
    }
}

/// A later moment; the end of the calendar when there is no such moment.
pub fn after(moment: Timestamp, span: SignedDuration) -> Timestamp {
    moment.saturating_add(span).unwrap_or(Timestamp::MAX)
}
