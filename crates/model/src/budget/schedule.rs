//! Cron schedules in UTC, as robfig's standard parser reads them: five fields, or one of the `@` words.
//!
//! Written out here rather than taken from a crate because the dialects differ where it hurts: whether `*/2` counts as
//! a star when both day fields are given, whether 7 is a Sunday, what `L`, `W` and `#` mean. A budget that is open at
//! another time than upstream's would be open at the wrong time.

use std::{fmt, str::FromStr};

use jiff::{
    Timestamp,
    civil::{Date, DateTime},
    tz::TimeZone,
};

/// Moments at which something begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    text: String,
    minutes: Field,
    hours: Field,
    days: Field,
    months: Field,
    weekdays: Field,
}

/// One field: a bit for each admitted number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Field {
    bits: u64,
    /// Written as `*` or `?`. A day then has to match the other day field alone.
    star: bool,
}

impl Field {
    fn has(self, number: i8) -> bool {
        u32::try_from(number).is_ok_and(|number| self.bits & (1 << number) != 0)
    }
}

/// Why a text is not a schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSchedule {
    #[error("a schedule has five fields (minute, hour, day, month, weekday), {text:?} has {count}")]
    FieldCount { text: String, count: usize },
    #[error("{0:?} is not a known schedule: use @yearly, @monthly, @weekly, @daily, @midnight or @hourly")]
    UnknownWord(String),
    #[error("{expression:?} is not a valid {field} in schedule {text:?}")]
    Expression {
        text: String,
        field: &'static str,
        expression: String,
    },
}

struct Kind {
    name: &'static str,
    min: u32,
    max: u32,
    /// The first name stands for `min`.
    names: &'static [&'static str],
}

const MINUTE: Kind = Kind {
    name: "minute",
    min: 0,
    max: 59,
    names: &[],
};
const HOUR: Kind = Kind {
    name: "hour",
    min: 0,
    max: 23,
    names: &[],
};
const DAY: Kind = Kind {
    name: "day of the month",
    min: 1,
    max: 31,
    names: &[],
};
const MONTH: Kind = Kind {
    name: "month",
    min: 1,
    max: 12,
    names: &[
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ],
};
const WEEKDAY: Kind = Kind {
    name: "weekday",
    min: 0,
    max: 6,
    names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
};

/// How far ahead a hit is looked for. A schedule without one in five years (the 30th of February) has none.
const HORIZON_YEARS: i16 = 5;

impl FromStr for Schedule {
    type Err = InvalidSchedule;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let spelled = match text.trim() {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            word if word.starts_with('@') => return Err(InvalidSchedule::UnknownWord(word.to_owned())),
            fields => fields,
        };
        let fields: Vec<&str> = spelled.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = fields[..] else {
            return Err(InvalidSchedule::FieldCount {
                text: text.to_owned(),
                count: fields.len(),
            });
        };
        let field = |kind: &Kind, written: &str| {
            field(kind, written).map_err(|expression| InvalidSchedule::Expression {
                text: text.to_owned(),
                field: kind.name,
                expression,
            })
        };
        Ok(Self {
            text: text.to_owned(),
            minutes: field(&MINUTE, minutes)?,
            hours: field(&HOUR, hours)?,
            days: field(&DAY, days)?,
            months: field(&MONTH, months)?,
            weekdays: field(&WEEKDAY, weekdays)?,
        })
    }
}

/// A list of ranges; the error is the expression that cannot be read.
fn field(kind: &Kind, written: &str) -> Result<Field, String> {
    let mut all = Field { bits: 0, star: false };
    for expression in written.split(',').filter(|expression| !expression.is_empty()) {
        let (bits, star) = range(kind, expression).ok_or_else(|| expression.to_owned())?;
        all.bits |= bits;
        all.star |= star;
    }
    if all.bits == 0 {
        Err(written.to_owned())
    } else {
        Ok(all)
    }
}

/// `*`, `4`, `4-6`, `*/2`, `4-20/5`, `4/5` (from 4 to the end in steps of 5).
fn range(kind: &Kind, expression: &str) -> Option<(u64, bool)> {
    let mut halves = expression.split('/');
    let span = halves.next()?;
    let step = halves.next().map(number);
    if halves.next().is_some() {
        return None;
    }
    let mut ends = span.split('-');
    let low = ends.next()?;
    let high = ends.next();
    if ends.next().is_some() {
        return None;
    }
    let star = low == "*" || low == "?";
    let (first, last) = match high {
        _ if star => (kind.min, kind.max),
        Some(high) => (kind.number(low)?, kind.number(high)?),
        None if step.is_some() => (kind.number(low)?, kind.max),
        None => (kind.number(low)?, kind.number(low)?),
    };
    let step = step.unwrap_or(Some(1)).filter(|step| *step > 0)?;
    if first < kind.min || last > kind.max || first > last {
        return None;
    }
    let numbers = (first..=last).step_by(usize::try_from(step).ok()?);
    Some((numbers.fold(0, |bits, number| bits | 1 << number), star && step == 1))
}

fn number(text: &str) -> Option<u32> {
    text.parse().ok()
}

impl Kind {
    fn number(&self, text: &str) -> Option<u32> {
        let named = self.names.iter().position(|name| text.eq_ignore_ascii_case(name));
        named.map_or_else(|| number(text), |index| Some(self.min + u32::try_from(index).ok()?))
    }
}

