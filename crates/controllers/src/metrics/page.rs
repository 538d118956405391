//! The text that scrapers read.

use std::fmt::Write as _;

/// How much of a page is gathered before it goes on its way.
const PART: usize = 64 * 1024;

/// Takes the parts of a page, and says whether anybody still reads.
type Outlet = Box<dyn FnMut(String) -> bool + Send>;

/// Families in the Prometheus text format, one after the other.
///
/// The page of a large cluster has many megabytes. Whoever writes of every object calls [`pass_on`](Self::pass_on) now
/// and then, and never while holding a lock: the reader at the other end may be slow.
#[derive(Default)]
pub struct Page {
    text: String,
    outlet: Option<Outlet>,
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
    /// A page whose parts are handed to somebody as they become ready.
    pub fn into_parts(outlet: impl FnMut(String) -> bool + Send + 'static) -> Self {
        Self {
            text: String::new(),
            outlet: Some(Box::new(outlet)),
        }
    }

    /// Adds families that are in the text format already.
    pub fn add(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Takes over what a registry has encoded. That is OpenMetrics, where the name of a counter's family lacks the
    /// `_total` of its samples; in the text format both are the same.
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
        Family {
            head: Some((help.to_owned(), word)),
            page: self,
            name,
        }
    }

    /// Hands over what is ready, once it is enough to be worth it. Says whether anybody still reads.
    pub fn pass_on(&mut self) -> bool {
        self.text.len() < PART || self.hand_over()
    }

    /// Hands over what is left, or gives back the whole text where nobody wanted parts.
    pub fn finish(mut self) -> String {
        self.hand_over();
        self.text
    }

    fn hand_over(&mut self) -> bool {
        let Some(outlet) = &mut self.outlet else { return true };
        let part = std::mem::replace(&mut self.text, String::with_capacity(PART + PART / 4));
        let is_read = outlet(part);
        if !is_read {
            // Whoever has gone is not waited for again.
            self.outlet = Some(Box::new(|_| false));
        }
        is_read
    }
}

fn head(text: &mut String, name: &str, help: &str, kind: &str) {
    writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}").expect("writing to a string succeeds");
}

/// A family that is being written. One without samples leaves nothing behind.
pub struct Family<'a> {
    page: &'a mut Page,
    name: String,
    /// Help and kind, as long as there is no sample.
    head: Option<(String, &'static str)>,
}

impl Family<'_> {
    pub fn sample<K: AsRef<str>, V: AsRef<str>>(&mut self, labels: &[(K, V)], value: f64) {
        self.sample_of("", labels, value);
    }

    /// A sample whose name has a suffix: `_sum`, `_count`.
    pub fn sample_of<K: AsRef<str>, V: AsRef<str>>(&mut self, suffix: &str, labels: &[(K, V)], value: f64) {
        self.sample_behind(suffix, &LabelText::default(), labels, value);
    }

    /// A sample that shares labels with others.
    pub fn sample_with<K: AsRef<str>, V: AsRef<str>>(&mut self, shared: &LabelText, labels: &[(K, V)], value: f64) {
        self.sample_behind("", shared, labels, value);
    }

    fn sample_behind<K: AsRef<str>, V: AsRef<str>>(
        &mut self,
        suffix: &str,
        shared: &LabelText,
        labels: &[(K, V)],
        value: f64,
    ) {
        let text = &mut self.page.text;
        if let Some((help, kind)) = self.head.take() {
            head(text, &self.name, &help, kind);
        }
        text.push_str(&self.name);
        text.push_str(suffix);
        if !(shared.text.is_empty() && labels.is_empty()) {
            text.push('{');
            text.push_str(&shared.text);
            push_labels(text, !shared.text.is_empty(), labels);
            text.push('}');
        }
        writeln!(text, " {value}").expect("writing to a string succeeds");
    }

    /// See [`Page::pass_on`].
    pub fn pass_on(&mut self) -> bool {
        self.page.pass_on()
    }
}

/// Labels that several samples have in common, written once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelText {
    text: String,
}

impl LabelText {
    pub fn of<K: AsRef<str>, V: AsRef<str>>(labels: &[(K, V)]) -> Self {
        let mut text = String::new();
        push_labels(&mut text, false, labels);
        Self { text }
    }
}

fn push_labels<K: AsRef<str>, V: AsRef<str>>(text: &mut String, mut goes_on: bool, labels: &[(K, V)]) {
    for (key, label) in labels {
        if std::mem::replace(&mut goes_on, true) {
            text.push(',');
        }
        text.push_str(key.as_ref());
        text.push_str("=\"");
        escape(text, label.as_ref());
        text.push('"');
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
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use prometheus_client::{encoding::text::encode, metrics::counter::Counter, registry::Registry};

    use super::*;

    #[test]
    fn a_counters_family_is_named_as_its_samples() {
        let mut registry = Registry::default();
        registry.register("things", "Things done", Counter::<u64>::default());
        let mut encoded = String::new();
        encode(&mut encoded, &registry).expect("writing to a string succeeds");
        let mut page = Page::default();
        page.take_over(&encoded);
        assert_eq!(
            page.finish(),
            "# HELP things_total Things done.\n# TYPE things_total counter\nthings_total 0\n"
        );
    }

    #[test]
    fn a_family_without_samples_is_not_shown() {
        let mut page = Page::default();
        page.family("nothing", Kind::Gauge, "None");
        page.family("one", Kind::Gauge, "One").sample(&[("name", "a\"b")], 0.5);
        assert_eq!(
            page.finish(),
            "# HELP one One\n# TYPE one gauge\none{name=\"a\\\"b\"} 0.5\n"
        );
    }

    #[test]
    fn labels_in_common_come_first() {
        let shared = LabelText::of(&[("a", "1"), ("b", "2")]);
        let mut page = Page::default();
        let mut family = page.family("one", Kind::Gauge, "One");
        family.sample_with(&shared, &[("c", "3")], 1.0);
        family.sample_with::<&str, &str>(&shared, &[], 2.0);
        let text = page.finish();
        assert!(text.ends_with("one{a=\"1\",b=\"2\",c=\"3\"} 1\none{a=\"1\",b=\"2\"} 2\n"));
    }

    #[test]
    fn parts_make_up_the_page() {
        let write = |page: &mut Page| {
            let mut family = page.family("many", Kind::Gauge, "Many");
            for number in 0..10_000 {
                family.sample(&[("number", number.to_string())], 1.0);
                family.pass_on();
            }
        };
        let mut whole = Page::default();
        write(&mut whole);
        let (sender, parts) = std::sync::mpsc::channel();
        let mut page = Page::into_parts(move |part| sender.send(part).is_ok());
        write(&mut page);
        assert_eq!(page.finish(), "");
        let parts: Vec<String> = parts.iter().collect();
        assert!(parts.len() > 2);
        assert_eq!(parts.concat(), whole.finish());
    }

    #[test]
    fn a_reader_who_left_is_noticed() {
        let offers = Arc::new(AtomicUsize::new(0));
        let counted = offers.clone();
        let mut page = Page::into_parts(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            false
        });
        for _ in 0..2 {
            page.add(&"x".repeat(PART));
            assert!(!page.pass_on());
        }
        assert_eq!(offers.load(Ordering::Relaxed), 1, "nobody is asked twice");
    }
}
