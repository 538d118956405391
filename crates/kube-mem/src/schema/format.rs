//! The `format` keyword: what strings of each format look like.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use base64::Engine;
use regex::Regex;

/// A format that the server checks. All others say nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Byte,
    Cidr,
    Date,
    DateTime,
    Duration,
    Email,
    HexColor,
    Hostname,
    Ipv4,
    Ipv6,
    Mac,
    Password,
    Uri,
    Uuid(Option<char>),
    ShortName,
    LongName,
}

impl Format {
    pub(super) fn named(name: &str) -> Option<Format> {
        Some(match name.replace('-', "").as_str() {
            "byte" => Format::Byte,
            "cidr" => Format::Cidr,
            "date" => Format::Date,
            "datetime" => Format::DateTime,
            "duration" => Format::Duration,
            "email" => Format::Email,
            "hexcolor" => Format::HexColor,
            "hostname" => Format::Hostname,
            "ipv4" => Format::Ipv4,
            "ipv6" => Format::Ipv6,
            "mac" => Format::Mac,
            "password" => Format::Password,
            "uri" => Format::Uri,
            "uuid" => Format::Uuid(None),
            "uuid3" => Format::Uuid(Some('3')),
            "uuid4" => Format::Uuid(Some('4')),
            "uuid5" => Format::Uuid(Some('5')),
            "k8sshortname" => Format::ShortName,
            "k8slongname" => Format::LongName,
            _ => return None,
        })
    }

    pub(super) fn admits(self, text: &str) -> bool {
        match self {
            Format::Byte => base64::engine::general_purpose::STANDARD.decode(text).is_ok(),
            Format::Cidr => is_cidr(text),
            Format::Date => is_date(text),
            Format::DateTime => is_date_time(text),
            Format::Duration => is_duration(text),
            Format::Email => is_email(text),
            Format::HexColor => {
                let digits = text.strip_prefix('#').unwrap_or(text);
                [3, 6].contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
            }
            Format::Hostname => is_hostname(text),
            Format::Ipv4 => text.parse::<Ipv4Addr>().is_ok(),
            Format::Ipv6 => text.parse::<Ipv6Addr>().is_ok(),
            Format::Mac => is_mac(text),
            Format::Password => true,
            // A request's target: an absolute path or an absolute address.
            Format::Uri => text.starts_with('/') || text.split_once(':').is_some_and(|(scheme, _)| is_scheme(scheme)),
            Format::Uuid(version) => is_uuid(text, version),
            Format::ShortName => text.len() <= 63 && is_dns_label(text),
            Format::LongName => text.len() <= 253 && text.split('.').all(is_dns_label),
        }
    }
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else {
        return false;
    };
    let most = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    bits.bytes().all(|byte| byte.is_ascii_digit()) && bits.parse::<u8>().is_ok_and(|bits| bits <= most)
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok()
}

fn is_date_time(text: &str) -> bool {
    static TIME: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](.[0-9]+)?([zZ]|[+-][0-9]{2}:[0-9]{2})$")
            .expect("the pattern is valid")
    });
    let Some((date, time)) = text.split_once(['t', 'T']) else {
        return false;
    };
    is_date(date) && TIME.is_match(time)
}

/// Go's durations, and numbers with longer words for units anywhere in the text.
fn is_duration(text: &str) -> bool {
    static GO: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"^[+-]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$").expect("the pattern is valid")
    });
    static WORDS: LazyLock<Regex> = LazyLock::new(|| {
        let unit = "ns|nano|us|µs|micro|ms|milli|s|sec|m|min|h|hr|hour|d|day|w|wk|week";
        let long = "(nano|micro|milli|sec|min|hour|day|week)[a-zµ]*";
        Regex::new(&format!(r"(?i)[0-9]+\s*({unit}|{long})([^a-zµ]|$)")).expect("the pattern is valid")
    });
    GO.is_match(text) || WORDS.is_match(text)
}

fn is_email(text: &str) -> bool {
    let address = text
        .rsplit_once('<')
        .map_or(text, |(_, rest)| rest.trim_end_matches('>'));
    match address.rsplit_once('@') {
        Some((local, domain)) => {
            !local.is_empty() && !domain.is_empty() && !address.contains(char::is_whitespace) && !local.contains('@')
        }
        None => false,
    }
}

