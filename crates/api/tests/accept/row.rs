//! One row: an object, and what its judges should say.

use api::v1::NodePool;
use api::v1alpha1::NodeOverlay;
use api::{validate, vocabulary};
use serde_json::{Map, Value};

/// A step from one object to another.
#[derive(Clone, Debug)]
pub enum Change {
    /// Puts a value, which may be a literal null, at a dotted path.
    Set(&'static str, Value),
    Drop(&'static str),
}

pub fn set(path: &'static str, value: impl Into<Value>) -> Change {
    Change::Set(path, value.into())
}

pub fn drop(path: &'static str) -> Change {
    Change::Drop(path)
}

#[derive(Clone, Debug)]
pub enum Verdict {
    Admitted,
    /// The server's message contains this.
    Refused(&'static str),
}

/// How the object reaches the server.
#[derive(Clone, Debug)]
pub enum Way {
    Create,
    /// As an update of this object, which is admitted.
    Update(Value),
    /// As a status update of itself without the status.
    Status,
}

#[derive(Clone, Debug)]
pub struct Row {
    pub id: &'static str,
    pub case: String,
    pub object: Value,
    pub way: Way,
    pub verdict: Verdict,
    /// Whether runtime validation passes; absent where there is none to speak of.
    pub runtime_ok: Option<bool>,
    /// What the server stores at these paths.
    pub stored: Vec<(&'static str, Value)>,
}

/// The rows of one section, all made from one valid object.
pub struct Table {
    base: Value,
    rows: Vec<Row>,
}

impl Table {
    pub fn new(base: Value) -> Self {
        Table { base, rows: Vec::new() }
    }

    pub fn admits(&mut self, id: &'static str, changes: impl IntoIterator<Item = Change>) -> &mut Row {
        self.row(id, changes, Verdict::Admitted)
    }

    /// `because` is a part of the server's message: the field, or the rule's own words.
    pub fn refuses(
        &mut self,
        id: &'static str,
        because: &'static str,
        changes: impl IntoIterator<Item = Change>,
    ) -> &mut Row {
        self.row(id, changes, Verdict::Refused(because))
    }

    pub fn into_rows(self) -> Vec<Row> {
        self.rows
    }

    fn row(&mut self, id: &'static str, changes: impl IntoIterator<Item = Change>, verdict: Verdict) -> &mut Row {
        let changes: Vec<Change> = changes.into_iter().collect();
        self.rows.push(Row {
            id,
            case: describe(&changes),
            object: changed(&self.base, &changes),
            way: Way::Create,
            verdict,
            runtime_ok: None,
            stored: Vec::new(),
        });
        self.rows.last_mut().expect("a row was just added")
    }
}

impl Row {
    /// The object arrives as an update of the base with these changes.
    pub fn updating(&mut self, base: &Value, changes: impl IntoIterator<Item = Change>) -> &mut Self {
        let changes: Vec<Change> = changes.into_iter().collect();
        self.way = Way::Update(changed(base, &changes));
        self
    }

    pub fn through_status(&mut self) -> &mut Self {
        self.way = Way::Status;
        self
    }

    pub fn runtime_ok(&mut self) -> &mut Self {
        self.runtime_ok = Some(true);
        self
    }

    pub fn runtime_fails(&mut self) -> &mut Self {
        self.runtime_ok = Some(false);
        self
    }

    pub fn stores(&mut self, path: &'static str, value: impl Into<Value>) -> &mut Self {
        self.stored.push((path, value.into()));
        self
    }

    /// A complaint if runtime validation does not say what the row says.
    pub fn judge_at_runtime(&self) -> Option<String> {
        let expected = self.runtime_ok?;
        let words = vocabulary::aws();
        let errors = match self.object["kind"].as_str() {
            Some("NodePool") => {
                let pool: NodePool = serde_json::from_value(self.object.clone()).expect("a pool");
                validate::node_pool(&pool, &words)
            }
            Some("NodeOverlay") => {
                let overlay: NodeOverlay = serde_json::from_value(self.object.clone()).expect("an overlay");
                validate::node_overlay(&overlay, &words)
            }
            other => panic!("{other:?} has no runtime validation"),
        };
        (errors.is_empty() != expected).then(|| format!("{}: {errors:?}", self.title()))
    }

    pub fn title(&self) -> String {
        let case: String = self.case.chars().take(160).collect();
        format!("{} {case}", self.id)
    }
}

pub fn changed(base: &Value, changes: &[Change]) -> Value {
    let mut object = base.clone();
    for change in changes {
        let (path, value) = match change {
            Change::Set(path, value) => (path, Some(value)),
            Change::Drop(path) => (path, None),
        };
        let (parents, last) = path.rsplit_once('.').unwrap_or(("", path));
        let mut node = &mut object;
        for name in parents.split('.').filter(|name| !name.is_empty()) {
            node = node
                .as_object_mut()
                .expect("a path leads through objects")
                .entry(name)
                .or_insert_with(|| Value::Object(Map::new()));
        }
        let node = node.as_object_mut().expect("a path leads through objects");
        match value {
            Some(value) => node.insert(last.to_owned(), value.clone()),
            None => node.remove(last),
        };
    }
    object
}

pub fn at<'a>(object: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(object, |node, name| &node[name])
}

fn describe(changes: &[Change]) -> String {
    let describe = |change: &Change| match change {
        Change::Set(path, value) => format!("{path} = {value}"),
        Change::Drop(path) => format!("no {path}"),
    };
    if changes.is_empty() {
        return "as it is".to_owned();
    }
    changes.iter().map(describe).collect::<Vec<_>>().join(", ")
}
