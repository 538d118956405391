//! The API server is busy: 429 with a time to come back, and nothing has happened.

use super::{Roll, line::Answer};

const RETRY_AFTER_SECS: u32 = 1;

pub fn strikes(roll: &Roll<'_>) -> Option<Answer> {
    let struck = roll.dice.percent(roll.faults.throttle, &["throttle"]);
    struck.then(|| {
        let answer = Answer::status(
            429,
            "TooManyRequests",
            "the server has received too many requests (simulated)",
        );
        answer.retry_after(RETRY_AFTER_SECS)
    })
}
