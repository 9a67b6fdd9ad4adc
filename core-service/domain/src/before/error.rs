//! Why a text is not a time, said so that its writer can put it right.

use jiff::civil::Date;

/// Every way a `before` text can be refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    #[error("empty: write a time, such as an ISO 8601 date and time")]
    Empty,
    #[error("too long: {length} bytes, at most {limit} are read", limit = super::LIMIT)]
    TooLong { length: usize },
    #[error("{}", not_understood(.understood, .rest))]
    NotUnderstood { understood: String, rest: String },
    #[error("understood {understood:?}, but not {rest:?} as well: a second {what}")]
    Twice {
        what: &'static str,
        understood: String,
        rest: String,
    },
    /// Two times with a hyphen or a slash between them.
    #[error("{range:?} is a range, not one time: use timeSlot")]
    Range { range: String },
    /// A date with slashes that day-first and month-first readers read differently.
    #[error(
        "{text:?} is {day_first} to some and {month_first} to others: write the one that is meant"
    )]
    Ambiguous {
        text: String,
        day_first: Date,
        month_first: Date,
    },
    #[error("{year:04}-{month:02}-{day:02} is not a date of the calendar")]
    NoSuchDate { year: i64, month: i64, day: i64 },
    #[error("too far away: the years from -9999 to 9999 can be told")]
    OutOfRange,
}

impl Error {
    /// A refusal at byte `at` of `text`, told by whole words.
    pub(super) fn not_understood(text: &str, at: usize) -> Self {
        let (understood, rest) = split(text, at);
        Self::NotUnderstood { understood, rest }
    }

    /// A second date, time or zone at byte `at` of `text`.
    pub(super) fn twice(what: &'static str, text: &str, at: usize) -> Self {
        let (understood, rest) = split(text, at);
        Self::Twice {
            what,
            understood,
            rest,
        }
    }
}

fn not_understood(understood: &str, rest: &str) -> String {
    if understood.is_empty() {
        format!("not understood: {rest:?}")
    } else {
        format!("understood {understood:?}, but not {rest:?}")
    }
}

/// What stands before the word at byte `at`, and that word.
fn split(text: &str, at: usize) -> (String, String) {
    let start = text
        .char_indices()
        .take_while(|(place, _)| *place <= at)
        .filter(|(_, char)| char.is_whitespace())
        .last()
        .map_or(0, |(place, char)| place + char.len_utf8());
    let (understood, rest) = text.split_at(start);
    let word = rest.split_whitespace().next().unwrap_or_default();
    (understood.trim().to_owned(), word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_what_was_understood_and_what_was_not() {
        assert_eq!(
            Error::not_understood("tomorrow 13h75 sharp", 11).to_string(),
            r#"understood "tomorrow", but not "13h75""#
        );
        assert_eq!(
            Error::not_understood("soon", 2).to_string(),
            r#"not understood: "soon""#
        );
        assert_eq!(
            Error::twice("time", "10:00 11:00", 6).to_string(),
            r#"understood "10:00", but not "11:00" as well: a second time"#
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
