//! Nodes report less memory than EC2 advertises. What the first node of a type reports counts for the next.

use api::labels;
use async_trait::async_trait;
use controllers::{
    error::StepError,
    runtime::{Action, Reconcile},
};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use model::{NodeName, Quantity};
use provider_aws::class_view;
use state::{Event, View};

use crate::{
    AwsCtx,
    objects::{class, class_of},
};

pub struct Memory {
    aws: AwsCtx,
}

impl Memory {
    pub fn new(aws: &AwsCtx) -> Self {
        Self { aws: aws.clone() }
    }
}

/// A node may be registered before its kubelet has reported anything.
fn has_reported(node: &Node) -> bool {
    node.labels().get(labels::REGISTERED).map(String::as_str) == Some("true") && memory_of(node).is_some()
}

fn memory_of(node: &Node) -> Option<Quantity> {
    let capacity = node.status.as_ref()?.capacity.as_ref()?;
    Quantity::parse(&capacity.get("memory")?.0).ok()
}

#[async_trait]
impl Reconcile for Memory {
    type Key = NodeName;
    type Error = StepError;
    const NAME: &'static str = "providers.instancetype.capacity";
    const CONCURRENCY: usize = 1;

    fn keys(&self, event: &Event, _: &View, add: &mut dyn FnMut(NodeName)) {
        let Event::Node(change) = event else { return };
        let was = change.old.as_deref().is_some_and(has_reported);
        if !was && change.new.as_deref().is_some_and(has_reported) {
            add((&*change.key.name).into());
        }
    }

    async fn reconcile(&self, name: &NodeName) -> Result<Action, StepError> {
        let view = self.aws.ctx.index.view();
        if let Some(node) = view.nodes.named(name.as_str()) {
            note(&self.aws, &view, node);
        }
        Ok(Action::AwaitChange)
    }
}

/// Another image has another kernel, which keeps another share: only nodes of the present images teach anything.
fn note(aws: &AwsCtx, view: &View, node: &Node) -> Option<()> {
    let instance = node.spec.as_ref()?.provider_id.as_deref()?;
    let claim = view.claims_of(instance).into_iter().next()?;
    let class = class(view, class_of(claim)?)?;
    let instance_type = node.labels().get(labels::INSTANCE_TYPE)?;
    let shape = aws.services.requirements_of(&class, None, instance_type)?;
    let image = class_view::ami_for(&class, &shape)?;
    if claim.status.as_ref()?.image_id.as_ref() != Some(&image.id) {
        return None;
    }
    let memory = memory_of(node)?;
    aws.services.catalog.saw_memory(instance_type, &image.id, memory);
    Some(())
}
