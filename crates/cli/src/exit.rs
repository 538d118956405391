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
    /// The same, with what was being done.
    pub fn context(self, what: &'static str) -> Self {
        match self {
            Failure::No(cause) => Failure::No(cause.context(what)),
            Failure::Input(cause) => Failure::Input(cause.context(what)),
            Failure::Unreachable(cause) => Failure::Unreachable(cause.context(what)),
        }
    }

    /// Prints the failure with its causes on one line and gives the exit code.
    pub fn report(&self) -> ExitCode {
        let (cause, code) = match self {
            Failure::No(cause) => (cause, 1),
            Failure::Input(cause) => (cause, 2),
            Failure::Unreachable(cause) => (cause, 3),
        };
        eprintln!("karpenter: {}", one_line(cause));
        ExitCode::from(code)
    }
}

/// The failure and its causes. Some libraries repeat their cause in their own text, and some draw pictures below the
/// first line; neither helps here.
fn one_line(failure: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in failure.chain() {
        let text = cause.to_string();
        let text = text.lines().next().unwrap_or_default().trim_end_matches(':');
        if line.contains(text) {
            continue;
        }
        if !line.is_empty() {
            line.push_str(": ");
        }
        line.push_str(text);
    }
    line
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn a_failure_is_one_line_and_says_nothing_twice() {
        let cause = anyhow!("line 1: no mapping\n --> here\n  ^");
        let failure = anyhow!("cannot be read: line 1: no mapping").context("--file x");
        assert_eq!(one_line(&failure), "--file x: cannot be read: line 1: no mapping");
        assert_eq!(
            one_line(&cause.context("--file x: cannot be read")),
            "--file x: cannot be read: line 1: no mapping"
        );
    }
}
