//! Whether nodes of a pool come to life, judged by the last four that tried.
//!
//! Informational: a pool whose nodes do not register is still used, but people and other controllers can tell.

use std::collections::{BTreeMap, VecDeque};

use api::{
    conditions::{self, Conditions, node_pool as condition, reasons::AWAITING_RECONCILIATION},
    v1::{NodeClaim, NodePool},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use parking_lot::Mutex;
use state::NodeClass;

use crate::context::Ctx;

/// How many outcomes are remembered.
const REMEMBERED: usize = 4;
/// So many failures among them make a pool unhealthy.
const TOO_MANY: usize = 2;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    Registered,
    Failed { reason: String, message: String },
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    Unknown,
    Healthy,
    Unhealthy { reason: String, message: String },
}

/// The last outcomes of one pool, each with the UID of its claim so that a repeated pass does not count twice.
#[derive(Clone, Debug, Default)]
struct Ring(VecDeque<(String, Outcome)>);

impl Ring {
    fn record(&mut self, claim: &str, outcome: Outcome) {
        if self.0.iter().any(|(known, _)| known == claim) {
            return;
        }
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back((claim.to_owned(), outcome));
    }

    fn verdict(&self) -> Verdict {
        let failures = self.0.iter().rev().filter_map(|(_, outcome)| match outcome {
            Outcome::Registered => None,
            Outcome::Failed { reason, message } => Some((reason, message)),
        });
        let failures: Vec<_> = failures.collect();
        match failures.first() {
            Some((reason, message)) if failures.len() >= TOO_MANY => Verdict::Unhealthy {
                reason: (*reason).clone(),
                message: (*message).clone(),
            },
            _ if self.0.is_empty() => Verdict::Unknown,
            _ => Verdict::Healthy,
        }
    }
}

/// How launches and registrations of each pool went lately, by the pool's UID.
#[derive(Debug, Default)]
pub struct Health {
    rings: Mutex<BTreeMap<String, Ring>>,
}

impl Health {
    fn record(&self, pool_uid: &str, claim: &NodeClaim, outcome: Outcome) {
        let mut rings = self.rings.lock();
        rings
            .entry(pool_uid.to_owned())
            .or_default()
            .record(&claim.uid().unwrap_or_default(), outcome);
    }
}

pub fn succeeded(ctx: &Ctx, claim: &NodeClaim) {
    if let Some(pool) = owner_uid(claim) {
        ctx.health.record(pool, claim, Outcome::Registered);
    }
}

/// A claim that was given up. If it was never launched, its launch tells why.
pub fn failed(ctx: &Ctx, claim: &NodeClaim, launched: Option<&Condition>) {
    let Some(pool) = owner_uid(claim) else { return };
    let outcome = match launched.filter(|launched| launched.status != conditions::TRUE) {
        Some(launched) => Outcome::Failed {
            reason: launched.reason.clone(),
            message: launched.message.clone(),
        },
        None => Outcome::Failed {
            reason: "RegistrationFailed".to_owned(),
            message: "Failed to register node".to_owned(),
        },
    };
    ctx.health.record(pool, claim, outcome);
}

/// The pool that made the claim: another pool of the same name has nothing to do with it.
fn owner_uid(claim: &NodeClaim) -> Option<&str> {
    let owners = claim.metadata.owner_references.as_deref().unwrap_or_default();
    owners
        .iter()
        .find(|owner| owner.kind == "NodePool")
        .map(|owner| owner.uid.as_str())
}

/// Brings the condition in line with what is remembered. A change of the pool or of its class makes everything that was
/// learnt moot.
pub fn check(
    health: &Health,
    pool: &mut NodePool,
    class: Option<&NodeClass>,
    conditions: &mut Conditions,
    now: Timestamp,
) {
    let Some(class) = class else { return };
    let uid = pool.uid().unwrap_or_default();
    let mut rings = health.rings.lock();
    let ring = rings.entry(uid).or_default();
    let stored = conditions.get(condition::NODE_REGISTRATION_HEALTHY).cloned();
    let status = pool.status.get_or_insert_default();
    let unchanged = status.node_class_observed_generation == Some(class.generation);
    let current = stored
        .as_ref()
        .filter(|stored| unchanged && stored.observed_generation == pool.metadata.generation);
    let Some(current) = current else {
        status.node_class_observed_generation = Some(class.generation);
        *ring = Ring::default();
        let message = "object is awaiting reconciliation";
        conditions.set_unknown(
            condition::NODE_REGISTRATION_HEALTHY,
            AWAITING_RECONCILIATION,
            message,
            now,
        );
        return;
    };
    if ring.0.is_empty() {
        *ring = seeded(current);
    }
    match ring.verdict() {
        Verdict::Unknown => {}
        Verdict::Healthy => {
            conditions.set_true(condition::NODE_REGISTRATION_HEALTHY, now);
        }
        Verdict::Unhealthy { reason, message } => {
            conditions.set_false(condition::NODE_REGISTRATION_HEALTHY, &reason, &message, now);
        }
    }
}

