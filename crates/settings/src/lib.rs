//! A setting from a flag, an environment variable or a default, by upstream's habits.
//!
//! A flag that cannot be read is a complaint, a variable that cannot be read is passed over, and all complaints come
//! together. What there is to set is the business of those who use this.
//!
//! ```
//! use settings::Sources;
//! let environment = |name: &str| (name == "METRICS_PORT").then(|| "8000".to_owned());
//! let mut sources = Sources::new(&environment);
//! assert_eq!(sources.value(None, "metrics-port", 8080), 8000);
//! assert_eq!(sources.value(Some(&"x".to_owned()), "metrics-port", 8080), 8080);
//! assert_eq!(sources.complaints.len(), 1);
//! ```

use std::{str::FromStr, time::Duration};

/// Where a setting may come from.
pub struct Sources<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
    pub complaints: Vec<String>,
}

/// `METRICS_PORT` for `metrics-port`.
fn variable_of(flag: &str) -> String {
    flag.to_uppercase().replace('-', "_")
}

impl<'a> Sources<'a> {
    /// The environment is an argument so that tests need none.
    pub fn new(variable: &'a dyn Fn(&str) -> Option<String>) -> Self {
        let complaints = Vec::new();
        Self { variable, complaints }
    }

    /// What was given, by flag or by variable, as it was written.
    pub fn given(&self, flag: Option<&String>, name: &str) -> Option<String> {
        flag.cloned().or_else(|| (self.variable)(&variable_of(name)))
    }

    pub fn complain(&mut self, name: &str, complaint: impl std::fmt::Display) {
        self.complaints.push(format!("--{name}: {complaint}"));
    }

    pub fn read<T>(
        &mut self,
        flag: Option<&String>,
        name: &str,
        default: T,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> T {
        if let Some(text) = flag {
            return parse(text).unwrap_or_else(|complaint| {
                self.complain(name, complaint);
                default
            });
        }
        let found = (self.variable)(&variable_of(name)).and_then(|text| parse(&text).ok());
        found.unwrap_or(default)
    }

    pub fn value<T: FromStr>(&mut self, flag: Option<&String>, name: &str, default: T) -> T {
        self.read(flag, name, default, |text| {
            text.parse().map_err(|_| format!("{text:?} cannot be used here"))
        })
    }

    /// Flags know only `true` and `false`; variables know all of Go's spellings.
    pub fn truth(&mut self, flag: Option<&String>, name: &str, default: bool) -> bool {
        if let Some(text) = flag {
            return self.read(Some(text), name, default, |text| {
                text.parse().map_err(|_| format!("{text:?} is neither true nor false"))
            });
        }
        self.read(None, name, default, |text| match text {
            "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(true),
            "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(false),
            other => Err(other.to_owned()),
        })
    }

    pub fn text(&mut self, flag: Option<&String>, name: &str, default: &str) -> String {
        self.read(flag, name, default.to_owned(), |text| Ok(text.to_owned()))
    }

    pub fn list(&mut self, flag: Option<&String>, name: &str, default: &str) -> Vec<String> {
        let text = self.text(flag, name, default);
        text.split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect()
    }

    pub fn duration(&mut self, flag: Option<&String>, name: &str, default: &str) -> Duration {
        let parse = |text: &str| {
            let parsed = api::duration::parse(text).map_err(|error| error.to_string())?;
            Duration::try_from(parsed).map_err(|_| format!("{text:?} is negative"))
        };
        let default = parse(default).expect("a default is a duration");
        self.read(flag, name, default, parse)
    }

    /// A word of a closed list: also from the environment, a wrong one is a complaint.
    pub fn word<T: Copy>(&mut self, flag: Option<&String>, name: &str, known: &[(&str, T)]) -> T {
        let Some(text) = self.given(flag, name) else {
            return known[0].1;
        };
        let found = known.iter().find(|(word, _)| *word == text);
        found.map_or_else(
            || {
                let words = known.iter().map(|(word, _)| *word).filter(|word| !word.is_empty());
                let words: Vec<&str> = words.collect();
                self.complain(name, format!("{text:?} is not one of {}", words.join(", ")));
                known[0].1
            },
            |(_, value)| *value,
        )
    }
}
