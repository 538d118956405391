//! Keeps a node pool's own account: whether it may be used, what it uses, and the hash that drift is told by.
//!
//! Five questions, one pass, at most one patch of the metadata and one of the status:
//! [`validation`], [`readiness`], [`registration_health`], [`counter`], [`hash`].

pub(crate) mod counter;
mod hash;
mod readiness;
pub mod registration_health;
mod validation;

use std::{collections::BTreeMap, time::Duration};

use api::{
    conditions::Conditions,
    v1::{NodeClaim, NodePool},
};
use async_trait::async_trait;
use kube::ResourceExt;
use model::{PoolName, Resources};
use parking_lot::Mutex;
use state::{Event, View};
use tokio::time::Instant;
use tracing::error;

use crate::{
    context::Ctx,
    error::StepError,
    objects::{is_deleting, pool_of},
    runtime::{Action, Reconcile},
};

/// How often a pool's totals are taken. They follow every machine that comes or goes, and nobody reads them that fast.
const COUNT_EVERY: Duration = Duration::from_secs(5);

pub struct NodePools {
    ctx: Ctx,
    /// When a pool was last counted.
    counted: Mutex<BTreeMap<PoolName, Instant>>,
}

impl NodePools {
    pub fn new(ctx: &Ctx) -> Self {
        Self {
            ctx: ctx.of(Self::NAME),
            counted: Mutex::default(),
        }
    }

    /// How long until the pool may be counted again.
    fn recount_in(&self, name: &PoolName) -> Option<Duration> {
        let due = *self.counted.lock().get(name)? + COUNT_EVERY;
        let now = Instant::now();
        (due > now).then(|| due - now)
    }

    fn count(&self, view: &View, name: &PoolName) -> Resources {
        self.counted.lock().insert(name.clone(), Instant::now());
        counter::usage(&view.snapshot, name)
    }

    /// Claims are stamped before their pool, so that a crash in between repeats the work instead of drifting them.
    async fn restamp(&self, view: &View, pool: &NodePool, hash: &str) -> Result<(), StepError> {
        if !hash::is_from_another_version(pool) {
            return Ok(());
        }
        let name = pool.name_any();
        for claim in view.claims.values().filter(|claim| pool_of(&***claim) == name) {
            if let Some(stamped) = hash::restamped(claim, hash) {
                self.ctx.writer.update::<NodeClaim>(claim, &stamped).await?;
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Reconcile for NodePools {
    type Key = PoolName;
    type Error = StepError;
    const NAME: &'static str = "nodepool.readiness";
    const CONCURRENCY: usize = 10;

    fn keys(&self, event: &Event, view: &View, add: &mut dyn FnMut(PoolName)) {
        match event {
            Event::Pool(change) => add((&*change.key.name).into()),
            Event::NodeClass(change) => {
                for pool in view.pools.values() {
                    let class = &pool.spec.template.spec.node_class_ref;
                    if class.name == *change.key.name
                        && format!("{}/{}", class.group, class.kind) == *change.key.namespace
                    {
                        add(pool.name_any().into());
                    }
                }
            }
            Event::Claim(change) => {
                if let Some(pool) = change
                    .latest()
                    .map(|claim| pool_of(&**claim))
                    .filter(|pool| !pool.is_empty())
                {
                    add(pool.into());
                }
            }
            Event::Node(change) => {
                if let Some(pool) = change
                    .latest()
                    .map(|node| pool_of(&**node))
                    .filter(|pool| !pool.is_empty())
                {
                    add(pool.into());
                }
            }
            _ => {}
        }
    }

    async fn reconcile(&self, name: &PoolName) -> Result<Action, StepError> {
        let view = self.ctx.index.view();
        let Some(pool) = view.pools.named(name.as_str()).filter(|pool| !is_deleting(&***pool)) else {
            self.counted.lock().remove(name);
            return Ok(Action::AwaitChange);
        };
        let mut wanted = NodePool::clone(pool);
        match api::hash::node_pool(pool) {
            Ok(hash) => {
                self.restamp(&view, pool, &hash).await?;
                hash::stamp(&mut wanted, &hash);
            }
            // Validation says the same to the user; here it only means that there is nothing to compare.
            Err(cause) => error!(NodePool = %name, error = %cause, "could not hash the template"),
        }
        let stored = self.ctx.writer.update(&**pool, &wanted).await?;

        let now = self.ctx.clock.now();
        let mut wanted = stored.clone();
        let mut conditions = Conditions::of(&stored, now);
        let class = view.class(&stored.spec.template.spec.node_class_ref);
        validation::check(&stored, &view.snapshot.vocabulary).note(&mut conditions, now);
        readiness::check(class.map(|class| &**class)).note(&mut conditions, now);
        registration_health::check(
            &self.ctx.health,
            &mut wanted,
            class.map(|class| &**class),
            &mut conditions,
            now,
        );

        let status = wanted.status.get_or_insert_default();
        let recount = self.recount_in(name);
        if recount.is_none() {
            counter::note(&self.count(&view, name), status);
        }
        status.conditions = Some(conditions.into_list());
        self.ctx.writer.update_status(&stored, &wanted).await?;
        Ok(recount.map_or(Action::AwaitChange, Action::After))
    }
}
