//! Follows the changes of the index for the people who watch the cluster: how long pods wait, how conditions change, when
//! objects end. Decides nothing.

mod notices;

use api::{
    v1::{NodeClaim, NodePool},
    v1beta1::CapacityBuffer,
};
use jiff::Timestamp;
use k8s_openapi::{api::core::v1::Node, apimachinery::pkg::apis::meta::v1::Condition};
use provider::NodeClassKind;
use state::{Change, Changes, Event, NodeClass};

use crate::{
    context::Ctx,
    metrics::kinds::{
        self, Object, Watched, buffer_object, claim_object, class_conditions, node_conditions, object, pool_object,
    },
    objects::{about_claim, about_node},
    outbox::About,
};

pub struct Observer {
    ctx: Ctx,
    changes: Changes,
    claims: Watched,
    pools: Watched,
    nodes: Watched,
    buffers: Watched,
    classes: Vec<(NodeClassKind, Watched)>,
}

impl Observer {
    pub const NAME: &'static str = "observer";

    pub fn new(ctx: &Ctx) -> Self {
        let classes = ctx.cloud.node_classes();
        Self {
            ctx: ctx.clone(),
            changes: ctx.index.subscribe(),
            claims: kinds::claims_of(classes),
            pools: kinds::pools_of(),
            nodes: kinds::nodes_of(classes),
            buffers: kinds::buffers_of(),
            classes: classes.iter().map(|kind| (*kind, kinds::class_of(kind))).collect(),
        }
    }

    /// Runs until it is dropped.
    pub async fn run(mut self) {
        while let Some(event) = self.changes.recv().await {
            self.saw(&event, self.ctx.clock.now());
        }
    }

    fn saw(&self, event: &Event, now: Timestamp) {
        // Node classes are the provider's affair and are followed in any case.
        match event {
            Event::NodeClass(change) => return self.saw_class(change, now),
            _ if !self.ctx.knobs.observe_cluster => return,
            _ => {}
        }
        match event {
            Event::Pod(change) => self.ctx.metrics.pods.saw(&change.key, change.new.as_deref(), now),
            Event::Claim(change) => self.saw_claim(change, now),
            Event::Pool(change) => self.saw_pool(change, now),
            Event::Node(change) => self.saw_node(change, now),
            Event::Buffer(change) => self.saw_buffer(change, now),
            _ => {}
        }
    }

    fn saw_claim(&self, change: &Change<NodeClaim>, now: Timestamp) {
        let Some(about) = change.latest().map(|claim| about_claim(claim)) else {
            return;
        };
        let (old, new) = (
            change.old.as_deref().map(claim_object),
            change.new.as_deref().map(claim_object),
        );
        self.compare(&self.claims, old, new, about, now);
    }

    fn saw_pool(&self, change: &Change<NodePool>, now: Timestamp) {
        let Some(meta) = change.latest().map(|pool| &pool.metadata) else {
            return;
        };
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let about = About::pool(&text(&meta.name), &text(&meta.uid));
        let (old, new) = (
            change.old.as_deref().map(pool_object),
            change.new.as_deref().map(pool_object),
        );
        self.compare(&self.pools, old, new, about, now);
    }

    fn saw_node(&self, change: &Change<Node>, now: Timestamp) {
        let Some(about) = change.latest().map(|node| about_node(node)) else {
            return;
        };
        let conditions = |node: Option<&Node>| node.map(node_conditions).unwrap_or_default();
        let (before, after) = (conditions(change.old.as_deref()), conditions(change.new.as_deref()));
        let old = change.old.as_ref().map(|node| object(&node.metadata, &before));
        let new = change.new.as_ref().map(|node| object(&node.metadata, &after));
        self.compare(&self.nodes, old, new, about, now);
    }

    fn saw_buffer(&self, change: &Change<CapacityBuffer>, now: Timestamp) {
        let Some(buffer) = change.latest() else { return };
        let about = notices::about_buffer(buffer);
        let (old, new) = (
            change.old.as_deref().map(buffer_object),
            change.new.as_deref().map(buffer_object),
        );
        self.compare(&self.buffers, old, new, about, now);
    }

    fn saw_class(&self, change: &Change<NodeClass>, now: Timestamp) {
        let Some(class) = change.latest() else { return };
        let scope = &*change.key.namespace;
        let is_its = |(kind, _): &&(NodeClassKind, Watched)| scope == format!("{}/{}", kind.group, kind.kind);
        let Some((kind, watched)) = self.classes.iter().find(is_its) else {
            return;
        };
        let about = notices::about_class(kind, class);
        let conditions = |class: Option<&NodeClass>| class.map(class_conditions).unwrap_or_default();
        let (before, after) = (conditions(change.old.as_deref()), conditions(change.new.as_deref()));
        let old = change.old.as_ref().map(|class| object(&class.object.metadata, &before));
        let new = change.new.as_ref().map(|class| object(&class.object.metadata, &after));
        self.compare(watched, old, new, about, now);
    }

    fn compare(&self, kind: &Watched, old: Option<Object<'_>>, new: Option<Object<'_>>, about: About, now: Timestamp) {
        let metrics = &self.ctx.metrics.conditions;
        match (&old, &new) {
            (Some(old), Some(new)) => {
                for (before, after) in transitions(old.conditions, new.conditions) {
                    metrics.transitioned(kind, new, before, after);
                    self.ctx
                        .outbox
                        .publish(notices::transitioned(about.clone(), before, after));
                }
            }
            (Some(gone), None) => {
                if let Some(since) = gone.deleting {
                    metrics.terminated(kind, gone, now.duration_since(since).as_secs_f64());
                    if gone.is_held {
                        self.ctx.outbox.publish(notices::finalized(about));
                    }
                }
            }
            (None, _) => {}
        }
    }
}

/// Conditions that have another status than before. A condition that has just come has none to compare with.
fn transitions<'a>(old: &'a [Condition], new: &'a [Condition]) -> impl Iterator<Item = (&'a Condition, &'a Condition)> {
    new.iter().filter_map(|after| {
        let before = old.iter().find(|before| before.type_ == after.type_)?;
        (before.status != after.status).then_some((before, after))
    })
}
