//! Asks the provider what each pool may launch, and puts the answer, with overlays in force, where decisions find it.

mod shelves;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use kube::ResourceExt;
use model::PoolName;
use provider::ProviderError;
use state::{Event, View};
use tracing::error;

pub use shelves::{Shelves, Verdict, Verdicts};

use crate::{
    context::Ctx,
    error::{CloudError, chain},
    runtime::{Action, Reconcile},
};

/// Prices and availability move by themselves; a provider that caches answers at once.
const REFRESH_EVERY: Duration = Duration::from_secs(60);

pub struct Catalogs {
    ctx: Ctx,
}

impl Catalogs {
    pub fn new(ctx: &Ctx) -> Self {
        Self {
            ctx: ctx.of(Self::NAME),
        }
    }
}

#[async_trait]
impl Reconcile for Catalogs {
    type Key = PoolName;
    type Error = CloudError;
    const NAME: &'static str = "catalog";
    const CONCURRENCY: usize = 10;

    fn keys(&self, event: &Event, view: &View, add: &mut dyn FnMut(PoolName)) {
        match event {
            // A pool's status changes with every machine; what it may launch does not.
            Event::Pool(change) => {
                let generation =
                    |pool: &Option<Arc<api::v1::NodePool>>| pool.as_ref().and_then(|pool| pool.metadata.generation);
                if change.new.is_some() && (change.old.is_none() || generation(&change.old) != generation(&change.new))
                {
                    add((&*change.key.name).into());
                }
            }
            Event::NodeClass(change) => {
                for pool in view
                    .pools
                    .values()
                    .filter(|pool| pool.spec.template.spec.node_class_ref.name == *change.key.name)
                {
                    add(pool.name_any().into());
                }
            }
            _ => {}
        }
    }

    async fn reconcile(&self, pool: &PoolName) -> Result<Action, CloudError> {
        if !self.ctx.index.view().snapshot.pools.contains_key(pool) {
            return Ok(Action::AwaitChange);
        }
        fetch(&self.ctx, pool).await?;
        Ok(Action::After(REFRESH_EVERY))
    }
}

/// Looks again at once, for a caller who has just learnt that the catalog is out of date. A failure is left to the next
/// regular look.
pub async fn refresh(ctx: &Ctx, pool: &PoolName) {
    if let Err(failure) = fetch(ctx, pool).await {
        error!(NodePool = %pool, error = %chain(&failure), "skipping, unable to resolve instance types");
    }
}

async fn fetch(ctx: &Ctx, name: &PoolName) -> Result<(), CloudError> {
    let view = ctx.index.view();
    let Some(pool) = view.snapshot.pools.get(name) else {
        return Ok(());
    };
    match ctx.cloud.catalog(pool).await {
        Ok(catalog) => {
            ctx.shelves.put(name, Some(catalog));
            ctx.shelves.evaluate(&ctx.index);
            Ok(())
        }
        Err(cause) => {
            // A cloud that does not answer sells what it sold a minute ago; one that says no sells nothing.
            if !matches!(cause, ProviderError::Unavailable { .. }) {
                ctx.shelves.put(name, None);
                ctx.shelves.evaluate(&ctx.index);
            }
            let action = "list instance types";
            Err(CloudError { action, cause })
        }
    }
}
