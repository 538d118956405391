//! One instance for one claim: which types, with which templates, into which subnets, and what became of it.

use std::collections::BTreeMap;

use api::{
    aws::{AmiFamily, EC2NodeClass},
    conditions::{self, HasConditions},
    labels::annotations,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures::future::try_join_all;
use model::{CapacityType, InstanceType, Labels, Resources};
use provider::{LaunchRequest, Launched, ProviderError};
use tracing::{info, warn};

use super::{AwsProvider, heir::labels_before_launch, unavailable};
use crate::{
    catalog::CatalogError,
    class_view,
    discovery::Deduction,
    error::AwsError,
    instance_type::{EFA, Reserved},
    instances::InstanceError,
    launch::{
        self,
        custom::CustomTemplate,
        filter::{self, Demand, NITRO_SANDBOX_REQUEST, NothingLeft},
        fleet, outcome,
        template::{self, Plan, TemplateError},
    },
    ports::{Allocation, FleetAnswer, FleetRequest, InstanceInfo, PlacementGroupInfo, Tags},
    provider_id, tags,
    user_data::UserDataError,
};

/// EC2 refuses more user data than this.
const USER_DATA_LIMIT: usize = 16_384;
/// Fewer types make it likely that none of them can be had.
const FLEXIBLE: usize = 5;

/// All that is settled before EC2 is asked for anything.
pub(super) struct Launch<'a> {
    pub request: &'a LaunchRequest,
    pub class: &'a EC2NodeClass,
    pub group: Option<PlacementGroupInfo>,
    pub tags: Tags,
    /// What the node joins with.
    pub labels: Labels,
    pub types: Vec<InstanceType>,
    pub reserved: BTreeMap<String, Reserved>,
    pub capacity_type: CapacityType,
    /// The partition of the group to launch into, unless EC2 is to choose.
    pub partition: Option<u32>,
}

/// How one attempt went wrong.
enum Failure {
    /// EC2 has lost a template that was there a moment ago. Worth a second attempt.
    TemplatesGone(Vec<String>),
    /// EC2 remembers the request of an earlier process, and what it launched then is another claim's by now.
    GivenAway,
    Final(ProviderError),
}

impl From<ProviderError> for Failure {
    fn from(error: ProviderError) -> Self {
        Failure::Final(error)
    }
}

impl AwsProvider {
    pub(super) async fn launch_new(&self, request: &LaunchRequest) -> Result<Launched, ProviderError> {
        let class = self.objects.class(&request.class.name);
        let class = class.filter(|class| class.metadata.deletion_timestamp.is_none());
        let class = class.ok_or_else(|| ProviderError::InsufficientCapacity {
            details: format!("there is no EC2NodeClass {} to launch with", request.class.name),
        })?;
        check_ready(&class)?;
        let launch = self.settled(request, &class).await?;
        let launched = match self.attempt(&launch, &request.token).await {
            Err(Failure::TemplatesGone(names)) => {
                self.services.templates.forget(names);
                self.attempt(&launch, &request.token).await
            }
            Err(Failure::GivenAway) => self.attempt(&launch, &format!("{} anew", request.token)).await,
            done => done,
        };
        launched.map_err(|failure| match failure {
            Failure::Final(error) => error,
            Failure::TemplatesGone(names) => {
                outcome::call_failed(&AwsError::new("InvalidLaunchTemplateId.NotFound", &names.join(", ")))
            }
            Failure::GivenAway => launch_failed("EC2 answered with an instance that another claim has"),
        })
    }

