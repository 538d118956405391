//! What happened, as lines that people read and golden files compare.
//!
//! ```text
//!    +12.3s  nodeclaim/general-x1  launched m5.large us-west-2a spot
//! ```
//!
//! Lines come from changes of API objects ([`lines`]) and from notes that the world makes about faults. Nothing in them
//! depends on the machine or the moment of the run.

mod lines;

use std::fmt;

use jiff::{SignedDuration, Timestamp};

use crate::mirror::Seen;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Since the world began.
    pub at: SignedDuration,
    pub subject: String,
    pub what: String,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = self.at.as_millis() / 100;
        let at = format!("+{}.{}s", tenths / 10, tenths % 10);
        write!(f, "{at:>9}  {}  {}", self.subject, self.what)
    }
}

#[derive(Clone, Debug)]
pub struct Timeline {
    origin: Timestamp,
    lines: Vec<Line>,
}

impl Timeline {
    pub fn starting_at(origin: Timestamp) -> Self {
        Self {
            origin,
            lines: Vec::new(),
        }
    }

    pub fn see(&mut self, at: Timestamp, seen: &Seen) {
        for what in lines::of(seen) {
            self.note(at, format!("{}/{}", seen.noun(), seen.key().name), what);
        }
    }

    pub fn note(&mut self, at: Timestamp, subject: impl Into<String>, what: impl Into<String>) {
        let line = Line {
            at: at.duration_since(self.origin),
            subject: subject.into(),
            what: what.into(),
        };
        self.lines.push(line);
    }

    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// The last so many lines.
    pub fn tail(&self, count: usize) -> String {
        let first = self.lines.len().saturating_sub(count);
        self.lines[first..].iter().map(|line| format!("{line}\n")).collect()
    }
}

impl fmt::Display for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}
