//! Helm values of the charts up to 0.32, rewritten for the chart of v1.

use serde_json::{Map, Value, json};

use crate::alpha::keys::PROVISIONER_NAME;
use crate::context::Facts;
use crate::notes::{Change, Notes};
use crate::settings;

/// Keys at the top that tell the values of a Karpenter chart from other YAML.
const TELLING: &[&str] = &[
    "controller",
    "webhook",
    "defaultProvisioner",
    "settings",
    "clusterName",
    "clusterEndpoint",
    "serviceAccount",
    EXTRA_OBJECTS,
];

/// The list of objects that the charts from 0.25 to 0.27 passed on.
const EXTRA_OBJECTS: &str = "extraObjects";

/// The image of the releases; another repository is a mirror that the new image is taken from too.
const PUBLIC_REPOSITORY: &str = "public.ecr.aws/karpenter/controller";

/// Environment variables of early releases and their new names.
const RENAMED_VARIABLES: &[(&str, &str)] = &[
    ("VM_MEMORY_OVERHEAD", "VM_MEMORY_OVERHEAD_PERCENT"),
    ("AWS_ISOLATED_VPC", "ISOLATED_VPC"),
];

/// Environment variables of early releases that are gone, with the setting they stood for.
const GONE_VARIABLES: &[(&str, &str)] = &[
    ("AWS_DEFAULT_INSTANCE_PROFILE", "aws.defaultInstanceProfile"),
    ("AWS_ENABLE_POD_ENI", "aws.enablePodENI"),
    ("AWS_ENI_LIMITED_POD_DENSITY", "aws.enableENILimitedPodDensity"),
    ("AWS_NODE_NAME_CONVENTION", "aws.nodeNameConvention"),
];

pub fn is_values(document: &Value) -> bool {
    let typed = document.get("apiVersion").is_some() || document.get("kind").is_some();
    !typed && TELLING.iter().any(|key| document.get(key).is_some())
}

/// What the values say about every object.
pub fn facts(values: &Value) -> Facts {
    let text = |path: &[&str]| {
        let value = path.iter().try_fold(values, |value, field| value.get(field))?;
        match value {
            Value::String(text) => Some(text.as_str()),
            Value::Bool(true) => Some("true"),
            Value::Bool(false) => Some("false"),
            _ => None,
        }
    };
    let variable = |name: &str| {
        let entries = values.pointer("/controller/env")?.as_array()?;
        let entry = entries.iter().find(|entry| entry["name"] == name)?;
        entry["value"].as_str()
    };
    let mut facts = settings::facts(|key| {
        let name = key.strip_prefix("aws.")?;
        let current = text(&["settings", "aws", name]).filter(|value| !value.is_empty());
        let early = || match name {
            "clusterName" => {
                let known = text(&["clusterName"]).filter(|value| !value.is_empty());
                known
                    .or_else(|| text(&["controller", "clusterName"]))
                    .or_else(|| variable("CLUSTER_NAME"))
            }
            "defaultInstanceProfile" => {
                text(&["aws", "defaultInstanceProfile"]).or_else(|| variable("AWS_DEFAULT_INSTANCE_PROFILE"))
            }
            "enableENILimitedPodDensity" => variable("AWS_ENI_LIMITED_POD_DENSITY"),
            _ => None,
        };
        current.or_else(early)
    });
    if facts.cluster_name.is_none() {
        facts.cluster_name = text(&["settings", "clusterName"])
            .filter(|name| !name.is_empty())
            .map(str::to_owned);
    }
    if let Some(tags) = values.pointer("/settings/aws/tags").and_then(Value::as_object) {
        let tags = tags
            .iter()
            .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
        facts.tags = tags.collect();
    }
    facts
}

/// The Provisioner that the chart of 0.4.3 made by itself.
pub fn default_provisioner(values: &Value) -> Option<Value> {
    let written = values.get("defaultProvisioner")?.as_object()?;
    if written.get("create").and_then(Value::as_bool) != Some(true) {
        return None;
    }
    let mut spec = Map::new();
    for (key, value) in written.iter().filter(|(key, _)| *key != "create") {
        // The template leaves out what is empty, and a time of zero with it.
        if !crate::manifest::is_empty(value) && value.as_i64() != Some(0) {
            spec.insert(key.clone(), value.clone());
        }
    }
    Some(json!({
        "apiVersion": "karpenter.sh/v1alpha5",
        "kind": "Provisioner",
        "metadata": { "name": "default" },
        "spec": spec,
    }))
}

/// An object that the charts from 0.25 to 0.27 passed on, or what is wrong with it.
pub struct ExtraObject<'a> {
    /// Its place in the values.
    pub field: String,
    pub object: Result<&'a Value, &'static str>,
}

