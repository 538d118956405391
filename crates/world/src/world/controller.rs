//! The controller process: it lives, dies and comes back.

use std::{
    future::Future,
    ops::Range,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use clock::Clock;
use controllers::metrics::{Exposition, Metrics};
use jiff::Timestamp;
use kube::Client;
use kube_mem::ApiServer;
use operator::{Engine, Running, settings::Settings, throttle::Rate};
use parking_lot::Mutex;
use provider::CloudProvider;
use state::Index;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{
    dice::Dice,
    faults::{Weather, cloud::Bridge, crash::Gate, line::Line},
    history::History,
};

/// What one life of the controller is given.
pub struct Parts {
    pub client: Client,
    pub cloud: Arc<dyn CloudProvider>,
    pub clock: Arc<dyn Clock>,
    /// Differs from life to life, as it would for a real process.
    pub seed: u64,
    /// Where the controller may put what can be looked at from outside.
    pub window: Window,
}

/// What a life of the controller lets others see of itself. Clones are handles to the same.
#[derive(Clone, Default)]
pub struct Window(Arc<Mutex<Option<Seen>>>);

#[derive(Clone)]
struct Seen {
    index: Arc<Index>,
    metrics: Arc<Metrics>,
}

impl Window {
    fn open(&self, running: &Running) {
        *self.0.lock() = Some(Seen {
            index: Arc::clone(&running.index),
            metrics: Arc::clone(&running.metrics),
        });
    }

    /// What the controller knows.
    pub fn index(&self) -> Option<Arc<Index>> {
        self.0.lock().as_ref().map(|seen| Arc::clone(&seen.index))
    }

    /// What the controller counts, as scrapers read it.
    pub fn metrics(&self, now: Timestamp) -> String {
        let seen = self.0.lock().clone();
        seen.map_or_else(String::new, |seen| Exposition::of(&seen.metrics).text(None, now))
    }
}

/// Starts a controller. It works for as long as the future is polled.
pub type Brain = Arc<dyn Fn(Parts) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// The production controllers, without the sockets and the lease around them.
pub fn karpenter() -> Brain {
    karpenter_with(Settings::default())
}

/// As [`karpenter`], with other settings than the default ones.
pub fn karpenter_with(settings: Settings) -> Brain {
    let settings = Arc::new(settings);
    Arc::new(move |parts: Parts| {
        let settings = Arc::clone(&settings);
        Box::pin(async move {
            let engine = Engine {
                client: parts.client,
                cloud: parts.cloud,
                clock: parts.clock,
                settings,
                seed: parts.seed,
            };
            let running = engine.start();
            parts.window.open(&running);
            // A controller that breaks down is a finding, and not one that a restart may hide.
            let outcome = running.until(&CancellationToken::new()).await;
            outcome.expect("controllers run until they are dropped");
        })
    })
}

/// When the controller dies by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CrashPlan {
    #[default]
    Never,
    /// After so many requests and answers, drawn anew for each life.
    Within(Range<u64>),
    /// At this step of its first life, and never again.
    Once(u64),
}

impl CrashPlan {
    /// The step at which a life ends, if it does.
    fn fuse(&self, life: u64, dice: Dice) -> Option<u64> {
        match self {
            CrashPlan::Within(steps) if !steps.is_empty() => {
                Some(steps.start + dice.below(steps.end - steps.start, &["steps"]))
            }
            CrashPlan::Once(step) if life == 1 => Some(*step),
            CrashPlan::Never | CrashPlan::Within(_) | CrashPlan::Once(_) => None,
        }
    }
}

/// How long it takes until a dead controller is back.
const DOWNTIME: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(15));

/// A handle to the controller process.
pub struct Controller(Arc<Shared>);

pub(super) struct Shared {
    pub brain: Brain,
    pub server: ApiServer,
    pub cloud: Arc<dyn CloudProvider>,
    pub clock: Arc<dyn Clock>,
    pub weather: Weather,
    pub history: History,
    pub dice: Dice,
    pub gate: Mutex<Gate>,
    pub plan: Mutex<CrashPlan>,
    pub window: Window,
    /// How many requests the controller has sent, over all of its lives.
    pub requests: Arc<AtomicU64>,
    pub rate: Option<Rate>,
}

impl Controller {
    pub(super) fn new(shared: Shared) -> Self {
        Self(Arc::new(shared))
    }

    /// Dies now.
    pub fn crash(&self) {
        self.0.gate.lock().close();
    }

    /// How many steps this life has taken towards the outside or back from it.
    pub fn steps(&self) -> u64 {
        self.0.gate.lock().steps()
    }

    pub fn requests(&self) -> u64 {
        self.0.requests.load(Ordering::Relaxed)
    }

    pub fn window(&self) -> &Window {
        &self.0.window
    }

    /// Counts from the next life on.
    pub fn plan(&self, plan: CrashPlan) {
        *self.0.plan.lock() = plan;
    }

    /// One life after the other, forever.
    pub(super) async fn run(shared: Arc<Shared>) {
        for life in 1.. {
            let dice = shared.dice.nth(life);
            let gate = Gate::default();
            if let Some(step) = shared.plan.lock().fuse(life, dice) {
                gate.burn_out_after(step);
            }
            *shared.gate.lock() = gate.clone();
            let parts = Parts {
                client: Line {
                    rate: shared.rate.clone(),
                    server: shared.server.clone(),
                    weather: shared.weather.clone(),
                    gate: gate.clone(),
                    history: shared.history.clone(),
                    dice: shared.dice.of("line"),
                    count: Arc::clone(&shared.requests),
                }
                .client(),
                cloud: Arc::new(Bridge {
                    cloud: Arc::clone(&shared.cloud),
                    gate: gate.clone(),
                    history: shared.history.clone(),
                }),
                clock: Arc::clone(&shared.clock),
                seed: dice.throw(&["seed"]),
                window: shared.window.clone(),
            };
            shared.history.note("controller", format!("starts, life {life}"));
            let life = (shared.brain)(parts);
            tokio::select! {
                biased;
                () = gate.closed() => {}
                () = life => shared.history.note("controller", "gives up"),
            }
            gate.close();
            shared.history.note("controller", "dies");
            sleep(dice.between(DOWNTIME.0, DOWNTIME.1, &["downtime"])).await;
        }
    }

    pub(super) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.0)
    }
}
