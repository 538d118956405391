//! Watch events arrive late, so that the controller decides on the past.

use std::time::Duration;

use super::ApiFaults;
use crate::dice::Dice;

/// How long the next events of a watch are under way. Most are quick: a watch that is always late is only slow.
pub fn of(faults: ApiFaults, dice: Dice) -> Duration {
    let is_slow = dice.percent(20, &["watch-slow"]);
    let most = if is_slow {
        faults.watch_delay
    } else {
        faults.watch_delay / 20
    };
    dice.between(Duration::ZERO, most, &["watch-delay"])
}
