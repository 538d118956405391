//! How the program ends: one line that says what is wrong, and a code that scripts can tell apart.

use std::process::ExitCode;

/// A command that did not do what it was asked.
#[derive(Debug)]
pub enum Failure {
    /// The answer is "no", or the story did not end as it should.
    No(anyhow::Error),
    /// Bad usage or bad input.
    Input(anyhow::Error),
    /// The cluster or the cloud did not answer.
    Unreachable(anyhow::Error),
}

impl Failure {
    /// Prints the failure with its causes on one line and gives the exit code.
    pub fn report(&self) -> ExitCode {
        let (cause, code) = match self {
            Failure::No(cause) => (cause, 1),
            Failure::Input(cause) => (cause, 2),
            Failure::Unreachable(cause) => (cause, 3),
        };
        eprintln!("karpenter: {cause:#}");
        ExitCode::from(code)
    }
}
