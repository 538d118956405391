//! A watch ends before its time, or is told that its version is too old to go on from.

use super::{ApiFaults, Roll, line::Answer};
use crate::dice::Dice;

/// Whether the watch is refused when it is opened: the client has to list again.
pub fn expired(roll: &Roll<'_>) -> Option<Answer> {
    let struck = roll.is_watch && roll.dice.percent(roll.faults.watch_drop, &["watch-expired"]);
    struck.then(|| Answer::status(410, "Expired", "too old resource version (simulated)"))
}

/// Whether an open watch breaks in place of its next events.
pub fn breaks(faults: ApiFaults, dice: Dice) -> bool {
    dice.percent(faults.watch_drop, &["watch-drop"])
}
