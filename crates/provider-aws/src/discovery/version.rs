//! The version of the cluster.

use std::{fmt, str::FromStr};

/// Major and minor, which is all that images are chosen by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a Kubernetes version")]
pub struct MalformedVersion(pub String);

const OLDEST: Version = Version { major: 1, minor: 26 };
const NEWEST: Version = Version { major: 1, minor: 36 };

impl Version {
    /// Whether this release of Karpenter has been tried with it.
    pub fn is_supported(self) -> bool {
        (OLDEST..=NEWEST).contains(&self)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for Version {
    type Err = MalformedVersion;

    /// `1.33`, also with what vendors add to the minor version, as in `1.33+`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let malformed = || MalformedVersion(text.to_owned());
        let (major, minor) = text.split_once('.').ok_or_else(malformed)?;
        let minor = minor.trim_end_matches('+');
        Ok(Self {
            major: major.parse().map_err(|_| malformed())?,
            minor: minor.parse().map_err(|_| malformed())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_compared() {
        let read = |text: &str| text.parse::<Version>();
        assert_eq!(read("1.33+").unwrap().to_string(), "1.33");
        assert!(read("1.36").unwrap().is_supported() && !read("1.37").unwrap().is_supported());
        assert!(!read("1.25").unwrap().is_supported());
        assert!(read("one").is_err() && read("1.x").is_err());
    }
}
