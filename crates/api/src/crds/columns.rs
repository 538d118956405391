//! Printer columns: what `kubectl get` shows.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceColumnDefinition;

pub type Column = CustomResourceColumnDefinition;

pub fn text(name: &str, path: &str) -> Column {
    column(name, "string", path)
}

pub fn integer(name: &str, path: &str) -> Column {
    column(name, "integer", path)
}

/// The status of one condition.
pub fn condition(type_: &str) -> Column {
    text(type_, &format!(r#".status.conditions[?(@.type=="{type_}")].status"#))
}

/// A label of the object; dots in its key are escaped as JSONPath wants it.
pub fn label(name: &str, key: &str) -> Column {
    text(name, &format!(".metadata.labels.{}", key.replace('.', r"\.")))
}

pub fn age() -> Column {
    column("Age", "date", ".metadata.creationTimestamp")
}

/// Shown only by `-o wide`.
pub fn wide(column: Column) -> Column {
    Column {
        priority: Some(1),
        ..column
    }
}

pub fn described(description: &str, column: Column) -> Column {
    Column {
        description: Some(description.to_owned()),
        ..column
    }
}

fn column(name: &str, type_: &str, path: &str) -> Column {
    Column {
        name: name.to_owned(),
        type_: type_.to_owned(),
        json_path: path.to_owned(),
        ..Column::default()
    }
}
