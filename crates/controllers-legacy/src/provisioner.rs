//! Gives every Provisioner its NodePool, and the class of its inline provider; tells it how its nodes are.

use api::conditions::{self, HasConditions};
use async_trait::async_trait;
use controllers::{
    error::StepError,
    runtime::{Action, Reconcile},
};
use kube::ResourceExt;
use serde_json::{Value, json};
use state::{Event, View};

use crate::{
    LegacyCtx, Source,
    follow::{AGAIN, Verdict, settle, source_of},
    status,
};

pub struct Provisioners {
    legacy: LegacyCtx,
}

impl Provisioners {
    pub fn new(legacy: &LegacyCtx) -> Self {
        Self {
            legacy: legacy.of(Self::NAME),
        }
    }

    /// What the pool knows, in the words of the time. A pool that the Provisioner conflicts with is none of its own.
    async fn tell(&self, name: &str, verdict: &Verdict) -> Result<(), StepError> {
        let ctx = &self.legacy.ctx;
        let view = ctx.index.view();
        let Some(stored) = view.provisioners.named(name) else {
            return Ok(());
        };
        let pool = view.pools.named(name);
        let pool = pool.filter(|_| !matches!(verdict, Verdict::NameConflict { .. }));
        let now = ctx.clock.now();
        let mut told = (**stored).clone();
        let old = stored.data.get("status").cloned().unwrap_or(Value::Null);
        let mut conditions = status::conditions(&old, stored.metadata.generation);
        status::note(&mut conditions, verdict, now);
        let ready = pool.and_then(|pool| conditions::find(pool.conditions(), conditions::READY));
        status::note_active(&mut conditions, ready, now);
        let mut new = status::with_conditions(old, conditions);
        let resources = pool.and_then(|pool| pool.status.as_ref()?.resources.clone());
        new["resources"] = json!(resources.unwrap_or_default());
        told.data["status"] = new;
        ctx.writer.update_status(&**stored, &told).await?;
        Ok(())
    }
}

/// The node template that a Provisioner refers to.
pub fn template_of(object: &Value) -> Option<&str> {
    object.pointer("/spec/providerRef/name")?.as_str()
}

#[async_trait]
impl Reconcile for Provisioners {
    /// The name of the Provisioner.
    type Key = String;
    type Error = StepError;
    const NAME: &'static str = "legacy.provisioner";
    const CONCURRENCY: usize = 10;

    fn keys(&self, event: &Event, view: &View, add: &mut dyn FnMut(String)) {
        match event {
            // Those that share a template share its kubelet settings, too.
            Event::Provisioner(change) => {
                add(change.key.name.to_string());
                let states = [&change.old, &change.new].into_iter().flatten();
                for template in states.filter_map(|state| template_of(&state.data)) {
                    add_users(view, template, add);
                }
            }
            Event::NodeTemplate(change) => add_users(view, &change.key.name, add),
            Event::GlobalSettings(_) => view.provisioners.values().for_each(|stored| add(stored.name_any())),
            Event::Pool(change) if view.provisioners.named(&change.key.name).is_some() => {
                add(change.key.name.to_string());
            }
            Event::NodeClass(change) => {
                if let Some(Source::Provisioner(name)) = change.latest().and_then(|class| source_of(&class.object)) {
                    add(name);
                }
            }
            _ => {}
        }
    }

    async fn reconcile(&self, name: &String) -> Result<Action, StepError> {
        let Some(verdict) = settle(&self.legacy, &Source::Provisioner(name.clone())).await? else {
            return Ok(Action::AwaitChange);
        };
        self.tell(name, &verdict).await?;
        Ok(Action::After(AGAIN))
    }
}

fn add_users(view: &View, template: &str, add: &mut dyn FnMut(String)) {
    for stored in view.provisioners.values() {
        if template_of(&stored.data) == Some(template) {
            add(stored.name_any());
        }
    }
}