/// The objects in `extraObjects`, and those in lists there.
pub fn extra_objects(values: &Value) -> Vec<ExtraObject<'_>> {
    let mut found = Vec::new();
    match values.get(EXTRA_OBJECTS) {
        Some(Value::Array(items)) => flatten(EXTRA_OBJECTS, items, &mut found),
        Some(other) if !crate::manifest::is_empty(other) => found.push(ExtraObject {
            field: EXTRA_OBJECTS.to_owned(),
            object: Err("is no list of objects"),
        }),
        _ => {}
    }
    found
}

fn flatten<'a>(path: &str, items: &'a [Value], found: &mut Vec<ExtraObject<'a>>) {
    for (index, item) in items.iter().enumerate() {
        let field = format!("{path}[{index}]");
        let typed = ["apiVersion", "kind"]
            .iter()
            .all(|word| !crate::manifest::text(item, word).is_empty());
        if item["kind"] == "List" {
            let inner = item["items"].as_array().map(Vec::as_slice).unwrap_or_default();
            flatten(&format!("{field}.items"), inner, found);
            continue;
        }
        let object = if !typed {
            Err("is no object: it has to have apiVersion and kind")
        } else if is_template(item) {
            Err("is a template, which the old chart filled in: take the object from helm get manifest")
        } else {
            Ok(item)
        };
        found.push(ExtraObject { field, object });
    }
}

/// Whether Helm would have replaced something in the texts of the object.
fn is_template(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("{{"),
        Value::Array(items) => items.iter().any(is_template),
        Value::Object(fields) => fields
            .iter()
            .any(|(key, value)| key.contains("{{") || is_template(value)),
        _ => false,
    }
}

/// The values for the chart of v1; the same values where nothing in them is old.
pub fn convert(values: &Value, notes: &mut Notes) -> Value {
    let Some(written) = values.as_object() else {
        return values.clone();
    };
    let mut new = Rewrite {
        values: written.clone(),
        notes,
    };
    new.settings();
    new.controller();
    new.logging();
    new.environment();
    if default_provisioner(values).is_some() {
        new.notes.warn("defaultProvisioner", Change::ProvisionerLeavesChart);
    }
    new.values.remove("defaultProvisioner");
    if !extra_objects(values).is_empty() {
        new.notes.warn(EXTRA_OBJECTS, Change::ObjectsLeaveChart);
    }
    new.values.remove(EXTRA_OBJECTS);
    if new.values.remove("webhook").is_some() {
        new.notes.warn(
            "webhook",
            Change::Dropped {
                why: "webhooks are off; legacy.webhooks switches them on",
            },
        );
    }
    let mut values = Value::Object(new.values);
    rename_pool_label(&mut values);
    values
}

struct Rewrite<'a> {
    values: Map<String, Value>,
    notes: &'a mut Notes,
}

