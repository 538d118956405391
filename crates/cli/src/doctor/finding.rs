//! What the checks found, for people and for programs.

use std::fmt::Write as _;

use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Ok,
    /// Nothing is broken yet, or it may be on purpose.
    Warning,
    /// Could not be looked at.
    Unknown,
    /// Something does not work.
    Problem,
}

impl Level {
    fn word(self) -> &'static str {
        match self {
            Level::Ok => "ok",
            Level::Warning => "warning",
            Level::Unknown => "unknown",
            Level::Problem => "PROBLEM",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub check: &'static str,
    pub level: Level,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    pub what: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Finding {
    pub fn ok(check: &'static str, what: impl Into<String>) -> Self {
        Self::new(check, Level::Ok, what)
    }

    pub fn warning(check: &'static str, what: impl Into<String>) -> Self {
        Self::new(check, Level::Warning, what)
    }

    pub fn unknown(check: &'static str, what: impl Into<String>) -> Self {
        Self::new(check, Level::Unknown, what)
    }

    pub fn problem(check: &'static str, what: impl Into<String>) -> Self {
        Self::new(check, Level::Problem, what)
    }

    fn new(check: &'static str, level: Level, what: impl Into<String>) -> Self {
        Self {
            check,
            level,
            object: None,
            what: what.into(),
            fix: None,
        }
    }

    #[must_use]
    pub fn about(mut self, object: impl Into<String>) -> Self {
        self.object = Some(object.into());
        self
    }

    #[must_use]
    pub fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}

#[derive(Debug, Serialize)]
pub struct Report {
    pub problems: usize,
    pub warnings: usize,
    pub unknown: usize,
    pub findings: Vec<Finding>,
}

impl Report {
    pub fn new(findings: Vec<Finding>) -> Self {
        let count = |level: Level| findings.iter().filter(|finding| finding.level == level).count();
        Self {
            problems: count(Level::Problem),
            warnings: count(Level::Warning),
            unknown: count(Level::Unknown),
            findings,
        }
    }

    /// A line for every finding, and below it what helps.
    pub fn table(&self) -> String {
        let width = |of: fn(&Finding) -> usize| self.findings.iter().map(of).max().unwrap_or_default();
        let checks = width(|finding| finding.check.len());
        let levels = width(|finding| finding.level.word().len());
        let mut text = String::new();
        for finding in &self.findings {
            let object = finding.object.as_ref().map(|object| format!("{object}: "));
            let line = format!(
                "{:checks$}  {:levels$}  {}{}",
                finding.check,
                finding.level.word(),
                object.unwrap_or_default(),
                finding.what
            );
            text.push_str(&line);
            text.push('\n');
            for hint in finding.fix.iter().flat_map(|fix| fix.lines()) {
                let indent = checks + levels + 4;
                let _ = writeln!(text, "{:indent$}hint: {hint}", "");
            }
        }
        let _ = writeln!(
            text,
            "\n{} problems, {} warnings, {} not looked at",
            self.problems, self.warnings, self.unknown
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn every_finding_is_a_line_with_its_remedy_below() {
        let report = Report::new(vec![
            Finding::ok("version", "Kubernetes 1.35"),
            Finding::problem("node-pools", "is not ready")
                .about("nodepool/default")
                .fix("first\nsecond"),
        ]);
        expect![[r#"
            version     ok       Kubernetes 1.35
            node-pools  PROBLEM  nodepool/default: is not ready
                                 hint: first
                                 hint: second

            1 problems, 0 warnings, 0 not looked at
        "#]]
        .assert_eq(&report.table());
    }
}
