//! The API server fails: 500, and nothing has happened.

use super::{Roll, line::Answer};

pub fn strikes(roll: &Roll<'_>) -> Option<Answer> {
    let struck = roll.dice.percent(roll.faults.server_error, &["server-error"]);
    struck.then(|| Answer::status(500, "InternalError", "Internal error occurred: simulated"))
}
