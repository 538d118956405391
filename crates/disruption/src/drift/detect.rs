//! Whether a claim has drifted from its pool, and how.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use model::{
    CapacityType, Claim, ClaimPhase, InstanceType, LabelValue, Pool, Requirement, Requirements, Vocabulary,
    requirements::AllowUndefined, vocabulary,
};

/// Annotations on claims that tell which template they were made from.
const HASH: &str = "karpenter.sh/nodepool-hash";
const HASH_VERSION: &str = "karpenter.sh/nodepool-hash-version";

/// A catalog may lag behind a launch for a while, so young claims are not measured against it.
const CATALOG_GRACE: SignedDuration = SignedDuration::from_hours(1);

/// How a claim has drifted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Drift {
    /// The pool's template has changed.
    Template,
    /// The pool's requirements no longer admit the node.
    Requirements,
    /// Nobody sells what the claim is any more.
    InstanceType,
    /// What the cloud has to say.
    Provider(String),
}

impl Drift {
    /// The reason of condition Drifted.
    pub fn reason(&self) -> &str {
        match self {
            Drift::Template => "NodePoolDrifted",
            Drift::Requirements => "RequirementsDrifted",
            Drift::InstanceType => "InstanceTypeNotFound",
            Drift::Provider(reason) => reason,
        }
    }
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason())
    }
}

/// A pool's template as its stored annotations have it. Absent until the pool has been hashed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TemplateHash<'a> {
    pub hash: Option<&'a str>,
    pub version: Option<&'a str>,
}

/// What can be told without asking the cloud, or nothing. Claims without an instance have not drifted: they follow
/// their pool when they are launched.
pub fn drift(
    claim: &Claim,
    pool: &Pool,
    template: TemplateHash<'_>,
    catalog: Option<&[std::sync::Arc<InstanceType>]>,
    vocabulary: &Vocabulary,
    now: Timestamp,
) -> Option<Drift> {
    if claim.phase < ClaimPhase::Launched {
        return None;
    }
    if template_changed(claim, template) {
        return Some(Drift::Template);
    }
    if !admits(pool, claim) {
        return Some(Drift::Requirements);
    }
    let old = now.duration_since(claim.created) > CATALOG_GRACE;
    let lost = catalog.is_some_and(|catalog| old && !is_sold(claim, catalog, vocabulary));
    lost.then_some(Drift::InstanceType)
}

/// Hashes of different versions say nothing about each other.
fn template_changed(claim: &Claim, template: TemplateHash<'_>) -> bool {
    let noted = |key: &str| claim.annotations.get(key).map(LabelValue::as_str);
    let (Some(ours), Some(version), Some(theirs), Some(their_version)) =
        (template.hash, template.version, noted(HASH), noted(HASH_VERSION))
    else {
        return false;
    };
    version == their_version && ours != theirs
}

/// Whether the node could be launched from the pool today, going by its labels.
fn admits(pool: &Pool, claim: &Claim) -> bool {
    let labels = Requirements::from_labels(&claim.labels);
    labels.is_compatible(&pool.template.requirements, AllowUndefined::Nothing)
}

