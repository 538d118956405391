//! Facts put together by hand, and findings as lines.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    doctor::{
        facts::Facts,
        finding::{Finding, Level},
    },
    reader::{Kind, Right, Unread},
};

/// The present moment of all situations.
pub const NOW: &str = "2026-01-01T12:00:00Z";

pub struct Situation {
    pub objects: BTreeMap<Kind, Result<Vec<Value>, Unread>>,
    pub rights: Vec<(Right, Result<bool, Unread>)>,
    pub version: Option<&'static str>,
    pub lists_provisioners: Result<bool, Unread>,
}

impl Default for Situation {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            rights: Vec::new(),
            version: None,
            lists_provisioners: Ok(false),
        }
    }
}

impl Situation {
    #[must_use]
    pub fn with(mut self, kind: Kind, objects: Vec<Value>) -> Self {
        self.objects.insert(kind, Ok(objects));
        self
    }

    #[must_use]
    pub fn without(mut self, kind: Kind, why: Unread) -> Self {
        self.objects.insert(kind, Err(why));
        self
    }

    pub fn facts(self) -> Facts {
        Facts {
            now: NOW.parse().expect("a moment"),
            access: None,
            version: self.version.unwrap_or("v1.35.2").to_owned(),
            objects: self.objects,
            rights: self.rights,
            lists_provisioners: self.lists_provisioners,
        }
    }
}

/// What a check says about a situation, a finding to a line.
#[track_caller]
pub fn check(check: fn(&Facts) -> Vec<Finding>, situation: Situation, expected: &str) {
    says(check, &situation.facts(), expected);
}

/// The same of facts.
#[track_caller]
pub fn says(check: fn(&Facts) -> Vec<Finding>, facts: &Facts, expected: &str) {
    let findings = check(facts);
    let lines: Vec<String> = findings
        .iter()
        .map(|finding| {
            let level = match finding.level {
                Level::Ok => "ok",
                Level::Warning => "warning",
                Level::Unknown => "unknown",
                Level::Problem => "problem",
            };
            let is_hopeless = finding.level == Level::Problem && finding.fix.is_none();
            assert!(!is_hopeless, "{finding:?} has no remedy");
            match &finding.object {
                Some(object) => format!("{level} {object}: {}", finding.what),
                None => format!("{level}: {}", finding.what),
            }
        })
        .collect();
    assert_eq!(lines.join("\n"), expected);
}
