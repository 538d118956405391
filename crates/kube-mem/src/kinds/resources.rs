//! Quantities in their canonical text, as the real server gives them back: `1000m` is `1`, `1024Mi` is `1Gi`.

use serde_json::{Map, Value};

/// The decoder's complaint about what is not a quantity.
pub(super) const UNREADABLE: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// Rewrites the quantities of a map of resources.
pub(super) fn canonical_map(quantities: &mut Value) {
    for value in quantities.as_object_mut().into_iter().flat_map(Map::values_mut) {
        let text = match &*value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => continue,
        };
        if let Some(canonical) = canonical(&text) {
            *value = canonical.into();
        }
    }
}

/// Rewrites `requests` and `limits`.
pub(super) fn canonical_requirements(resources: &mut Value) {
    if let Some(resources) = resources.as_object_mut() {
        for field in ["requests", "limits"] {
            if let Some(quantities) = resources.get_mut(field) {
                canonical_map(quantities);
            }
        }
    }
}

/// A quantity in billionths, with the family of suffixes that it was written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Quantity {
    nanos: i128,
    family: Family,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Decimal,
    Binary,
    Exponent,
}

const NANOS: i128 = 1_000_000_000;
const DECIMAL: [(&str, i128); 10] = [
    ("n", 1),
    ("u", 1_000),
    ("m", 1_000_000),
    ("", NANOS),
    ("k", NANOS * 1_000),
    ("M", NANOS * 1_000_000),
    ("G", NANOS * 1_000_000_000),
    ("T", NANOS * 1_000_000_000_000),
    ("P", NANOS * 1_000_000_000_000_000),
    ("E", NANOS * 1_000_000_000_000_000_000),
];
const BINARY: [(&str, u32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

impl Quantity {
    fn parse(text: &str) -> Option<Self> {
        let split = text.find(|char: char| !(char.is_ascii_digit() || matches!(char, '.' | '+' | '-')));
        let (number, suffix) = text.split_at(split.unwrap_or(text.len()));
        let (unit, family) = unit(suffix)?;
        let negative = number.starts_with('-');
        let digits = number.trim_start_matches(['+', '-']);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let all: i128 = format!("{whole}{fraction}").parse().ok()?;
        let scale = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
        let scaled = all.checked_mul(unit)?;
        // What is finer than a billionth is rounded up, away from zero.
        let nanos = scaled / scale + i128::from(scaled % scale != 0);
        Some(Self {
            nanos: if negative { -nanos } else { nanos },
            family,
        })
    }
}

fn unit(suffix: &str) -> Option<(i128, Family)> {
    if let Some((_, unit)) = DECIMAL.iter().find(|(known, _)| *known == suffix) {
        return Some((*unit, Family::Decimal));
    }
    if let Some((_, shift)) = BINARY.iter().find(|(known, _)| *known == suffix) {
        return Some((NANOS << shift, Family::Binary));
    }
    let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    if (0..=18).contains(&exponent) {
        return Some((NANOS * 10_i128.pow(exponent.unsigned_abs()), Family::Exponent));
    }
    ((-9)..0)
        .contains(&exponent)
        .then(|| (NANOS / 10_i128.pow(exponent.unsigned_abs()), Family::Exponent))
}

/// The canonical text, or nothing for what is not a quantity.
pub(super) fn canonical(text: &str) -> Option<String> {
    let quantity = Quantity::parse(text)?;
    let nanos = quantity.nanos;
    if nanos == 0 {
        return Some("0".to_owned());
    }
    if quantity.family == Family::Binary && nanos % NANOS == 0 && (nanos / NANOS).abs() >= 1024 {
        let mut units = nanos / NANOS;
        let mut suffix = "";
        for (next, _) in BINARY {
            if units % 1024 != 0 {
                break;
            }
            units /= 1024;
            suffix = next;
        }
        return Some(format!("{units}{suffix}"));
    }
    let (suffix, unit) = *DECIMAL.iter().rev().find(|(_, unit)| nanos % unit == 0)?;
    let number = nanos / unit;
    if quantity.family == Family::Exponent {
        let index = i32::try_from(DECIMAL.iter().position(|(known, _)| *known == suffix)?).ok()?;
        let exponent = (index - 3) * 3;
        return Some(if exponent == 0 {
            number.to_string()
        } else {
            format!("{number}e{exponent}")
        });
    }
    Some(format!("{number}{suffix}"))
}

/// Compares two quantities; what cannot be read compares as equal.
pub(super) fn exceeds(a: &Value, b: &Value) -> bool {
    let nanos = |value: &Value| value.as_str().and_then(Quantity::parse).map(|quantity| quantity.nanos);
    matches!((nanos(a), nanos(b)), (Some(a), Some(b)) if a > b)
}

/// True for a quantity of zero, and for what is not one.
pub(super) fn is_zero(value: &Value) -> bool {
    value
        .as_str()
        .and_then(Quantity::parse)
        .is_none_or(|quantity| quantity.nanos == 0)
}

pub(super) fn is_negative(value: &Value) -> bool {
    value
        .as_str()
        .and_then(Quantity::parse)
        .is_some_and(|quantity| quantity.nanos < 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_take_their_shortest_exact_form() {
        for (written, expected) in [
            ("1000m", "1"),
            ("0.5", "500m"),
            ("100m", "100m"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("1536", "1536"),
            ("1000", "1k"),
            ("2048Ki", "2Mi"),
            ("512Ki", "512Ki"),
            ("0.5Ki", "512"),
            ("1e3", "1e3"),
            ("0", "0"),
            ("0Gi", "0"),
            ("-1500m", "-1500m"),
            ("5.0", "5"),
        ] {
            assert_eq!(canonical(written).as_deref(), Some(expected), "{written}");
        }
        assert_eq!(canonical("x"), None);
        assert_eq!(canonical("1Zi"), None);
    }

    #[test]
    fn quantities_of_different_families_compare() {
        assert!(exceeds(&"1Gi".into(), &"1G".into()));
        assert!(!exceeds(&"999m".into(), &"1".into()));
    }
}
