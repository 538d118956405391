//! What merging and field ownership need to know about a type.

/// Merge keys, list types and map types of one kind.
#[derive(Clone, Debug, Default)]
pub struct TypeSchema {}

impl TypeSchema {
    /// A type about which nothing is known: maps merge key by key, lists are atomic.
    pub fn deduced() -> Self {
        TypeSchema::default()
    }
}
