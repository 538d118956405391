//! The controller process: it lives, dies and comes back.

use std::{
    future::Future,
    ops::Range,
    pin::Pin,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use clock::Clock;
use kube::Client;
use kube_mem::ApiServer;
use operator::{Engine, settings::Settings};
use parking_lot::Mutex;
use provider::CloudProvider;
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
            // A controller that breaks down is a finding, and not one that a restart may hide.
            let outcome = engine.run(&CancellationToken::new()).await;
            outcome.expect("controllers run until they are dropped");
        })
    })
}

/// When the controller dies by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrashPlan {
    /// After so many requests and answers, drawn anew for each life. Empty means that it lives on.
    pub steps: Range<u64>,
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
}

impl Controller {
    pub(super) fn new(shared: Shared) -> Self {
        Self(Arc::new(shared))
    }

    /// Dies now.
    pub fn crash(&self) {
        self.0.gate.lock().close();
    }

    /// Counts from the next life on.
    pub fn plan(&self, plan: CrashPlan) {
        *self.0.plan.lock() = plan;
    }

    /// One life after the other, forever.
    pub(super) async fn run(shared: Arc<Shared>) {
        let requests = Arc::new(AtomicU64::new(0));
        for life in 1.. {
            let dice = shared.dice.nth(life);
            let plan = shared.plan.lock().clone();
            let gate = Gate::default();
            if !plan.steps.is_empty() {
                let steps = plan.steps.end - plan.steps.start;
                gate.burn_out_after(plan.steps.start + dice.below(steps, &["steps"]));
            }
            *shared.gate.lock() = gate.clone();
            let parts = Parts {
                client: Line {
                    server: shared.server.clone(),
                    weather: shared.weather.clone(),
                    gate: gate.clone(),
                    history: shared.history.clone(),
                    dice: shared.dice.of("line"),
                    count: Arc::clone(&requests),
                }
                .client(),
                cloud: Arc::new(Bridge {
                    cloud: Arc::clone(&shared.cloud),
                    gate: gate.clone(),
                    history: shared.history.clone(),
                }),
                clock: Arc::clone(&shared.clock),
                seed: dice.throw(&["seed"]),
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
