//! The steps of a class's life.

use std::time::Duration;

use api::aws::EC2NodeClass;
use controllers::{
    outbox::{About, Notice},
    runtime::Action,
};
use kube::ResourceExt;
use model::{Requirements, pool::Pool};
use provider_aws::{NODE_CLASS, validation};
use state::View;
use tracing::{error, info};

use super::{ClassError, decide};
use crate::{AwsCtx, objects::class_of};

/// How soon a class that is still in use is looked at again, should the end of its last claim be missed.
const IN_USE: Duration = Duration::from_secs(10 * 60);

/// One pass: selectors, then the trial, then everything is written at once.
pub async fn resolve(aws: &AwsCtx, view: &View, class: EC2NodeClass) -> Result<Action, ClassError> {
    let services = &aws.services;
    // What is made for a class has to be removed with it, so that it is held before anything is made.
    let class = aws.ctx.writer.update(&class, &decide::held(&class)).await?;
    let resolution = services.resolver.resolve(&class, services.version()).await;
    let mut wanted = class.clone();
    wanted.status = Some(resolution.status);
    services.learn_zones(&wanted);
    let pools = pools_of(view, &class.name_any());
    let asked: Vec<Requirements> = pools.iter().map(|pool| pool.template.requirements.clone()).collect();
    let judged = aws.validator.judge(&wanted, &asked).await;
    if let Some(verdict) = &judged.verdict {
        let now = aws.ctx.clock.now();
        decide::note(&mut wanted, verdict, services.reserved_capacity, now);
    }
    aws.ctx.writer.update_status(&class, &wanted).await?;
    for pool in pools {
        if let Some(why) = aws.validator.unserved(&wanted, &pool.template.requirements) {
            let message = format!("NodePool {} gets no nodes: {why}", pool.name);
            let notice = Notice::warning("ValidationFailed", about(&class), message);
            aws.ctx.outbox.publish(notice.told_apart_by(pool.name.to_string()));
        }
    }

    let mut failures: Vec<ClassError> = resolution.errors.into_iter().map(ClassError::Resolve).collect();
    failures.extend(judged.failure.map(ClassError::Validate));
    // One that only an edit can mend must not hide one that time mends.
    failures.sort_by_key(|failure| matches!(failure, ClassError::Resolve(error) if error.is_terminal()));
    for complaint in failures.iter().filter_map(decide::complaint) {
        let notice = Notice::warning(complaint.reason, about(&class), complaint.message);
        aws.ctx.outbox.publish(notice.told_apart_by(complaint.about));
    }
    if !failures.is_empty() {
        let first = failures.remove(0);
        for other in failures {
            error!(EC2NodeClass = %class.name_any(), error = %controllers::error::chain(&other), "reconcile failed");
        }
        return Err(first);
    }
    let again_in = resolution.again_in.min(validation::AGAIN_IN).unsigned_abs();
    Ok(Action::After(again_in))
}

fn pools_of<'a>(view: &'a View, class: &str) -> Vec<&'a Pool> {
    let pools = view.snapshot.pools.values().map(|pool| &**pool);
    pools
        .filter(|pool| NODE_CLASS.serves(&pool.template.class) && pool.template.class.name == class)
        .collect()
}

/// A class goes when no claim refers to it any more and all that was made for it is gone.
pub async fn let_go(aws: &AwsCtx, view: &View, class: &EC2NodeClass) -> Result<Action, ClassError> {
    let name = class.name_any();
    let released = decide::released(class);
    if released == *class {
        return Ok(Action::AwaitChange);
    }
    let claims = view
        .claims
        .values()
        .filter(|claim| class_of(claim) == Some(name.as_str()))
        .map(|claim| claim.name_any());
    let claims: Vec<String> = claims.collect();
    if !claims.is_empty() {
        let message = format!("Waiting on NodeClaim termination for {}", decide::listed(&claims));
        aws.ctx
            .outbox
            .publish(Notice::normal("WaitingOnNodeClaimTermination", about(class), message));
        return Ok(Action::After(IN_USE));
    }
    aws.services.clean_up(class).await.map_err(ClassError::CleanUp)?;
    aws.ctx.writer.update(class, &released).await?;
    aws.validator.forget(&name);
    info!(EC2NodeClass = %name, "removed what the node class left behind");
    Ok(Action::AwaitChange)
}

fn about(class: &EC2NodeClass) -> About {
    About {
        api_version: format!("{}/{}", NODE_CLASS.group, NODE_CLASS.version).into(),
        kind: NODE_CLASS.kind,
        namespace: String::new(),
        name: class.name_any(),
        uid: class.uid().unwrap_or_default(),
    }
}
