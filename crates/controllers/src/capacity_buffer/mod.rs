//! Keeps room free for pods that do not exist yet.
//!
//! ```text
//!  buffer ─► resolve: template, scale ─► size ─► virtual pods in the snapshot ─► provisioning's next round
//!     ▲                                                                            │
//!     └────────── condition Provisioning; which machines hold room ◄── report ─────┘
//! ```
//!
//! A buffer is measured in pods of a template or of a workload. That many virtual pods are put into the snapshot, where
//! every round finds them among the pods that need a place; no server ever sees them.

mod report;
mod resolve;
mod size;
mod virtual_pods;

use std::time::Duration;

use api::{
    conditions::{Conditions, capacity_buffer as condition},
    v1beta1::CapacityBuffer,
};
use async_trait::async_trait;
use state::{Event, ObjectKey, View};

use crate::{
    context::Ctx,
    error::{Classify, Reason, Retry},
    objects::is_deleting,
    runtime::{Action, Reconcile},
    writer::ApiError,
};
pub use report::report;
use resolve::{Resolved, Unresolved, resolve};

/// Scale and template of a workload are not watched; this is how changes of them are noticed, and how room that was
/// used is noticed, too.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// A buffer whose template or workload is yet to come is of no use until then.
const LOOK_FOR_MISSING: Duration = Duration::from_secs(5);
const LOOK_AGAIN_AFTER_CONFLICT: Duration = Duration::from_secs(1);

/// Why a buffer could not be brought up to date.
#[derive(Debug, thiserror::Error)]
pub enum BufferError {
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error("the buffer cannot be resolved: {0}")]
    Unsupported(String),
}

impl Classify for BufferError {
    fn reason(&self) -> Reason {
        match self {
            BufferError::Api(error) => error.reason(),
            BufferError::Unsupported(_) => Reason::InvalidObject,
        }
    }

    fn retry(&self) -> Retry {
        match self {
            BufferError::Api(error) if error.retry() == Retry::AtOnce => Retry::After(LOOK_AGAIN_AFTER_CONFLICT),
            BufferError::Api(error) => error.retry(),
            BufferError::Unsupported(_) => Retry::After(LOOK_AGAIN),
        }
    }
}

pub struct CapacityBuffers {
    ctx: Ctx,
}

impl CapacityBuffers {
    pub fn new(ctx: &Ctx) -> Self {
        Self {
            ctx: ctx.of(Self::NAME),
        }
    }

    async fn keep_room(&self, key: &ObjectKey, buffer: &CapacityBuffer, resolved: Resolved) -> Result<(), BufferError> {
        let now = self.ctx.clock.now();
        let replicas = size::size(&buffer.spec, resolved.scale, &resolved.shape.requests);
        let mut wanted = buffer.clone();
        let mut conditions = conditions_of(buffer);
        conditions.set_true_because(
            condition::READY_FOR_PROVISIONING,
            "Resolved",
            "Pod template resolved successfully",
            now,
        );
        let status = wanted.status.get_or_insert_default();
        status.replicas = Some(replicas);
        status.pod_template_generation = resolved.template_generation;
        status.pod_template_ref = resolved
            .template_generation
            .and_then(|_| buffer.spec.pod_template_ref.clone());
        status.provisioning_strategy = buffer.spec.provisioning_strategy.clone();
        status.conditions = Some(conditions.into_list());
        self.ctx.writer.update_namespaced_status(buffer, &wanted).await?;
        let pods = virtual_pods::virtual_pods(buffer, &resolved.shape, replicas);
        self.ctx.index.put_virtual_pods(key, pods);
        Ok(())
    }

    async fn refuse(&self, buffer: &CapacityBuffer, reason: &str, message: &str) -> Result<(), BufferError> {
        let now = self.ctx.clock.now();
        let mut wanted = buffer.clone();
        let mut conditions = conditions_of(buffer);
        conditions.set_false(condition::READY_FOR_PROVISIONING, reason, message, now);
        wanted.status.get_or_insert_default().conditions = Some(conditions.into_list());
        self.ctx.writer.update_namespaced_status(buffer, &wanted).await?;
        Ok(())
    }
}

#[async_trait]
impl Reconcile for CapacityBuffers {
    type Key = ObjectKey;
    type Error = BufferError;
    const NAME: &'static str = "capacitybuffer";
    const CONCURRENCY: usize = 10;

    fn keys(&self, event: &Event, view: &View, add: &mut dyn FnMut(ObjectKey)) {
        match event {
            // Our own status is no reason to look again.
            Event::Buffer(change) => {
                let spec = |side: &Option<std::sync::Arc<CapacityBuffer>>| {
                    side.as_ref()
                        .map(|buffer| (buffer.metadata.uid.clone(), buffer.spec.clone(), is_deleting(&**buffer)))
                };
                if spec(&change.old) != spec(&change.new) {
                    add(change.key.clone());
                }
            }
            Event::PodTemplate(change) => {
                let measured_in = |buffer: &CapacityBuffer| {
                    let template = buffer.spec.pod_template_ref.as_ref();
                    buffer.metadata.namespace.as_deref().unwrap_or_default() == &*change.key.namespace
                        && template.is_some_and(|template| template.name == *change.key.name)
                };
                for buffer in view.buffers.values().filter(|buffer| measured_in(buffer)) {
                    add(key_of(buffer));
                }
            }
            _ => {}
        }
    }

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, BufferError> {
        let view = self.ctx.index.view();
        let Some(buffer) = view.buffers.get(key).filter(|buffer| !is_deleting(&***buffer)) else {
            self.ctx.index.drop_virtual_pods(key);
            return Ok(Action::AwaitChange);
        };
        let unresolved = match resolve(&self.ctx.writer, &view, buffer).await {
            Ok(resolved) => {
                let kept = self.keep_room(key, buffer, resolved).await;
                if kept.is_err() {
                    self.ctx.index.drop_virtual_pods(key);
                }
                return kept.map(|()| Action::After(LOOK_AGAIN));
            }
            Err(unresolved) => unresolved,
        };
        self.ctx.index.drop_virtual_pods(key);
        match unresolved {
            Unresolved::Missing { reason, message } => {
                self.refuse(buffer, reason, &message).await?;
                Ok(Action::After(LOOK_FOR_MISSING))
            }
            Unresolved::Unsupported(message) => {
                self.refuse(buffer, "ResolutionFailed", &message).await?;
                Err(BufferError::Unsupported(message))
            }
            Unresolved::Api(cause) => {
                self.refuse(buffer, "ResolutionFailed", &cause.to_string()).await?;
                Err(cause.into())
            }
        }
    }
}

fn conditions_of(buffer: &CapacityBuffer) -> Conditions {
    let listed = buffer.status.as_ref().and_then(|status| status.conditions.as_deref());
    Conditions::plain(listed.unwrap_or_default(), buffer.metadata.generation)
}

fn key_of(buffer: &CapacityBuffer) -> ObjectKey {
    let meta = &buffer.metadata;
    ObjectKey::new(
        meta.namespace.as_deref().unwrap_or_default(),
        meta.name.as_deref().unwrap_or_default(),
    )
}
