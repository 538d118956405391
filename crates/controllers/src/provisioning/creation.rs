//! Creates one claim, whatever it was decided for.

use std::time::Duration;

use api::v1::NodeClaim;
use kube::ResourceExt;
use tokio::time::{Instant, sleep};
use tracing::error;

use super::names;
use crate::{
    context::Ctx,
    error::chain,
    objects::pool_of,
    runtime::Pace,
    writer::{ApiError, ApiFailure},
};

/// How many claims one decision creates at once.
pub const PARALLEL: usize = 50;
/// Waits between attempts to create one claim.
const PACE: Pace = Pace::new(Duration::from_millis(100), Duration::from_secs(5));

/// A claim to be created, under a name that is ours from the first attempt to the last.
pub struct Creation {
    claim: NodeClaim,
}

impl Creation {
    /// Gives the claim a name that nobody has yet.
    pub fn of(ctx: &Ctx, claim: NodeClaim) -> Self {
        let mut creation = Self { claim };
        creation.rename(ctx);
        creation
    }

    fn rename(&mut self, ctx: &Ctx) {
        let view = ctx.index.view();
        let prefix = self.claim.metadata.generate_name.clone().unwrap_or_default();
        let mut random = ctx.random.lock();
        let name = names::fresh(&prefix, &mut *random, |name| view.claims.named(name).is_some());
        self.claim.metadata.name = Some(name);
    }

    /// Tries until the server has said yes or no. Giving up on a creation with an unknown outcome would let the next
    /// decision order the same again.
    pub async fn carry_out(self, ctx: &Ctx) -> Result<NodeClaim, ApiError> {
        self.persist(ctx, None).await
    }

    /// As [`carry_out`](Self::carry_out), for whoever would rather decide anew than wait: no attempt begins after this
    /// time. Where an attempt may have been heard, the server is asked about it once more before it is given up.
    pub async fn carry_out_within(self, ctx: &Ctx, patience: Duration) -> Result<NodeClaim, ApiError> {
        self.persist(ctx, Some(Instant::now() + patience)).await
    }

    async fn persist(mut self, ctx: &Ctx, last: Option<Instant>) -> Result<NodeClaim, ApiError> {
        let mut failures = 0;
        let mut maybe_created = false;
        loop {
            match self.attempt(ctx, maybe_created).await {
                Ok(created) => return Ok(created),
                Err(Attempt::NameTaken) => self.rename(ctx),
                Err(Attempt::Refused(cause)) => {
                    error!(NodePool = pool_of(&self.claim), error = %chain(&cause), "could not create nodeclaim");
                    return Err(cause);
                }
                Err(Attempt::Failed(cause)) => {
                    maybe_created |= matches!(cause.failure, ApiFailure::Unknown | ApiFailure::Internal);
                    let wait = PACE.after(failures).max(cause.retry_after.unwrap_or_default());
                    if last.is_some_and(|last| Instant::now() + wait > last) {
                        error!(NodePool = pool_of(&self.claim), error = %chain(&cause), "could not create nodeclaim in time");
                        let found = if maybe_created { self.found(ctx).await } else { Ok(None) };
                        return found.ok().flatten().ok_or(cause);
                    }
                    error!(NodePool = pool_of(&self.claim), error = %chain(&cause), "creating nodeclaim again");
                    sleep(wait).await;
                    failures += 1;
                }
            }
        }
    }

    async fn attempt(&self, ctx: &Ctx, maybe_created: bool) -> Result<NodeClaim, Attempt> {
        let cause = match ctx.writer.create(&self.claim).await {
            Ok(created) => return Ok(created),
            Err(cause) => cause,
        };
        match cause.failure {
            ApiFailure::AlreadyExists if maybe_created => {
                let found = self.found(ctx).await.map_err(Attempt::Failed)?;
                found.ok_or(Attempt::NameTaken)
            }
            ApiFailure::AlreadyExists => Err(Attempt::NameTaken),
            ApiFailure::Rejected | ApiFailure::NotFound | ApiFailure::Budget => Err(Attempt::Refused(cause)),
            ApiFailure::Conflict | ApiFailure::Throttled | ApiFailure::Internal | ApiFailure::Unknown => {
                Err(Attempt::Failed(cause))
            }
        }
    }

    /// What an earlier attempt has created, if its answer was lost.
    async fn found(&self, ctx: &Ctx) -> Result<Option<NodeClaim>, ApiError> {
        let found: Option<NodeClaim> = ctx.writer.get(&self.claim.name_any()).await?;
        let ours = found.filter(|found| self.is_ours(found));
        if let Some(ours) = &ours {
            ctx.index.apply(ours.clone());
        }
        Ok(ours)
    }

    /// The object of an earlier attempt whose answer was lost. Two claims that ask for the same under one name are as
    /// good as one.
    fn is_ours(&self, found: &NodeClaim) -> bool {
        found.metadata.owner_references == self.claim.metadata.owner_references
            && found.spec.requirements == self.claim.spec.requirements
            && found.spec.resources == self.claim.spec.resources
    }
}

/// How an attempt failed.
enum Attempt {
    NameTaken,
    /// The server will not have it.
    Refused(ApiError),
    Failed(ApiError),
}
