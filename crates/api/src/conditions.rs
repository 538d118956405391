//! How conditions are set, and how `Ready` follows from the others.
//!
//! Every kind names the conditions its readiness depends on. They exist from the first touch, as
//! Unknown, and each of them counts only while it was observed at the current generation: after a
//! spec change nothing is ready until its controllers have looked again.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::Resource;

use crate::aws::EC2NodeClass;
use crate::kwok::KwokNodeClass;
use crate::v1::{NodeClaim, NodePool};
use crate::v1alpha1::NodeOverlay;

pub const TRUE: &str = "True";
pub const FALSE: &str = "False";
pub const UNKNOWN: &str = "Unknown";

/// The condition that sums up the others.
pub const READY: &str = "Ready";

/// Condition types of a NodePool.
pub mod node_pool {
    pub const VALIDATION_SUCCEEDED: &str = "ValidationSucceeded";
    pub const NODE_CLASS_READY: &str = "NodeClassReady";
    pub const NODE_REGISTRATION_HEALTHY: &str = "NodeRegistrationHealthy";
}

/// Condition types of a NodeClaim.
pub mod node_claim {
    pub const LAUNCHED: &str = "Launched";
    pub const REGISTERED: &str = "Registered";
    pub const INITIALIZED: &str = "Initialized";
    pub const CONSOLIDATABLE: &str = "Consolidatable";
    pub const DRIFTED: &str = "Drifted";
    pub const DISRUPTION_REASON: &str = "DisruptionReason";
    pub const DRAINED: &str = "Drained";
    pub const VOLUMES_DETACHED: &str = "VolumesDetached";
    pub const INSTANCE_TERMINATING: &str = "InstanceTerminating";
    pub const CONSISTENT_STATE_FOUND: &str = "ConsistentStateFound";
}

/// Condition types of an EC2NodeClass.
pub mod ec2_node_class {
    pub const AMIS_READY: &str = "AMIsReady";
    pub const SUBNETS_READY: &str = "SubnetsReady";
    pub const SECURITY_GROUPS_READY: &str = "SecurityGroupsReady";
    pub const INSTANCE_PROFILE_READY: &str = "InstanceProfileReady";
    pub const PLACEMENT_GROUP_READY: &str = "PlacementGroupReady";
    /// A dependent only while the gate `ReservedCapacity` is on.
    pub const CAPACITY_RESERVATIONS_READY: &str = "CapacityReservationsReady";
    pub const VALIDATION_SUCCEEDED: &str = "ValidationSucceeded";
}

/// Condition types of a CapacityBuffer, which has no `Ready`.
pub mod capacity_buffer {
    pub const READY_FOR_PROVISIONING: &str = "ReadyForProvisioning";
    pub const PROVISIONING: &str = "Provisioning";
    pub const LIMITED_BY_QUOTAS: &str = "LimitedByQuotas";
}

/// Reasons that the rules of this module write themselves.
pub mod reasons {
    pub const AWAITING_RECONCILIATION: &str = "AwaitingReconciliation";
    pub const RECONCILING_DEPENDENTS: &str = "ReconcilingDependents";
    pub const UNHEALTHY_DEPENDENTS: &str = "UnhealthyDependents";
}

const AWAITING_MESSAGE: &str = "object is awaiting reconciliation";

/// An object with conditions.
pub trait HasConditions: Resource {
    /// The conditions that `Ready` depends on, in the order they are created.
    const DEPENDENTS: &'static [&'static str];

    fn conditions(&self) -> &[Condition];
    fn conditions_mut(&mut self) -> &mut Vec<Condition>;
}

macro_rules! has_conditions {
    ($kind:ty, [$($dependent:expr),*]) => {
        impl HasConditions for $kind {
            const DEPENDENTS: &'static [&'static str] = &[$($dependent),*];

            fn conditions(&self) -> &[Condition] {
                self.status
                    .as_ref()
                    .and_then(|status| status.conditions.as_deref())
                    .unwrap_or_default()
            }

            fn conditions_mut(&mut self) -> &mut Vec<Condition> {
                self.status.get_or_insert_default().conditions.get_or_insert_default()
            }
        }
    };
}

has_conditions!(NodePool, [node_pool::VALIDATION_SUCCEEDED, node_pool::NODE_CLASS_READY]);
has_conditions!(
    NodeClaim,
    [node_claim::LAUNCHED, node_claim::REGISTERED, node_claim::INITIALIZED]
);
has_conditions!(NodeOverlay, [node_pool::VALIDATION_SUCCEEDED]);
has_conditions!(KwokNodeClass, []);
has_conditions!(
    EC2NodeClass,
    [
        ec2_node_class::AMIS_READY,
        ec2_node_class::SUBNETS_READY,
        ec2_node_class::SECURITY_GROUPS_READY,
        ec2_node_class::INSTANCE_PROFILE_READY,
        ec2_node_class::PLACEMENT_GROUP_READY,
        ec2_node_class::VALIDATION_SUCCEEDED
    ]
);

/// The condition of this type, if the object has it.
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether the condition exists and is True.
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    find(conditions, type_).is_some_and(|condition| condition.status == TRUE)
}

