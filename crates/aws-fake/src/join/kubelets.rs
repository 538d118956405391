//! The world's kubelet for clusters that have nobody else to run pods on simulated nodes.

use std::sync::Arc;

use clock::Clock;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Client;
use tokio::task::JoinSet;
use world::{
    component::{self, Component, Ctx},
    dice::Dice,
    kubelet::{Machines, pods::Pods, readiness::Readiness},
    mirror::{Listener, Mirror, informer},
};

use crate::{Fake, region::instances::State};

/// Machines run as long as their instances do.
pub struct Instances(pub Fake);

impl Machines for Instances {
    fn is_running(&self, node: &Node) -> bool {
        let id = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref());
        let Some(id) = id.and_then(|id| id.rsplit('/').next()) else {
            return false;
        };
        self.0.with(|state, now| {
            let instance = state.region.instances.get(id);
            instance.is_some_and(|instance| instance.state(now) == State::Running)
        })
    }
}

/// Makes nodes ready and runs their pods until it is dropped.
pub fn kubelets(fake: &Fake, client: &Client, clock: &Arc<dyn Clock>) -> JoinSet<()> {
    let machines: Arc<dyn Machines> = Arc::new(Instances(fake.clone()));
    let mut listeners: Vec<Listener> = Vec::new();
    let readiness = prepared(Readiness::new(Arc::clone(&machines)), &mut listeners);
    let pods = prepared(Pods::new(machines), &mut listeners);
    let mirror = Arc::new(Mirror::new(listeners, None));
    let ctx = Ctx {
        client: client.clone(),
        mirror: Arc::clone(&mirror),
        clock: Arc::clone(clock),
        dice: Dice::seeded(0),
    };
    let mut tasks = JoinSet::new();
    readiness(ctx.clone(), &mut tasks);
    pods(ctx, &mut tasks);
    tasks.spawn(informer::run::<Node>(client.clone(), Arc::clone(&mirror)));
    tasks.spawn(informer::run::<Pod>(client.clone(), mirror));
    tasks
}

/// Its listener has to exist before the mirror, its task comes after it.
fn prepared<C: Component>(component: C, listeners: &mut Vec<Listener>) -> impl FnOnce(Ctx, &mut JoinSet<()>) + use<C> {
    let (queue, listener) = component::listener::<C>();
    listeners.push(listener);
    move |ctx, tasks| {
        tasks.spawn(component::run(component, ctx, queue));
    }
}
