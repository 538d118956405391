//! Gives every node template its class, and a copy for each kubelet that differs; tells it what its selectors mean.

use async_trait::async_trait;
use controllers::{
    error::StepError,
    runtime::{Action, Reconcile},
};
use kube::ResourceExt;
use serde_json::{Map, Value};
use state::{Event, View};

use crate::{
    LegacyCtx, Source,
    follow::{AGAIN, Verdict, settle, source_of},
    provisioner::template_of,
    status,
};

pub struct NodeTemplates {
    legacy: LegacyCtx,
}

impl NodeTemplates {
    pub fn new(legacy: &LegacyCtx) -> Self {
        Self {
            legacy: legacy.of(Self::NAME),
        }
    }

    async fn tell(&self, name: &str, verdict: &Verdict) -> Result<(), StepError> {
        let ctx = &self.legacy.ctx;
        let view = ctx.index.view();
        let Some(stored) = view.node_templates.named(name) else {
            return Ok(());
        };
        let class = self.legacy.class(&view, name);
        let class = class.filter(|_| !matches!(verdict, Verdict::NameConflict { .. }));
        let mut told = (**stored).clone();
        let old = stored.data.get("status").cloned().unwrap_or(Value::Null);
        let mut conditions = status::conditions(&old, stored.metadata.generation);
        status::note(&mut conditions, verdict, ctx.clock.now());
        let mut new = status::with_conditions(old, conditions);
        for (field, kept) in RESOLVED {
            let found = class.and_then(|class| class.object.data.pointer(&format!("/status/{field}")));
            match found.and_then(Value::as_array) {
                Some(list) => new[*field] = list.iter().map(|one| with_fields(one, kept)).collect(),
                None => drop(new.as_object_mut().and_then(|status| status.remove(*field))),
            }
        }
        told.data["status"] = new;
        ctx.writer.update_status(&**stored, &told).await?;
        Ok(())
    }
}

/// What the selectors of a class resolved to, and as much of it as templates used to say.
const RESOLVED: &[(&str, &[&str])] = &[
    ("subnets", &["id", "zone"]),
    ("securityGroups", &["id", "name"]),
    ("amis", &["id", "name", "requirements"]),
];

fn with_fields(one: &Value, kept: &[&str]) -> Value {
    let fields = kept
        .iter()
        .filter_map(|field| Some(((*field).to_owned(), one.get(*field)?.clone())));
    Value::Object(fields.collect::<Map<_, _>>())
}

#[async_trait]
impl Reconcile for NodeTemplates {
    /// The name of the template.
    type Key = String;
    type Error = StepError;
    const NAME: &'static str = "legacy.awsnodetemplate";
    const CONCURRENCY: usize = 10;

    fn keys(&self, event: &Event, view: &View, add: &mut dyn FnMut(String)) {
        match event {
            Event::NodeTemplate(change) => add(change.key.name.to_string()),
            Event::Provisioner(change) => {
                let states = [&change.old, &change.new].into_iter().flatten();
                for template in states.filter_map(|state| template_of(&state.data)) {
                    add(template.to_owned());
                }
            }
            Event::GlobalSettings(_) => view.node_templates.values().for_each(|stored| add(stored.name_any())),
            Event::NodeClass(change) => {
                if let Some(Source::NodeTemplate(name)) = change.latest().and_then(|class| source_of(&class.object)) {
                    add(name);
                } else if view.node_templates.named(&change.key.name).is_some() {
                    add(change.key.name.to_string());
                }
            }
            // A copy of a class is removed when the last pool that used it has moved on.
            Event::Pool(change) => {
                let Some(provisioner) = view.provisioners.named(&change.key.name) else {
                    return;
                };
                if let Some(template) = template_of(&provisioner.data) {
                    add(template.to_owned());
                }
            }
            _ => {}
        }
    }

    async fn reconcile(&self, name: &String) -> Result<Action, StepError> {
        let Some(verdict) = settle(&self.legacy, &Source::NodeTemplate(name.clone())).await? else {
            return Ok(Action::AwaitChange);
        };
        self.tell(name, &verdict).await?;
        Ok(Action::After(AGAIN))
    }
}