/// Whether what the claim is can be bought in principle, now or another day. A reserved machine may go on as an
/// on-demand one when its reservation ends.
pub fn is_sold(claim: &Claim, catalog: &[std::sync::Arc<InstanceType>], vocabulary: &Vocabulary) -> bool {
    let Some(name) = claim.labels.get(vocabulary::INSTANCE_TYPE) else {
        return false;
    };
    let Some(kind) = catalog.iter().find(|kind| kind.name.as_str() == name.as_str()) else {
        return false;
    };
    let mut labels = Requirements::from_labels(&claim.labels);
    let reserved = CapacityType::Reserved.as_str();
    if labels.get(vocabulary::CAPACITY_TYPE).has(reserved) && labels.contains(vocabulary::CAPACITY_TYPE) {
        labels.replace(Requirement::one_of(
            vocabulary::CAPACITY_TYPE,
            [reserved, CapacityType::OnDemand.as_str()],
        ));
        if let Some(key) = &vocabulary.reservation_id {
            labels.remove(key.as_str());
        }
    }
    kind.offerings.iter().any(|offering| offering.admitted_by(&labels))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use model::{InstanceType, Labels, Operator, Overhead, Resources, samples};

    use super::*;

    const BORN: Timestamp = Timestamp::UNIX_EPOCH;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs
            .iter()
            .map(|(key, value)| ((*key).into(), (*value).into()))
            .collect()
    }

    fn claim() -> Claim {
        Claim {
            phase: ClaimPhase::Initialized,
            labels: labels(&[
                (vocabulary::INSTANCE_TYPE, "large"),
                (vocabulary::ZONE, "a"),
                (vocabulary::CAPACITY_TYPE, "on-demand"),
                ("size", "4"),
            ]),
            annotations: labels(&[(HASH, "1"), (HASH_VERSION, "v3")]),
            ..samples::claim("c")
        }
    }

    fn catalog(capacity_types: &[CapacityType]) -> Vec<Arc<InstanceType>> {
        let offerings = capacity_types.iter().map(|kind| samples::offering(*kind, "a", 1.0));
        let kind = InstanceType::new(
            "large".into(),
            Requirements::default(),
            offerings.collect(),
            Resources::default(),
            Overhead::default(),
        );
        vec![Arc::new(kind)]
    }

    fn pool(requirements: &[(&str, Operator, &[&str])]) -> Pool {
        let mut pool = samples::pool("p");
        let requirement = |(key, operator, values): &(&str, Operator, &[&str])| {
            Requirement::new(key, *operator, values.iter().map(|value| (*value).into())).expect("a requirement")
        };
        pool.template.requirements = requirements.iter().map(requirement).collect();
        pool
    }

    const SAME: TemplateHash<'static> = TemplateHash {
        hash: Some("1"),
        version: Some("v3"),
    };

    fn drift_of(claim: &Claim, pool: &Pool, template: TemplateHash<'_>) -> Option<Drift> {
        let sold = catalog(&[CapacityType::OnDemand]);
        drift(
            claim,
            pool,
            template,
            Some(&sold),
            &Vocabulary::default(),
            BORN + SignedDuration::from_hours(2),
        )
    }

    /// DI-H10, DI-H11.
    #[test]
    fn another_hash_of_the_same_version_is_a_drift() {
        let hashed = |hash, version| TemplateHash { hash, version };
        let plain = pool(&[]);
        assert_eq!(drift_of(&claim(), &plain, SAME), None);
        assert_eq!(
            drift_of(&claim(), &plain, hashed(Some("2"), Some("v3"))),
            Some(Drift::Template)
        );
        for (hash, version) in [(None, Some("v3")), (Some("2"), None), (Some("2"), Some("v4"))] {
            assert_eq!(drift_of(&claim(), &plain, hashed(hash, version)), None);
        }
        let unhashed = Claim {
            annotations: Labels::default(),
            ..claim()
        };
        assert_eq!(drift_of(&unhashed, &plain, hashed(Some("2"), Some("v3"))), None);
        let moved = pool(&[(vocabulary::ZONE, Operator::In, &["b"])]);
        let both = drift_of(&claim(), &moved, hashed(Some("2"), Some("v3")));
        assert_eq!(
            both,
            Some(Drift::Template),
            "the template is named before the requirements"
        );
    }

    /// DI-H7, DI-H8, DI-H9.
    #[test]
    fn requirements_that_exclude_the_node_are_a_drift() {
        use Operator::{DoesNotExist, Exists, Gt, Gte, In, Lt, NotIn};
        for (key, operator, values, drifted) in [
            (vocabulary::ZONE, In, &["a"][..], false),
            (vocabulary::ZONE, In, &["a", "b"], false),
            (vocabulary::ZONE, Exists, &[], false),
            (vocabulary::ZONE, In, &["b"], true),
            (vocabulary::ZONE, NotIn, &["a"], true),
            (vocabulary::ZONE, DoesNotExist, &[], true),
            ("team", In, &["blue"], true),
            ("team", DoesNotExist, &[], false),
            ("size", Gt, &["3"], false),
            ("size", Gt, &["4"], true),
            ("size", Gte, &["4"], false),
            ("size", Lt, &["4"], true),
        ] {
            let found = drift_of(&claim(), &pool(&[(key, operator, values)]), SAME);
            let expected = drifted.then_some(Drift::Requirements);
            assert_eq!(found, expected, "{key} {operator} {values:?}");
        }
    }

    /// DI-H3, DI-H12.
    #[test]
    fn what_nobody_sells_any_more_is_a_drift_after_an_hour() {
        use CapacityType::{OnDemand, Reserved, Spot};
        let of = |claim: &Claim, sold: &[CapacityType], hours: i64| {
            let now = BORN + SignedDuration::from_hours(hours);
            drift(
                claim,
                &pool(&[]),
                SAME,
                Some(&catalog(sold)),
                &Vocabulary::default(),
                now,
            )
        };
        let with = |key: &str, value: &str| {
            let mut claim = claim();
            claim.labels.insert(key.into(), value.into());
            claim
        };
        assert_eq!(of(&claim(), &[OnDemand], 2), None);
        assert_eq!(of(&claim(), &[Spot], 2), Some(Drift::InstanceType));
        assert_eq!(of(&claim(), &[], 2), Some(Drift::InstanceType));
        assert_eq!(of(&claim(), &[], 1), None, "the catalog may be late");
        assert_eq!(
            of(&with(vocabulary::INSTANCE_TYPE, "gone"), &[OnDemand], 2),
            Some(Drift::InstanceType)
        );
        assert_eq!(
            of(&with(vocabulary::ZONE, "z"), &[OnDemand], 2),
            Some(Drift::InstanceType)
        );
        let reserved = with(vocabulary::CAPACITY_TYPE, "reserved");
        for (sold, drifted) in [
            (&[Reserved][..], false),
            (&[OnDemand], false),
            (&[Reserved, OnDemand], false),
            (&[Spot], true),
            (&[], true),
        ] {
            assert_eq!(
                of(&reserved, sold, 2),
                drifted.then_some(Drift::InstanceType),
                "{sold:?}"
            );
        }
    }

    /// DI-H5.
    #[test]
    fn a_claim_without_an_instance_has_not_drifted() {
        let pending = Claim {
            phase: ClaimPhase::Pending,
            ..claim()
        };
        assert_eq!(
            drift_of(&pending, &pool(&[(vocabulary::ZONE, Operator::In, &["b"])]), SAME),
            None
        );
    }
}
