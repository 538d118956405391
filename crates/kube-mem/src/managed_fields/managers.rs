//! The entries of `managedFields`: who, by which kind of request, in which version, on which subresource.

use std::mem;
use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::set::FieldSet;
use super::typed::Comparison;

/// More managers by update than this are merged, the oldest first.
const MAX_UPDATE_MANAGERS: usize = 10;
const MERGED: &str = "ancient-changes";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    Apply,
    Update,
}

/// One manager with the fields that it owns.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub manager: String,
    pub operation: Operation,
    pub api_version: String,
    pub subresource: String,
    pub time: Option<String>,
    pub fields: FieldSet,
}

impl Entry {
    /// A manager that owns nothing yet. `object` tells the version.
    pub(crate) fn new(manager: &str, operation: Operation, object: &Value, subresource: Option<&str>) -> Self {
        Entry {
            manager: if manager.is_empty() { "unknown" } else { manager }.to_owned(),
            operation,
            api_version: object["apiVersion"].as_str().unwrap_or_default().to_owned(),
            subresource: subresource.unwrap_or_default().to_owned(),
            time: None,
            fields: FieldSet::default(),
        }
    }

    /// One who applies is the same in all versions, one who updates is not.
    pub(crate) fn is_same_manager(&self, other: &Entry) -> bool {
        self.manager == other.manager
            && self.operation == other.operation
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }

    /// What tells managers apart, as the real server writes it.
    pub(crate) fn identity(&self) -> String {
        let operation = match self.operation {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        };
        let mut identity = format!("{{\"manager\":{:?},\"operation\":{operation:?}", self.manager);
        if self.operation == Operation::Update {
            identity += &format!(",\"apiVersion\":{:?}", self.api_version);
        }
        if !self.subresource.is_empty() {
            identity += &format!(",\"subresource\":{:?}", self.subresource);
        }
        identity + "}"
    }

    /// The manager as messages name it: `"kubectl" with subresource "status" using apps/v1`.
    pub(crate) fn shown(&self) -> String {
        let mut text = format!("{:?}", self.manager);
        if !self.subresource.is_empty() {
            text += &format!(" with subresource {:?}", self.subresource);
        }
        if self.operation == Operation::Update {
            text += &format!(" using {}", self.api_version);
        }
        text
    }

    fn read(entry: &Value) -> Option<Entry> {
        let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        let operation = match entry["operation"].as_str()? {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return None,
        };
        if text("apiVersion").is_empty() || text("fieldsType") != "FieldsV1" {
            return None;
        }
        Some(Entry {
            manager: text("manager"),
            operation,
            api_version: text("apiVersion"),
            subresource: text("subresource"),
            time: entry["time"].as_str().map(str::to_owned),
            fields: FieldSet::from_json(entry["fieldsV1"].as_object().cloned().unwrap_or_default()),
        })
    }

    fn write(self) -> Value {
        let mut entry = Map::new();
        let operation = match self.operation {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        };
        let texts = [
            ("manager", self.manager),
            ("apiVersion", self.api_version),
            ("subresource", self.subresource),
        ];
        for (name, text) in texts {
            if !text.is_empty() {
                entry.insert(name.into(), text.into());
            }
        }
        entry.insert("operation".into(), operation.into());
        if let Some(time) = self.time {
            entry.insert("time".into(), time.into());
        }
        entry.insert("fieldsType".into(), "FieldsV1".into());
        entry.insert("fieldsV1".into(), self.fields.into_json());
        Value::Object(entry)
    }
}

/// All managers of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Managers(pub Vec<Entry>);

impl Managers {
    /// Nothing if an entry is not well formed; no entries if there is no list.
    pub(crate) fn read(managed_fields: &Value) -> Option<Managers> {
        match managed_fields {
            Value::Null => Some(Managers::default()),
            Value::Array(entries) => entries.iter().map(Entry::read).collect::<Option<_>>().map(Managers),
            _ => None,
        }
    }

