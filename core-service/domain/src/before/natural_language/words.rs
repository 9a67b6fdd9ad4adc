//! The words of a text, and the times, durations and ranges that they form.

use super::super::error::Error;
use super::dictionary::{first_phrase, fold};
use super::duration;
use super::phrases::PhraseKind;
use std::borrow::Cow;

pub(super) struct Words<'a> {
    text: &'a str,
    pub(super) positions: Vec<usize>,
    pub(super) original: Vec<&'a str>,
    pub(super) folded: Vec<Cow<'a, str>>,
}

impl<'a> Words<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let count = text.split_ascii_whitespace().count();
        let mut words = Self {
            text,
            positions: Vec::with_capacity(count),
            original: Vec::with_capacity(count),
            folded: Vec::with_capacity(count),
        };
        for word in text.split_whitespace() {
            let without_comma = word.trim_end_matches(',');
            // The grammar accepts a comma after a number, but not after a meridiem.
            let may_be_meridiem = without_comma.trim_end_matches('.').ends_with(['m', 'M']);
            // The word is a slice of the text, so the difference of addresses is its position.
            let position = word.as_ptr().addr() - text.as_ptr().addr();
            words.positions.push(position);
            words
                .original
                .push(if may_be_meridiem { without_comma } else { word });
            words.folded.push(fold(without_comma));
        }
        words
    }

    /// The words after the first `index` words, folded.
    pub(super) fn rest(&self, index: usize) -> &[Cow<'a, str>] {
        self.folded.get(index..).unwrap_or_default()
    }

    /// The original text of `length` words.
    pub(super) fn slice(&self, index: usize, length: usize) -> Option<&'a str> {
        let end = self.end(index + length.checked_sub(1)?)?;
        self.text.get(*self.positions.get(index)?..end)
    }

    /// The byte after the word at `index`.
    fn end(&self, index: usize) -> Option<usize> {
        Some(self.positions.get(index)? + self.original.get(index)?.len())
    }

    /// Whether an hour with an `h` starts at `index`.
    fn has_h(&self, index: usize) -> bool {
        let start = self.positions.get(index);
        let text = start.and_then(|start| self.text.get(*start..));
        text.is_some_and(|text| {
            text.starts_with(|char: char| char.is_ascii_digit()) && duration::has_h(text)
        })
    }

    /// The meaning of a phrase of this kind. `next` is the index of the word after it: an hour with
    /// an `h` there decides between the meanings of `d'ici à`.
    pub(super) fn resolve_kind(&self, kind: PhraseKind, next: usize) -> PhraseKind {
        match kind {
            PhraseKind::WithinOrBeforeAt if self.has_h(next) => PhraseKind::BeforeAt,
            PhraseKind::WithinOrBefore | PhraseKind::WithinOrBeforeAt => PhraseKind::Within,
            kind => kind,
        }
    }

    /// The hour of a time in digits before the word at `index`.
    pub(super) fn hour_before(&self, index: usize) -> Option<u8> {
        let word = self.original.get(index.checked_sub(1)?)?;
        word.split([':', '.']).next()?.parse().ok()
    }

    /// A duration that has a sign, is expected, or has a phrase such as `ago` after it: its words
    /// in the strict grammar, and its number of words.
    pub(super) fn duration(&self, index: usize, is_expected: bool) -> Option<(String, usize)> {
        let start = *self.positions.get(index)?;
        let text = self.text.get(start..)?;
        let (duration, bytes) = duration::at_start(text)?;
        let is_part = |position: &&usize| **position < start + bytes;
        let end = self.positions.iter().take_while(is_part).count();
        (is_expected || text.starts_with(['+', '-']) || starts_with_duration_suffix(self.rest(end)))
            .then_some((duration, end - index))
    }

    /// The error for an hour after the phrase at `index` if it may be a time of day or a duration:
    /// `d'ici 18h`.
    pub(super) fn ambiguity_error(&self, index: usize) -> Option<Error> {
        let (kind, length) = first_phrase(self.rest(index))?;
        let next = index + length;
        let start = *self.positions.get(next)?;
        let after = self.text.get(start..)?;
        let (hour, minutes, end) = match (kind, first_phrase(self.rest(next))) {
            (PhraseKind::WithinOrBeforeAt, _) if self.has_h(next) => return None,
            (
                PhraseKind::WithinOrBefore | PhraseKind::WithinOrBeforeAt,
                Some((PhraseKind::Number(hour), length)),
            ) => match first_phrase(self.rest(next + length))? {
                (PhraseKind::Hour, _) => (hour, "", self.end(next + length)?),
                _ => return None,
            },
            (PhraseKind::WithinOrBefore | PhraseKind::WithinOrBeforeAt, _) => {
                let (hour, minutes, length) = duration::hour(after)?;
                (hour, minutes, start + length)
            }
            _ => return None,
        };
        let text = self.text.get(*self.positions.get(index)?..end)?;
        Some(Error::TimeOrDuration {
            text: text.to_owned(),
            time: format!("d'ici à {hour}h{minutes}"),
            duration: format!("dans {hour} h {minutes}").trim_end().to_owned(),
        })
    }

    /// A time in a notation that the strict grammar lacks, and its number of words: `10h30`,
    /// `10 Uhr 30`, `18.30h`.
    pub(super) fn time(&self, index: usize, is_expected: bool) -> Option<(String, usize)> {
        let word = self.folded.get(index)?;
        let digits = word.bytes().take_while(u8::is_ascii_digit).count();
        let (hour, rest) = word.split_at(digits);
        if !(1..=2).contains(&digits) {
            return None;
        }
        if rest.is_empty() {
            return self.time_in_separate_words(hour, index, is_expected);
        }
        if rest == "uhr" {
            return Some((format!("{hour}:00"), 1));
        }
        if rest.starts_with([':', '.']) {
            let time = word.strip_suffix('h')?;
            return time
                .ends_with(|char: char| char.is_ascii_digit())
                .then(|| (time.to_owned(), 1));
        }
        let minutes = rest.strip_prefix('h')?;
        if !minutes.is_empty() && !is_number(minutes) {
            return None;
        }
        Some((format_time(hour, minutes), 1))
    }

    /// An hour, its unit and the minutes, each a separate word.
    fn time_in_separate_words(
        &self,
        hour: &str,
        index: usize,
        is_expected: bool,
    ) -> Option<(String, usize)> {
        let after = self.rest(index + 1);
        let length = match (after.first().map(AsRef::as_ref), first_phrase(after)) {
            (Some("h"), _) => 2,
            (_, Some((PhraseKind::OClock, length))) => 1 + length,
            (_, Some((PhraseKind::Hour, length))) if is_expected => 1 + length,
            (None, _) | (_, Some((PhraseKind::PartOfDay(..), _))) if is_expected => 1,
            _ => return None,
        };
        match self.folded.get(index + length) {
            Some(minutes) if length > 1 && minutes.len() <= 2 && is_number(minutes) => {
                Some((format_time(hour, minutes), length + 1))
            }
            _ => Some((format_time(hour, ""), length)),
        }
    }

    /// Two times with a dash between them at `index`, in one word or in three.
    pub(super) fn range(&self, index: usize) -> Option<&'a str> {
        const DASHES: [char; 3] = ['-', '–', '—'];
        let word = *self.original.get(index)?;
        let is_time = |word: &str| {
            word.starts_with(|char: char| char.is_ascii_digit())
                && word.contains(|char: char| char == ':' || char.is_alphabetic())
        };
        if let Some((from, to)) = word.split_once(DASHES)
            && is_time(to)
            && from.starts_with(|char: char| char.is_ascii_digit())
            // A date has two dashes.
            && !to.contains(DASHES)
        {
            return Some(word);
        }
        let (dash, to) = (self.original.get(index + 1)?, self.original.get(index + 2)?);
        (is_time(word)
            && is_time(to)
            && dash
                .parse::<char>()
                .is_ok_and(|char| DASHES.contains(&char)))
        .then(|| self.slice(index, 3))?
    }
}