impl Schedule {
    /// The first hit later than this moment; `None` when none comes in five years.
    pub fn next_after(&self, moment: Timestamp) -> Option<Timestamp> {
        let after = TimeZone::UTC.to_datetime(moment);
        let mut date = after.date();
        let last_year = date.year().saturating_add(HORIZON_YEARS);
        while date.year() <= last_year {
            if self.admits(date)
                && let Some(hit) = self.first_on(date, after)
            {
                return TimeZone::UTC.to_timestamp(hit).ok();
            }
            date = date.tomorrow().ok()?;
        }
        None
    }

    fn admits(&self, date: Date) -> bool {
        let day = self.days.has(date.day());
        let weekday = self.weekdays.has(date.weekday().to_sunday_zero_offset());
        // Two restricted day fields are alternatives; a star leaves the decision to the other one.
        let either = if self.days.star || self.weekdays.star {
            day && weekday
        } else {
            day || weekday
        };
        self.months.has(date.month()) && either
    }

    fn first_on(&self, date: Date, after: DateTime) -> Option<DateTime> {
        let hours = (0..24).filter(|hour| self.hours.has(*hour));
        let mut moments = hours.flat_map(|hour| {
            let minutes = (0..60).filter(|minute| self.minutes.has(*minute));
            minutes.map(move |minute| date.at(hour, minute, 0, 0))
        });
        moments.find(|moment| *moment > after)
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schedule: &str, after: &str, expected: &str) {
        let parsed: Schedule = schedule.parse().unwrap();
        let next = parsed.next_after(after.parse().unwrap());
        assert_eq!(
            next.map_or("never".to_owned(), |hit| hit.to_string()),
            expected,
            "{schedule} after {after}"
        );
    }

    /// Values of robfig's own table for `Next`, in UTC.
    #[test]
    fn hits_come_when_robfig_has_them() {
        check("0/15 * * * *", "2012-07-09T14:45:00Z", "2012-07-09T15:00:00Z");
        check("0/15 * * * *", "2012-07-09T14:59:59Z", "2012-07-09T15:00:00Z");
        check("20-35/15 * * * *", "2012-07-09T15:45:00Z", "2012-07-09T16:20:00Z");
        check("*/15 * * * *", "2012-07-09T23:46:00Z", "2012-07-10T00:00:00Z");
        check("5 1/2 9 jul ?", "2012-07-09T23:35:00Z", "2013-07-09T01:05:00Z");
        check("0 0 9 Apr-Oct ?", "2012-07-09T23:35:00Z", "2012-08-09T00:00:00Z");
        check("0 0 */5 Oct Mon", "2012-07-09T23:35:00Z", "2012-10-01T00:00:00Z");
        check("0 0 * Feb Mon", "2012-07-09T23:35:00Z", "2013-02-04T00:00:00Z");
        check("0 0 * Feb Mon/2", "2012-07-09T23:35:00Z", "2013-02-01T00:00:00Z");
        check("0 0 29 Feb ?", "2012-07-09T23:35:00Z", "2016-02-29T00:00:00Z");
        check("0 0 30 Feb ?", "2012-07-09T23:35:00Z", "never");
        check("0 0 31 Apr ?", "2012-07-09T23:35:00Z", "never");
    }

    #[test]
    fn a_hit_is_strictly_later_than_the_moment_asked_about() {
        check("0 12 * * *", "2026-01-01T12:00:00Z", "2026-01-02T12:00:00Z");
        check("0 12 * * *", "2026-01-01T11:59:59.999999999Z", "2026-01-01T12:00:00Z");
    }

    #[test]
    fn restricted_day_fields_are_alternatives_and_stars_are_not() {
        check("0 0 13 * Fri", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
        check("0 0 13 * *", "2026-01-01T00:00:00Z", "2026-01-13T00:00:00Z");
        check("0 0 * * Fri", "2026-01-03T00:00:00Z", "2026-01-09T00:00:00Z");
        check("0 0 */10 * Fri", "2026-01-03T00:00:00Z", "2026-01-09T00:00:00Z");
    }

    #[test]
    fn words_stand_for_fields() {
        check("@yearly", "2026-03-04T05:06:07Z", "2027-01-01T00:00:00Z");
        check("@annually", "2026-03-04T05:06:07Z", "2027-01-01T00:00:00Z");
        check("@monthly", "2026-03-04T05:06:07Z", "2026-04-01T00:00:00Z");
        check("@weekly", "2026-03-04T05:06:07Z", "2026-03-08T00:00:00Z");
        check("@daily", "2026-03-04T05:06:07Z", "2026-03-05T00:00:00Z");
        check("@midnight", "2026-03-04T05:06:07Z", "2026-03-05T00:00:00Z");
        check("@hourly", "2026-03-04T05:06:07Z", "2026-03-04T06:00:00Z");
    }

    #[test]
    fn what_robfig_refuses_is_refused() {
        for text in [
            "",
            "* * * *",
            "* * * * * *",
            "60 * * * *",
            "* 24 * * *",
            "* * 0 * *",
            "* * 32 * *",
            "* * * 13 *",
            "* * * * 7",
            "5-1 * * * *",
            "*/0 * * * *",
            "1-2-3 * * * *",
            "1/2/3 * * * *",
            "x * * * *",
            "-1 * * * *",
            "* * L * *",
            ", * * * *",
            "@reboot",
            "@dailyfoo",
            "@every 1h",
        ] {
            assert!(text.parse::<Schedule>().is_err(), "{text:?} was read");
        }
        assert_eq!(
            "0 25 * * *".parse::<Schedule>().unwrap_err().to_string(),
            r#""25" is not a valid hour in schedule "0 25 * * *""#,
        );
    }
}