    pub(crate) fn write(mut self) -> Value {
        self.0.sort_by(|a, b| {
            let key = |entry: &Entry| (entry.operation, entry.time.clone(), entry.manager.clone());
            key(a)
                .cmp(&key(b))
                .then_with(|| (&a.api_version, &a.subresource).cmp(&(&b.api_version, &b.subresource)))
        });
        Value::Array(self.0.into_iter().map(Entry::write).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn position(&self, manager: &Entry) -> Option<usize> {
        self.0.iter().position(|entry| entry.is_same_manager(manager))
    }

    /// Hands the changed fields to `manager` and takes the removed ones from everybody.
    pub(crate) fn update(&mut self, comparison: &Comparison, manager: &Entry, now: &str) {
        for entry in &mut self.0 {
            entry.fields.subtract(&comparison.changed);
            entry.fields.subtract(&comparison.removed);
        }
        let mut taken = comparison.changed.clone();
        taken.subtract(unowned());
        if !taken.is_empty() {
            let at = self.position(manager).unwrap_or_else(|| {
                self.0.push(manager.clone());
                self.0.len() - 1
            });
            self.0[at].fields.add_all(&taken);
            self.0[at].time = Some(now.to_owned());
        }
        self.drop_empty();
        self.cap();
    }

    pub(crate) fn drop_empty(&mut self) {
        self.0.retain(|entry| !entry.fields.is_empty());
    }

    /// Merges the oldest updaters of each version until there are few enough.
    fn cap(&mut self) {
        let updaters = |entries: &[Entry]| {
            entries
                .iter()
                .filter(|entry| entry.operation == Operation::Update)
                .count()
        };
        if updaters(&self.0) <= MAX_UPDATE_MANAGERS {
            return;
        }
        let mut oldest_first = mem::take(&mut self.0);
        oldest_first.sort_by(|a, b| (&a.time, &a.manager).cmp(&(&b.time, &b.manager)));
        let mut surplus = updaters(&oldest_first) - MAX_UPDATE_MANAGERS;
        let mut kept: Vec<Entry> = Vec::new();
        for entry in oldest_first {
            let is_candidate = surplus > 0 && entry.operation == Operation::Update;
            let bucket = kept
                .iter_mut()
                .find(|other| other.operation == Operation::Update && other.api_version == entry.api_version);
            match bucket {
                Some(bucket) if is_candidate => {
                    MERGED.clone_into(&mut bucket.manager);
                    bucket.subresource.clear();
                    bucket.fields.add_all(&entry.fields);
                    bucket.time = entry.time;
                    surplus -= 1;
                }
                _ => kept.push(entry),
            }
        }
        self.0 = kept;
    }
}

/// What identifies an object or is written by the server alone has no owner.
pub(crate) fn unowned() -> &'static FieldSet {
    static UNOWNED: LazyLock<FieldSet> = LazyLock::new(|| {
        let metadata = [
            "name",
            "namespace",
            "creationTimestamp",
            "selfLink",
            "uid",
            "clusterName",
            "generation",
            "managedFields",
            "resourceVersion",
        ];
        let top = ["apiVersion", "kind", "metadata"].map(|name| vec![name]);
        FieldSet::of(top.into_iter().chain(metadata.map(|name| vec!["metadata", name])))
    });
    &UNOWNED
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn updater(name: &str, time: &str, field: &'static str) -> Entry {
        let object = json!({"apiVersion": "v1"});
        let fields = FieldSet::of([[field]]);
        Entry {
            time: Some(time.into()),
            fields,
            ..Entry::new(name, Operation::Update, &object, None)
        }
    }

    #[test]
    fn entries_survive_reading_and_writing() {
        let written = json!([
            {"manager": "kubectl", "operation": "Apply", "apiVersion": "v1", "time": "2024-01-01T00:00:00Z",
             "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
            {"manager": "kubelet", "operation": "Update", "apiVersion": "v1", "subresource": "status",
             "time": "2024-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": {"f:status": {}}},
        ]);
        assert_eq!(Managers::read(&written).expect("well formed").write(), written);
    }

    #[test]
    fn the_oldest_updaters_are_merged_when_there_are_too_many() {
        let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];
        let times: Vec<String> = (10..22).map(|second| format!("2024-01-01T00:00:{second}Z")).collect();
        let entries = names
            .iter()
            .zip(&times)
            .map(|(name, time)| updater(name, time, name))
            .collect();
        let mut managers = Managers(entries);
        managers.cap();
        assert_eq!(managers.0.len(), MAX_UPDATE_MANAGERS);
        assert_eq!(managers.0[0].manager, MERGED);
        assert_eq!(managers.0[0].fields, FieldSet::of([["a"], ["b"], ["c"]]));
        assert_eq!(managers.0[0].time.as_deref(), Some("2024-01-01T00:00:12Z"));
    }
}
