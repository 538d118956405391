//! Every request takes a while.

use std::time::Duration;

use super::Roll;

pub fn of(roll: &Roll<'_>) -> Duration {
    roll.dice.between(Duration::ZERO, roll.faults.latency, &["latency"])
}