/// The phrase or word that contains byte `position`, without a comma after it.
pub(in crate::before) fn phrase_at(text: &str, position: usize) -> Option<&str> {
    let words = Words::of(text);
    let index = words
        .positions
        .iter()
        .rposition(|start| *start <= position)?;
    let length = first_phrase(words.rest(index)).map_or(1, |(_, length)| length);
    Some(words.slice(index, length)?.trim_end_matches(','))
}

/// The number of `1er`, `1º` and `1ª`; other words unchanged.
pub(super) fn without_ordinal_suffix(word: &str) -> &str {
    let number = word
        .trim_end_matches("er")
        .trim_end_matches(['º', 'ª', '°']);
    if is_number(number) { number } else { word }
}

fn format_time(hour: &str, minutes: &str) -> String {
    if minutes.is_empty() {
        format!("{hour}:00")
    } else {
        format!("{hour}:{minutes}")
    }
}

/// Whether the words start with a number, spelled out or in digits.
pub(super) fn starts_with_number(words: &[Cow<'_, str>]) -> bool {
    match first_phrase(words) {
        Some((PhraseKind::Number(_), _)) => true,
        Some((PhraseKind::Replacement(text), _)) => starts_with_digit(text),
        _ => words.first().is_some_and(|word| starts_with_digit(word)),
    }
}

/// Whether the words start with a number and a unit.
pub(super) fn starts_with_duration(words: &[Cow<'_, str>]) -> bool {
    if let Some((PhraseKind::Replacement(text), _)) = first_phrase(words) {
        return duration::at_start(text).is_some();
    }
    let unit = words.get(1..).and_then(first_phrase);
    starts_with_number(words) && matches!(unit, Some((PhraseKind::Unit(_) | PhraseKind::Hour, _)))
}

/// Whether the words start with a phrase that follows a duration.
pub(super) fn starts_with_duration_suffix(words: &[Cow<'_, str>]) -> bool {
    matches!(
        first_phrase(words),
        Some((PhraseKind::Ago | PhraseKind::FromNow, _))
    )
}

fn starts_with_digit(word: &str) -> bool {
    word.starts_with(|char: char| char.is_ascii_digit())
}

pub(super) fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}
