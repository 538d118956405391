//! Log lines as upstream writes them: one JSON object each, with its field names.

mod sampling;

use std::{fmt, io, sync::Mutex};

use jiff::{Timestamp, fmt::temporal::DateTimePrinter};
use serde_json::{Map, Value};
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    filter::{LevelFilter, Targets},
    fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields, MakeWriter, format::Writer},
    layer::{Layer as _, SubscriberExt as _},
    registry::LookupSpan,
    reload,
    util::SubscriberInitExt as _,
};

use crate::settings::{LogLevel, Settings};

#[derive(Debug, thiserror::Error)]
pub enum LoggingError {
    #[error("log file {path} cannot be opened")]
    Open {
        path: String,
        #[source]
        cause: io::Error,
    },
    #[error("logging is set up already")]
    Twice,
}

/// Changes the level while the program runs.
#[derive(Clone)]
pub struct LevelHandle(reload::Handle<Targets, tracing_subscriber::Registry>);

impl LevelHandle {
    pub fn set(&self, level: LogLevel) {
        // Fails only when the subscriber is gone, and then nobody reads the log any more.
        let _ = self.0.reload(filter(level));
    }
}

/// The crates whose lines the level is about. Others tell of connections, handshakes and every request: several lines for
/// each of ours, which nobody asks for who wants to know more about nodes.
const OURS: [&str; 24] = [
    "admission",
    "api",
    "aws_fake",
    "cli",
    "clock",
    "controllers",
    "controllers_aws",
    "controllers_legacy",
    "disruption",
    "expressions",
    "karpenter",
    "kube_mem",
    "legacy",
    "model",
    "operator",
    "provider",
    "provider_aws",
    "provider_aws_sdk",
    "provider_sim",
    "scheduler",
    "settings",
    "state",
    "testkit",
    "world",
];

/// Our own lines from this level on, and what else went wrong.
fn filter(level: LogLevel) -> Targets {
    let (ours, others) = match level {
        LogLevel::Debug => (LevelFilter::DEBUG, LevelFilter::WARN),
        LogLevel::Info => (LevelFilter::INFO, LevelFilter::WARN),
        LogLevel::Error => (LevelFilter::ERROR, LevelFilter::ERROR),
    };
    Targets::new()
        .with_default(others)
        .with_targets(OURS.map(|target| (target, ours)))
}

/// Sends log lines to where the settings say.
pub fn init(settings: &Settings, commit: &'static str) -> Result<LevelHandle, LoggingError> {
    let open = |paths: &[String]| {
        paths
            .iter()
            .map(|path| Output::open(path))
            .collect::<Result<Vec<_>, _>>()
    };
    let lines = open(&settings.log_output_paths)?;
    let complaints = open(&settings.log_error_output_paths)?;
    let (level, handle) = reload::Layer::new(filter(settings.log_level));
    let layer = tracing_subscriber::fmt::layer()
        .fmt_fields(JsonFields)
        .event_format(JsonLines { commit })
        .with_writer(Outputs { lines, complaints })
        .with_filter(sampling::Sampling::default());
    tracing_subscriber::registry()
        .with(level)
        .with(layer)
        .try_init()
        .map_err(|_| LoggingError::Twice)?;
    Ok(LevelHandle(handle))
}

enum Output {
    Stdout,
    Stderr,
    File(Mutex<std::fs::File>),
}

impl Output {
    fn open(path: &str) -> Result<Self, LoggingError> {
        match path {
            "stdout" => Ok(Output::Stdout),
            "stderr" => Ok(Output::Stderr),
            path => std::fs::OpenOptions::new()
                .create(true)
                .append(true)
                .open(path)
                .map(|file| Output::File(Mutex::new(file)))
                .map_err(|cause| LoggingError::Open {
                    path: path.to_owned(),
                    cause,
                }),
        }
    }

    fn write(&self, line: &[u8]) -> io::Result<()> {
        use io::Write as _;
        match self {
            Output::Stdout => io::stdout().write_all(line),
            Output::Stderr => io::stderr().write_all(line),
            Output::File(file) => match file.lock() {
                Ok(mut file) => file.write_all(line),
                Err(_) => Err(io::Error::other("a writer of the log file panicked")),
            },
        }
    }
}

struct Outputs {
    lines: Vec<Output>,
    /// Where it is said that a line could not be written.
    complaints: Vec<Output>,
}

impl<'a> MakeWriter<'a> for Outputs {
    type Writer = EveryOutput<'a>;

    fn make_writer(&'a self) -> Self::Writer {
        EveryOutput(self)
    }
}

struct EveryOutput<'a>(&'a Outputs);