fn is_hostname(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().all(|c| c.is_alphanumeric() || c == '-' || !c.is_ascii())
    };
    let labels: Vec<&str> = text.split('.').collect();
    let is_top_label_valid = match labels.as_slice() {
        [_] => true,
        [.., top] => top.len() >= 2 && top.chars().all(char::is_alphabetic),
        [] => false,
    };
    text.len() <= 255 && labels.iter().all(|label| is_label(label)) && is_top_label_valid
}

fn is_mac(text: &str) -> bool {
    let is_hex = |part: &str, digits: usize| part.len() == digits && part.bytes().all(|b| b.is_ascii_hexdigit());
    let parts = |separator: char, digits: usize, counts: &[usize]| {
        let parts: Vec<&str> = text.split(separator).collect();
        counts.contains(&parts.len()) && parts.iter().all(|part| is_hex(part, digits))
    };
    parts(':', 2, &[6, 8, 20]) || parts('-', 2, &[6, 8, 20]) || parts('.', 4, &[3, 4, 10])
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

fn is_uuid(text: &str, version: Option<char>) -> bool {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    let dashes_fit = match text.len() {
        32 => true,
        36 => [8, 13, 18, 23].iter().all(|&at| text.as_bytes()[at] == b'-'),
        _ => false,
    };
    let version_fits = version.is_none_or(|version| {
        let variant = digits.chars().nth(16).unwrap_or_default().to_ascii_lowercase();
        digits.chars().nth(12) == Some(version) && (version == '3' || "89ab".contains(variant))
    });
    digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) && dashes_fit && version_fits
}

fn is_dns_label(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('-')
        && !text.ends_with('-')
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_tells_good_from_bad() {
        let rows: &[(&str, &[&str], &[&str])] = &[
            ("byte", &["aGk="], &["a", "%%%"]),
            ("cidr", &["10.0.0.0/8", "::/0"], &["10.0.0.0", "10.0.0.0/33", "x/1"]),
            ("date", &["2024-02-29"], &["2023-02-29", "2024-1-1"]),
            (
                "date-time",
                &["2024-01-01T00:00:00Z", "2024-01-01t01:02:03.5+01:00"],
                &["2024-01-01", "2024-01-01T25:00:00Z"],
            ),
            (
                "duration",
                &["1h30m", "0", "-1.5s", "3 days", "22 ns"],
                &["", "1", "h", "soon"],
            ),
            ("email", &["a@b.c"], &["a", "@b", "a b@c"]),
            ("hexcolor", &["#fff", "00ff00"], &["#ff", "red"]),
            ("hostname", &["a.example.com", "localhost"], &["-a", "a..b", "a.1"]),
            ("ipv4", &["10.0.0.1"], &["10.0.0", "::1"]),
            ("ipv6", &["::1"], &["10.0.0.1"]),
            ("mac", &["00:00:5e:00:53:01", "0000.5e00.5301"], &["00:00:5e:00:53"]),
            ("password", &["", "x"], &[]),
            ("uri", &["https://x", "/a"], &["x", ""]),
            ("uuid", &["0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"], &["0f1e"]),
            (
                "uuid4",
                &["0f1e2d3c-4b5a-4978-8796-a5b4c3d2e1f0"],
                &["0f1e2d3c-4b5a-3978-8796-a5b4c3d2e1f0"],
            ),
            ("k8s-short-name", &["a-1"], &["A", "a.b"]),
            ("k8s-long-name", &["a.b"], &["a..b"]),
        ];
        for (name, good, bad) in rows {
            let format = Format::named(name).expect("the format is known");
            good.iter()
                .for_each(|text| assert!(format.admits(text), "{name} admits {text:?}"));
            bad.iter()
                .for_each(|text| assert!(!format.admits(text), "{name} rejects {text:?}"));
        }
    }

    #[test]
    fn unknown_formats_say_nothing() {
        assert_eq!(Format::named("int32"), None);
    }
}
