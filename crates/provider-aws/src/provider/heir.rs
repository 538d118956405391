//! How the instance of a claim is told from others after a restart.

use std::{collections::BTreeSet, sync::Arc};

use api::labels::annotations;
use jiff::{SignedDuration, Timestamp};
use model::{ClaimName, Labels, Requirements, Vocabulary};
use provider::{LaunchRequest, ProviderError};
use tracing::info;

use super::{
    AwsProvider,
    launch::{Launch, pool},
    unavailable,
};
use crate::{
    inheritance::Heir,
    instances::InstanceError,
    launch::{outcome, template::Plan},
    machine::{self, Purchase},
    objects::Objects,
    ports::InstanceInfo,
    provider_id, tags,
};

/// EC2 may not show for some seconds what it has just launched.
const SHOWN_AFTER: SignedDuration = SignedDuration::from_secs(5);
/// How far the clocks of EC2 and of the API server may be apart.
const SKEW: SignedDuration = SignedDuration::from_secs(5);

/// The labels that the claim came with. A process that died while it recorded a launch may have written what the launch
/// settled beside them: the instance's own labels, which belong to that instance and to no other.
pub(super) fn labels_before_launch(request: &LaunchRequest, vocabulary: &Vocabulary) -> Labels {
    let is_recorded = request.annotations.contains_key(annotations::EC2_NODE_CLASS_HASH);
    let is_settled = |key: &str| key != tags::NODE_POOL && key != tags::NODE_CLASS && vocabulary.is_well_known(key);
    let labels = request.labels.iter();
    labels
        .filter(|(key, _)| !is_recorded || !is_settled(key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// What an instance has to be to have been launched for a claim.
struct Likeness {
    objects: Arc<dyn Objects>,
    claim: ClaimName,
    created: Timestamp,
    pool: String,
    class: String,
    /// The ids of the launch templates that the claim would be launched with now: they stand for image, user data,
    /// network and whatever else is not a label.
    templates: BTreeSet<String>,
    /// The types that hold the claim, with what they are.
    types: Vec<(String, Requirements)>,
    requirements: Requirements,
    /// What is written on the claim, settled by its launch or not.
    labels: Labels,
    reserved_capacity: bool,
}

impl Likeness {
    fn is_of(&self, instance: &InstanceInfo) -> bool {
        let tag = |key: &str| instance.tags.get(key).map(String::as_str);
        let template = tag(tags::LAUNCH_TEMPLATE_ID);
        let is_own = tag(tags::NODE_CLAIM).is_none_or(|owner| self.claim.as_str() == owner);
        is_own
            && !machine::is_ending(instance)
            && instance
                .launched
                .is_some_and(|launched| launched + SKEW >= self.created)
            && tag(tags::NODE_POOL) == Some(&self.pool)
            && tag(tags::NODE_CLASS) == Some(&self.class)
            && template.is_some_and(|template| self.templates.contains(template))
            && self.is_admitted(instance)
            && !self.objects.is_claimed(&provider_id::of(&instance.zone, &instance.id))
    }

    fn is_admitted(&self, instance: &InstanceInfo) -> bool {
        let mut types = self.types.iter();
        let Some((_, shape)) = types.find(|(name, _)| *name == instance.instance_type) else {
            return false;
        };
        let purchase = Purchase::of(instance, self.reserved_capacity);
        let labels = machine::labels(instance, &purchase, Some(shape), None);
        labels.iter().all(|(key, value)| {
            let is_written = self.labels.get(key).is_none_or(|written| written == value);
            is_written && self.requirements.get(key.as_str()).has(value.as_ref())
        })
    }
}

impl AwsProvider {
    /// The instance that an earlier process launched for this claim, if it did. Claims that came later are not looked for.
    pub(super) async fn inherited(
        &self,
        launch: &Launch<'_>,
        plans: &[Plan],
    ) -> Result<Option<InstanceInfo>, ProviderError> {
        let Some(inherited) = self.objects.inherited(&launch.request.claim) else {
            return Ok(None);
        };
        let since = self.services.clock.now().duration_since(inherited.at);
        tokio::time::sleep((SHOWN_AFTER - since).max(SignedDuration::ZERO).unsigned_abs()).await;
        let likeness = Likeness {
            objects: self.objects.clone(),
            claim: launch.request.claim.clone(),
            created: inherited.created,
            pool: pool(launch.request).to_owned(),
            class: launch.request.class.name.to_string(),
            templates: plans
                .iter()
                .filter_map(|plan| self.services.templates.id(&plan.name))
                .collect(),
            types: launch
                .types
                .iter()
                .map(|shape| (shape.name.to_string(), shape.requirements.clone()))
                .collect(),
            requirements: launch.request.requirements.clone(),
            labels: launch.request.labels.clone(),
            reserved_capacity: self.services.reserved_capacity,
        };
        let heir = Heir {
            claim: likeness.claim.clone(),
            fits: Box::new(move |instance| likeness.is_of(instance)),
        };
        let answer = self.services.inheritance.ask(heir).await;
        let found = answer.ok_or_else(|| unavailable(InstanceError::Stopping))?;
        let found = found.map_err(|error| match &*error {
            InstanceError::List(cause) => outcome::call_failed(cause),
            _ => unavailable(error),
        })?;
        if let Some(instance) = &found {
            info!(
                NodeClaim = %launch.request.claim,
                instance = instance.id,
                "took over an instance that had been launched and not written down"
            );
        }
        Ok(found)
    }
}
