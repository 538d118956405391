//! Whether a class can launch anything: tried on EC2 before pods depend on it.
//!
//! Cheap checks come first, and the first that fails decides. EC2 is asked last: a launch template is made, a fleet and an
//! instance are requested as dry runs. What EC2 said is remembered for as long as nothing that went into the question
//! changes.

mod candidate;
mod kubelet;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use api::{
    aws::{AmiFamily, EC2NodeClass},
    conditions::{self, HasConditions, ec2_node_class as condition},
    labels::annotations,
};
use jiff::SignedDuration;
use model::{CapacityType, InstanceType, Labels, Requirements};

use crate::{
    cache::Cache,
    catalog::CatalogError,
    class_view,
    error::{AwsError, launch_failure},
    instance_type::Incompatible,
    launch::template::{self, Plan, TemplateError},
    ports::{Allocation, DryLaunch, FleetGroup, FleetOverride, FleetRequest, Interface, Market, Tags},
    services::Services,
    tags,
    templates::TemplateFailed,
};

pub use candidate::{TENANCY_KEY, tenancy};

/// How long EC2's word counts.
const KNOWN_FOR: SignedDuration = SignedDuration::from_mins(30);
/// How soon a class is looked at again that needs nothing.
pub const AGAIN_IN: SignedDuration = SignedDuration::from_mins(10);

/// What the condition says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Valid,
    Invalid {
        reason: &'static str,
        message: String,
    },
    /// Something that it depends on is not settled.
    Open {
        reason: &'static str,
        message: String,
    },
}

