//! Durations with abbreviated units or fractions of an hour, translated into the strict grammar:
//! `+2h`, `+1h30`, `in 30m`, `dans 1,5 heure`.

use super::super::error::Error;
use super::super::word_tables::{Unit, abbreviated_unit};
use super::dictionary::{first_phrase, fold};
use super::phrases::PhraseKind;
use std::fmt::Write as _;

/// The duration at the start of a text, in words of the strict grammar, and its length in bytes:
/// one or more amounts without spaces between them. The sign applies to each.
pub(super) fn at_start(text: &str) -> Option<(String, usize)> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let sign = text.strip_suffix(unsigned)?;
    let mut duration = String::new();
    let mut rest = unsigned.trim_start();
    while let Some((amount, unit, after)) = amount_and_unit(rest) {
        let (whole, minutes) = split_fraction(amount, unit)?;
        let (minutes, after) = match bare_minutes(unit, after) {
            Some((bare, after)) if minutes.is_empty() => (bare, after),
            _ => (minutes, after),
        };
        // No space between number and unit: `april -2 ` would be a date.
        write!(duration, " {sign}{whole}{unit}").ok()?;
        if !minutes.is_empty() {
            write!(duration, " {sign}{minutes}minutes").ok()?;
        }
        rest = after;
    }
    let is_whole = rest.is_empty() || rest.starts_with(is_end);
    (is_whole && !duration.is_empty()).then(|| (duration, text.len() - rest.len()))
}

/// The error for a whole text such as `2h`, `1h30`, `1.30h` or `2 heures`. `13h` to `23h` are times of
/// day.
pub(super) fn ambiguity_error(text: &str) -> Option<Error> {
    let (hour, rest) = split_digits(text);
    let (dotted, rest) = rest.strip_prefix('.').map_or(("", rest), split_digits);
    let rest = rest.trim_start();
    let after = rest.trim_start_matches(char::is_alphabetic);
    let unit = fold(rest.strip_suffix(after)?);
    let minutes = if dotted.is_empty() {
        after.trim_start()
    } else {
        dotted
    };
    let may_be_an_hour_of_day = match hour.parse() {
        Ok(0..=12 | 24) if unit.eq_ignore_ascii_case("h") => true,
        Ok(0..=24) => matches!(first_phrase(&[unit]), Some((PhraseKind::Hour, _))),
        _ => false,
    };
    let is_ambiguous = may_be_an_hour_of_day
        && dotted.len() != 1
        && (minutes.is_empty() || matches!((minutes.len(), minutes.parse()), (1..=2, Ok(0..=59))));
    is_ambiguous.then(|| {
        let time = format!("{hour:0>2}:{minutes:0>2}");
        let duration = match dotted {
            "25" | "50" | "75" => format!("+{hour}.{dotted}h"),
            _ => format!("+{hour}h{minutes}"),
        };
        time_or_duration(text, time, duration)
    })
}

pub(in crate::before) fn time_or_duration(text: &str, time: String, duration: String) -> Error {
    Error::Ambiguous {
        text: text.to_owned(),
        readings: "a time of day or a duration",
        write: vec![time, duration],
    }
}

/// An hour from 0 to 24 and its minutes at the start of a text, which may also mean a duration, and
/// their length in bytes: `18h`, `2 heures 30`. No other unit follows.
pub(super) fn hour(text: &str) -> Option<(&str, &str, usize)> {
    hour_at_start(text)
        .filter(|(.., length)| amount_and_unit(text[*length..].trim_start()).is_none())
}

/// The same, without a check of what follows.
pub(super) fn hour_at_start(text: &str) -> Option<(&str, &str, usize)> {
    let (hour, unit, after) = amount_and_unit(text)?;
    let (minutes, rest) = bare_minutes(unit, after).unwrap_or(("", after));
    let is_whole = rest.is_empty() || rest.starts_with(is_end);
    let is_hour_of_day = is_hour(unit) && matches!(hour.parse(), Ok(0..=24));
    (is_whole && is_hour_of_day).then(|| (hour, minutes, text.len() - rest.len()))
}

/// [`hour`] with an `h` or a unit that times of day have as well.
pub(in crate::before) fn hour_of_day(text: &str) -> Option<(&str, &str, usize)> {
    hour(text).filter(|_| has_h(text) || has_hour_of_day(text))
}

/// Whether the unit of the hour at the start of a text is that of times of day as well: `10 heures`.
pub(super) fn has_hour_of_day(text: &str) -> bool {
    let unit = split_digits(text).1.trim_start();
    let after = unit.trim_start_matches(char::is_alphabetic);
    let unit = unit.strip_suffix(after).unwrap_or_default();
    matches!(first_phrase(&[fold(unit)]), Some((PhraseKind::Hour, _)))
}

/// Whether the hour at the start of a text has an `h`, as times of day have.
pub(super) fn has_h(text: &str) -> bool {
    let unit = split_digits(text).1.trim_start();
    unit.strip_prefix(['h', 'H'])
        .is_some_and(|rest| !rest.starts_with(char::is_alphabetic))
}

/// A number, the unit after it, and the rest of the text.
fn amount_and_unit(text: &str) -> Option<(&str, &'static str, &str)> {
    let after_number = text.trim_start_matches(|char: char| is_digit(char) || ".,".contains(char));
    let number = text.strip_suffix(after_number)?;
    let word = after_number.trim_start();
    let after_word = word.trim_start_matches(char::is_alphabetic);
    let name = word.strip_suffix(after_word)?;
    let unit = unit(name)?;
    // `2033W04` is a week of the year 2033.
    if number.len() == 4 && name == "W" && after_word.starts_with(is_digit) {
        return None;
    }
    let is_number = number.starts_with(is_digit) && number.ends_with(is_digit);
    is_number.then_some((number, unit, after_word))
}

/// The whole number of an amount, and the minutes of its fraction of an hour: quarters only.
fn split_fraction<'a>(amount: &'a str, unit: &str) -> Option<(&'a str, &'static str)> {
    let Some((hours, fraction)) = amount.split_once(['.', ',']) else {
        return Some((amount, ""));
    };
    let minutes = match fraction {
        "25" => "15",
        "5" | "50" => "30",
        "75" => "45",
        _ => return None,
    };
    is_hour(unit).then_some((hours, minutes))
}

/// The minutes without a unit that follow hours, `1h30` or `1 h 30`, and the rest.
fn bare_minutes<'a>(unit: &str, text: &'a str) -> Option<(&'a str, &'a str)> {
    let (minutes, rest) = split_digits(text.trim_start());
    let is_last = rest.is_empty() || (text.starts_with(is_digit) && rest.starts_with(is_end));
    let is_valid = matches!((minutes.len(), minutes.parse()), (1..=2, Ok(0..=59)));
    (is_hour(unit) && is_last && is_valid).then_some((minutes, rest))
}

fn unit(word: &str) -> Option<&'static str> {
    abbreviated_unit(word).or_else(|| match first_phrase(&[fold(word)])? {
        (PhraseKind::Unit(unit), _) => Some(unit),
        (PhraseKind::Hour, _) => Some("hours"),
        _ => None,
    })
}

fn is_hour(unit: &str) -> bool {
    Unit::parse(unit) == Some(Unit::Hour)
}

/// Whether a character ends a word.
fn is_end(char: char) -> bool {
    char.is_whitespace() || char == ','
}

fn is_digit(char: char) -> bool {
    char.is_ascii_digit()
}

fn split_digits(text: &str) -> (&str, &str) {
    let rest = text.trim_start_matches(is_digit);
    (text.strip_suffix(rest).unwrap_or_default(), rest)
}
