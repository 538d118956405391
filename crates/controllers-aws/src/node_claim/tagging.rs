//! Tells EC2 whose an instance is, once its node has joined: bills and consoles show the tags.

use std::time::Duration;

use api::{
    labels::{
        NODE_POOL,
        annotations::{CLUSTER_NAME_TAGGED, TAGGED},
        compatibility::ADOPTS,
    },
    v1::NodeClaim,
};
use async_trait::async_trait;
use controllers::{
    error::StepError,
    runtime::{Action, Reconcile},
};
use kube::ResourceExt;
use model::{ClaimName, ProviderId};
use provider_aws::{instances::Freshness, ports::Tags, provider_id, tags};
use state::{Event, View};
use tracing::{debug, error, warn};

use crate::{AwsCtx, failed, objects::instance_of};

/// EC2 grants ten requests of this kind per second to the whole account.
const PAUSE: Duration = Duration::from_millis(100);

pub struct Tagging {
    aws: AwsCtx,
}

impl Tagging {
    pub fn new(aws: &AwsCtx) -> Self {
        Self { aws: aws.clone() }
    }

    async fn tag(&self, claim: &NodeClaim, wanted: &Wanted<'_>) -> Result<(), StepError> {
        let services = &self.aws.services;
        let looked = services.instances.get(wanted.instance, Freshness::Asked).await;
        let Some(instance) = looked.map_err(|error| failed("look an instance up", error))? else {
            debug!(instance = wanted.instance, "there is no instance to tag any more");
            return Ok(());
        };
        let cluster = &services.options.cluster_name;
        let missing = tags::missing_after_registration(&instance.tags, cluster, &claim.name_any(), wanted.node);
        if !missing.is_empty() {
            let tagged = services.instances.tag(wanted.instance, &missing).await;
            let is_there = tagged.map_err(|error| failed("tag an instance", error))?;
            tokio::time::sleep(PAUSE).await;
            if !is_there {
                return Ok(());
            }
        }
        self.tag_adopted(claim, wanted.instance, &instance.tags).await;
        self.aws.ctx.writer.update(claim, &tagged(claim)).await?;
        Ok(())
    }

    /// An instance that was taken over gets the tags of today, where that is allowed. Where it is not, nothing depends on
    /// them: it is known by its id.
    async fn tag_adopted(&self, claim: &NodeClaim, instance: &str, present: &Tags) {
        if !claim.annotations().contains_key(ADOPTS) {
            return;
        }
        let pool = claim.labels().get(NODE_POOL).map_or("", String::as_str);
        let missing = tags::missing_after_adoption(present, &claim.spec.node_class_ref.name, pool);
        if missing.is_empty() {
            return;
        }
        if let Err(error) = self.aws.services.instances.tag(instance, &missing).await {
            warn!(NodeClaim = %claim.name_any(), instance, %error, "an adopted instance keeps its old tags alone");
        }
    }
}

/// What is to be tagged.
#[derive(Debug, PartialEq, Eq)]
struct Wanted<'a> {
    instance: &'a str,
    node: &'a str,
}

const DONE: [&str; 2] = [TAGGED, CLUSTER_NAME_TAGGED];

/// Nothing before the node is known, nothing on the way out, nothing twice.
fn decide<'a>(claim: &'a NodeClaim, id: Option<&'a ProviderId>) -> Option<Wanted<'a>> {
    let is_done = |key: &str| claim.annotations().get(key).is_some_and(|value| value == "true");
    let node = claim.status.as_ref()?.node_name.as_deref()?;
    if claim.metadata.deletion_timestamp.is_some() || DONE.iter().all(|key| is_done(key)) {
        return None;
    }
    let Some(instance) = id.and_then(provider_id::instance_id) else {
        error!(NodeClaim = %claim.name_any(), provider_id = ?id, "the claim names no instance of EC2's");
        return None;
    };
    Some(Wanted { instance, node })
}

fn tagged(claim: &NodeClaim) -> NodeClaim {
    let mut tagged = claim.clone();
    let done = DONE.map(|key| (key.to_owned(), "true".to_owned()));
    tagged.metadata.annotations.get_or_insert_default().extend(done);
    tagged
}

#[async_trait]
impl Reconcile for Tagging {
    type Key = ClaimName;
    type Error = StepError;
    const NAME: &'static str = "nodeclaim.tagging";
    const CONCURRENCY: usize = 1;

    fn keys(&self, event: &Event, _: &View, add: &mut dyn FnMut(ClaimName)) {
        if let Event::Claim(change) = event
            && change.new.is_some()
        {
            add((&*change.key.name).into());
        }
    }

    async fn reconcile(&self, name: &ClaimName) -> Result<Action, StepError> {
        let view = self.aws.ctx.index.view();
        if let Some(claim) = view.claims.named(name.as_str()) {
            let id = instance_of(claim).map(ProviderId::from);
            if let Some(wanted) = decide(claim, id.as_ref()) {
                self.tag(claim, &wanted).await?;
            }
        }
        Ok(Action::AwaitChange)
    }
}

#[cfg(test)]
mod tests {
    use api::v1::NodeClaimStatus;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    /// AW24.14.6
    #[test]
    fn only_claims_with_a_node_and_an_instance_are_tagged_and_once() {
        let id = ProviderId::from("aws:///us-west-2a/i-1");
        let mut claim = NodeClaim::default();
        assert_eq!(decide(&claim, Some(&id)), None, "no node yet");
        claim.status = Some(NodeClaimStatus {
            node_name: Some("node-1".to_owned()),
            ..NodeClaimStatus::default()
        });
        let wanted = decide(&claim, Some(&id)).unwrap();
        assert_eq!((wanted.instance, wanted.node), ("i-1", "node-1"));
        let odd = ProviderId::from("aws:///odd");
        assert_eq!(decide(&claim, Some(&odd)), None);
        assert_eq!(decide(&tagged(&claim), Some(&id)), None);
        let mut half = claim.clone();
        half.metadata.annotations = Some([(TAGGED.to_owned(), "true".to_owned())].into());
        assert!(decide(&half, Some(&id)).is_some());
        claim.metadata.deletion_timestamp = Some(Time(jiff::Timestamp::UNIX_EPOCH));
        assert_eq!(decide(&claim, Some(&id)), None);
    }
}
