//! Tells the metrics how well the index knows the cluster.

use std::time::Duration;

use model::ClaimName;
use tokio::time::{Instant, sleep};
use tracing::error;

use crate::{context::Ctx, metrics::cost};

const EVERY: Duration = Duration::from_secs(5);
/// From then on it is worth a line in the log.
const TOO_LONG: Duration = Duration::from_secs(30);

/// How often machines without a price are looked for.
const PRICES_EVERY: Duration = Duration::from_secs(60 * 60);

/// Says which machines cost an unknown amount. Runs until it is dropped.
pub async fn prices(ctx: Ctx) {
    loop {
        sleep(PRICES_EVERY).await;
        let view = ctx.index.view();
        for (pool, cost) in cost::by_pool(&view.snapshot) {
            let unpriced = cost.unpriced();
            // A pool without a catalog has no prices at all, which is told elsewhere.
            if unpriced > 0 && view.snapshot.catalogs.contains_key(&pool) {
                ctx.metrics.cost_errors(pool.as_str(), unpriced);
                error!(NodePool = %pool, nodeclaims = unpriced, error = "the catalog does not know their offering", "could not price nodeclaims");
            }
        }
    }
}

/// Runs until it is dropped.
pub async fn run(ctx: Ctx) {
    let mut in_sync = Instant::now();
    loop {
        let view = ctx.index.view();
        let synced = view.synced && view.unlaunched.is_empty();
        if synced {
            in_sync = Instant::now();
        }
        let unsynced = in_sync.elapsed();
        ctx.metrics.cluster.synced(synced, view.snapshot.nodes.len(), unsynced);
        if unsynced > TOO_LONG {
            let waiting = view
                .unlaunched
                .iter()
                .map(ClaimName::as_str)
                .collect::<Vec<_>>()
                .join(", ");
            error!(unsynced_secs = unsynced.as_secs(), unlaunched = %waiting, error = "not synced", "waiting on cluster sync");
        }
        sleep(EVERY).await;
    }
}
