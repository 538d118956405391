//! Durations in Go's textual form, and the word `Never`.
//!
//! The text of a field is kept as it was written, because upstream writes `expireAfter` and
//! `consolidateAfter` back verbatim. It is parsed where its length matters, with the grammar and
//! the range of Go's parser: a 64-bit count of nanoseconds, about 292 years.

use std::fmt;

use jiff::SignedDuration;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// The word that switches a deadline off.
pub const NEVER: &str = "Never";

/// Why a text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    #[error("{text:?} is not a duration such as 30s, 1h30m or 720h")]
    Malformed { text: String },
    #[error("duration {text:?} is longer than about 292 years")]
    TooLong { text: String },
}

/// A duration as written, such as `1h30m`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DurationText(pub String);

/// A duration as written, or `Never`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DurationOrNever(pub String);

impl DurationText {
    pub fn parse(&self) -> Result<SignedDuration, DurationError> {
        parse(&self.0)
    }
}

impl DurationOrNever {
    pub fn never() -> Self {
        DurationOrNever(NEVER.to_owned())
    }

    /// The length, or `None` for `Never`.
    pub fn parse(&self) -> Result<Option<SignedDuration>, DurationError> {
        if self.0 == NEVER {
            Ok(None)
        } else {
            parse(&self.0).map(Some)
        }
    }
}

macro_rules! text_conversions {
    ($name:ident) => {
        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                $name(text.to_owned())
            }
        }

        impl From<SignedDuration> for $name {
            fn from(duration: SignedDuration) -> Self {
                $name(format(duration))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string" })
            }
        }
    };
}

text_conversions!(DurationText);
text_conversions!(DurationOrNever);

/// Nanoseconds per unit. The two spellings of micro are U+00B5 and U+03BC.
const UNITS: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60 * 1_000_000_000),
    ("h", 3_600 * 1_000_000_000),
];

/// Parses Go's form: an optional sign, then numbers with units, fractions allowed; or a bare `0`.
pub fn parse(text: &str) -> Result<SignedDuration, DurationError> {
    let malformed = || DurationError::Malformed { text: text.to_owned() };
    let too_long = || DurationError::TooLong { text: text.to_owned() };

    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Ok(SignedDuration::ZERO);
    }
    if rest.is_empty() {
        return Err(malformed());
    }
    let mut nanos: i128 = 0;
    while !rest.is_empty() {
        let (whole, after) = split_digits(rest);
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => split_digits(after),
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(malformed());
        }
        let unit_end = after
            .find(|c: char| c == '.' || c.is_ascii_digit())
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        let (_, scale) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(malformed)?;
        let scale = i128::from(*scale);
        let whole: i128 = if whole.is_empty() {
            0
        } else {
            whole.parse().map_err(|_| too_long())?
        };
        let part = whole.checked_mul(scale).ok_or_else(too_long)? + fraction_of(fraction, scale);
        nanos = nanos.checked_add(part).ok_or_else(too_long)?;
        // The most negative value is one step further from zero than the most positive one.
        if nanos > i128::from(i64::MAX) + i128::from(negative) {
            return Err(too_long());
        }
        rest = after;
    }
    let nanos = if negative { -nanos } else { nanos };
    i64::try_from(nanos)
        .map(SignedDuration::from_nanos)
        .map_err(|_| too_long())
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// The fraction `0.digits` of a unit, rounded down to whole nanoseconds.
fn fraction_of(digits: &str, scale: i128) -> i128 {
    // No unit has more than 13 decimal places of nanoseconds, so further digits cannot count.
    let digits = &digits[..digits.len().min(18)];
    let Ok(value) = digits.parse::<i128>() else { return 0 };
    let places = u32::try_from(digits.len()).unwrap_or(0);
    value * scale / 10_i128.pow(places)
}

/// Go's normal form: `1h0m0s`, `1m30s`, `1.5s`, `250ms`, `0s`.
pub fn format(duration: SignedDuration) -> String {
    let nanos = duration.as_nanos();
    let sign = if nanos < 0 { "-" } else { "" };
    let nanos = nanos.unsigned_abs();
    let text = match nanos {
        0 => "0s".to_owned(),
        1..1_000 => format!("{nanos}ns"),
        1_000..1_000_000 => format!("{}\u{b5}s", decimal(nanos, 1_000)),
        1_000_000..1_000_000_000 => format!("{}ms", decimal(nanos, 1_000_000)),
        _ => {
            let minutes = nanos / 60_000_000_000;
            let seconds = decimal(nanos % 60_000_000_000, 1_000_000_000);
            match (minutes / 60, minutes % 60) {
                (0, 0) => format!("{seconds}s"),
                (0, minutes) => format!("{minutes}m{seconds}s"),
                (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
            }
        }
    };
    format!("{sign}{text}")
}

/// `value / unit` with as many decimal places as it needs.
fn decimal(value: u128, unit: u128) -> String {
    let (whole, rest) = (value / unit, value % unit);
    if rest == 0 {
        return whole.to_string();
    }
    let places = unit.ilog10() as usize;
    let fraction = format!("{rest:0places$}");
    format!("{whole}.{}", fraction.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, nanos: i64, normal: &str) {
        let parsed = parse(text).expect("the text is a duration");
        assert_eq!(parsed, SignedDuration::from_nanos(nanos), "{text}");
        assert_eq!(format(parsed), normal, "{text}");
    }

    const SECOND: i64 = 1_000_000_000;

    #[test]
    fn durations_read_and_write_as_go_does() {
        check("0", 0, "0s");
        check("0s", 0, "0s");
        check("30s", 30 * SECOND, "30s");
        check("90s", 90 * SECOND, "1m30s");
        check("1h", 3_600 * SECOND, "1h0m0s");
        check("720h", 720 * 3_600 * SECOND, "720h0m0s");
        check("1h30m5s", 5_405 * SECOND, "1h30m5s");
        check("1.5h", 5_400 * SECOND, "1h30m0s");
        check("1.5s", SECOND * 3 / 2, "1.5s");
        check(".5s", SECOND / 2, "500ms");
        check("-1m", -60 * SECOND, "-1m0s");
        check("+2m", 120 * SECOND, "2m0s");
        check("1us", 1_000, "1\u{b5}s");
        check("1.25ms", 1_250_000, "1.25ms");
        check("9223372036854775807ns", i64::MAX, "2562047h47m16.854775807s");
    }

    #[test]
    fn what_go_refuses_is_an_error() {
        for text in [
            "", "-", "1", "1hr", "FooNever", "Never", "s", ".s", "1 h", "5x", "soon", "1h-2m",
        ] {
            assert!(matches!(parse(text), Err(DurationError::Malformed { .. })), "{text}");
        }
        for text in ["9223372036854775808ns", "99999999999h", &format!("{}s", "9".repeat(60))] {
            assert!(matches!(parse(text), Err(DurationError::TooLong { .. })), "{text}");
        }
    }

    #[test]
    fn never_has_no_length_and_text_is_kept() {
        assert_eq!(DurationOrNever::never().parse(), Ok(None));
        let text: DurationOrNever = serde_json::from_str("\"60m\"").expect("a string");
        assert_eq!(text.parse(), Ok(Some(SignedDuration::from_hours(1))));
        assert_eq!(serde_json::to_string(&text).expect("serializes"), "\"60m\"");
    }
}
