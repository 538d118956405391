//! Results for people and pipes.

use std::io::{ErrorKind, Write as _, stdout};

use anyhow::Context as _;
use serde::Serialize;

use crate::exit::Failure;

pub fn json(report: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(report).context("the result as JSON");
    Ok(text.map_err(Failure::No)? + "\n")
}

pub fn yaml(report: &impl Serialize) -> Result<String, Failure> {
    serde_saphyr::to_string(report)
        .context("the result as YAML")
        .map_err(Failure::No)
}

/// Prints a result. A reader that has seen enough, such as `head`, is no failure.
pub fn print(text: &str) -> Result<(), Failure> {
    match stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(error).context("the result cannot be written").map_err(Failure::No)
        }
        _ => Ok(()),
    }
}
