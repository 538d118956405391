//! Reading quantities: Kubernetes' grammar, including the forms that nobody should write.
//!
//! The digits are kept as digits until their scale is known, so that neither `0.1` nor forty decimal places pass
//! through a float.

use super::{Format, NANOS_PER_UNIT, Quantity};

/// Why a text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidQuantity {
    #[error("a quantity must not be empty")]
    Empty,
    #[error("{0:?} is not a quantity: expected a number with an optional suffix such as m, k, Mi or e6")]
    Malformed(String),
    #[error("{text:?} is not a quantity: unknown suffix {suffix:?}")]
    Suffix { text: String, suffix: String },
}

/// What a suffix multiplies by.
enum Scale {
    PowerOfTen(i64),
    PowerOf1024(u32),
}

/// Amounts below a billionth are rounded up (who asks for something gets something), binary amounts stop at the end of
/// `i64`, and decimal ones where [`Quantity`] ends.
pub(super) fn parse(text: &str) -> Result<Quantity, InvalidQuantity> {
    if text.is_empty() {
        return Err(InvalidQuantity::Empty);
    }
    let (negative, rest) = match text.as_bytes()[0] {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (whole, rest) = leading_digits(rest);
    let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), leading_digits);
    if whole.is_empty() && fraction.is_empty() {
        return Err(InvalidQuantity::Malformed(text.to_owned()));
    }
    let (scale, format) = scale_of(text, suffix)?;

    let mut digits: Vec<u8> = whole
        .bytes()
        .chain(fraction.bytes())
        .map(|digit| digit - b'0')
        .collect();
    let power_of_ten = match scale {
        Scale::PowerOfTen(power) => power,
        Scale::PowerOf1024(times) => {
            for _ in 0..times {
                multiply_by_1024(&mut digits);
            }
            0
        }
    };
    let shift = power_of_ten.saturating_sub(fraction.len() as i64).saturating_add(9);
    let mut nanos = shifted(&digits, shift);
    if format == Format::BinarySi {
        nanos = nanos.min(i128::from(i64::MAX) * NANOS_PER_UNIT);
    }
    // Less than one cannot be written in powers of 1024.
    let format = if format == Format::BinarySi && nanos > 0 && nanos < NANOS_PER_UNIT {
        Format::DecimalSi
    } else {
        format
    };
    Ok(Quantity {
        nanos: if negative { -nanos } else { nanos },
        format,
    })
}

fn leading_digits(text: &str) -> (&str, &str) {
    let end = text
        .bytes()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at(end)
}

fn scale_of(text: &str, suffix: &str) -> Result<(Scale, Format), InvalidQuantity> {
    let decimal = |power| Ok((Scale::PowerOfTen(power), Format::DecimalSi));
    let binary = |times| Ok((Scale::PowerOf1024(times), Format::BinarySi));
    match suffix {
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "" => decimal(0),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        _ => exponent_of(text, suffix),
    }
}

fn exponent_of(text: &str, suffix: &str) -> Result<(Scale, Format), InvalidQuantity> {
    if let Some(exponent) = suffix.strip_prefix(['e', 'E']) {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            let end = if exponent.starts_with('-') { i64::MIN } else { i64::MAX };
            return Ok((
                Scale::PowerOfTen(exponent.parse().unwrap_or(end)),
                Format::DecimalExponent,
            ));
        }
    }
    if suffix.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return Err(InvalidQuantity::Suffix {
            text: text.to_owned(),
            suffix: suffix.to_owned(),
        });
    }
    Err(InvalidQuantity::Malformed(text.to_owned()))
}

/// `digits` is a decimal number, most significant digit first.
fn multiply_by_1024(digits: &mut Vec<u8>) {
    let mut carry = 0u32;
    for digit in digits.iter_mut().rev() {
        let product = u32::from(*digit) * 1024 + carry;
        *digit = (product % 10) as u8;
        carry = product / 10;
    }
    while carry > 0 {
        digits.insert(0, (carry % 10) as u8);
        carry /= 10;
    }
}

/// The number times ten to the `shift`, rounded up to a whole number, or the largest number there is.
fn shifted(digits: &[u8], shift: i64) -> i128 {
    let significant = digits
        .iter()
        .position(|digit| *digit != 0)
        .map_or(&[][..], |first| &digits[first..]);
    if significant.is_empty() {
        return 0;
    }
    let kept = i64::try_from(significant.len())
        .unwrap_or(i64::MAX)
        .saturating_add(shift);
    // 39 digits are as many as an `i128` can have.
    if kept > 39 {
        return i128::MAX;
    }
    let kept = usize::try_from(kept).unwrap_or(0);
    let (head, tail) = significant.split_at(kept.min(significant.len()));
    let zeros = kept - head.len();
    let whole = head
        .iter()
        .chain(std::iter::repeat_n(&0, zeros))
        .fold(0i128, |number, digit| {
            number.saturating_mul(10).saturating_add(i128::from(*digit))
        });
    whole.saturating_add(i128::from(tail.iter().any(|digit| *digit != 0)))
}