/// What a restart can know: as much as makes the stored condition true.
fn seeded(stored: &Condition) -> Ring {
    let mut ring = Ring::default();
    match stored.status.as_str() {
        conditions::TRUE => ring.record("seed-1", Outcome::Registered),
        conditions::FALSE => {
            let failed = Outcome::Failed {
                reason: stored.reason.clone(),
                message: stored.message.clone(),
            };
            ring.record("seed-1", failed.clone());
            ring.record("seed-2", failed);
        }
        _ => {}
    }
    ring
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
    use kube::core::DynamicObject;

    use super::*;

    fn ring(outcomes: &[bool]) -> Ring {
        let mut ring = Ring::default();
        for (number, registered) in outcomes.iter().enumerate() {
            let failed = Outcome::Failed {
                reason: "RegistrationFailed".into(),
                message: String::new(),
            };
            ring.record(
                &number.to_string(),
                if *registered { Outcome::Registered } else { failed },
            );
        }
        ring
    }

    #[track_caller]
    fn check(outcomes: &[bool], expected: &str) {
        let verdict = match ring(outcomes).verdict() {
            Verdict::Unknown => "unknown",
            Verdict::Healthy => "healthy",
            Verdict::Unhealthy { .. } => "unhealthy",
        };
        assert_eq!(verdict, expected, "{outcomes:?}");
    }

    /// LC-P10, LC-G8, LC-V7.
    #[test]
    fn two_failures_among_the_last_four_are_too_many() {
        check(&[], "unknown");
        check(&[true], "healthy");
        check(&[false], "healthy");
        check(&[false, false], "unhealthy");
        check(&[false, false, true], "unhealthy");
        check(&[false, false, true, true], "unhealthy");
        check(&[false, false, true, true, true], "healthy");
    }

    #[test]
    fn a_claim_counts_once() {
        let mut ring = Ring::default();
        let failed = Outcome::Failed {
            reason: "x".into(),
            message: String::new(),
        };
        ring.record("a", failed.clone());
        ring.record("a", failed);
        assert_eq!(ring.verdict(), Verdict::Healthy);
    }

    /// LC-P8.
    #[test]
    fn a_restart_remembers_the_verdict() {
        let stored = |status: &str| Condition {
            type_: condition::NODE_REGISTRATION_HEALTHY.into(),
            status: status.into(),
            reason: "RegistrationFailed".into(),
            message: "m".into(),
            last_transition_time: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(Timestamp::UNIX_EPOCH),
            observed_generation: None,
        };
        assert_eq!(seeded(&stored("True")).verdict(), Verdict::Healthy);
        assert!(matches!(seeded(&stored("False")).verdict(), Verdict::Unhealthy { .. }));
        assert_eq!(seeded(&stored("Unknown")).verdict(), Verdict::Unknown);
    }

    fn class(generation: i64) -> NodeClass {
        let resource = kube::core::ApiResource::from_gvk(&kube::core::GroupVersionKind::gvk("g", "v", "K"));
        NodeClass {
            name: "default".to_owned(),
            generation,
            deleting: None,
            ready: None,
            object: kube::core::DynamicObject::new("default", &resource),
        }
    }

    /// LC-P7.
    #[test]
    fn a_change_of_pool_or_class_makes_what_was_learnt_moot() {
        let health = Health::default();
        let mut pool = NodePool::default();
        pool.metadata.uid = Some("pool".to_owned());
        pool.metadata.generation = Some(1);
        let look = |pool: &mut NodePool, class: &NodeClass| {
            let mut conditions = Conditions::of(pool, Timestamp::UNIX_EPOCH);
            super::check(&health, pool, Some(class), &mut conditions, Timestamp::UNIX_EPOCH);
            pool.status.get_or_insert_default().conditions = Some(conditions.into_list());
            let listed = pool.status.as_ref().and_then(|status| status.conditions.as_deref());
            let found = conditions::find(listed.unwrap_or_default(), condition::NODE_REGISTRATION_HEALTHY);
            found.expect("the condition is there").status.clone()
        };
        let fail = || {
            for claim in ["a", "b"] {
                let mut object = NodeClaim::default();
                object.metadata.uid = Some(claim.to_owned());
                let failed = Outcome::Failed {
                    reason: "RegistrationFailed".to_owned(),
                    message: String::new(),
                };
                health.record("pool", &object, failed);
            }
        };
        assert_eq!(look(&mut pool, &class(1)), "Unknown");
        fail();
        assert_eq!(look(&mut pool, &class(1)), "False");
        assert_eq!(look(&mut pool, &class(2)), "Unknown", "the class has changed");
        assert_eq!(look(&mut pool, &class(2)), "Unknown", "and nothing of before counts");
        fail();
        assert_eq!(look(&mut pool, &class(2)), "False");
        pool.metadata.generation = Some(2);
        assert_eq!(look(&mut pool, &class(2)), "Unknown", "the pool has changed");
        assert_eq!(look(&mut pool, &class(2)), "Unknown");
    }

    fn claim(uid: &str, pool_uid: &str) -> NodeClaim {
        let mut claim = NodeClaim::default();
        claim.metadata.uid = Some(uid.to_owned());
        claim.metadata.owner_references = Some(vec![OwnerReference {
            kind: "NodePool".to_owned(),
            name: "p".to_owned(),
            uid: pool_uid.to_owned(),
            ..OwnerReference::default()
        }]);
        claim
    }

    /// The condition of pool `p` with this UID after these outcomes of claims, when it was as stored before.
    fn condition_of(pool_uid: &str, stored: &str, outcomes: &[(&str, Outcome)]) -> String {
        let health = Health::default();
        for (number, (owner, outcome)) in outcomes.iter().enumerate() {
            let claim = claim(&number.to_string(), owner);
            health.record(owner_uid(&claim).expect("it has an owner"), &claim, outcome.clone());
        }
        let class = NodeClass {
            name: "c".to_owned(),
            generation: 1,
            deleting: None,
            ready: None,
            object: DynamicObject {
                types: None,
                metadata: ObjectMeta::default(),
                data: serde_json::Value::Null,
            },
        };
        let mut pool = NodePool::default();
        pool.metadata.uid = Some(pool_uid.to_owned());
        pool.status.get_or_insert_default().node_class_observed_generation = Some(1);
        let mut conditions = Conditions::of(&pool, Timestamp::UNIX_EPOCH);
        match stored {
            "True" => conditions.set_true(condition::NODE_REGISTRATION_HEALTHY, Timestamp::UNIX_EPOCH),
            "False" => conditions.set_false(condition::NODE_REGISTRATION_HEALTHY, "x", "", Timestamp::UNIX_EPOCH),
            _ => conditions.set_unknown(condition::NODE_REGISTRATION_HEALTHY, "x", "", Timestamp::UNIX_EPOCH),
        };
        pool.metadata.generation = conditions
            .get(condition::NODE_REGISTRATION_HEALTHY)
            .and_then(|stored| stored.observed_generation);
        super::check(&health, &mut pool, Some(&class), &mut conditions, Timestamp::UNIX_EPOCH);
        let found = conditions.get(condition::NODE_REGISTRATION_HEALTHY);
        found.map(|found| found.status.clone()).unwrap_or_default()
    }

    #[test]
    fn the_condition_follows_the_claims_of_this_very_pool() {
        let failed = || Outcome::Failed {
            reason: "RegistrationFailed".into(),
            message: String::new(),
        };
        // LC-G7: a success, when what is remembered is healthy otherwise.
        assert_eq!(condition_of("new", "False", &[("new", Outcome::Registered)]), "True");
        // LC-V7
        let twice = [("new", failed()), ("new", failed())];
        assert_eq!(condition_of("new", "True", &twice), "False");
        // LC-G9, LC-V8: claims of a pool that had this name before say nothing about it.
        assert_eq!(
            condition_of("new", "Unknown", &[("old", Outcome::Registered)]),
            "Unknown"
        );
        let twice = [("old", failed()), ("old", failed())];
        assert_eq!(condition_of("new", "Unknown", &twice), "Unknown");
    }
}
