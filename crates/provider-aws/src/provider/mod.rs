//! EC2 behind the trait that the controllers know.

mod delivery;
mod heir;
mod launch;
mod lessons;
mod partition;
mod queue;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, sync::Arc};

use api::{aws::EC2NodeClass, labels::annotations};
use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use model::{
    ClaimName, Labels, NodeName, ProviderId, Requirements, Vocabulary, node::NodeClassRef, pool::Pool,
    snapshot::Catalog,
};
use provider::{
    CloudProvider, Instance, LaunchRequest, Launched, NodeClassKind, Notice, ProviderError, RegistrationHook,
    RepairPolicy, Termination,
};

use self::{partition::Partition, queue::Queue};
use crate::{
    NODE_CLASS,
    cache::Cache,
    catalog::CatalogError,
    class_view, drift,
    instances::{Ending, Freshness, InstanceError},
    launch::custom::CustomTemplate,
    machine::{self, Purchase},
    objects::Objects,
    offering::overlay_prices,
    ports::{InstanceInfo, PlacementGroupInfo},
    provider_id, repair,
    services::Services,
    tags, vocabulary,
};

/// How long a launch is remembered by its token. The claim's status has it within seconds; later, EC2's own memory of the
/// fleet's token and the collection of instances without a claim stand in.
const LAUNCH_REMEMBERED: SignedDuration = SignedDuration::from_hours(1);

pub struct AwsProvider {
    services: Arc<Services>,
    objects: Arc<dyn Objects>,
    vocabulary: Arc<Vocabulary>,
    repair_policies: Vec<RepairPolicy>,
    registration_hooks: Vec<Arc<dyn RegistrationHook>>,
    launches: Cache<String, Launched>,
    queue: Option<Queue>,
}

impl AwsProvider {
    pub fn new(services: Arc<Services>, objects: Arc<dyn Objects>) -> Self {
        let name = services.options.interruption_queue.clone();
        Self {
            objects,
            vocabulary: vocabulary(),
            repair_policies: repair::policies(),
            registration_hooks: vec![Arc::new(Partition(services.clone()))],
            launches: Cache::new(services.clock.clone(), LAUNCH_REMEMBERED),
            queue: name.map(|name| Queue::new(services.clone(), name)),
            services,
        }
    }

    /// Instances as the controllers know them. Classes are read once, however many instances there are.
    fn told<'a>(&self, infos: impl IntoIterator<Item = &'a InstanceInfo>) -> Vec<Instance> {
        let mut classes: BTreeMap<&str, Option<Arc<EC2NodeClass>>> = BTreeMap::new();
        let mut shapes: BTreeMap<(&str, &str), Option<Requirements>> = BTreeMap::new();
        let mut told = Vec::new();
        for info in infos {
            let name = info.tags.get(tags::NODE_CLASS).map_or("", String::as_str);
            let class = classes.entry(name).or_insert_with(|| self.objects.class(name)).clone();
            let shape = shapes.entry((name, &info.instance_type)).or_insert_with(|| {
                let class = class.as_deref()?;
                self.services.requirements_of(class, None, &info.instance_type)
            });
            let purchase = Purchase::of(info, self.services.reserved_capacity);
            let tagged = info.tags.get(tags::NODE_CLAIM).map(ClaimName::from);
            told.push(Instance {
                provider_id: provider_id::of(&info.zone, &info.id),
                claim: tagged.or_else(|| self.services.owners.of(&info.id)),
                launched: info.launched.unwrap_or(Timestamp::UNIX_EPOCH),
                labels: machine::labels(info, &purchase, shape.as_ref(), class.as_deref()),
            });
        }
        told
    }

    /// Prices that users give to types which AWS names none for.
    fn own_prices(&self) -> BTreeMap<String, f64> {
        match self.services.node_overlay {
            true => overlay_prices(&self.objects.overlays()),
            false => BTreeMap::new(),
        }
    }

    /// The id of the zone, as far as a class has told it.
    fn zone_id(&self, class: Option<&EC2NodeClass>, zone: &str) -> String {
        let zones = class.map(class_view::zones).unwrap_or_default();
        let known = zones.into_iter().find(|known| known.zone == zone);
        known.and_then(|known| known.zone_id).unwrap_or_default()
    }

    fn count_failed_termination(&self, info: Option<&InstanceInfo>) {
        let Some(info) = info else { return };
        let class = info
            .tags
            .get(tags::NODE_CLASS)
            .and_then(|name| self.objects.class(name));
        let zone_id = self.zone_id(class.as_deref(), &info.zone);
        self.services.metrics.termination_failed(&info.zone, &zone_id);
    }

    /// Whether the places of an instance are still selected.
    async fn place_drift(
        &self,
        class: &EC2NodeClass,
        info: &InstanceInfo,
        group: Option<Option<&PlacementGroupInfo>>,
    ) -> Result<Option<drift::Reason>, ProviderError> {
        let place = |info: &InstanceInfo| {
            let purchase = Purchase::of(info, self.services.reserved_capacity);
            drift::of_place(class, info, &purchase, group).map_err(unavailable)
        };
        let found = place(info)?;
        if found != Some(drift::Reason::CapacityReservation) {
            return Ok(found);
        }
        // A reservation that has ended leaves its instances on demand, which EC2 knows before our memory does.
        let asked = self.services.instances.get(&info.id, Freshness::Asked).await;
        match asked.map_err(refused)? {
            Some(now) => place(&now),
            None => Ok(None),
        }
    }
}

