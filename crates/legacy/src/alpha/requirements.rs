//! Requirements: renamed keys, and what admission used to add.

use std::collections::{BTreeMap, BTreeSet};

use api::labels::{self, capacity_type};
use api::v1::{Operator, Requirement};

use super::Generation;
use super::keys::{Fate, fate, narrows_instance_types};
use crate::notes::{Change, Notes};

pub fn one_of<const N: usize>(key: &str, values: [&str; N]) -> Requirement {
    requirement(key, Operator::In, values.map(str::to_owned).to_vec())
}

pub fn requirement(key: &str, operator: Operator, values: Vec<String>) -> Requirement {
    Requirement {
        key: key.to_owned(),
        operator,
        values: Some(values),
        min_values: None,
    }
}

/// The requirements with today's keys.
pub fn renamed(written: &[Requirement], notes: &mut Notes) -> Vec<Requirement> {
    let mut kept = Vec::new();
    for requirement in written {
        match fate(&requirement.key) {
            Fate::Stays(key) => kept.push(Requirement {
                key: key.to_owned(),
                ..requirement.clone()
            }),
            Fate::Goes(why) => {
                let key = requirement.key.clone();
                notes.warn("spec.requirements", Change::RequirementRemoved { key, why });
            }
        }
    }
    kept
}

/// What admission of that release would have added to these requirements, in its order.
///
/// A label is a requirement too. Later releases added theirs beside it, and a pool that asks for two values has no nodes.
/// Early releases had no opinion on instance types.
pub fn defaults(
    generation: Generation,
    requirements: &[Requirement],
    labels: Option<&BTreeMap<String, String>>,
) -> Vec<Requirement> {
    let required = requirements.iter().map(|requirement| requirement.key.as_str());
    let labelled = labels.into_iter().flatten().map(|(key, _)| labels::normalized(key));
    let present: BTreeSet<&str> = required.chain(labelled).collect();
    let mut added = Vec::new();
    for (key, value) in [
        (labels::OS, "linux"),
        (labels::ARCH, "amd64"),
        (labels::CAPACITY_TYPE, capacity_type::ON_DEMAND),
    ] {
        if !present.contains(key) {
            added.push(one_of(key, [value]));
        }
    }
    if generation == Generation::V1Alpha5 && !present.iter().any(|key| narrows_instance_types(key)) {
        added.push(one_of(labels::aws::INSTANCE_CATEGORY, ["c", "m", "r"]));
        added.push(requirement(
            labels::aws::INSTANCE_GENERATION,
            Operator::Gt,
            vec!["2".to_owned()],
        ));
    }
    added
}
