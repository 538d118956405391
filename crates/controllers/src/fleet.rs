//! All controllers, ready to run.

use std::sync::Arc;

use futures::future::BoxFuture;
use state::Served;
use tokio::sync::mpsc;

use crate::{
    capacity_buffer::CapacityBuffers,
    catalog::Catalogs,
    context::Ctx,
    disruption::Disruption,
    interruption::Interruption,
    node::{
        eviction::{EvictionQueue, Evictions},
        health::Health,
        termination::Termination,
    },
    node_claim::{
        consistency::Consistency, disruption::DisruptionMarks, expiration::Expiration,
        garbage_collection::GarbageCollection, lifecycle::Lifecycle, pod_events::PodEvents,
    },
    node_pool::NodePools,
    observer::Observer,
    overlay::NodeOverlays,
    provisioning::{Provisioner, unreadable::UnreadablePods},
    runtime::{Reconcile, Router, Worker},
    static_capacity::{deprovisioning::StaticDeprovisioning, provisioning::StaticProvisioning},
    vitals,
};

/// Something that runs until it is dropped.
pub struct Task {
    pub name: &'static str,
    pub run: BoxFuture<'static, ()>,
}

/// Controllers on their way into service.
pub struct Fleet {
    ctx: Ctx,
    router: Router,
    tasks: Vec<Task>,
}

impl Fleet {
    /// All that a controller can touch.
    pub fn ctx(&self) -> &Ctx {
        &self.ctx
    }

    pub fn add<R: Reconcile>(&mut self, controller: R) {
        let (sender, keys) = mpsc::unbounded_channel();
        self.add_with(controller, sender, keys);
    }

    fn add_with<R: Reconcile>(
        &mut self,
        controller: R,
        sender: mpsc::UnboundedSender<R::Key>,
        keys: mpsc::UnboundedReceiver<R::Key>,
    ) {
        let controller = Arc::new(controller);
        self.router.route(controller.clone(), sender);
        let worker = Worker::new(controller, keys, self.ctx.index.clone(), self.ctx.metrics.clone());
        self.push(R::NAME, worker.run());
    }

    fn push(&mut self, name: &'static str, run: impl Future<Output = ()> + Send + 'static) {
        self.tasks.push(Task {
            name,
            run: Box::pin(run),
        });
    }
}

/// Every controller of the program, as tasks that begin to work once the index is synced. `join` adds those that only
/// the provider at hand has.
pub fn all(ctx: &Ctx, join: impl FnOnce(&mut Fleet)) -> Vec<Task> {
    let mut fleet = Fleet {
        ctx: ctx.clone(),
        router: Router::new(ctx.index.clone()),
        tasks: Vec::new(),
    };
    let (wake, victims) = mpsc::unbounded_channel();
    let evictions = Arc::new(Evictions::new(wake.clone()));

    fleet.add(Catalogs::new(ctx));
    fleet.add(NodePools::new(ctx));
    fleet.add(Lifecycle::new(ctx));
    fleet.add(Expiration::new(ctx));
    fleet.add(GarbageCollection::new(ctx));
    fleet.add(Consistency::new(ctx));
    fleet.add(Interruption::new(ctx));
    fleet.add(PodEvents::new(ctx));
    fleet.add(UnreadablePods::new(ctx));
    fleet.add(DisruptionMarks::new(ctx));
    fleet.add(Termination::new(ctx, served(ctx), evictions.clone()));
    fleet.add_with(EvictionQueue::new(ctx, evictions), wake, victims);
    if ctx.knobs.features.static_capacity {
        fleet.add(StaticProvisioning::new(ctx));
        fleet.add(StaticDeprovisioning::new(ctx));
    }
    if ctx.knobs.features.capacity_buffer {
        ctx.index.await_room();
        fleet.add(CapacityBuffers::new(ctx));
    }
    if ctx.knobs.features.node_overlay {
        fleet.add(NodeOverlays::new(ctx));
    }
    if ctx.knobs.node_repair && !ctx.cloud.repair_policies().is_empty() {
        fleet.add(Health::new(ctx));
    }
    join(&mut fleet);
    fleet.push(Provisioner::NAME, Provisioner::new(ctx).run());
    fleet.push(Disruption::NAME, Disruption::new(ctx).run());
    fleet.push(Observer::NAME, Observer::new(ctx).run());
    fleet.push("state.pricing", vitals::prices(ctx.clone()));
    fleet.push("vitals", vitals::run(ctx.clone()));

    let Fleet { router, mut tasks, .. } = fleet;
    tasks.push(Task {
        name: "router",
        run: Box::pin(router.run()),
    });
    tasks
}

/// What the provider serves, in the index's words.
pub fn served(ctx: &Ctx) -> Served {
    let kinds = ctx.cloud.node_classes().iter();
    Served::new(kinds.map(|kind| (kind.group.to_owned(), kind.kind.to_owned())))
}
