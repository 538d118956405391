//! Brings the status of a class up to date, tries the class on EC2, and cleans up behind one that goes.
//!
//! All that can be said about a class is said in one pass and written once, so that a user sees everything that is wrong
//! with it together. [`act`] holds the effects, [`hash`] the stamps by which drift is told.

mod act;
mod decide;
pub mod hash;

use async_trait::async_trait;
use controllers::{
    error::{Classify, Reason, Retry},
    runtime::{Action, Reconcile},
    writer::ApiError,
};
use provider_aws::{class_status::ResolveError, clean_up::CleanUpError, validation::ValidationError};
use state::{Event, View};

use crate::{
    AwsCtx,
    objects::{class, class_of, scope},
};

#[derive(Debug, thiserror::Error)]
pub enum ClassError {
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error("a selector of the class could not be resolved")]
    Resolve(#[source] ResolveError),
    #[error("the class could not be tried")]
    Validate(#[source] ValidationError),
    #[error("what the class leaves behind could not be removed")]
    CleanUp(#[source] CleanUpError),
}

impl Classify for ClassError {
    fn reason(&self) -> Reason {
        match self {
            ClassError::Api(error) => error.reason(),
            ClassError::Resolve(_) | ClassError::Validate(_) | ClassError::CleanUp(_) => Reason::CloudUnavailable,
        }
    }

    fn retry(&self) -> Retry {
        match self {
            ClassError::Api(error) => error.retry(),
            ClassError::Resolve(error) if error.is_terminal() => Retry::Never,
            ClassError::Resolve(_) | ClassError::Validate(_) | ClassError::CleanUp(_) => Retry::WithBackoff,
        }
    }
}

pub struct NodeClasses {
    aws: AwsCtx,
}

impl NodeClasses {
    pub fn new(aws: &AwsCtx) -> Self {
        let ctx = aws.ctx.of(Self::NAME);
        let aws = AwsCtx { ctx, ..aws.clone() };
        Self { aws }
    }
}

#[async_trait]
impl Reconcile for NodeClasses {
    /// The name of the class.
    type Key = String;
    type Error = ClassError;
    const NAME: &'static str = "nodeclass";
    const CONCURRENCY: usize = 10;

    fn keys(&self, event: &Event, _: &View, add: &mut dyn FnMut(String)) {
        match event {
            Event::NodeClass(change) if *change.key.namespace == *scope() => add(change.key.name.to_string()),
            // The last claim that goes lets its class go.
            Event::Claim(change) if change.new.is_none() => {
                if let Some(class) = change.old.as_deref().and_then(class_of) {
                    add(class.to_owned());
                }
            }
            _ => {}
        }
    }

    async fn reconcile(&self, name: &String) -> Result<Action, ClassError> {
        let view = self.aws.ctx.index.view();
        let Some(class) = class(&view, name) else {
            self.aws.validator.forget(name);
            return Ok(Action::AwaitChange);
        };
        if class.metadata.deletion_timestamp.is_some() {
            return act::let_go(&self.aws, &view, &class).await;
        }
        act::resolve(&self.aws, &view, class).await
    }
}
