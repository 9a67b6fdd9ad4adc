//! Durations of time slot definitions, in calendar units: `36 hours`, `2 days`, `1 month`.

use std::fmt;

use jiff::{Span, Timestamp, Zoned};

/// A number of minutes, hours, days, weeks or months. Minutes and hours are elapsed time; days,
/// weeks and months follow the calendar across clock changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CalendarDuration {
    /// At least 1.
    count: u16,
    /// The index of a row of [`UNITS`].
    unit: usize,
}

type MakeSpan = fn(Span, i64) -> Span;

/// The units: name, minutes, and how a span is made of them. A day has 24 hours and a month 31
/// days.
const UNITS: [(&str, i64, MakeSpan); 5] = [
    ("minute", 1, Span::minutes),
    ("hour", 60, Span::hours),
    ("day", 24 * 60, Span::days),
    ("week", 7 * 24 * 60, Span::weeks),
    ("month", 31 * 24 * 60, Span::months),
];

impl CalendarDuration {
    /// Parses a whole number from 1 and a unit, singular or plural.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (count, unit) = text.trim().split_once(' ')?;
        if !count.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let count: u16 = count.parse().ok().filter(|count| *count > 0)?;
        let plural = unit.trim_start();
        let singular = plural.strip_suffix('s').unwrap_or(plural);
        let unit = UNITS.iter().position(|(name, ..)| *name == singular)?;
        Some(Self { count, unit })
    }

    /// In minutes: an upper bound unless clocks change.
    pub(super) fn minutes(self) -> i64 {
        let (_, minutes, _) = UNITS[self.unit];
        i64::from(self.count) * minutes
    }

    /// The instant this long after `now`.
    pub(super) fn after(self, now: &Zoned) -> Timestamp {
        let (_, _, span) = UNITS[self.unit];
        now.checked_add(span(Span::new(), self.count.into()))
            .map_or(Timestamp::MAX, |later| later.timestamp())
    }
}

impl fmt::Display for CalendarDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, ..) = UNITS[self.unit];
        let plural = if self.count == 1 { "" } else { "s" };
        write!(f, "{} {unit}{plural}", self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_a_number_and_a_unit() {
        for (text, expected) in [
            ("2 days", Some("2 days")),
            ("1 hours", Some("1 hour")),
            (" 90  minutes ", Some("90 minutes")),
            ("65535 months", Some("65535 months")),
            ("65536 months", None),
            ("0 days", None),
            ("-1 day", None),
            ("+1 day", None),
            ("2", None),
            ("two days", None),
            ("1 year", None),
            ("1 day 2 hours", None),
            ("", None),
        ] {
            let duration = CalendarDuration::parse(text).map(|duration| duration.to_string());
            assert_eq!(duration.as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn days_follow_the_calendar_and_hours_are_elapsed_time() {
        let now: Zoned = "2026-03-28T12:00[Europe/Paris]".parse().unwrap();
        for (text, expected) in [
            ("1 day", "2026-03-29T10:00:00Z"),
            ("24 hours", "2026-03-29T11:00:00Z"),
            ("1 month", "2026-04-28T10:00:00Z"),
        ] {
            let after = CalendarDuration::parse(text).unwrap().after(&now);
            assert_eq!(after.to_string(), expected, "{text}");
        }
        let last = Timestamp::MAX.to_zoned(jiff::tz::TimeZone::UTC);
        assert_eq!(
            CalendarDuration::parse("9 months").unwrap().after(&last),
            Timestamp::MAX
        );
    }

    #[test]
    fn the_minutes_of_a_duration_are_an_upper_bound() {
        for (text, minutes) in [
            ("2 minutes", 2),
            ("2 hours", 120),
            ("2 days", 2_880),
            ("2 weeks", 20_160),
            ("2 months", 89_280),
        ] {
            let duration = CalendarDuration::parse(text).unwrap();
            assert_eq!(duration.minutes(), minutes, "{text}");
        }
    }
}