/// Why nothing can be said. The condition stays as it was, unless a verdict comes with it.
#[derive(Debug, thiserror::Error)]
pub enum ValidationError {
    #[error("the service CIDR of the cluster could not be read")]
    ServiceCidr(#[source] AwsError),
    #[error("instance types are not known")]
    Types(#[source] CatalogError),
    #[error(
        "no image of the class runs on an instance type that is asked for: {images}; select images of another \
         architecture in amiSelectorTerms, or other types in the NodePool"
    )]
    NoImageFits { images: String },
    #[error("the class has nothing to try")]
    NothingToTry,
    #[error("no launch template can be made")]
    Plan(#[source] TemplateError),
    #[error("the launch template could not be made")]
    Template(#[source] TemplateFailed),
    #[error("{action} could not be tried")]
    Try {
        action: &'static str,
        #[source]
        cause: AwsError,
    },
}

/// A verdict, or why there is none, or both.
#[derive(Debug, Default)]
pub struct Judged {
    pub verdict: Option<Verdict>,
    pub failure: Option<ValidationError>,
}

impl From<Verdict> for Judged {
    fn from(verdict: Verdict) -> Self {
        Self {
            verdict: Some(verdict),
            failure: None,
        }
    }
}

impl From<ValidationError> for Judged {
    fn from(failure: ValidationError) -> Self {
        Self {
            verdict: None,
            failure: Some(failure),
        }
    }
}

fn invalid(reason: &'static str, message: impl Into<String>) -> Verdict {
    Verdict::Invalid {
        reason,
        message: message.into(),
    }
}

/// Tries classes.
pub struct Validator {
    services: Arc<Services>,
    known: Cache<(String, String), Verdict>,
}

impl Validator {
    pub fn new(services: Arc<Services>) -> Self {
        Self {
            known: Cache::new(services.clock.clone(), KNOWN_FOR),
            services,
        }
    }

    /// A class that is gone is not remembered.
    pub fn forget(&self, class: &str) {
        for (key, _) in self.known.live().into_iter().filter(|((name, _), _)| name == class) {
            self.known.remove(&key);
        }
    }

    /// Judges a class whose selectors have just been resolved. `pools` are the requirements of those that refer to it.
    pub async fn judge(&self, class: &EC2NodeClass, pools: &[Requirements]) -> Judged {
        if let Err(refused) = self.learn_service_cidr(class).await {
            return refused;
        }
        let catalog = &self.services.catalog;
        if let Some(verdict) = kubelet::objection(class, catalog.formulas()).or_else(|| dependencies(class)) {
            return verdict.into();
        }
        match kubelet::misfit(class, catalog) {
            Ok(None) => {}
            Ok(Some(verdict)) => return verdict.into(),
            Err(error) => return ValidationError::Types(error).into(),
        }
        let tags = match tags::launch(class, &self.services.options.cluster_name, "") {
            Ok(tags) => tags,
            Err(errors) => {
                let message = errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
                return invalid("TagValidationFailed", message).into();
            }
        };
        let name = class.metadata.name.clone().unwrap_or_default();
        let key = (name, question(class, &tags));
        if let Some(known) = self.known.get(&key) {
            return known.into();
        }
        let judged = match self.services.options.dry_run {
            true => self.tried(class, pools, &tags).await,
            false => Verdict::Valid.into(),
        };
        if let Judged {
            verdict: Some(verdict),
            failure: None,
        } = &judged
        {
            self.known.put(key, verdict.clone());
        }
        judged
    }

    /// Why a pool of the class gets no nodes, should none of the images run on any type that the pool admits. The class may
    /// be of use to other pools all the same.
    pub fn unserved(&self, class: &EC2NodeClass, pool: &Requirements) -> Option<String> {
        let shapes = self.services.catalog.shapes_of(class, None).ok()?;
        let mut wanted = shapes
            .iter()
            .filter(|shape| shape.requirements.overlaps(pool))
            .peekable();
        wanted.peek()?;
        let images = class_view::images_named(class);
        let is_unserved = wanted.all(|shape| shape.incompatible == Some(Incompatible::NoImage));
        is_unserved.then(|| ValidationError::NoImageFits { images }.to_string())
    }

    /// AL2023 nodes do not come up without it.
    async fn learn_service_cidr(&self, class: &EC2NodeClass) -> Result<(), Judged> {
        if class_view::family(class) != AmiFamily::Al2023 {
            return Ok(());
        }
        self.services.learn_service_cidr().await.map_err(|cause| {
            let verdict = (!cause.is_transient()).then(|| {
                let message = format!("the service CIDR of the cluster could not be read: {cause}");
                invalid("ClusterCIDRResolutionFailed", message)
            });
            Judged {
                verdict,
                failure: Some(ValidationError::ServiceCidr(cause)),
            }
        })
    }

    async fn tried(&self, class: &EC2NodeClass, pools: &[Requirements], tags: &Tags) -> Judged {
        let plan = match self.plan(class, pools, tags).await {
            Ok(plan) => plan,
            Err(failure) => return failure.into(),
        };
        if let Err(failed) = self.services.templates.ensure(&plan).await {
            let cause = &failed.cause;
            if cause.is_user_data_too_long() {
                return invalid("UserDataSizeLimitExceeded", launch_failure(&cause.to_string()).advice).into();
            }
            return denied("CreateLaunchTemplateAuthCheckFailed", "ec2:CreateLaunchTemplate", cause)
                .map_or_else(|| ValidationError::Template(failed).into(), Judged::from);
        }
        if let Err(judged) = self.try_fleet(class, &plan, tags).await {
            return judged;
        }
        self.try_instance(class, &plan, tags)
            .await
            .unwrap_or_else(|judged| judged)
    }

    async fn plan(&self, class: &EC2NodeClass, pools: &[Requirements], tags: &Tags) -> Result<Plan, ValidationError> {
        let services = &self.services;
        let group = services.placement_group(class).await.ok().flatten();
        let shapes = services.catalog.shapes_of(class, group.as_ref());
        let shapes = shapes.map_err(ValidationError::Types)?;
        let shape = candidate::of(class, &shapes, pools).ok_or_else(|| ValidationError::NoImageFits {
            images: class_view::images_named(class),
        })?;
        let candidate = InstanceType::new(
            shape.name.as_str().into(),
            shape.requirements.clone(),
            Vec::new(),
            shape.capacity.clone(),
            shape.overhead.clone(),
        );
        let order = template::Order {
            class,
            cluster: &services.cluster(),
            capacity_type: CapacityType::OnDemand,
            tenancy: tenancy(pools),
            labels: &Labels::new(),
            taints: &[],
            startup_taints: &[],
            requirements: &Requirements::new(),
            wants_efa: false,
            wants_enclave: false,
            tags,
            placement_group: group.as_ref().map(|group| group.id.as_str()),
            partition: None,
            reserved_capacity: services.reserved_capacity,
            reserved: &[(shape.name.clone(), shape.reserved.clone())].into(),
        };
        let plans = template::plans(&[candidate], order).map_err(ValidationError::Plan)?;
        plans.into_iter().next().ok_or(ValidationError::NothingToTry)
    }

    async fn try_fleet(&self, class: &EC2NodeClass, plan: &Plan, tags: &Tags) -> Result<(), Judged> {
        let offered = |subnet: &api::aws::Subnet| {
            let subnet = subnet.id.clone();
            plan.types.iter().map(move |instance_type| FleetOverride {
                instance_type: instance_type.clone(),
                subnet: subnet.clone(),
                ..FleetOverride::default()
            })
        };
        let request = FleetRequest {
            dry_run: true,
            context: None,
            groups: vec![FleetGroup {
                template_name: plan.name.clone(),
                version: None,
                overrides: class_view::subnets(class).iter().flat_map(offered).collect(),
            }],
            market: Market::OnDemand(Allocation::Price),
            client_token: None,
            tags: tags.clone(),
            count: 1,
        };
        let tried = self.services.aws.ec2.create_fleet(&request).await.map(drop);
        match passed(tried) {
            Ok(()) => Ok(()),
            Err(cause) => Err(
                denied("CreateFleetAuthCheckFailed", "ec2:CreateFleet", &cause).map_or_else(
                    || {
                        let action = "a fleet";
                        ValidationError::Try { action, cause }.into()
                    },
                    Judged::from,
                ),
            ),
        }
    }

    /// One subnet that works is enough; if none does, what the first said decides.
    async fn try_instance(&self, class: &EC2NodeClass, plan: &Plan, tags: &Tags) -> Result<Judged, Judged> {
        let instance_type = plan.types.first().cloned().unwrap_or_default();
        let interfaces = match class_view::interfaces(class).is_empty() {
            true => vec![Interface::default()],
            // Groups, addresses and timeouts are the template's; here they would be said twice.
            false => plan.data.interfaces.iter().map(bare).collect(),
        };
        let mut first = None;
        for subnet in class_view::subnets(class) {
            let request = DryLaunch {
                template_name: plan.name.clone(),
                instance_type: instance_type.clone(),
                interfaces: interfaces.clone(),
                subnet: subnet.id.clone(),
                tags: tags.clone(),
            };
            match passed(self.services.aws.ec2.try_launch(&request).await) {
                Ok(()) => return Ok(Verdict::Valid.into()),
                Err(cause) => {
                    first.get_or_insert(cause);
                }
            }
        }
        let cause = first.ok_or(ValidationError::NothingToTry)?;
        let action = "an instance";
        if cause.is_profile_unknown() {
            // A profile that was just made takes a while to be seen; one that the user named may not exist.
            let verdict = class.spec.instance_profile.as_ref().map(|name| {
                let message = format!("EC2 does not know the instance profile {name}");
                invalid("InstanceProfileNotFound", message)
            });
            let failure = Some(ValidationError::Try { action, cause });
            return Err(Judged { verdict, failure });
        }
        Err(denied("RunInstancesAuthCheckFailed", "ec2:RunInstances", &cause)
            .map_or_else(|| ValidationError::Try { action, cause }.into(), Judged::from))
    }
}

/// Where an interface sits and of which kind it is.
fn bare(interface: &Interface) -> Interface {
    Interface {
        card: interface.card,
        device: interface.device,
        kind: interface.kind.clone(),
        ..Interface::default()
    }
}

fn passed(tried: Result<(), AwsError>) -> Result<(), AwsError> {
    match tried {
        Err(error) if error.is_passed_dry_run() => Ok(()),
        other => other,
    }
}

fn denied(reason: &'static str, action: &str, cause: &AwsError) -> Option<Verdict> {
    cause.is_unauthorized().then(|| {
        let advice = launch_failure(&cause.to_string()).advice;
        invalid(reason, format!("the controller may not call {action}: {advice}"))
    })
}

const DEPENDENCIES: [&str; 4] = [
    condition::AMIS_READY,
    condition::INSTANCE_PROFILE_READY,
    condition::SECURITY_GROUPS_READY,
    condition::SUBNETS_READY,
];

/// A class whose selectors found nothing is not tried.
fn dependencies(class: &EC2NodeClass) -> Option<Verdict> {
    const REASON: &str = "DependenciesNotReady";
    let status = |type_: &str| conditions::find(class.conditions(), type_).map(|found| found.status.as_str());
    let with = |wanted: &str| {
        let found = DEPENDENCIES
            .into_iter()
            .filter(|type_| status(type_).unwrap_or(conditions::UNKNOWN) == wanted);
        found.collect::<Vec<_>>().join(", ")
    };
    let (failed, open) = (with(conditions::FALSE), with(conditions::UNKNOWN));
    if !failed.is_empty() {
        return Some(invalid(REASON, format!("not ready: {failed}")));
    }
    (!open.is_empty()).then(|| Verdict::Open {
        reason: REASON,
        message: format!("not known yet: {open}"),
    })
}

/// All that EC2's answer depends on. The annotations that Karpenter itself writes do not change the question.
fn question(class: &EC2NodeClass, tags: &Tags) -> String {
    let own = [
        annotations::EC2_NODE_CLASS_HASH,
        annotations::EC2_NODE_CLASS_HASH_VERSION,
    ];
    let users: Vec<_> = class
        .metadata
        .annotations
        .iter()
        .flatten()
        .filter(|(key, _)| !own.contains(&key.as_str()))
        .collect();
    let found = class.status.as_ref().map(|status| {
        (
            &status.subnets,
            &status.security_groups,
            &status.amis,
            &status.instance_profile,
        )
    });
    format!("{:?} {found:?} {users:?} {tags:?}", class.spec)
}