impl Rewrite<'_> {
    fn take(&mut self, section: &str, key: &str) -> Option<Value> {
        self.values.get_mut(section)?.as_object_mut()?.remove(key)
    }

    /// Puts a value where today's chart looks for it. What is there already was meant for today's chart.
    fn put(&mut self, section: &str, key: &str, value: Value) {
        if value.is_null() || value.as_str() == Some("") {
            return;
        }
        let fields = match section {
            "" => &mut self.values,
            _ => {
                let section = self.values.entry(section).or_insert_with(|| json!({}));
                match section.as_object_mut() {
                    Some(fields) => fields,
                    None => return,
                }
            }
        };
        fields.entry(key).or_insert(value);
    }

    fn gone(&mut self, path: &str, setting: &str, value: &Value) {
        let known = settings::GONE.iter().find(|(known, _, _)| *known == setting);
        let Some((_, usual, why)) = known else { return };
        let text = match value {
            Value::String(text) => text.clone(),
            other if crate::manifest::is_empty(other) => String::new(),
            other => other.to_string(),
        };
        if !text.is_empty() && text != *usual {
            self.notes.warn(path, Change::Dropped { why });
        }
    }

    /// The cluster's facts and the batch windows move below `settings`.
    fn settings(&mut self) {
        for key in ["clusterName", "clusterEndpoint"] {
            let outer = self.values.remove(key);
            let inner = self.take("controller", key);
            for value in [outer, inner].into_iter().flatten() {
                self.put("settings", key, value);
            }
        }
        for key in ["batchMaxDuration", "batchIdleDuration"] {
            if let Some(value) = self.take("controller", key) {
                self.put("settings", key, value);
            }
        }
        if let Some(Value::Object(early)) = self.values.remove("aws") {
            for (key, value) in early {
                self.gone(&format!("aws.{key}"), &format!("aws.{key}"), &value);
            }
        }
        if let Some(Value::Object(aws)) = self.take("settings", "aws") {
            for (key, value) in aws {
                let setting = format!("aws.{key}");
                if settings::GONE.iter().any(|(known, _, _)| *known == setting) {
                    self.gone(&format!("settings.{setting}"), &setting, &value);
                } else {
                    let key = if key == "interruptionQueueName" {
                        "interruptionQueue"
                    } else {
                        &key
                    };
                    self.put("settings", key, value);
                }
            }
        }
        // Of 0.32, where they stood without the section.
        for key in ["assumeRoleARN", "assumeRoleDuration"] {
            if let Some(value) = self.take("settings", key) {
                self.gone(&format!("settings.{key}"), &format!("aws.{key}"), &value);
            }
        }
        let gates = self
            .values
            .get_mut("settings")
            .and_then(|settings| settings.get_mut("featureGates"));
        if let Some(gates) = gates.and_then(Value::as_object_mut)
            && let Some(drift) = gates.remove("driftEnabled")
        {
            if gates.is_empty() {
                self.take("settings", "featureGates");
            }
            self.gone(
                "settings.featureGates.driftEnabled",
                "featureGates.driftEnabled",
                &drift,
            );
        }
    }

    /// Early charts placed the controller's pod below `controller`, and named its image in one text.
    fn controller(&mut self) {
        for key in [
            "nodeSelector",
            "tolerations",
            "affinity",
            "replicas",
            "podAnnotations",
            "podLabels",
        ] {
            if let Some(value) = self.take("controller", key)
                && !crate::manifest::is_empty(&value)
            {
                self.put("", key, value);
            }
        }
        let repository = match self.take("controller", "image") {
            None => return,
            Some(Value::String(image)) => {
                let without_digest = image.split('@').next().unwrap_or_default();
                let name = without_digest.rfind('/').unwrap_or(0);
                let end = without_digest[name..]
                    .find(':')
                    .map_or(without_digest.len(), |colon| name + colon);
                without_digest[..end].to_owned()
            }
            Some(Value::Object(image)) => {
                let current = image
                    .get("tag")
                    .and_then(Value::as_str)
                    .is_some_and(|tag| !tag.trim_start_matches('v').starts_with("0."));
                if current || image.is_empty() || !image.contains_key("tag") {
                    self.put("controller", "image", Value::Object(image));
                    return;
                }
                image
                    .get("repository")
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned()
            }
            Some(other) => {
                self.put("controller", "image", other);
                return;
            }
        };
        self.notes.warn(
            "controller.image",
            Change::Dropped {
                why: "it is the image of an old release",
            },
        );
        if !repository.is_empty() && repository != PUBLIC_REPOSITORY {
            self.put("controller", "image", json!({ "repository": repository }));
        }
    }

    fn logging(&mut self) {
        for (old, new) in [
            ("logLevel", "logLevel"),
            ("outputPaths", "logOutputPaths"),
            ("errorOutputPaths", "logErrorOutputPaths"),
        ] {
            if let Some(value) = self
                .take("controller", old)
                .filter(|value| !crate::manifest::is_empty(value))
            {
                self.put("", new, value);
            }
        }
        let inner = self.take("controller", "logEncoding");
        let outer = self.values.remove("logEncoding");
        if [inner, outer]
            .into_iter()
            .flatten()
            .any(|value| value.as_str().is_some_and(|text| !text.is_empty()))
        {
            self.notes.warn("logEncoding", Change::Dropped { why: "logs are JSON" });
        }
    }

    fn environment(&mut self) {
        let env = self
            .values
            .get_mut("controller")
            .and_then(|controller| controller.get_mut("env"));
        let Some(entries) = env.and_then(Value::as_array_mut) else {
            return;
        };
        let mut dropped = Vec::new();
        entries.retain_mut(|entry| {
            let name = entry["name"].as_str().unwrap_or_default().to_owned();
            if let Some((_, new)) = RENAMED_VARIABLES.iter().find(|(old, _)| *old == name) {
                entry["name"] = (*new).into();
            }
            let gone = GONE_VARIABLES.iter().find(|(old, _)| *old == name);
            dropped.extend(gone.map(|(_, setting)| (name, *setting, entry["value"].clone())));
            gone.is_none()
        });
        for (name, setting, value) in dropped {
            self.gone(&format!("controller.env[{name}]"), setting, &value);
        }
    }
}

/// The controller keeps off the nodes that it makes, which carry another label now.
fn rename_pool_label(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if fields.get("key").and_then(Value::as_str) == Some(PROVISIONER_NAME) {
                fields.insert("key".to_owned(), api::labels::NODE_POOL.into());
            }
            fields.values_mut().for_each(rename_pool_label);
        }
        Value::Array(items) => items.iter_mut().for_each(rename_pool_label),
        _ => {}
    }
}
