//! Marks on node claims that disruption goes by: whether the node has been left alone for long enough to be
//! consolidated, and whether it has drifted from what its pool or its node class asks for.

mod consolidatable;
mod drifted;

use std::time::Duration;

use api::{
    conditions::node_claim as condition,
    labels::annotations,
    v1::{NodeClaim, NodePool},
};
use async_trait::async_trait;
use disruption::drift::detect::{Drift, TemplateHash, drift, is_sold};
use jiff::Timestamp;
use kube::ResourceExt;
use model::{Claim, ClaimName, NodeKey, Pool};
use parking_lot::Mutex;
use provider::ProviderError;
use state::{Event, View};

use self::{
    consolidatable::{Mark, decide},
    drifted::{Known, Memory, RECHECK},
};
use super::Draft;
use crate::{
    context::Ctx,
    error::{CloudError, StepError},
    objects::{instance_under, is_deleting, pool_of},
    runtime::{Action, Reconcile},
};

pub struct DisruptionMarks {
    ctx: Ctx,
    memory: Mutex<Memory>,
}

impl DisruptionMarks {
    pub fn new(ctx: &Ctx) -> Self {
        Self {
            ctx: ctx.of(Self::NAME),
            memory: Mutex::default(),
        }
    }

    /// Its node says in the words of the time of Provisioners that it is not to be consolidated.
    fn is_kept(&self, view: &View, facts: &Claim) -> bool {
        let instance = facts.provider_id.as_ref().filter(|_| self.ctx.knobs.old_words);
        let nodes = instance
            .map(|instance| view.nodes_of(instance.as_str()))
            .unwrap_or_default();
        nodes.iter().any(|node| {
            node.annotations()
                .get(annotations::DO_NOT_CONSOLIDATE)
                .is_some_and(|word| word == "true")
        })
    }

    async fn drift(
        &self,
        view: &View,
        claim: &NodeClaim,
        facts: &Claim,
        pool: (&NodePool, &Pool),
        now: Timestamp,
    ) -> Result<Option<Drift>, StepError> {
        let (stored, pool) = pool;
        let noted = stored.annotations();
        let template = TemplateHash {
            hash: noted.get(annotations::NODE_POOL_HASH).map(String::as_str),
            version: noted.get(annotations::NODE_POOL_HASH_VERSION).map(String::as_str),
        };
        let catalog = view.snapshot.catalogs.get(&pool.name).map(|catalog| &**catalog);
        let vocabulary = &view.snapshot.vocabulary;
        if catalog.is_some_and(|catalog| is_sold(facts, catalog, vocabulary)) {
            self.memory.lock().saw_for_sale(&facts.name, now);
        }
        let found = drift(facts, pool, template, catalog, vocabulary, now);
        let found =
            found.filter(|found| *found != Drift::InstanceType || !self.memory.lock().was_for_sale(&facts.name, now));
        let (None, Some(instance)) = (&found, &facts.provider_id) else {
            return Ok(found);
        };
        let class = view.class(&claim.spec.node_class_ref);
        let class = class.and_then(|class| class.object.resource_version());
        let remembered = self.memory.lock().answer(&facts.name, now, class.as_deref());
        let answer = match remembered {
            Some(answer) => answer,
            None => {
                let answer = match self.ctx.cloud.drift(instance, &facts.class).await {
                    Ok(answer) => answer,
                    // Its claim is about to go as well.
                    Err(ProviderError::Gone { .. }) => return Ok(None),
                    Err(cause) => {
                        let action = "say whether an instance has drifted";
                        return Err(CloudError { action, cause }.into());
                    }
                };
                let known = Known::new(now, class, answer.clone());
                self.memory.lock().learn(&facts.name, known);
                answer
            }
        };
        Ok(answer.map(Drift::Provider))
    }
}

#[async_trait]
impl Reconcile for DisruptionMarks {
    type Key = ClaimName;
    type Error = StepError;
    const NAME: &'static str = "nodeclaim.disruption";
    const CONCURRENCY: usize = 100;

    fn keys(&self, event: &Event, view: &View, add: &mut dyn FnMut(ClaimName)) {
        let claims = view.claims.values();
        let add_all = |concerns: &dyn Fn(&NodeClaim) -> bool| {
            for claim in claims.filter(|claim| concerns(claim)) {
                add(claim.metadata.name.as_deref().unwrap_or_default().into());
            }
        };
        match event {
            Event::Claim(change) if change.new.is_some() => add((&*change.key.name).into()),
            Event::Claim(change) => self.memory.lock().forget(&(&*change.key.name).into()),
            Event::Pool(change) => add_all(&|claim| pool_of(claim) == &*change.key.name),
            Event::Catalog(pool) => add_all(&|claim| pool_of(claim) == pool.as_str()),
            Event::Node(change) if self.ctx.knobs.old_words => {
                let instance = change
                    .latest()
                    .and_then(|node| instance_under(node))
                    .unwrap_or_default();
                let claims = view.claims_of(instance);
                claims.into_iter().for_each(|claim| add(claim.name_any().into()));
            }
            Event::NodeClass(change) => add_all(&|claim| claim.spec.node_class_ref.name == *change.key.name),
            _ => {}
        }
    }

    async fn reconcile(&self, name: &ClaimName) -> Result<Action, StepError> {
        let view = self.ctx.index.view();
        let machine = view.snapshot.nodes.get(&NodeKey::Claim(name.clone()));
        let (Some(facts), Some(claim)) = (machine.and_then(|m| m.claim.as_ref()), view.claims.named(name.as_str()))
        else {
            return Ok(Action::AwaitChange);
        };
        let pool = facts.pool.as_ref().and_then(|pool| view.snapshot.pools.get(pool));
        let stored = facts.pool.as_ref().and_then(|pool| view.pools.named(pool.as_str()));
        let (Some(pool), Some(stored)) = (pool, stored) else {
            return Ok(Action::AwaitChange);
        };
        if is_deleting(&**claim) {
            return Ok(Action::AwaitChange);
        }
        let now = self.ctx.clock.now();
        let drift = self.drift(&view, claim, facts, (stored, pool), now).await;
        let mark = match decide(facts, pool, now) {
            Mark::Set if self.is_kept(&view, facts) => Mark::Clear,
            mark => mark,
        };
        let mut draft = Draft::of(claim, now);
        match mark {
            Mark::Set => draft.conditions.set_true(condition::CONSOLIDATABLE, now),
            Mark::Clear | Mark::ClearUntil(_) => draft.conditions.clear(condition::CONSOLIDATABLE),
        };
        match &drift {
            Ok(Some(drift)) => {
                draft
                    .conditions
                    .set_true_because(condition::DRIFTED, drift.reason(), drift.reason(), now)
            }
            Ok(None) => draft.conditions.clear(condition::DRIFTED),
            // What is not known now is as it was; the other mark does not hang on it.
            Err(_) => false,
        };
        draft.write(&self.ctx.writer).await?;
        drift?;
        let wait = match mark {
            Mark::ClearUntil(wait) => wait.unsigned_abs().max(Duration::from_millis(1)),
            Mark::Set | Mark::Clear => RECHECK,
        };
        Ok(Action::After(wait.min(RECHECK)))
    }
}
