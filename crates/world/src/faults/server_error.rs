//! The API server fails, or what it has to ask does: 500, and nothing has happened.

use http::Method;

use super::{Roll, line::Answer};

pub fn strikes(roll: &Roll<'_>) -> Option<Answer> {
    if roll.dice.percent(roll.faults.server_error, &["server-error"]) {
        return Some(Answer::status(
            500,
            "InternalError",
            "Internal error occurred: simulated",
        ));
    }
    let creates_claim = *roll.method == Method::POST && roll.path.ends_with("/nodeclaims");
    let struck = creates_claim && roll.dice.percent(roll.faults.no_claims, &["no-claims"]);
    let message = "Internal error occurred: failed calling webhook: connection refused (simulated)";
    struck.then(|| Answer::status(500, "InternalError", message))
}