    async fn settled<'a>(
        &self,
        request: &'a LaunchRequest,
        class: &'a EC2NodeClass,
    ) -> Result<Launch<'a>, ProviderError> {
        let mut tags = tags::launch(class, &self.services.options.cluster_name, pool(request)).map_err(|errors| {
            let details = errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
            ProviderError::NodeClassNotReady { details }
        })?;
        tags.extend(tags::of_provisioner(&request.labels));
        let group = self.services.placement_group(class).await.map_err(unavailable)?;
        if class.spec.placement_group_selector.is_some() && group.is_none() {
            let details = "its placement group does not exist".to_owned();
            return Err(ProviderError::NodeClassNotReady { details });
        }
        let listed = self.services.types(class, group.as_ref(), &self.own_prices());
        let listed = listed.map_err(|error| no_types(&error))?;
        // Most types are out of the question; only the others are worth a copy.
        let admitted = listed.iter().filter(|shape| {
            shape.requirements.overlaps(&request.requirements)
                && shape.offerings_within(&request.requirements).next().is_some()
        });
        let requests = self.checked_requests(request);
        let demand = Demand {
            requirements: &request.requirements,
            requests: &requests,
            strict_min_values: self.services.strict_min_values,
        };
        let types = admitted.map(|shape| InstanceType::clone(shape)).collect();
        let types = filter::candidates(types, demand).map_err(short)?;
        let capacity_type = launch::capacity_type(&request.requirements, &types);
        let reserved = self.services.catalog.reserved(class, group.as_ref(), &types);
        let reserved = reserved.map_err(|error| no_types(&error))?;
        let partition = group.as_ref();
        let partition = partition.and_then(|_| launch::partition(&request.requirements, &types));
        Ok(Launch {
            request,
            class,
            group,
            tags,
            labels: labels_before_launch(request, &self.vocabulary),
            types,
            reserved,
            capacity_type,
            partition,
        })
    }

    /// What a type has to hold. Resources that an overlay added are not known here; the plan has counted them.
    fn checked_requests(&self, request: &LaunchRequest) -> Resources {
        let overlaid = request.annotations.contains_key(annotations::CAPACITY_OVERLAY_APPLIED);
        let known = &self.vocabulary.well_known_resources;
        let checked = request.requests.iter().filter(|(name, _)| {
            let name = model::ResourceName::clone(name);
            !overlaid || known.contains(&name)
        });
        checked.map(|(name, amount)| (name.clone(), amount)).collect()
    }

    async fn attempt(&self, launch: &Launch<'_>, token: &str) -> Result<Launched, Failure> {
        // A class may have been found ready by an earlier process, and then this one has not asked for it yet.
        if class_view::family(launch.class) == AmiFamily::Al2023 {
            let learnt = self.services.learn_service_cidr().await;
            learnt.map_err(|error| outcome::call_failed(&error))?;
        }
        let plans = match CustomTemplate::of(launch.class) {
            // Its owner has made it, and looks after it.
            Some(custom) => vec![custom.plan(&launch.types)],
            None => {
                let plans = self.plans(launch)?;
                let ensured = plans.iter().map(|plan| self.services.templates.ensure(plan));
                let ensured = try_join_all(ensured).await;
                ensured.map_err(|failed| outcome::call_failed(&failed.cause))?;
                plans
            }
        };
        if let Some(instance) = self.inherited(launch, &plans).await? {
            return Ok(self.delivered(launch, instance));
        }
        let (request, deduction) = self.order(launch, &plans, token)?;
        let market = request.market;
        let names: Vec<String> = request.groups.iter().map(|group| group.template_name.clone()).collect();
        let answer = self.services.fleets.launch(request).await;
        let answer = answer.ok_or_else(|| unavailable(InstanceError::Stopping))?;
        let used = answer.as_ref().ok().and_then(used_subnet);
        self.services
            .resolver
            .subnets
            .addresses(|addresses| addresses.give_back(&deduction, used.as_deref()));
        match answer {
            Err(error) if error.is_template_gone() => Err(Failure::TemplatesGone(names)),
            Err(error) => Err(outcome::call_failed(&error).into()),
            Ok(answer) => {
                self.learn(launch, &answer.errors);
                let delivery = outcome::delivery(&answer)?;
                let instance = self.instance_of(launch, &delivery, market);
                match self.is_given(&instance, launch) {
                    true => Ok(self.delivered(launch, instance)),
                    false => Err(Failure::GivenAway),
                }
            }
        }
    }

    /// Gives the instance to the claim, unless it is another's.
    fn is_given(&self, instance: &InstanceInfo, launch: &Launch<'_>) -> bool {
        let id = provider_id::of(&instance.zone, &instance.id);
        !self.objects.is_claimed(&id) && self.services.owners.give(&instance.id, &launch.request.claim)
    }

    fn plans(&self, launch: &Launch<'_>) -> Result<Vec<Plan>, ProviderError> {
        let asks_for = |resource: &str| !launch.request.requests.get(resource).is_zero();
        let plans = template::plans(
            &launch.types,
            template::Order {
                class: launch.class,
                cluster: &self.services.cluster(),
                capacity_type: launch.capacity_type,
                tenancy: launch::tenancy(&launch.request.requirements),
                labels: &launch.labels,
                taints: &launch.request.taints,
                startup_taints: &launch.request.startup_taints,
                requirements: &launch.request.requirements,
                wants_efa: asks_for(EFA),
                wants_enclave: asks_for(NITRO_SANDBOX_REQUEST),
                tags: &launch.tags,
                placement_group: launch.group.as_ref().map(|group| group.id.as_str()),
                partition: launch.partition,
                reserved_capacity: self.services.reserved_capacity,
                reserved: &launch.reserved,
            },
        );
        let plans = plans.map_err(not_planned)?;
        for plan in &plans {
            self.weigh_user_data(launch.class, plan);
        }
        Ok(plans)
    }

    fn weigh_user_data(&self, class: &EC2NodeClass, plan: &Plan) {
        let name = class.metadata.name.as_deref().unwrap_or_default();
        let bytes = STANDARD.decode(&plan.data.user_data).map_or(0, |data| data.len());
        self.services.metrics.user_data(name, bytes);
        if bytes * 10 >= USER_DATA_LIMIT * 9 {
            warn!(
                EC2NodeClass = name,
                bytes,
                limit = USER_DATA_LIMIT,
                "user data is close to what EC2 takes"
            );
        }
    }

    /// The request, and the addresses that were taken for it.
    fn order(
        &self,
        launch: &Launch<'_>,
        plans: &[Plan],
        token: &str,
    ) -> Result<(FleetRequest, Deduction), ProviderError> {
        let zones = class_view::zones(launch.class);
        let requirements = &launch.request.requirements;
        let subnets = &self.services.resolver.subnets;
        let (chosen, deduction) = subnets.addresses(|addresses| {
            let (chosen, amounts) =
                fleet::zonal_subnets(&zones, addresses, &launch.types, launch.capacity_type, requirements);
            (chosen, addresses.deduct(&amounts))
        });
        let is = |key: &str| launch.request.annotations.get(key).map(AsRef::as_ref) == Some("true");
        let overlaid = launch
            .request
            .annotations
            .contains_key(annotations::PRICE_OVERLAY_APPLIED);
        let context = launch.class.spec.context.as_deref();
        self.advise(launch);
        let order = fleet::Order {
            capacity_type: launch.capacity_type,
            requirements,
            types: &launch.types,
            templates: plans,
            subnets: &chosen,
            allocation: if overlaid {
                Allocation::Priority
            } else {
                Allocation::Price
            },
            context: context.filter(|_| !is(annotations::MIN_VALUES_RELAXED)),
            tags: &launch.tags,
            token,
        };
        let mut request = fleet::request(order).map_err(|error| {
            subnets.addresses(|addresses| addresses.give_back(&deduction, None));
            launch_failed(&error.to_string())
        })?;
        if let Some(custom) = CustomTemplate::of(launch.class) {
            custom.put_on(&mut request);
        }
        Ok((request, deduction))
    }

    fn advise(&self, launch: &Launch<'_>) {
        let admits_spot = launch
            .request
            .requirements
            .get(model::vocabulary::CAPACITY_TYPE)
            .has(CapacityType::Spot.as_str());
        if launch.capacity_type == CapacityType::OnDemand && admits_spot && launch.types.len() < FLEXIBLE {
            info!(
                NodeClaim = %launch.request.claim,
                types = launch.types.len(),
                "at least {FLEXIBLE} instance types are recommended when spot capacity may fall back to on demand"
            );
        }
    }
}

