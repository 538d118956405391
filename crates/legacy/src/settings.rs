//! The ConfigMap `karpenter-global-settings`, and the settings in it that conversion needs.

use api::aws::Tags;
use serde_json::{Map, Value};

use crate::context::Facts;
use crate::manifest;
use crate::notes::{Change, Notes};

pub const CONFIG_MAP: &str = "karpenter-global-settings";

/// Keys and the environment variables that took their place.
const MOVED: &[(&str, &str)] = &[
    ("batchMaxDuration", "BATCH_MAX_DURATION"),
    ("batchIdleDuration", "BATCH_IDLE_DURATION"),
    ("aws.clusterName", "CLUSTER_NAME"),
    ("aws.clusterEndpoint", "CLUSTER_ENDPOINT"),
    ("aws.clusterCABundle", "CLUSTER_CA_BUNDLE"),
    ("aws.isolatedVPC", "ISOLATED_VPC"),
    ("aws.vmMemoryOverheadPercent", "VM_MEMORY_OVERHEAD_PERCENT"),
    ("aws.interruptionQueueName", "INTERRUPTION_QUEUE"),
    ("aws.reservedENIs", "RESERVED_ENIS"),
];

/// Settings that are gone: key, the value that meant nothing special, and where the meaning went.
pub const GONE: &[(&str, &str, &str)] = &[
    (
        "aws.assumeRoleARN",
        "",
        "the role is part of the AWS SDK's own configuration",
    ),
    (
        "aws.assumeRoleDuration",
        "15m",
        "the role is part of the AWS SDK's own configuration",
    ),
    (
        "aws.defaultInstanceProfile",
        "",
        "every class names its role or profile; converted classes got this one",
    ),
    ("aws.enablePodENI", "false", "it is found out from the cluster"),
    (
        "aws.enableENILimitedPodDensity",
        "true",
        "it is a matter of maxPods in each class; converted classes got it",
    ),
    (
        "aws.nodeNameConvention",
        "ip-name",
        "nodes are found by their provider id",
    ),
    ("aws.tags", "", "every class has its tags; converted classes got these"),
    ("featureGates.driftEnabled", "", "drift is always on"),
];

/// What a setting has to look like.
#[derive(Clone, Copy)]
enum Shape {
    Truth,
    Length,
    /// A number that is not negative.
    Number,
    /// A whole number that is not negative.
    Count,
    /// A JSON object of texts.
    Tags,
    OneOf(&'static [&'static str]),
}

const SHAPES: &[(&str, Shape)] = &[
    ("batchMaxDuration", Shape::Length),
    ("batchIdleDuration", Shape::Length),
    ("featureGates.driftEnabled", Shape::Truth),
    ("aws.assumeRoleDuration", Shape::Length),
    ("aws.enablePodENI", Shape::Truth),
    ("aws.enableENILimitedPodDensity", Shape::Truth),
    ("aws.isolatedVPC", Shape::Truth),
    ("aws.nodeNameConvention", Shape::OneOf(&["ip-name", "resource-name"])),
    ("aws.reservedENIs", Shape::Count),
    ("aws.tags", Shape::Tags),
    ("aws.vmMemoryOverheadPercent", Shape::Number),
];

impl Shape {
    /// What is wrong with the text.
    fn problem(self, text: &str) -> Option<String> {
        let fits = match self {
            Shape::Truth => text.parse::<bool>().is_ok(),
            Shape::Length => api::duration::parse(text).is_ok_and(|length| length.is_positive()),
            Shape::Number => text.parse::<f64>().is_ok_and(|number| number >= 0.0),
            Shape::Count => text.parse::<u32>().is_ok(),
            Shape::Tags => serde_json::from_str::<Tags>(text).is_ok(),
            Shape::OneOf(words) => words.contains(&text),
        };
        let wanted = match self {
            Shape::Truth => "neither true nor false".to_owned(),
            Shape::Length => "not a duration above zero".to_owned(),
            Shape::Number => "not a number from zero on".to_owned(),
            Shape::Count => "not a whole number from zero on".to_owned(),
            Shape::Tags => "not a JSON object of texts".to_owned(),
            Shape::OneOf(words) => format!("none of {}", words.join(", ")),
        };
        (!fits).then(|| format!("{text:?} is {wanted}"))
    }
}

/// What cannot be read in the ConfigMap. An empty text is as good as none; unknown keys are left alone.
pub fn check(config_map: &Value, notes: &mut Notes) {
    for (key, value) in data(config_map).into_iter().flatten() {
        let shape = SHAPES.iter().find(|(known, _)| known == key);
        let text = value.as_str().filter(|text| !text.is_empty());
        let (Some((_, shape)), Some(text)) = (shape, text) else {
            continue;
        };
        if let Some(problem) = shape.problem(text) {
            notes.invalid(format!("data[{key}]"), problem);
        }
    }
}

/// What the settings say about every object. Keys are those of the ConfigMap.
pub fn facts<'a>(setting: impl Fn(&str) -> Option<&'a str>) -> Facts {
    let text = |key: &str| setting(key).filter(|value| !value.is_empty()).map(str::to_owned);
    let tags = text("aws.tags").and_then(|json| serde_json::from_str::<Tags>(&json).ok());
    Facts {
        cluster_name: text("aws.clusterName"),
        default_instance_profile: text("aws.defaultInstanceProfile"),
        tags: tags.unwrap_or_default(),
        unlimited_density: setting("aws.enableENILimitedPodDensity") == Some("false"),
    }
}

/// The entries of a ConfigMap.
pub fn data(config_map: &Value) -> Option<&Map<String, Value>> {
    config_map.get("data")?.as_object()
}

pub fn facts_of_config_map(config_map: &Value) -> Facts {
    let data = data(config_map);
    facts(|key| data?.get(key)?.as_str())
}

/// The same settings as environment variables, or nothing where there is nothing old in the ConfigMap.
pub fn environment(config_map: &Value, notes: &mut Notes) -> Option<Value> {
    let old = data(config_map)?;
    let is_old =
        |key: &str| MOVED.iter().any(|(known, _)| *known == key) || GONE.iter().any(|(known, _, _)| *known == key);
    if !old.keys().any(|key| is_old(key)) {
        return None;
    }
    let mut new = Map::new();
    for (key, value) in old {
        if let Some((_, variable)) = MOVED.iter().find(|(known, _)| known == key) {
            if value.as_str() != Some("") {
                new.insert((*variable).to_owned(), value.clone());
            }
        } else if let Some((_, usual, why)) = GONE.iter().find(|(known, _, _)| known == key) {
            if value.as_str().is_some_and(|value| !value.is_empty() && value != *usual) {
                notes.warn(format!("data[{key}]"), Change::Dropped { why });
            }
        } else {
            new.insert(key.clone(), value.clone());
        }
    }
    notes.warn("", Change::SettingsAreEnvironment);
    let mut metadata = manifest::metadata(config_map);
    if let Some(namespace) = config_map.pointer("/metadata/namespace") {
        metadata.insert("namespace".to_owned(), namespace.clone());
    }
    Some(serde_json::json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": new }))
}
