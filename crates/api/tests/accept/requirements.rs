//! Rows about requirements, which three kinds share.

use serde_json::{Value, json};

pub fn requirement(key: &str, operator: &str, values: &[&str]) -> Value {
    json!([{ "key": key, "operator": operator, "values": values }])
}

pub fn without_values(key: &str, operator: &str) -> Value {
    json!([{ "key": key, "operator": operator }])
}

/// Keys that are names by the rules of Kubernetes.
pub const GOOD_KEYS: &[&str] = &["Test", "test.com/Test", "test.com.com/test", "key-only"];

/// Keys that are not.
pub const BAD_KEYS: &[&str] = &["test.com.com}", "Test.com/test", "test/test/test", "test/", "/test"];

/// Domains that were restricted once and are free today.
pub const KUBERNETES_KEYS: &[&str] = &[
    "kubernetes.io/test",
    "k8s.io/test",
    "subdomain.kubernetes.io/test",
    "subdomain.k8s.io/test",
];

/// Values that are no bound.
pub const BAD_BOUNDS: &[&[&str]] = &[&[], &["1", "2"], &["a"], &["-1"]];

pub const COMPARISONS: &[&str] = &["Gt", "Lt", "Gte", "Lte"];

/// Too long for a label, but not for the schema.
pub fn long_keys() -> [String; 2] {
    [
        format!("test.com.{}/test", "a".repeat(250)),
        format!("test.com/{}", "a".repeat(250)),
    ]
}

pub fn many(count: usize) -> Value {
    (0..count)
        .map(|index| json!({ "key": format!("key-{index}"), "operator": "Exists" }))
        .collect()
}
