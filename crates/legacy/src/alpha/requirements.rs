//! Requirements: renamed keys, and what admission used to add.

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
/// Early releases looked at labels too, and had no opinion on instance types.
pub fn defaults(
    generation: Generation,
    requirements: &[Requirement],
    has_label: impl Fn(&str) -> bool,
) -> Vec<Requirement> {
    let present = |key: &str| requirements.iter().any(|requirement| requirement.key == key);
    let early = generation != Generation::V1Alpha5;
    let mut added = Vec::new();
    for (key, value) in [
        (labels::OS, "linux"),
        (labels::ARCH, "amd64"),
        (labels::CAPACITY_TYPE, capacity_type::ON_DEMAND),
    ] {
        if !present(key) && !(early && has_label(key)) {
            added.push(one_of(key, [value]));
        }
    }
    if !early
        && !requirements
            .iter()
            .any(|requirement| narrows_instance_types(&requirement.key))
    {
        added.push(one_of(labels::aws::INSTANCE_CATEGORY, ["c", "m", "r"]));
        let generation = requirement(labels::aws::INSTANCE_GENERATION, Operator::Gt, vec!["2".to_owned()]);
        added.push(generation);
    }
    added
}
