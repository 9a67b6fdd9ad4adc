//! Errors of `before` and `after` texts, with messages that help the client to correct the text.

use jiff::civil::Date;

/// What to write instead of a text that is not understood.
const ADVICE: &str = "write a time such as 2026-11-25 17:30, tomorrow 17:30 or +2h";

/// Why a `before` or `after` text is rejected.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    #[error("empty: {ADVICE}")]
    Empty,
    #[error("too long: {length} bytes, the limit is {limit}")]
    TooLong { length: usize, limit: usize },
    #[error("{}", unrecognized_message(.understood, .rejected))]
    Unrecognized {
        understood: String,
        rejected: String,
    },
    #[error("understood {understood:?}, but {rejected:?} is a second {kind}: write only one")]
    Duplicate {
        /// `date`, `day`, `time` or `time zone`.
        kind: &'static str,
        understood: String,
        rejected: String,
    },
    /// Two times with a dash or a slash between them.
    #[error("{range:?} is a range, not one time: use timeSlot")]
    Range { range: String },
    /// A text with several readings: `03/12/2026`, `2h`, `mar 18:00`.
    #[error("{text:?} is {readings}: write {}", .write.join(" or "))]
    Ambiguous {
        text: String,
        /// The kinds of its readings, such as "a time of day or a duration".
        readings: &'static str,
        /// Texts with one of the readings each.
        write: Vec<String>,
    },
    /// A part of the day without a time of day, or with one outside of it.
    #[error("{part:?} needs a time of day with it, from {first_hour:02}:00 to {last_hour:02}:59")]
    PartOfDay {
        part: String,
        first_hour: i64,
        last_hour: i64,
    },
    #[error("{offset:?} is not a UTC offset: they are from -12:00 to +14:00")]
    NoSuchOffset { offset: String },
    #[error(
        "{abbreviation:?} is the abbreviation of several time zones: write an offset such as \
         +02:00 or a name such as Europe/Paris"
    )]
    AmbiguousTimeZone { abbreviation: String },
    #[error("{year:04}-{month:02}-{day:02} is not a date of the calendar")]
    NoSuchDate { year: i64, month: i64, day: i64 },
    /// Two different days. `date` is the day of `word`, if a word such as `tomorrow` gave it;
    /// `other` is the second day as the message prints it: a weekday in quotation marks, or a date.
    #[error("{}, not {other}: write only one of the two", described(.word.as_deref(), *.date))]
    DifferentDays {
        word: Option<String>,
        date: Date,
        other: String,
    },
    #[error("out of range: dates are from the year 2000 to ten years ahead")]
    OutOfRange,
}

/// Texts are checked before their numbers are used, so only the range can be wrong.
impl From<jiff::Error> for Error {
    fn from(_: jiff::Error) -> Self {
        Self::OutOfRange
    }
}

/// `12:30 am` before a day: German `am` is no meridiem.
pub(super) fn noon_or_midnight(text: String, minutes: &str) -> Error {
    Error::Ambiguous {
        text,
        readings: "at midnight or at noon",
        write: ["00", "12"]
            .map(|hour| format!("{hour}:{minutes}"))
            .to_vec(),
    }
}

fn unrecognized_message(understood: &str, rejected: &str) -> String {
    let offset = match super::time_zone::signed_number(rejected) {
        Some(number) if number == rejected => "; a UTC offset is written +02:00",
        _ => "",
    };
    if understood.is_empty() {
        format!("not understood: {rejected:?}; {ADVICE}{offset}")
    } else {
        format!("understood {understood:?}, but not {rejected:?}; {ADVICE}{offset}")
    }
}

fn described(word: Option<&str>, date: Date) -> String {
    let weekday = date.weekday();
    match word {
        Some(word) => format!("{word:?} is {weekday:?} {date}"),
        None => format!("{date} is a {weekday:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::before::context::Context;

    fn context(original: &str) -> Context<'_> {
        Context {
            original,
            ..Context::default()
        }
    }

    #[test]
    fn messages_quote_the_understood_and_the_rejected_text() {
        assert_eq!(
            context("tomorrow 13h75 sharp").unrecognized(11).to_string(),
            "understood \"tomorrow\", but not \"13h75\"; \
             write a time such as 2026-11-25 17:30, tomorrow 17:30 or +2h"
        );
        assert_eq!(
            context("soon").unrecognized(2).to_string(),
            "not understood: \"soon\"; \
             write a time such as 2026-11-25 17:30, tomorrow 17:30 or +2h"
        );
        assert_eq!(
            context("10:00 11:00").duplicate("time", 6).to_string(),
            r#"understood "10:00", but "11:00" is a second time: write only one"#
        );
        assert_eq!(
            Error::Range {
                range: "10:00-11:00".to_owned()
            }
            .to_string(),
            r#""10:00-11:00" is a range, not one time: use timeSlot"#
        );
    }
}
