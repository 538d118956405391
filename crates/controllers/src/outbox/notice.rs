//! One event, before it is written.

use std::borrow::Cow;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::core::v1::{Event, EventSource, ObjectReference},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
};
use model::Pod;

use super::bucket::Rate;

/// Repeats within this time are dropped unless the notice says otherwise.
const WINDOW: SignedDuration = SignedDuration::from_mins(2);
/// Longer messages are cut; the API server refuses more than 1,024 characters.
const LONGEST_MESSAGE: usize = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    Normal,
    Warning,
}

/// The object that an event is attached to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    pub api_version: Cow<'static, str>,
    pub kind: &'static str,
    pub namespace: String,
    pub name: String,
    pub uid: String,
}

impl About {
    pub fn pod(pod: &Pod) -> Self {
        Self {
            api_version: "v1".into(),
            kind: "Pod",
            namespace: pod.key.namespace.to_string(),
            name: pod.key.name.to_string(),
            uid: pod.uid.to_string(),
        }
    }

    pub fn node(name: &str, uid: &str) -> Self {
        Self::cluster_wide("v1", "Node", name, uid)
    }

    pub fn claim(name: &str, uid: &str) -> Self {
        Self::cluster_wide("karpenter.sh/v1", "NodeClaim", name, uid)
    }

    pub fn pool(name: &str, uid: &str) -> Self {
        Self::cluster_wide("karpenter.sh/v1", "NodePool", name, uid)
    }

    fn cluster_wide(api_version: &'static str, kind: &'static str, name: &str, uid: &str) -> Self {
        Self {
            api_version: api_version.into(),
            kind,
            namespace: String::new(),
            name: name.to_owned(),
            uid: uid.to_owned(),
        }
    }
}

/// Something that an operator of the cluster may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub about: About,
    pub severity: Severity,
    pub reason: Cow<'static, str>,
    pub message: String,
    /// What, besides reason and object, makes this another notice.
    pub detail: String,
    pub window: SignedDuration,
    pub rate: Option<Rate>,
}

impl Notice {
    pub fn normal(reason: impl Into<Cow<'static, str>>, about: About, message: String) -> Self {
        Self {
            about,
            severity: Severity::Normal,
            reason: reason.into(),
            message,
            detail: String::new(),
            window: WINDOW,
            rate: None,
        }
    }

    pub fn warning(reason: impl Into<Cow<'static, str>>, about: About, message: String) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::normal(reason, about, message)
        }
    }

    pub fn every(self, window: SignedDuration) -> Self {
        Self { window, ..self }
    }

    /// Tells notices of one reason about one object apart.
    pub fn told_apart_by(self, detail: impl Into<String>) -> Self {
        Self {
            detail: detail.into(),
            ..self
        }
    }

    /// A rate over all objects.
    pub fn at_most(self, per_second: u32, burst: u32) -> Self {
        Self {
            rate: Some(Rate { per_second, burst }),
            ..self
        }
    }

    pub(super) fn key(&self) -> String {
        let About {
            kind,
            namespace,
            name,
            uid,
            ..
        } = &self.about;
        format!("{}/{kind}/{namespace}/{name}/{uid}/{}", self.reason, self.detail)
    }

    /// `number` keeps names apart that would otherwise be taken from the same moment.
    pub(super) fn into_event(self, at: Timestamp, number: u64) -> Event {
        let namespace = if self.about.namespace.is_empty() {
            "default"
        } else {
            &self.about.namespace
        };
        let unique = at.as_nanosecond() + i128::from(number);
        let severity = match self.severity {
            Severity::Normal => "Normal",
            Severity::Warning => "Warning",
        };
        Event {
            metadata: ObjectMeta {
                name: Some(format!("{}.{unique:x}", self.about.name)),
                namespace: Some(namespace.to_owned()),
                ..ObjectMeta::default()
            },
            involved_object: ObjectReference {
                api_version: Some(self.about.api_version.into_owned()),
                kind: Some(self.about.kind.to_owned()),
                name: Some(self.about.name.clone()),
                namespace: Some(self.about.namespace.clone()).filter(|namespace| !namespace.is_empty()),
                uid: Some(self.about.uid.clone()),
                ..ObjectReference::default()
            },
            type_: Some(severity.to_owned()),
            reason: Some(self.reason.into_owned()),
            message: Some(cut(&self.message, LONGEST_MESSAGE)),
            source: Some(EventSource {
                component: Some("karpenter".to_owned()),
                host: None,
            }),
            reporting_component: Some("karpenter".to_owned()),
            first_timestamp: Some(Time(at)),
            last_timestamp: Some(Time(at)),
            count: Some(1),
            ..Event::default()
        }
    }
}

/// At most so many bytes, never through a character.
pub(crate) fn cut(text: &str, longest: usize) -> String {
    if text.len() <= longest {
        return text.to_owned();
    }
    let end = (0..=longest).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}...", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_never_goes_through_a_character() {
        assert_eq!(cut("short", 10), "short");
        assert_eq!(cut("aéb", 2), "a...");
        assert_eq!(cut("abc", 2), "ab...");
    }
}
