//! Takes over what runs: machines of the releases 0.28 to 0.32, and nodes of those before, become claims of the pool that
//! their Provisioner became. Nothing is launched and nothing is drained.
//!
//! ```text
//!   Machine ──► claim that adopts its instance ──► the machine's finalizer goes, then the machine
//!   Node with a Provisioner's label, no machine, no claim ──► claim that adopts its instance
//! ```
//!
//! The claim says in an annotation which instance it adopts, so that the controller of claims asks the cloud for that one
//! instead of launching another. Every step can be read off the objects: a restart resumes.

mod act;
mod decide;

use async_trait::async_trait;
use controllers::{
    error::StepError,
    runtime::{Action, Reconcile},
};
use kube::ResourceExt;
use state::{Event, View};

use crate::LegacyCtx;

pub struct Machines {
    legacy: LegacyCtx,
}

impl Machines {
    pub fn new(legacy: &LegacyCtx) -> Self {
        Self {
            legacy: legacy.of(Self::NAME),
        }
    }
}

/// What runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Running {
    Machine(String),
    Node(String),
}

#[async_trait]
impl Reconcile for Machines {
    type Key = Running;
    type Error = StepError;
    const NAME: &'static str = "legacy.machine";
    const CONCURRENCY: usize = 10;

    fn keys(&self, event: &Event, view: &View, add: &mut dyn FnMut(Running)) {
        match event {
            Event::Machine(change) => add(Running::Machine(change.key.name.to_string())),
            // All other nodes report every few seconds, and are nobody's business here.
            Event::Node(change) if change.new.as_ref().is_some_and(|node| decide::is_of_the_time(node)) => {
                add(Running::Node(change.key.name.to_string()));
            }
            // What waits for its pool goes on when the pool is there, and a machine goes when its claim is there.
            Event::Pool(change) if change.old.is_none() => {
                view.machines
                    .values()
                    .for_each(|machine| add(Running::Machine(machine.name_any())));
                view.nodes.values().for_each(|node| add(Running::Node(node.name_any())));
            }
            Event::Claim(change) if view.machines.named(&change.key.name).is_some() => {
                add(Running::Machine(change.key.name.to_string()));
            }
            // Nodes may have been told of before the machines were.
            Event::Synced => view.nodes.values().for_each(|node| add(Running::Node(node.name_any()))),
            _ => {}
        }
    }

    async fn reconcile(&self, running: &Running) -> Result<Action, StepError> {
        let view = self.legacy.ctx.index.view();
        if !view.synced {
            return Ok(Action::AwaitChange);
        }
        match running {
            Running::Machine(name) => {
                if let Some(machine) = view.machines.named(name) {
                    act::take_over(&self.legacy, &view, machine).await?;
                }
            }
            Running::Node(name) => act::take_in(&self.legacy, &view, name).await?,
        }
        Ok(Action::AwaitChange)
    }
}
