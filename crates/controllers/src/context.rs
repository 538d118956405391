//! All that controllers can touch.

use std::{sync::Arc, time::Duration};

use clock::Clock;
use parking_lot::Mutex;
use provider::{CloudProvider, Metered};
use rand::{SeedableRng, rngs::StdRng};
use state::Index;

use crate::{
    catalog::Shelves, metrics::Metrics, node_pool::registration_health::Health, outbox::Outbox,
    provisioning::promises::Promises, static_capacity::Slots, writer::Writer,
};

/// Settings that decisions and waits depend on.
#[derive(Clone, Debug, PartialEq)]
pub struct Knobs {
    /// A batch of pending pods closes after this long without another.
    pub batch_idle: Duration,
    /// The longest that a batch stays open.
    pub batch_max: Duration,
    pub solver: scheduler::Options,
    /// Spot machines may be replaced by cheaper spot machines.
    pub spot_to_spot: bool,
    /// A claim without an instance after this time is given up.
    pub launch_timeout: Duration,
    /// A claim whose node has not joined after this time is given up.
    pub registration_timeout: Duration,
    /// Whether nodes that the provider takes for ill are let go.
    pub node_repair: bool,
    /// Whether series per object are kept.
    pub observe_cluster: bool,
    /// Whether annotations of the time of Provisioners count.
    pub old_words: bool,
    pub features: Features,
}

/// Optional controllers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Pools with `replicas` get that many machines.
    pub static_capacity: bool,
    /// Capacity buffers keep room free.
    pub capacity_buffer: bool,
    /// Node overlays change prices and capacities.
    pub node_overlay: bool,
    /// Node objects are made when their instances are launched.
    pub pre_registration: bool,
    /// Pods are bound to nodes that are made so, before anybody else can see them.
    pub proactive_binding: bool,
}

impl Default for Knobs {
    fn default() -> Self {
        Self {
            batch_idle: Duration::from_secs(1),
            batch_max: Duration::from_secs(10),
            solver: scheduler::Options::default(),
            spot_to_spot: false,
            launch_timeout: Duration::from_secs(5 * 60),
            registration_timeout: Duration::from_secs(15 * 60),
            node_repair: false,
            observe_cluster: true,
            old_words: false,
            features: Features::default(),
        }
    }
}

impl Knobs {
    /// For how long a machine that pods were promised to is left alone: two rounds, so that a promise outlives the
    /// round that would renew it.
    pub fn nomination(&self) -> Duration {
        (self.batch_max * 2).max(Duration::from_secs(10))
    }
}

/// All that a controller can touch.
#[derive(Clone)]
pub struct Ctx {
    pub index: Arc<Index>,
    pub writer: Writer,
    pub cloud: Arc<dyn CloudProvider>,
    pub clock: Arc<dyn Clock>,
    pub outbox: Outbox,
    pub metrics: Arc<Metrics>,
    pub knobs: Arc<Knobs>,
    /// How launches and registrations of each pool went lately.
    pub health: Arc<Health>,
    /// What the provider sells, and what overlays make of it.
    pub shelves: Arc<Shelves>,
    /// Room that is held under the limits of static pools.
    pub slots: Arc<Slots>,
    /// Which pods claims were made for.
    pub promises: Arc<Promises>,
    /// Where names of claims come from.
    pub random: Arc<Mutex<StdRng>>,
}

impl Ctx {
    pub fn seeded(seed: u64) -> Arc<Mutex<StdRng>> {
        Arc::new(Mutex::new(StdRng::seed_from_u64(seed)))
    }

    /// The same, with calls to the cloud counted for one controller.
    pub fn of(&self, controller: &'static str) -> Self {
        let cloud = Metered::new(self.cloud.clone(), self.metrics.clone(), controller);
        Self {
            cloud: Arc::new(cloud),
            ..self.clone()
        }
    }
}
