//! The text that scrapers read.

use std::fmt::Write as _;

/// Families in the Prometheus text format, one after the other.
#[derive(Debug, Default)]
pub struct Page {
    text: String,
}

/// What a family is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    Histogram,
    Summary,
}

impl Page {
    /// Takes over what a registry has encoded. That is OpenMetrics, where the name of a counter's family lacks the
    /// `_total` of its samples; in the text format both are the same.
    pub fn of_registry(encoded: &str) -> Self {
        let mut page = Self::after(String::with_capacity(encoded.len() + encoded.len() / 16));
        page.take_over(encoded);
        page
    }

    /// Goes on where a text ends.
    pub fn after(text: String) -> Self {
        Self { text }
    }

    /// See [`of_registry`](Self::of_registry).
    pub fn take_over(&mut self, encoded: &str) {
        let text = &mut self.text;
        let mut lines = encoded.lines().filter(|line| *line != "# EOF").peekable();
        while let Some(line) = lines.next() {
            let help = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' '));
            let is_counter = |line: &&str| line.starts_with("# TYPE ") && line.ends_with(" counter");
            match help {
                Some((name, help)) if lines.peek().is_some_and(is_counter) => {
                    lines.next();
                    // The encoder ends the help with a dot of its own.
                    head(text, &format!("{name}_total"), help, "counter");
                }
                _ => {
                    text.push_str(line);
                    text.push('\n');
                }
            }
        }
    }

    /// Begins a family.
    pub fn family(&mut self, name: &'static str, kind: Kind, help: &str) -> Family<'_> {
        self.begin(name.to_owned(), kind, help)
    }

    /// Begins a family whose name is put together.
    pub fn begin(&mut self, name: String, kind: Kind, help: &str) -> Family<'_> {
        let word = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
            Kind::Summary => "summary",
        };
        let empty_at = self.text.len();
        head(&mut self.text, &name, help, word);
        Family {
            begun_at: self.text.len(),
            empty_at,
            text: &mut self.text,
            name,
        }
    }

    pub fn into_text(self) -> String {
        self.text
    }
}

fn head(text: &mut String, name: &str, help: &str, kind: &str) {
    writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}").expect("writing to a string succeeds");
}

/// A family that is being written. One without samples leaves nothing behind.
pub struct Family<'a> {
    text: &'a mut String,
    name: String,
    empty_at: usize,
    begun_at: usize,
}

impl Family<'_> {
    pub fn sample<K: AsRef<str>, V: AsRef<str>>(&mut self, labels: &[(K, V)], value: f64) {
        self.sample_of("", labels, value);
    }

    /// A sample whose name has a suffix: `_sum`, `_count`.
    pub fn sample_of<K: AsRef<str>, V: AsRef<str>>(&mut self, suffix: &str, labels: &[(K, V)], value: f64) {
        self.text.push_str(&self.name);
        self.text.push_str(suffix);
        for (number, (key, label)) in labels.iter().enumerate() {
            self.text.push(if number == 0 { '{' } else { ',' });
            self.text.push_str(key.as_ref());
            self.text.push_str("=\"");
            escape(self.text, label.as_ref());
            self.text.push('"');
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        writeln!(self.text, " {value}").expect("writing to a string succeeds");
    }
}

impl Drop for Family<'_> {
    fn drop(&mut self) {
        if self.text.len() == self.begun_at {
            self.text.truncate(self.empty_at);
        }
    }
}

fn escape(text: &mut String, value: &str) {
    for letter in value.chars() {
        match letter {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            other => text.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::{encoding::text::encode, metrics::counter::Counter, registry::Registry};

    use super::*;

    #[test]
    fn a_counters_family_is_named_as_its_samples() {
        let mut registry = Registry::default();
        registry.register("things", "Things done", Counter::<u64>::default());
        let mut encoded = String::new();
        encode(&mut encoded, &registry).expect("writing to a string succeeds");
        assert_eq!(
            Page::of_registry(&encoded).into_text(),
            "# HELP things_total Things done.\n# TYPE things_total counter\nthings_total 0\n"
        );
    }

    #[test]
    fn a_family_without_samples_is_not_shown() {
        let mut page = Page::default();
        drop(page.family("nothing", Kind::Gauge, "None"));
        page.family("one", Kind::Gauge, "One").sample(&[("name", "a\"b")], 0.5);
        assert_eq!(
            page.into_text(),
            "# HELP one One\n# TYPE one gauge\none{name=\"a\\\"b\"} 0.5\n"
        );
    }
}