/// The conditions of one object together with what is needed to change them.
#[derive(Clone, Debug, PartialEq)]
pub struct Conditions {
    list: Vec<Condition>,
    dependents: Vec<&'static str>,
    generation: i64,
    created: Timestamp,
    /// Whether the kind sums its conditions up in `Ready`.
    has_ready: bool,
}

impl Conditions {
    /// Takes over the object's conditions and creates the ones that are missing as Unknown.
    ///
    /// An object that was never stored has no creation time; `now` then takes its place.
    pub fn of<K: HasConditions>(object: &K, now: Timestamp) -> Self {
        Self::with_dependents(object, K::DEPENDENTS.to_vec(), now)
    }

    /// As [`Conditions::of`], for kinds whose dependents hang on a feature gate.
    pub fn with_dependents<K: HasConditions>(object: &K, dependents: Vec<&'static str>, now: Timestamp) -> Self {
        let meta = object.meta();
        let mut conditions = Conditions {
            list: object.conditions().to_vec(),
            dependents,
            generation: meta.generation.unwrap_or_default(),
            created: meta.creation_timestamp.as_ref().map_or(now, |time| time.0),
            has_ready: true,
        };
        for type_ in conditions.dependents.clone().into_iter().chain([READY]) {
            if conditions.get(type_).is_none() {
                conditions.set_unknown(type_, reasons::AWAITING_RECONCILIATION, AWAITING_MESSAGE, now);
            }
        }
        conditions
    }

    /// For kinds that have conditions and no `Ready`.
    pub fn plain(list: &[Condition], generation: Option<i64>) -> Self {
        Self {
            list: list.to_vec(),
            dependents: Vec::new(),
            generation: generation.unwrap_or_default(),
            created: Timestamp::UNIX_EPOCH,
            has_ready: false,
        }
    }

    pub fn get(&self, type_: &str) -> Option<&Condition> {
        find(&self.list, type_)
    }

    pub fn is_true(&self, type_: &str) -> bool {
        is_true(&self.list, type_)
    }

    /// The conditions, oldest transition first and `Ready` last.
    pub fn into_list(self) -> Vec<Condition> {
        self.list
    }

    /// Sets the condition True, with its type as the reason and no message.
    pub fn set_true(&mut self, type_: &str, now: Timestamp) -> bool {
        self.set(type_, TRUE, type_, "", now)
    }

    pub fn set_true_because(&mut self, type_: &str, reason: &str, message: &str, now: Timestamp) -> bool {
        self.set(type_, TRUE, reason, message, now)
    }

    pub fn set_false(&mut self, type_: &str, reason: &str, message: &str, now: Timestamp) -> bool {
        self.set(type_, FALSE, reason, message, now)
    }

    pub fn set_unknown(&mut self, type_: &str, reason: &str, message: &str, now: Timestamp) -> bool {
        self.set(type_, UNKNOWN, reason, message, now)
    }

    /// Removes a condition. Dependents of `Ready` always exist, so they are left as they are.
    pub fn clear(&mut self, type_: &str) -> bool {
        if self.is_created_with_object(type_) {
            return false;
        }
        let before = self.list.len();
        self.list.retain(|condition| condition.type_ != type_);
        self.list.len() != before
    }

    /// Returns whether anything changed: an identical write leaves every time stamp alone.
    fn set(&mut self, type_: &str, status: &str, reason: &str, message: &str, now: Timestamp) -> bool {
        let last_transition = match self.get(type_) {
            Some(existing) if existing.status == status => existing.last_transition_time.clone(),
            Some(_) => Time(now),
            None if self.is_created_with_object(type_) => Time(self.created),
            None => Time(now),
        };
        let condition = Condition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: message.to_owned(),
            last_transition_time: last_transition,
            observed_generation: Some(self.generation),
        };
        if self.get(type_) == Some(&condition) {
            return false;
        }
        self.list.retain(|existing| existing.type_ != type_);
        self.list.push(condition);
        self.list
            .sort_by_key(|condition| (condition.type_ == READY, condition.last_transition_time.0));
        if type_ != READY && self.has_ready {
            self.derive_ready(now);
        }
        true
    }

    fn is_created_with_object(&self, type_: &str) -> bool {
        type_ == READY || self.dependents.contains(&type_)
    }

    fn derive_ready(&mut self, now: Timestamp) {
        let mut unhealthy: Vec<Condition> = self
            .dependents
            .iter()
            .filter_map(|type_| self.get(type_))
            .filter(|condition| condition.status != TRUE || condition.observed_generation != Some(self.generation))
            .cloned()
            .collect();
        if unhealthy.is_empty() {
            self.set_true(READY, now);
            return;
        }
        // The sort is stable, so conditions that changed together keep the order of dependents.
        unhealthy.sort_by_key(|condition| std::cmp::Reverse(condition.last_transition_time.0));
        let message = unhealthy
            .iter()
            .map(|condition| format!("{}={}", condition.type_, condition.status))
            .collect::<Vec<_>>()
            .join(", ");
        if unhealthy.iter().any(|condition| condition.status == FALSE) {
            self.set_false(READY, reasons::UNHEALTHY_DEPENDENTS, &message, now);
        } else {
            self.set_unknown(READY, reasons::RECONCILING_DEPENDENTS, &message, now);
        }
    }
}

#[cfg(test)]
mod tests;