#[async_trait]
impl CloudProvider for AwsProvider {
    fn name(&self) -> &'static str {
        "aws"
    }

    fn node_classes(&self) -> &[NodeClassKind] {
        &[NODE_CLASS]
    }

    fn vocabulary(&self) -> Arc<Vocabulary> {
        self.vocabulary.clone()
    }

    async fn launch(&self, request: &LaunchRequest) -> Result<Launched, ProviderError> {
        self.launches
            .get_or_fetch(request.token.clone(), self.launch_new(request))
            .await
    }

    async fn terminate(&self, id: &ProviderId) -> Result<Termination, ProviderError> {
        let Some(instance) = provider_id::instance_id(id) else {
            return Ok(Termination::Gone);
        };
        let before = self.services.instances.remembered(instance);
        match self.services.instances.end(instance).await {
            Ok(Ending::Requested) => Ok(Termination::Requested),
            Ok(Ending::Gone) => {
                self.services.owners.forget(instance);
                let purchase = before.map(|info| Purchase::of(&info, self.services.reserved_capacity));
                if let Some(Purchase::Reserved { reservation, .. }) = purchase {
                    self.services.resolver.reservations.terminated(&reservation);
                }
                Ok(Termination::Gone)
            }
            Err(error) => {
                self.count_failed_termination(before.as_ref());
                Err(refused(error))
            }
        }
    }

    async fn instance(&self, id: &ProviderId) -> Result<Option<Instance>, ProviderError> {
        let Some(instance) = provider_id::instance_id(id) else {
            return Ok(None);
        };
        let found = self.services.instances.get(instance, Freshness::Asked).await;
        let found = found.map_err(refused)?;
        Ok(self.told(&found).into_iter().next())
    }

    async fn instances(&self) -> Result<Vec<Instance>, ProviderError> {
        let listed = self.services.instances.list().await.map_err(refused)?;
        Ok(self.told(listed.iter().filter(|info| !machine::is_ending(info))))
    }

    /// EC2 names an instance when it launches it, and may take a moment to show it.
    async fn node_name(&self, id: &ProviderId) -> Result<Option<NodeName>, ProviderError> {
        let Some(instance) = provider_id::instance_id(id) else {
            return Ok(None);
        };
        let found = self.services.instances.get(instance, Freshness::Remembered).await;
        let name = found.map_err(refused)?.map(|info| info.private_dns);
        Ok(name.filter(|name| !name.is_empty()).map(NodeName::from))
    }

    async fn catalog(&self, pool: &Pool) -> Result<Catalog, ProviderError> {
        let class = self.objects.class(&pool.template.class.name);
        let Some(class) = class.filter(|class| class.metadata.deletion_timestamp.is_none()) else {
            return Ok(Catalog::default());
        };
        let group = self.services.placement_group(&class).await.map_err(unavailable)?;
        self.services
            .types(&class, group.as_ref(), &self.own_prices())
            .map_err(|error| match error {
                // The class's own controller changes that, and the catalog is asked for again when it has.
                CatalogError::NoSubnets => ProviderError::NodeClassNotReady {
                    details: error.to_string(),
                },
                CatalogError::NoTypes | CatalogError::Unreadable(_) => launch::no_types(&error),
            })
    }

    async fn drift(&self, instance: &ProviderId, class: &NodeClassRef) -> Result<Option<String>, ProviderError> {
        let Some(class) = self.objects.class(&class.name) else {
            return Ok(None);
        };
        let is_custom = CustomTemplate::of(&class).is_some();
        let claim = self.objects.claim_annotations(instance).unwrap_or_default();
        if let Some(reason) = drift::of_hash(&annotations_of(&class), &claim).filter(|_| !is_custom) {
            return Ok(Some(reason.as_str().to_owned()));
        }
        let id = provider_id::instance_id(instance).ok_or_else(|| gone(instance))?;
        let info = self.services.instances.get(id, Freshness::Remembered).await;
        let info = info.map_err(refused)?.ok_or_else(|| gone(instance))?;
        // Without an answer about its placement group an instance is not judged by it.
        let group = self.services.placement_group(&class).await.ok();
        let known = group.as_ref().and_then(Option::as_ref);
        let shape = self.services.requirements_of(&class, known, &info.instance_type);
        // Image, groups and the rest of a template that its user made are that user's business.
        let image = match is_custom {
            true => None,
            false => drift::of_image(&class, shape.as_ref(), &info).map_err(unavailable)?,
        };
        let found = match image {
            Some(reason) => Some(reason),
            None => {
                let group = group.as_ref().map(Option::as_ref);
                let found = self.place_drift(&class, &info, group).await?;
                found.filter(|reason| !is_custom || *reason != drift::Reason::SecurityGroup)
            }
        };
        Ok(found.map(|reason| reason.as_str().to_owned()))
    }

    async fn notices(&self) -> Result<Vec<Notice>, ProviderError> {
        match &self.queue {
            Some(queue) => queue.notices().await.map_err(unavailable),
            None => std::future::pending().await,
        }
    }

    async fn acknowledge(&self, notice: &Notice) -> Result<(), ProviderError> {
        match &self.queue {
            Some(queue) => queue.delete(&notice.receipt).await.map_err(unavailable),
            None => Ok(()),
        }
    }

    fn repair_policies(&self) -> &[RepairPolicy] {
        &self.repair_policies
    }

    fn registration_hooks(&self) -> &[Arc<dyn RegistrationHook>] {
        &self.registration_hooks
    }
}

fn annotations_of(class: &EC2NodeClass) -> Labels {
    let wanted = [
        annotations::EC2_NODE_CLASS_HASH,
        annotations::EC2_NODE_CLASS_HASH_VERSION,
    ];
    let present = class.metadata.annotations.iter().flatten();
    present
        .filter(|(key, _)| wanted.contains(&key.as_str()))
        .map(|(key, value)| (key.as_str().into(), value.as_str().into()))
        .collect()
}

fn unavailable(cause: impl std::error::Error + Send + Sync + 'static) -> ProviderError {
    ProviderError::Unavailable { cause: cause.into() }
}

fn refused(error: InstanceError) -> ProviderError {
    match error {
        InstanceError::ZoneShifted(_) => ProviderError::Refused {
            reason: "ZoneShifted".to_owned(),
            message: error.to_string(),
        },
        InstanceError::Aws { .. } | InstanceError::List(_) | InstanceError::Stopping => unavailable(error),
    }
}

fn gone(instance: &ProviderId) -> ProviderError {
    ProviderError::Gone {
        instance: instance.clone(),
    }
}
