//! What the selectors of a class resolve to, as its status and its conditions say it.
//!
//! Every selector is resolved whatever became of the others, so that a user sees all that is wrong at once. A selector that
//! AWS could not be asked about leaves its part of the status as it was: a node class does not stop working because of one
//! failed request.

use std::sync::Arc;

use api::{
    aws::{EC2NodeClass, EC2NodeClassStatus, SecurityGroup, Subnet},
    conditions::{Conditions, HasConditions, ec2_node_class as condition},
};
use clock::Clock;
use jiff::{SignedDuration, Timestamp};
use tracing::warn;

use crate::{
    discovery::{
        ImageError, Images, PlacementGroups, ProfileError, Profiles, Reservations, SecurityGroups, Subnets, Version,
        reservation_status,
    },
    error::AwsError,
    options::Options,
    tags,
};

const SOON: SignedDuration = SignedDuration::from_mins(1);
const LATER: SignedDuration = SignedDuration::from_mins(5);

/// A selector that could not be resolved.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    #[error("images could not be resolved")]
    Images(#[source] ImageError),
    #[error("{what} could not be resolved")]
    Aws {
        what: &'static str,
        #[source]
        cause: AwsError,
    },
    #[error("the instance profile could not be prepared")]
    Profile(#[source] ProfileError),
}

impl ResolveError {
    /// Whether only an edit of the class can help.
    pub fn is_terminal(&self) -> bool {
        matches!(self, ResolveError::Images(ImageError::Unsupported(_)))
    }
}

/// A status to write, what went wrong on the way to it, and when to look again.
#[derive(Debug)]
pub struct Resolution {
    pub status: EC2NodeClassStatus,
    pub errors: Vec<ResolveError>,
    pub again_in: SignedDuration,
}

/// Resolves classes.
pub struct Resolver {
    pub images: Images,
    pub subnets: Arc<Subnets>,
    pub security_groups: SecurityGroups,
    pub reservations: Arc<Reservations>,
    pub placement_groups: Arc<PlacementGroups>,
    pub profiles: Arc<Profiles>,
    pub clock: Arc<dyn Clock>,
    pub options: Arc<Options>,
    pub region: String,
    pub reserved_capacity: bool,
}

/// A status that is being put together.
struct Draft<'a> {
    class: &'a EC2NodeClass,
    status: EC2NodeClassStatus,
    conditions: Conditions,
    errors: Vec<ResolveError>,
    again_in: SignedDuration,
    now: Timestamp,
}

impl Draft<'_> {
    fn ready(&mut self, type_: &str, again_in: SignedDuration) {
        self.conditions.set_true(type_, self.now);
        self.again_in = self.again_in.min(again_in);
    }

    fn not_ready(&mut self, type_: &str, reason: &str, message: &str) {
        self.conditions.set_false(type_, reason, message, self.now);
        self.again_in = self.again_in.min(SOON);
    }

    fn failed(&mut self, what: &'static str, cause: AwsError) {
        self.errors.push(ResolveError::Aws { what, cause });
    }
}

impl Resolver {
    pub async fn resolve(&self, class: &EC2NodeClass, cluster: Version) -> Resolution {
        let now = self.clock.now();
        let mut dependents = EC2NodeClass::DEPENDENTS.to_vec();
        if self.reserved_capacity {
            dependents.push(condition::CAPACITY_RESERVATIONS_READY);
        }
        let mut draft = Draft {
            class,
            status: class.status.clone().unwrap_or_default(),
            conditions: Conditions::with_dependents(class, dependents, now),
            errors: Vec::new(),
            again_in: LATER,
            now,
        };
        self.images(&mut draft, cluster).await;
        if self.reserved_capacity {
            self.reservations(&mut draft).await;
        }
        self.placement_group(&mut draft).await;
        self.subnets(&mut draft).await;
        self.security_groups(&mut draft).await;
        self.profile(&mut draft).await;
        let mut status = draft.status;
        status.conditions = Some(draft.conditions.into_list());
        Resolution {
            status,
            errors: draft.errors,
            again_in: draft.again_in,
        }
    }

