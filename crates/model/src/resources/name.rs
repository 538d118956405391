//! What amounts are amounts of.

use std::{
    borrow::Borrow,
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// `cpu`, `memory`, `nvidia.com/gpu` and the like.
#[derive(Clone)]
pub struct ResourceName(Text);

/// Everyday names are constants, so that counting them allocates nothing.
#[derive(Clone)]
enum Text {
    Known(&'static str),
    Shared(Arc<str>),
}

impl ResourceName {
    pub const CPU: ResourceName = ResourceName(Text::Known("cpu"));
    pub const MEMORY: ResourceName = ResourceName(Text::Known("memory"));
    pub const PODS: ResourceName = ResourceName(Text::Known("pods"));
    pub const EPHEMERAL_STORAGE: ResourceName = ResourceName(Text::Known("ephemeral-storage"));
    /// The number of machines: only pool limits and pool usage speak of it.
    pub const NODES: ResourceName = ResourceName(Text::Known("nodes"));

    const KNOWN: [ResourceName; 5] = [
        Self::CPU,
        Self::MEMORY,
        Self::PODS,
        Self::EPHEMERAL_STORAGE,
        Self::NODES,
    ];

    pub fn as_str(&self) -> &str {
        match &self.0 {
            Text::Known(text) => text,
            Text::Shared(text) => text,
        }
    }
}

impl From<&str> for ResourceName {
    fn from(text: &str) -> Self {
        let known = Self::KNOWN.into_iter().find(|name| name.as_str() == text);
        known.unwrap_or_else(|| Self(Text::Shared(text.into())))
    }
}

impl From<String> for ResourceName {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl Borrow<str> for ResourceName {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for ResourceName {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl PartialEq for ResourceName {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for ResourceName {}

impl PartialOrd for ResourceName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ResourceName {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl Hash for ResourceName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Display for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for ResourceName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ResourceName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::from(String::deserialize(deserializer)?))
    }
}
