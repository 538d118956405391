//! Static drift hashes, equal to upstream's to the last bit.
//!
//! A claim carries the hash of the template it was made from. If ours differed from upstream's under the same version,
//! taking over a cluster would replace every node in it. Upstream hashes Go structs by reflection: names of types and
//! fields go in, in declaration order, and fields with Go's zero value are left out. That is rebuilt here by hand;
//! [`node_pool`] and [`ec2_node_class`] spell out the structs.

mod ec2_node_class;
mod node_pool;

use std::collections::BTreeMap;

pub use ec2_node_class::{Ec2Version, ami_family, ec2_node_class};
pub use node_pool::{NODE_POOL_VERSION, node_pool};

const OFFSET: u64 = 14_695_981_039_346_656_037;
const PRIME: u64 = 1_099_511_628_211;

/// FNV-1, 64 bits: multiply, then xor. Not FNV-1a.
pub fn fnv1(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(OFFSET, |hash, byte| hash.wrapping_mul(PRIME) ^ u64::from(*byte))
}

fn pair(a: u64, b: u64) -> u64 {
    fnv1(&[a.to_le_bytes(), b.to_le_bytes()].concat())
}

fn finished(hash: u64) -> u64 {
    fnv1(&hash.to_le_bytes())
}

fn text(value: &str) -> u64 {
    fnv1(value.as_bytes())
}

fn boolean(value: bool) -> u64 {
    fnv1(&[u8::from(value)])
}

fn int32(value: i32) -> u64 {
    fnv1(&value.to_le_bytes())
}

fn int64(value: i64) -> u64 {
    fnv1(&value.to_le_bytes())
}

/// Order does not count, and equal items cancel each other out.
fn list(items: impl IntoIterator<Item = u64>) -> u64 {
    items.into_iter().fold(0, |hash, item| hash ^ item)
}

fn map<V>(entries: &BTreeMap<String, V>, value: impl Fn(&V) -> u64) -> u64 {
    finished(list(entries.iter().map(|(key, entry)| pair(text(key), value(entry)))))
}

fn text_map(entries: &BTreeMap<String, String>) -> u64 {
    map(entries, |value| text(value))
}

/// A Go struct that is being hashed.
struct Struct(u64);

impl Struct {
    fn named(type_name: &str) -> Self {
        Struct(text(type_name))
    }

    /// The next field in declaration order; `None` stands for Go's zero value.
    fn field(self, name: &str, value: Option<u64>) -> Self {
        match value {
            Some(value) => Struct(finished(self.0 ^ pair(text(name), value))),
            None => self,
        }
    }

    fn hash(self) -> u64 {
        self.0
    }
}

/// A plain (not pointer) string: empty counts as absent.
fn plain_text(value: &str) -> Option<u64> {
    (!value.is_empty()).then(|| text(value))
}

/// A plain (not pointer) integer: zero counts as absent.
fn plain_int32(value: i32) -> Option<u64> {
    (value != 0).then(|| int32(value))
}

/// Go's `metav1.Duration`, whose only field is skipped at zero.
fn go_duration(nanos: i64) -> u64 {
    Struct::named("Duration")
        .field("Duration", (nanos != 0).then(|| int64(nanos)))
        .hash()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name hash of upstream's older instance profiles: region and class name in a row.
    #[test]
    fn plain_text_hashes_as_upstream_does() {
        assert_eq!(fnv1(b"us-west-2default"), 4_067_990_795_380_418_201);
    }
}