    async fn images(&self, draft: &mut Draft<'_>, cluster: Version) {
        match self.images.of(draft.class, cluster).await {
            Ok(amis) if amis.is_empty() => {
                draft.status.amis = None;
                draft.not_ready(condition::AMIS_READY, "AMINotFound", "amiSelectorTerms match no image");
            }
            Ok(amis) => {
                draft.status.amis = Some(amis);
                draft.ready(condition::AMIS_READY, LATER);
            }
            Err(error) => {
                if let ImageError::Unsupported(unsupported) = &error {
                    draft.not_ready(condition::AMIS_READY, "UnsupportedAlias", &unsupported.to_string());
                }
                draft.errors.push(ResolveError::Images(error));
            }
        }
    }

    async fn reservations(&self, draft: &mut Draft<'_>) {
        let terms = draft
            .class
            .spec
            .capacity_reservation_selector_terms
            .as_deref()
            .unwrap_or_default();
        let found = match self.reservations.of(terms).await {
            Ok(found) => found,
            Err(cause) => return draft.failed("capacity reservations", cause),
        };
        let usable: Vec<_> = found
            .iter()
            .filter_map(|info| {
                let status = reservation_status(info, draft.now);
                status
                    .inspect_err(|error| warn!(%error, "a capacity reservation is left out"))
                    .ok()
            })
            .collect();
        let ends = found.iter().filter_map(|info| info.ends).min();
        let until_end = ends.map_or(SOON, |ends| ends.duration_since(draft.now));
        draft.status.capacity_reservations = (!usable.is_empty()).then_some(usable);
        draft.ready(condition::CAPACITY_RESERVATIONS_READY, SOON.min(until_end));
    }

    async fn placement_group(&self, draft: &mut Draft<'_>) {
        let type_ = condition::PLACEMENT_GROUP_READY;
        let Some(selector) = &draft.class.spec.placement_group_selector else {
            return draft.ready(type_, LATER);
        };
        let name = selector
            .id
            .as_ref()
            .or(selector.name.as_ref())
            .cloned()
            .unwrap_or_default();
        let failed = |draft: &mut Draft<'_>, cause: AwsError| {
            draft.not_ready(type_, "PlacementGroupResolutionFailed", &cause.to_string());
            draft.failed("the placement group", cause);
        };
        match self.placement_groups.of(selector).await {
            Err(cause) => failed(draft, cause),
            Ok(resolved) => match (resolved.stale, resolved.group) {
                (Some(cause), _) => failed(draft, cause),
                (None, Some(_)) => draft.ready(type_, SOON),
                (None, None) => {
                    let message = format!("there is no available placement group {name}");
                    draft.not_ready(type_, "PlacementGroupNotFound", &message);
                }
            },
        }
    }

    async fn subnets(&self, draft: &mut Draft<'_>) {
        match self.subnets.of(draft.class).await {
            Ok(found) if found.is_empty() => {
                draft.status.subnets = None;
                draft.not_ready(
                    condition::SUBNETS_READY,
                    "SubnetsNotFound",
                    "subnetSelectorTerms match no subnet",
                );
            }
            Ok(found) => {
                draft.status.subnets = Some(found.into_iter().map(Subnet::from).collect());
                draft.ready(condition::SUBNETS_READY, SOON);
            }
            Err(cause) => draft.failed("subnets", cause),
        }
    }

    async fn security_groups(&self, draft: &mut Draft<'_>) {
        match self.security_groups.of(draft.class).await {
            Ok(found) if found.is_empty() => {
                draft.status.security_groups = None;
                let message = "securityGroupSelectorTerms match no security group";
                draft.not_ready(condition::SECURITY_GROUPS_READY, "SecurityGroupsNotFound", message);
            }
            Ok(found) => {
                let group = |info: crate::ports::SecurityGroupInfo| SecurityGroup {
                    id: info.id,
                    name: Some(info.name),
                };
                draft.status.security_groups = Some(found.into_iter().map(group).collect());
                draft.ready(condition::SECURITY_GROUPS_READY, LATER);
            }
            Err(cause) => draft.failed("security groups", cause),
        }
    }

    async fn profile(&self, draft: &mut Draft<'_>) {
        let tags = tags::profile(draft.class, &self.options.cluster_name, &self.region);
        let current = draft.status.instance_profile.clone();
        match self.profiles.ensure(draft.class, current.as_deref(), &tags).await {
            Ok(name) => {
                draft.status.instance_profile = Some(name);
                draft.ready(condition::INSTANCE_PROFILE_READY, LATER);
            }
            Err(error) => draft.errors.push(ResolveError::Profile(error)),
        }
    }
}

#[cfg(test)]
mod tests;
