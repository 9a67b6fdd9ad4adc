//! Two times or days with a dash, a slash or words between them: no time, but a range.

use super::super::error::Error;
use super::dictionary::{first_phrase, fold};
use super::phrases::PhraseKind;
use super::words::{Words, is_number, starts_with_day, starts_with_digit};
use jiff::fmt::temporal::Pieces;

const DASHES: [char; 3] = ['-', '–', '—'];

/// A second date, day or time after `bis` or its like is the end of a range, and so is what follows
/// `vom` and `bis`.
pub(in crate::before) fn as_range(error: Error, text: &str) -> Error {
    const FROM_TO: [[&str; 2]; 13] = [
        ["from", "to"],
        ["from", "until"],
        ["between", "and"],
        ["du", "au"],
        ["entre", "et"],
        ["von", "bis"],
        ["vom", "bis"],
        ["zwischen", "und"],
        ["desde", "hasta"],
        ["de", "a"],
        ["entre", "y"],
        ["dalle", "alle"],
        ["dal", "al"],
    ];
    let is_range = match &error {
        Error::Duplicate { understood, .. } if understood.rsplit(' ').next().is_some_and(is_to) => {
            true
        }
        // `10:00 until 12:00`
        Error::Unrecognized {
            understood,
            rejected,
        } if understood.contains(':') && ["to", "until", "till"].contains(&rejected.as_str()) => {
            true
        }
        Error::Unrecognized { rejected, .. } if Words::of(text).has_dash_at(rejected) => true,
        Error::Duplicate { .. } | Error::Unrecognized { .. } => {
            let words = Words::of(text).folded;
            // Not `5 de diciembre a las 10`.
            let is_from = |at: usize| {
                words[at] != "de"
                    || words
                        .get(at + 1)
                        .is_some_and(|word| starts_with_digit(word))
            };
            FROM_TO.iter().any(|[from, to]| {
                let from = (0..words.len()).find(|at| words[*at] == *from && is_from(*at));
                from.is_some_and(|from| words[from..].iter().skip(2).any(|word| word == to))
            })
        }
        _ => false,
    };
    if is_range {
        let range = text.to_owned();
        return Error::Range { range };
    }
    error
}

/// Whether a word is `bis` or its like, between the start and the end of a range.
pub(in crate::before) fn is_to(word: &str) -> bool {
    const TO: [&str; 5] = ["bis", "à", "jusqu'a", "alle", "al"];
    TO.contains(&fold(word.trim_end_matches(',')).as_ref())
}

/// The text, if it is two ISO 8601 times with a slash or two hyphens between them.
pub(super) fn iso_range(text: &str) -> Option<&str> {
    let (from, to) = text.split_once('/').or_else(|| text.split_once("--"))?;
    (Pieces::parse(from).is_ok() && Pieces::parse(to).is_ok()).then_some(text)
}

impl<'a> Words<'a> {
    /// Whether the word at `index` makes the number before it an hour of the day.
    pub(super) fn has_unit_of_time(&self, index: usize) -> bool {
        let phrase = first_phrase(self.rest(index));
        matches!(phrase, Some((PhraseKind::OClock | PhraseKind::Hour, _)))
            || self.rest(index).first().is_some_and(|word| word == "h")
    }

    /// Whether the word is, has or precedes a dash between two days or times: `3.12-5.12`, `5.-7. Dezember`.
    fn has_dash_at(&self, word: &str) -> bool {
        let Some(at) = self.original.iter().position(|other| *other == word) else {
            return false;
        };
        let is_number = |number: &str| {
            starts_with_digit(number)
                && number
                    .bytes()
                    .all(|byte| byte.is_ascii_digit() || byte == b'.')
        };
        match word.split_once(DASHES) {
            Some(("", "")) => at > 0 && starts_with_day(self.rest(at + 1)),
            Some(("", to)) => at > 0 && is_number(to) && to.contains('.'),
            Some((from, to)) => {
                let is_beside_month = self.is_month(at + 1) || (at > 0 && self.is_month(at - 1));
                is_number(from) && is_number(to) && (to.contains('.') || is_beside_month)
            }
            None => {
                let next = self
                    .original
                    .get(at + 1)
                    .and_then(|next| next.strip_prefix(DASHES));
                starts_with_digit(word)
                    && next.is_some_and(|to| to.is_empty() || starts_with_digit(to))
            }
        }
    }

    /// Two times with a dash between them that is in or at the start of the word at `index`. Other
    /// words may be before the dash, such as a time zone.
    pub(super) fn range(&self, index: usize) -> Option<&'a str> {
        let word = *self.original.get(index)?;
        let is_time = |word: &str| {
            starts_with_digit(word)
                && (word.contains(|char: char| char == ':' || char.is_alphabetic())
                    || word.matches('.').count() == 2)
        };
        let is_time_at = |index: usize| {
            is_time(self.original[index]) || self.time(index, false, false).is_some()
        };
        // A date has two dashes or slashes.
        let dashed = word
            .split_once(DASHES)
            .filter(|(_, to)| !to.contains(DASHES));
        let slashed = || word.split_once('/').filter(|(_, to)| !to.contains('/'));
        if let Some((from, to)) = dashed.or_else(slashed) {
            if starts_with_digit(from) && is_time(to) {
                return Some(word);
            }
            // `10-12 Uhr`
            if is_number(from) && is_number(to) && self.has_unit_of_time(index + 1) {
                return self.slice(index, 2);
            }
            // `10:00 CET-12:00`, but not `10:00 UTC-05:00`.
            let is_zone = from.len() > 2 && from.bytes().all(|byte| byte.is_ascii_alphabetic());
            if is_zone
                && !["GMT", "UTC"].contains(&from)
                && is_time(to)
                && index > 0
                && is_time_at(index - 1)
            {
                return self.slice(index - 1, 2);
            }
        }
        let to = word.strip_prefix(DASHES)?;
        let is_hour = |at: usize| at + 1 == index && is_number(self.original[at]);
        let start = (0..index)
            .rev()
            .find(|at| is_time_at(*at) || is_hour(*at))?;
        if to.is_empty() {
            let is_range = index + 1 < self.original.len() && is_time_at(index + 1);
            return is_range.then(|| self.slice(start, index + 2 - start))?;
        }
        // A hyphen may be a minus sign: `18:00 -2h`.
        (!word.starts_with('-') && starts_with_digit(to))
            .then(|| self.slice(start, index + 1 - start))?
    }
}
