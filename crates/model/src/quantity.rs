//! Exact amounts of a resource, in the textual forms of Kubernetes.
//!
//! An amount is a whole number of billionths, so sums never round. The notation it was written in (`1Gi`, `1G`, `1e9`)
//! travels along, because the canonical text depends on it; equality and order look at the value alone.
//! Reading text is in [`parse`].

mod parse;

use std::{
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    str::FromStr,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

pub use parse::InvalidQuantity;

const NANOS_PER_UNIT: i128 = 1_000_000_000;
const NANOS_PER_MILLI: i128 = 1_000_000;

/// The notation a quantity is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Powers of a thousand with a letter: `100m`, `2k`, `5G`.
    DecimalSi,
    /// Powers of 1024: `64Mi`.
    BinarySi,
    /// Powers of ten as an exponent: `12e6`.
    DecimalExponent,
}

/// An exact amount, to a billionth.
///
/// Arithmetic saturates at about ±1.7e29, far beyond anything that a cluster adds up.
#[derive(Clone, Copy)]
pub struct Quantity {
    nanos: i128,
    format: Format,
}

impl Quantity {
    pub const ZERO: Quantity = Quantity {
        nanos: 0,
        format: Format::DecimalSi,
    };

    pub const fn from_int(value: i64) -> Self {
        Self {
            nanos: value as i128 * NANOS_PER_UNIT,
            format: Format::DecimalSi,
        }
    }

    pub const fn from_millis(millis: i64) -> Self {
        Self {
            nanos: millis as i128 * NANOS_PER_MILLI,
            format: Format::DecimalSi,
        }
    }

    /// A number of bytes, written with binary suffixes.
    pub const fn from_bytes(bytes: i64) -> Self {
        Self {
            nanos: bytes as i128 * NANOS_PER_UNIT,
            format: Format::BinarySi,
        }
    }

    pub const fn from_nanos(nanos: i128) -> Self {
        Self {
            nanos,
            format: Format::DecimalSi,
        }
    }

    pub fn parse(text: &str) -> Result<Self, InvalidQuantity> {
        parse::parse(text)
    }

    pub const fn nanos(self) -> i128 {
        self.nanos
    }

    pub const fn format(self) -> Format {
        self.format
    }

    /// Whole units, rounded away from zero; out-of-range values stop at the ends of `i64`.
    pub fn value_ceil(self) -> i64 {
        self.rounded_away(NANOS_PER_UNIT)
    }

    /// Thousandths, rounded away from zero; out-of-range values stop at the ends of `i64`.
    pub fn millis_ceil(self) -> i64 {
        self.rounded_away(NANOS_PER_MILLI)
    }

    /// For ratios and charts; decisions compare quantities themselves.
    pub fn as_f64(self) -> f64 {
        self.nanos as f64 / NANOS_PER_UNIT as f64
    }

    pub const fn is_zero(self) -> bool {
        self.nanos == 0
    }

    pub const fn is_negative(self) -> bool {
        self.nanos < 0
    }

    #[must_use]
    pub fn saturating_add(self, other: Self) -> Self {
        Self {
            nanos: self.nanos.saturating_add(other.nanos),
            format: self.format_beside(other),
        }
    }

    #[must_use]
    pub fn saturating_sub(self, other: Self) -> Self {
        Self {
            nanos: self.nanos.saturating_sub(other.nanos),
            format: self.format_beside(other),
        }
    }

    #[must_use]
    pub fn saturating_neg(self) -> Self {
        Self {
            nanos: self.nanos.saturating_neg(),
            format: self.format,
        }
    }

    #[must_use]
    pub fn saturating_mul(self, factor: i64) -> Self {
        Self {
            nanos: self.nanos.saturating_mul(i128::from(factor)),
            format: self.format,
        }
    }

    /// Zero has no notation of its own: a sum that starts from it is written like what was added.
    fn format_beside(self, other: Self) -> Format {
        if self.is_zero() { other.format } else { self.format }
    }

    fn rounded_away(self, unit: i128) -> i64 {
        let whole = self.nanos / unit;
        let rest = self.nanos % unit;
        let away = whole + rest.signum();
        i64::try_from(away).unwrap_or(if away < 0 { i64::MIN } else { i64::MAX })
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nanos.hash(state);
    }
}

impl Default for Quantity {
    fn default() -> Self {
        Self::ZERO
    }
}

impl FromStr for Quantity {
    type Err = InvalidQuantity;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse::parse(text)
    }
}

/// The canonical text: no fraction, and the largest suffix that leaves a whole number.
///
/// Upstream keeps the original text of a few forms that it takes for canonical although they are not (`1.500`, `+1`);
/// they are made canonical here, as they are upstream after any arithmetic.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return f.pad("0");
        }
        let text = match self.format {
            Format::BinarySi => self
                .binary_text()
                .unwrap_or_else(|| self.decimal_text(Format::DecimalSi)),
            format => self.decimal_text(format),
        };
        f.pad(&text)
    }
}

impl Quantity {
    /// Binary suffixes need a whole number of at least 1Ki; what is smaller or has a fraction is written in decimal.
    fn binary_text(self) -> Option<String> {
        const SUFFIXES: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
        let mut number = self.nanos / NANOS_PER_UNIT;
        if self.nanos % NANOS_PER_UNIT != 0 || number.abs() < 1024 {
            return None;
        }
        let mut power = 0;
        while number % 1024 == 0 && power + 1 < SUFFIXES.len() {
            number /= 1024;
            power += 1;
        }
        Some(format!("{number}{}", SUFFIXES[power]))
    }

    fn decimal_text(self, format: Format) -> String {
        let mut number = self.nanos;
        let mut exponent = -9;
        while number % 1000 == 0 {
            number /= 1000;
            exponent += 3;
        }
        let letter = match exponent {
            -9 => Some("n"),
            -6 => Some("u"),
            -3 => Some("m"),
            0 => Some(""),
            3 => Some("k"),
            6 => Some("M"),
            9 => Some("G"),
            12 => Some("T"),
            15 => Some("P"),
            18 => Some("E"),
            _ => None,
        };
        match letter {
            Some(letter) if format != Format::DecimalExponent || exponent == 0 => format!("{number}{letter}"),
            // There is no letter above E, so that larger numbers are written with an exponent in any notation.
            _ => format!("{number}e{exponent}"),
        }
    }
}

impl fmt::Debug for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = Quantity;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a quantity such as 500m, 2 or 1Gi")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Quantity, E> {
                // JSON written by hand may have blanks around the number; Kubernetes lets them pass.
                parse::parse(text.trim()).map_err(E::custom)
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Quantity, E> {
                Ok(Quantity::from_int(value))
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Quantity, E> {
                Ok(Quantity::from_nanos(i128::from(value) * NANOS_PER_UNIT))
            }

            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Quantity, E> {
                // Rust prints the shortest digits that mean this number, which are the ones that were written.
                parse::parse(&value.to_string()).map_err(E::custom)
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests;
