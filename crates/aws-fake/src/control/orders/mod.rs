//! The orders, by what they change.

pub mod calls;
pub mod instances;
pub mod market;
pub mod region;

use jiff::Timestamp;
use serde_json::Value;

use super::CommandError;
use crate::fake::State;

pub(super) trait Order {
    /// Tells what it made, an empty object where it made nothing.
    fn carry_out(self, state: &mut State, now: Timestamp) -> Result<Value, CommandError>;
}

fn missing(kind: &'static str, name: &str) -> CommandError {
    CommandError::Missing {
        kind,
        name: name.to_owned(),
    }
}

fn anything() -> String {
    "*".to_owned()
}