/// Claims that users made by hand belong to no pool.
pub(super) fn pool(request: &LaunchRequest) -> &str {
    request.pool.as_ref().map_or("", model::PoolName::as_str)
}

fn used_subnet(answer: &FleetAnswer) -> Option<String> {
    let group = answer.instances.iter().find(|group| !group.ids.is_empty())?;
    Some(group.chosen.subnet.clone())
}

/// A class may be used when its controllers have looked at it as it is now, and found nothing wrong.
fn check_ready(class: &EC2NodeClass) -> Result<(), ProviderError> {
    let ready = conditions::find(class.conditions(), conditions::READY);
    match ready {
        Some(ready) if ready.status == conditions::FALSE => Err(ProviderError::NodeClassNotReady {
            details: ready.message.clone(),
        }),
        Some(ready) if ready.status == conditions::TRUE => match ready.observed_generation {
            Some(seen) if class.metadata.generation.is_some_and(|now| now != seen) => {
                Err(ProviderError::NodeClassNotReady {
                    details: "its present specification has not been looked at".to_owned(),
                })
            }
            _ => Ok(()),
        },
        _ => Err(ProviderError::Refused {
            reason: "NodeClassReadinessUnknown".to_owned(),
            message: "whether the node class is ready is not known yet".to_owned(),
        }),
    }
}

fn short(nothing_left: NothingLeft) -> ProviderError {
    ProviderError::InsufficientCapacity {
        details: nothing_left.to_string(),
    }
}

pub(super) fn no_types(error: &CatalogError) -> ProviderError {
    ProviderError::Refused {
        reason: "InstanceTypeResolutionFailed".to_owned(),
        message: chain(error),
    }
}

fn not_planned(error: TemplateError) -> ProviderError {
    match error {
        TemplateError::UserData(UserDataError::NoServiceCidr) => ProviderError::NodeClassNotReady {
            details: UserDataError::NoServiceCidr.to_string(),
        },
        other => launch_failed(&chain(&other)),
    }
}

fn launch_failed(message: &str) -> ProviderError {
    ProviderError::Refused {
        reason: "LaunchFailed".to_owned(),
        message: message.to_owned(),
    }
}

/// Refusals are told to people as one sentence; they have no source to walk.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
