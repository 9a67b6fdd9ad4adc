//! The words of a text, and the times, durations and ranges that they form.

use super::super::word_tables::{Unit, WEEKDAYS, month, value_of};
use super::dictionary::{first_phrase, fold};
use super::duration;
use super::phrases::PhraseKind;
use std::borrow::Cow;

pub(super) struct Words<'a> {
    pub(super) text: &'a str,
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
            // The dot of `déc.` is none of the name; that of `10.12.` makes a date.
            let without_dot = word.trim_end_matches([',', '.']);
            // The grammar accepts a comma after a number, but not after a meridiem.
            let may_be_meridiem = without_comma.trim_end_matches('.').ends_with(['m', 'M']);
            // The word is a slice of the text, so the difference of addresses is its position.
            let position = word.as_ptr().addr() - text.as_ptr().addr();
            words.positions.push(position);
            words
                .original
                .push(if may_be_meridiem { without_comma } else { word });
            words
                .folded
                .push(fold(if without_dot.ends_with(char::is_alphabetic) {
                    without_dot
                } else {
                    without_comma
                }));
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
    pub(super) fn end(&self, index: usize) -> Option<usize> {
        Some(self.positions.get(index)? + self.original.get(index)?.len())
    }

    /// Whether an hour with an `h` starts at `index`.
    pub(super) fn has_h(&self, index: usize) -> bool {
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

    /// Whether `di` before the word at `index` is Italian: a day or a part of it follows.
    pub(super) fn is_of(&self, index: usize) -> bool {
        match first_phrase(self.rest(index)) {
            Some((PhraseKind::Replacement(text), _)) => {
                ["today", "tomorrow", "yesterday"].contains(&text)
                    || value_of(text, WEEKDAYS).is_some()
                    || month(text).is_some()
            }
            Some((PhraseKind::Filler, length)) => self.is_of(index + length),
            // `questa mattina`, `stasera`
            Some((PhraseKind::ThisEvening(_) | PhraseKind::PartOfDay(..), _)) => {
                self.folded[index].starts_with("quest") || self.folded[index].starts_with("sta")
            }
            Some((kind, _)) => kind == PhraseKind::TuesdayOrMarch,
            None => false,
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

    /// Whether the preposition before the word at `index` is one of times of day only; after the others,
    /// such as in `bis 10.12`, a day may follow.
    pub(super) fn is_after_at(&self, index: usize) -> bool {
        ![
            "by", "before", "avant", "jusqu'a", "bis", "zum", "vor", "pour",
        ]
        .contains(&self.folded[index - 1].as_ref())
    }

    /// Whether a date and `à` are before the word at `index`: `14.12. à 15.12` may be a range.
    fn is_end(&self, index: usize) -> bool {
        self.folded[index - 1] == "à"
            && index > 1
            && (starts_with_digit(&self.folded[index - 2]) || self.is_month(index - 2))
    }

    /// Whether the word at `index` is an hour if a preposition of time is before it: a number without
    /// a unit, a meridiem or a month after it.
    pub(super) fn is_bare_hour(&self, index: usize) -> bool {
        let is_hour = |word: &Cow<'_, str>| is_number(word) && matches!(word.parse(), Ok(0..=24));
        let Some(next) = self.folded.get(index + 1) else {
            return self.folded.get(index).is_some_and(is_hour);
        };
        let hour = &self.folded[index];
        let is_other = match first_phrase(self.rest(index + 1)) {
            Some((PhraseKind::Replacement(text), _)) => month(text).is_some(),
            Some((PhraseKind::FillerUnlessAfterNumber, _)) => matches!(hour.parse(), Ok(0..=12)),
            // `by 9 mar 2027`
            Some((PhraseKind::TuesdayOrMarch, _)) => {
                let year = self.folded.get(index + 2);
                !self.is_after_at(index) && year.is_some_and(|year| is_year(year))
            }
            Some((kind, _)) => matches!(kind, PhraseKind::Unit(_) | PhraseKind::Number(_)),
            None => {
                month(next).is_some()
                    || Unit::parse(next).is_some()
                    || starts_with_digit(next)
                    // `mondays`, `weekdays`
                    || next.ends_with('s')
                    || ["pm", "a.m", "p.m", "h"].contains(&next.as_ref())
            }
        };
        !is_other && is_hour(hour)
    }

    /// A time in a notation that the strict grammar lacks, and its number of words: `10h30`,
    /// `10 Uhr 30`, `18.30h`. `is_expected` after a preposition of time, `is_next` directly after it.
    pub(super) fn time(
        &self,
        index: usize,
        is_expected: bool,
        is_next: bool,
    ) -> Option<(String, usize)> {
        let word = self.folded.get(index)?;
        let digits = word.bytes().take_while(u8::is_ascii_digit).count();
        let (hour, rest) = word.split_at(digits);
        if is_next
            && (self.is_after_at(index) || !is_year(word))
            && let Some(time) = time_of_four_digits(word)
        {
            return Some((time, 1));
        }
        if !(1..=2).contains(&digits) {
            return None;
        }
        if rest.is_empty() {
            if is_next && self.is_bare_hour(index) {
                let after = first_phrase(self.rest(index + 1));
                if !matches!(after, Some((PhraseKind::OClock | PhraseKind::Hour, _))) {
                    return Some((format_time(hour, ""), 1));
                }
            }
            return self.time_in_separate_words(hour, index, is_expected);
        }
        if rest == "uhr" {
            return Some((format!("{hour}:00"), 1));
        }
        if let Some(minutes) = rest.strip_prefix([':', '.']) {
            let after = first_phrase(self.rest(index + 1));
            let is_time = (is_next && self.is_after_at(index) && !self.is_end(index))
                || minutes.ends_with('h')
                || matches!(after, Some((PhraseKind::OClock, _)));
            let minutes = minutes.strip_suffix('h').unwrap_or(minutes);
            return (is_time && minutes.len() == 2 && is_number(minutes))
                .then(|| (format_time(hour, minutes), 1));
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
            (_, Some((PhraseKind::Hour, length))) if is_expected || self.is_french_time(index) => {
                1 + length
            }
            _ => return None,
        };
        match self.folded.get(index + length) {
            // `9 Uhr 13 Dez. 2026` is at 9:00.
            Some(minutes)
                if minutes.len() <= 2
                    && is_number(minutes)
                    && !self.is_month(index + length + 1)
                    && !self.has_unit_of_time(index + length + 1) =>
            {
                Some((format_time(hour, minutes), length + 1))
            }
            _ => Some((format_time(hour, ""), length)),
        }
    }

    /// `lundi 9 heures`, but not `9 heures`, `et 9 heures` or `2 jours 9 heures`.
    fn is_french_time(&self, index: usize) -> bool {
        let is_hour = self
            .rest(index + 1)
            .first()
            .is_some_and(|word| word.starts_with("heure"));
        let Some(day) = index
            .checked_sub(1)
            .and_then(|index| self.folded.get(index))
        else {
            return false;
        };
        let is_name = match first_phrase(&self.folded[index - 1..index]) {
            Some((PhraseKind::Replacement(name), _)) => {
                month(name).is_some()
                    || value_of(name, WEEKDAYS).is_some()
                    || ["today", "tomorrow"].contains(&name)
            }
            Some((kind, _)) => kind == PhraseKind::NextSuffix,
            None => false,
        };
        is_hour && (is_name || is_year(day))
    }

    /// Whether a month is named at `index`.
    pub(super) fn is_month(&self, index: usize) -> bool {
        let words = self.rest(index);
        match first_phrase(words) {
            Some((PhraseKind::Replacement(name), _)) => month(name).is_some(),
            Some((PhraseKind::Filler | PhraseKind::TuesdayOrOf, 1)) => self.is_month(index + 1),
            Some((kind, _)) => kind == PhraseKind::TuesdayOrMarch,
            None => words.first().is_some_and(|word| month(word).is_some()),
        }
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

/// `1745` as `17:45`.
pub(super) fn time_of_four_digits(word: &str) -> Option<String> {
    let (hour, minute) = word.split_at_checked(2).filter(|_| word.len() == 4)?;
    let is_time =
        is_number(word) && matches!((hour.parse(), minute.parse()), (Ok(0..=24), Ok(0..=59)));
    is_time.then(|| format!("{hour}:{minute}"))
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

/// Whether the words start with a date in digits, or the name of a day in another language than
/// English.
pub(super) fn starts_with_day(words: &[Cow<'_, str>]) -> bool {
    let is_name = |kind| matches!(kind, PhraseKind::Replacement(_) | PhraseKind::TuesdayOrOf);
    words.first().is_some_and(|word| starts_with_digit(word))
        || first_phrase(words).is_some_and(|(kind, _)| is_name(kind))
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

pub(super) fn starts_with_digit(word: &str) -> bool {
    word.starts_with(|char: char| char.is_ascii_digit())
}

/// Whether a word is a number that means a year beside a month.
pub(super) fn is_year(word: &str) -> bool {
    matches!(word.parse(), Ok(1960..=2099))
}

pub(super) fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}