impl io::Write for EveryOutput<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        for output in &self.0.lines {
            if let Err(cause) = output.write(line) {
                let complaint = format!("a line of the log could not be written: {cause}\n");
                for output in &self.0.complaints {
                    // There is nobody left to tell.
                    let _ = output.write(complaint.as_bytes());
                }
            }
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Keeps a span's fields as JSON, so that events inside it can repeat them.
struct JsonFields;

impl<'writer> FormatFields<'writer> for JsonFields {
    fn format_fields<R: tracing_subscriber::field::RecordFields>(
        &self,
        mut writer: Writer<'writer>,
        fields: R,
    ) -> fmt::Result {
        let mut collected = Collected::default();
        fields.record(&mut collected);
        write!(writer, "{}", Value::Object(collected.0))
    }
}

struct JsonLines {
    commit: &'static str,
}

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let metadata = event.metadata();
        let mut line = Map::new();
        line.insert("level".into(), level_name(*metadata.level()).into());
        line.insert("time".into(), moment(Timestamp::now()).into());
        line.insert("logger".into(), "controller".into());
        let mut own = Collected::default();
        event.record(&mut own);
        line.insert("message".into(), own.0.remove("message").unwrap_or_default());
        line.insert("commit".into(), self.commit.into());
        if *metadata.level() >= Level::DEBUG
            && let (Some(file), Some(number)) = (metadata.file(), metadata.line())
        {
            let short = file.rsplit('/').take(2).collect::<Vec<_>>();
            line.insert(
                "caller".into(),
                format!("{}:{number}", short.into_iter().rev().collect::<Vec<_>>().join("/")).into(),
            );
        }
        for span in context
            .event_scope()
            .into_iter()
            .flat_map(tracing_subscriber::registry::Scope::from_root)
        {
            if let Some(fields) = span.extensions().get::<FormattedFields<N>>()
                && let Ok(Value::Object(fields)) = serde_json::from_str(&fields.fields)
            {
                line.extend(fields);
            }
        }
        line.extend(own.0);
        writeln!(writer, "{}", Value::Object(line))
    }
}

fn level_name(level: Level) -> &'static str {
    match level {
        Level::ERROR => "ERROR",
        Level::WARN => "WARN",
        Level::INFO => "INFO",
        _ => "DEBUG",
    }
}

/// `2026-08-20T10:11:12.123Z`
fn moment(now: Timestamp) -> String {
    let printer = DateTimePrinter::new().precision(Some(3));
    printer.timestamp_to_string(&now)
}

#[derive(Default)]
struct Collected(Map<String, Value>);

impl Collected {
    /// A text; one under the name of a kind is the name of an object and is written as a reference.
    fn text(&mut self, field: &Field, text: &str) {
        let value = if field.name().starts_with(char::is_uppercase) {
            reference(text)
        } else {
            text.into()
        };
        self.0.insert(field.name().to_owned(), value);
    }
}

/// `{"name": …}`, with the namespace where there is one.
fn reference(text: &str) -> Value {
    match text.split_once('/') {
        Some((namespace, name)) => serde_json::json!({ "namespace": namespace, "name": name }),
        None => serde_json::json!({ "name": text }),
    }
}

impl Visit for Collected {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.text(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    /// An error with all that caused it, in one text.
    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        let mut text = value.to_string();
        let mut cause = value.source();
        while let Some(error) = cause {
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        self.0.insert(field.name().to_owned(), text.into());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tracing::{info, info_span};

    use super::*;

    #[derive(Clone, Default)]
    struct Memory(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Memory {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(line);
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_has_upstreams_fields_and_those_of_its_spans() {
        let memory = Memory::default();
        let writer = memory.clone();
        let layer = tracing_subscriber::fmt::layer()
            .fmt_fields(JsonFields)
            .event_format(JsonLines { commit: "abc" })
            .with_writer(move || writer.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            let _span = info_span!("reconcile", controller = "nodeclaim.lifecycle").entered();
            info!(NodeClaim = "general-x", Pod = %"default/web", nodes = 2, "launched nodeclaim");
        });
        let text = String::from_utf8(memory.0.lock().unwrap().clone()).unwrap();
        let line: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(line["level"], "INFO");
        assert_eq!(line["logger"], "controller");
        assert_eq!(line["message"], "launched nodeclaim");
        assert_eq!(line["controller"], "nodeclaim.lifecycle");
        assert_eq!(line["NodeClaim"]["name"], "general-x");
        assert_eq!(
            (&line["Pod"]["namespace"], &line["Pod"]["name"]),
            (&"default".into(), &"web".into())
        );
        assert_eq!(line["nodes"], 2);
    }

    #[test]
    fn the_level_is_about_our_own_lines() {
        let enabled = |level, target: &str, line: Level| filter(level).would_enable(target, &line);
        assert!(enabled(LogLevel::Debug, "controllers::disruption", Level::DEBUG));
        assert!(!enabled(LogLevel::Info, "controllers::disruption", Level::DEBUG));
        for theirs in [
            "rustls::client::hs",
            "hyper_util::client::legacy::pool",
            "kube_client::client",
        ] {
            assert!(!enabled(LogLevel::Debug, theirs, Level::INFO), "{theirs}");
            assert!(enabled(LogLevel::Info, theirs, Level::WARN), "{theirs}");
            assert!(!enabled(LogLevel::Error, theirs, Level::WARN), "{theirs}");
        }
    }

    #[test]
    fn every_crate_of_ours_is_known_to_be() {
        let crates = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        let folders = std::fs::read_dir(crates)
            .unwrap()
            .map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = folders.map(|name| name.to_str().unwrap().replace('-', "_")).collect();
        // What `crates/cli` builds is called so.
        names.push("karpenter".to_owned());
        names.sort();
        assert_eq!(names, OURS);
    }

    #[test]
    fn moments_have_milliseconds_and_a_zone() {
        assert_eq!(
            moment("2026-08-20T10:11:12.1239Z".parse().unwrap()),
            "2026-08-20T10:11:12.123Z"
        );
    }
}
