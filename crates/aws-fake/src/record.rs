//! What was called: one entry per request, in the form that `GET /_fake/calls` returns.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

/// Older calls are forgotten, so that a fake that runs for days does not fill the memory.
const REMEMBERED: usize = 100_000;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recorded {
    pub time: Timestamp,
    pub service: &'static str,
    pub action: String,
    /// Lists are lists and user data is text.
    pub parameters: Value,
    /// Which attempt of the client's SDK it was.
    pub attempt: u32,
    pub status: u16,
    /// The code of the refusal.
    pub error: Option<String>,
}

#[derive(Debug, Default)]
pub struct Record(std::collections::VecDeque<Recorded>);

impl Record {
    pub fn add(&mut self, call: Recorded) {
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(call);
    }

    pub fn calls(&self) -> impl Iterator<Item = &Recorded> {
        self.0.iter()
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }
}
