//! Somebody else was faster: 409 on an update or a patch, and nothing has happened.
//!
//! Creates are left out: there the same code means that the object exists, which would be a lie.

use http::Method;

use super::{Roll, line::Answer};

pub fn strikes(roll: &Roll<'_>) -> Option<Answer> {
    let changes = *roll.method == Method::PUT || *roll.method == Method::PATCH;
    let struck = changes && roll.dice.percent(roll.faults.conflict, &["conflict"]);
    struck.then(|| {
        Answer::status(
            409,
            "Conflict",
            "Operation cannot be fulfilled: the object has been modified; please apply your changes to the latest \
             version and try again (simulated)",
        )
    })
}
