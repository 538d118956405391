//! No answer comes. Whether the request was lost on its way or the answer was, nobody knows.

use std::time::Duration;

use super::Roll;

/// When a client gives up.
pub const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timeout {
    /// The request never arrived.
    Before,
    /// The request had its effect.
    After,
}

pub fn strikes(roll: &Roll<'_>) -> Option<Timeout> {
    let struck = roll.dice.percent(roll.faults.timeout, &["timeout"]);
    let arrived = roll.dice.percent(50, &["timeout-arrived"]);
    struck.then_some(if arrived { Timeout::After } else { Timeout::Before })
}
