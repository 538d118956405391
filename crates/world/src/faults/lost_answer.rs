//! The request has its effect, and the connection breaks before the answer is there.

use super::Roll;

pub fn strikes(roll: &Roll<'_>) -> bool {
    roll.is_write() && roll.dice.percent(roll.faults.lost_answer, &["lost-answer"])
}
