//! Lets go of machines that EC2 itself finds ill, or is about to take down.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use api::{labels::annotations::TERMINATION_TIMESTAMP, v1::NodeClaim};
use async_trait::async_trait;
use controllers::{
    error::StepError,
    metrics::DisruptedWhy,
    node_claim::remove,
    outbox::{About, Notice},
};
use futures::future::try_join_all;
use jiff::Timestamp;
use kube::ResourceExt;
use model::ProviderId;
use parking_lot::Mutex;
use provider_aws::{
    interruption::{StatusCategory, Unhealthy, status_queries, unhealthy},
    provider_id,
};
use state::View;
use tracing::{error, info};

use crate::{AwsCtx, chore::Chore, failed, objects::instance_of};

const EVERY: Duration = Duration::from_secs(60);
/// A permission that lacks is not granted within the minute, but it may be some time.
const DENIED: Duration = Duration::from_secs(60 * 60);

type Illness = (String, StatusCategory);

#[derive(Default)]
pub struct InstanceStatus {
    /// What has been counted and is not over.
    counted: Mutex<BTreeSet<Illness>>,
}

impl InstanceStatus {
    /// Each illness of an instance of ours counts once, and again only after it was over.
    fn count(&self, aws: &AwsCtx, ill: &[(Unhealthy, Arc<NodeClaim>)]) {
        let now: BTreeSet<Illness> = ill
            .iter()
            .flat_map(|(one, _)| one.categories.iter().map(|category| (one.instance.clone(), *category)))
            .collect();
        let mut counted = self.counted.lock();
        for (_, category) in now.difference(&counted) {
            aws.services.metrics.found_unhealthy(*category);
        }
        *counted = now;
    }

    async fn let_go(&self, aws: &AwsCtx, view: &View, one: &Unhealthy, claim: &NodeClaim) -> Result<(), StepError> {
        let Some(category) = one.categories.iter().next().copied() else {
            return Ok(());
        };
        let nodes = instance_of(claim).map(|id| view.nodes_of(id)).unwrap_or_default();
        let nodes = nodes
            .iter()
            .map(|node| About::node(&node.name_any(), &node.uid().unwrap_or_default()));
        let about = About::claim(&claim.name_any(), &claim.uid().unwrap_or_default());
        let told: Vec<About> = [about].into_iter().chain(nodes).collect();
        let outbox = &aws.ctx.outbox;
        for about in &told {
            let message = format!("EC2 reports {} of the instance", category.reason());
            outbox.publish(Notice::warning("InstanceUnhealthy", about.clone(), message));
        }
        if claim.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        let claim = match one.is_forceful() {
            true => {
                let due = due_now(claim, aws.ctx.clock.now());
                aws.ctx.writer.update::<NodeClaim>(claim, &due).await?
            }
            false => claim.clone(),
        };
        remove(&aws.ctx, &claim, DisruptedWhy::Diagnosed(category.reason())).await?;
        info!(NodeClaim = %claim.name_any(), reason = category.reason(), "initiating delete from instance status");
        for about in told {
            let message = "Terminating because EC2 finds the instance unhealthy".to_owned();
            outbox.publish(Notice::warning("TerminatingOnInterruption", about, message));
        }
        Ok(())
    }
}

/// The claim whose pods get no time: nothing on the machine would notice. What was said before stays.
fn due_now(claim: &NodeClaim, now: Timestamp) -> NodeClaim {
    let mut due = claim.clone();
    let second = Timestamp::from_second(now.as_second()).unwrap_or(now);
    due.metadata
        .annotations
        .get_or_insert_default()
        .entry(TERMINATION_TIMESTAMP.to_owned())
        .or_insert_with(|| second.to_string());
    due
}

#[async_trait]
impl Chore for InstanceStatus {
    const NAME: &'static str = "interruption.instancestatus";

    async fn run(&self, aws: &AwsCtx) -> Result<Duration, StepError> {
        let ec2 = &aws.services.aws.ec2;
        let queries = status_queries();
        let listed = match try_join_all(queries.iter().map(|query| ec2.instance_status(query))).await {
            Ok(listed) => listed,
            Err(cause) if cause.is_unauthorized() => {
                error!(%cause, "the status of instances cannot be read; hint: grant ec2:DescribeInstanceStatus");
                return Ok(DENIED);
            }
            Err(cause) => return Err(failed("tell the status of instances", cause).into()),
        };
        let statuses: Vec<_> = listed.into_iter().flatten().collect();
        let view = aws.ctx.index.view();
        let owners = owners(&view);
        let ill: Vec<(Unhealthy, Arc<NodeClaim>)> = unhealthy(&statuses, aws.ctx.clock.now())
            .into_iter()
            .filter_map(|one| Some((one.clone(), owners.get(&one.instance)?.clone())))
            .collect();
        self.count(aws, &ill);
        for (one, claim) in &ill {
            self.let_go(aws, &view, one, claim).await?;
        }
        Ok(EVERY)
    }
}

/// Claims by the id that EC2 knows their instance under.
fn owners(view: &View) -> BTreeMap<String, Arc<NodeClaim>> {
    let owner = |claim: &Arc<NodeClaim>| {
        let id = ProviderId::from(instance_of(claim)?);
        Some((provider_id::instance_id(&id)?.to_owned(), claim.clone()))
    };
    view.claims.values().filter_map(owner).collect()
}
