//! Results for people and pipes.

use std::io::{ErrorKind, Write as _, stdout};

use anyhow::Context as _;

use crate::exit::Failure;

/// Prints a result. A reader that has seen enough, such as `head`, is no failure.
pub fn print(text: &str) -> Result<(), Failure> {
    match stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(error).context("the result cannot be written").map_err(Failure::No)
        }
        _ => Ok(()),
    }
}
