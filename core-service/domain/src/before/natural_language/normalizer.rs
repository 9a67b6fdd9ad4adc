//! Translates phrases into the strict grammar, and records their positions in the original.

use super::super::context::Context;
use super::super::error::Error;
use super::super::grammar::TokenKind;
use super::super::lexer;
use super::super::parsed_time::TimeOfDay;
use super::super::word_tables::{Unit, WEEKDAYS, value_of};
use super::dictionary::first_phrase;
use super::phrases::{MORNING, PartOfDay, PhraseKind};
use super::words::{
    Words, is_number, starts_with_duration, starts_with_duration_suffix, starts_with_number,
    without_ordinal_suffix,
};
use std::ops::{Range, RangeInclusive};

pub(super) struct NormalizedText<'a> {
    pub(super) words: Words<'a>,
    expected: Expectation,
    pub(super) text: String,
    /// Pairs of a position in `text` and its position in the original.
    pub(super) original_positions: Vec<(usize, usize)>,
    pub(super) part_of_day: Option<PartOfDay>,
    /// The position in the original of the phrase that counts a duration from now.
    pub(super) from_now: Option<usize>,
    /// A time of day is an hour without minutes after a colon or a dot: `15h`, `10 heures`, `um 18`.
    pub(super) has_hour_alone: bool,
    /// Why the phrase last read is rejected, if not because it is not valid there.
    pub(super) rejection: Option<Error>,
}

/// The hours accepted with [`PhraseKind::ThisEvening`]: `tonight 8:00` is rejected as ambiguous.
const THIS_EVENING_HOURS: RangeInclusive<i64> = 12..=23;

/// Expectations set by the preceding words.
#[derive(Default)]
struct Expectation {
    /// Expected after the last preposition.
    next: Option<ExpectedPhrase>,
    /// The position of the preposition or article directly before.
    object_of: Option<usize>,
    /// The position of a phrase that counts a duration from now.
    duration_of: Option<usize>,
    /// The index of the word directly after the last preposition of time.
    hour_at: Option<usize>,
    /// The position of a spelled-out number, which is valid only in a duration with a direction.
    spelled_number: Option<usize>,
    direction: Option<Direction>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExpectedPhrase {
    Duration,
    Hour,
}

/// Whether a duration is in the future or in the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Future,
    /// The past, named before the duration; the strict grammar needs `ago` after it.
    PastPrefix,
    /// The past, named after the duration.
    PastSuffix,
}

impl Expectation {
    fn is(&self, next: ExpectedPhrase) -> bool {
        self.next == Some(next)
    }

    fn expect_duration(&mut self, direction: Direction) {
        self.next = Some(ExpectedPhrase::Duration);
        self.direction = Some(direction);
    }
}

impl<'a> NormalizedText<'a> {
    /// Normalizes a text phrase by phrase. Unknown words stay unchanged.
    pub(super) fn of(context: Context<'a>) -> Result<Self, Error> {
        let mut normalized = Self {
            words: Words::of(context.original),
            expected: Expectation::default(),
            text: String::new(),
            original_positions: Vec::new(),
            part_of_day: None,
            from_now: None,
            has_hour_alone: false,
            rejection: None,
        };
        let mut index = 0;
        while index < normalized.words.original.len() {
            if let Some(range) = normalized.words.range(index) {
                return Err(Error::Range {
                    range: range.to_owned(),
                });
            }
            if let Some(error) = normalized.words.ambiguity_error(index) {
                return Err(error);
            }
            let position = normalized.words.positions[index];
            let length = normalized.push_phrase(index);
            index += length.ok_or_else(|| {
                let rejection = normalized.rejection.take();
                rejection.unwrap_or_else(|| context.unrecognized(position))
            })?;
            if normalized.expected.direction == Some(Direction::Future) {
                normalized.from_now.get_or_insert(position);
            }
        }
        let Expectation {
            direction,
            spelled_number,
            object_of,
            duration_of,
            ..
        } = normalized.expected;
        if direction == Some(Direction::PastPrefix) {
            normalized.push("ago", context.original.len());
        }
        // `in 18:00` and `friday from now` have none.
        let without_duration = duration_of.filter(|_| !normalized.has_duration(|_| true));
        let spelled_number = spelled_number.filter(|_| direction.is_none());
        match object_of.or(without_duration).or(spelled_number) {
            Some(position) => Err(context.unrecognized(position)),
            None => Ok(normalized),
        }
    }

    /// Normalizes the phrase at `index`, and returns its number of words. `None` if it is not
    /// valid at this position.
    fn push_phrase(&mut self, index: usize) -> Option<usize> {
        let (word, position) = (self.words.original[index], self.words.positions[index]);
        // `18:00 by ,`
        if word != "," {
            self.expected.object_of = None;
        }
        let is_duration_expected = self.expected.is(ExpectedPhrase::Duration);
        if let Some((duration, length)) = self.words.duration(index, is_duration_expected) {
            let is_signed = word.starts_with(['+', '-']);
            let may_be_time = |index| self.words.time(index, true, false).is_some();
            // `friday - 18h`
            if word == "-" && index > 0 && may_be_time(index + 1) {
                self.push(word, position);
                return Some(1);
            }
            // `+2 days 18h` may mean 18:00.
            if !is_signed
                && self.last_unit().is_some_and(|unit| !unit.is_clock_unit())
                && may_be_time(index)
            {
                return None;
            }
            if word.starts_with('+') {
                self.expected.next = Some(ExpectedPhrase::Duration);
            }
            self.push(&duration, position);
            return Some(length);
        }
        let is_hour_expected = self.expected.is(ExpectedPhrase::Hour);
        let is_next = self.expected.hour_at == Some(index);
        if let Some((time, length)) = self.words.time(index, is_hour_expected, is_next) {
            self.has_hour_alone |= !word.contains([':', '.']);
            self.push(&time, position);
            if is_hour_expected {
                self.expected.next = None;
            }
            return Some(length);
        }
        let Some((kind, length)) = first_phrase(self.words.rest(index)) else {
            if is_duration_expected && !is_number(word) {
                self.expected.next = None;
            }
            self.push(without_ordinal_suffix(word), position);
            return Some(1);
        };
        self.push_known(kind, index..index + length)?;
        Some(length)
    }

    /// Normalizes a phrase of the dictionary: the words of the range. `None` if it is not valid at
    /// this position.
    fn push_known(&mut self, kind: PhraseKind, phrase: Range<usize>) -> Option<()> {
        let index = phrase.start;
        let position = self.words.positions[index];
        let is_duration_expected = self.expected.is(ExpectedPhrase::Duration);
        let kind = self.resolve_kind(kind, &phrase)?;
        let rest = self.words.rest(phrase.end);
        match kind {
            PhraseKind::Before | PhraseKind::BeforeAt | PhraseKind::AgoOrBefore
                if self.has_duration(|_| true) =>
            {
                return None;
            }
            // `15 minuti alle 18` means 17:45, but would be parsed as 18:15.
            PhraseKind::At | PhraseKind::FillerUnlessAfterDuration
                if self.has_duration(|unit| unit.is_some_and(Unit::is_clock_unit)) =>
            {
                return None;
            }
            // `at 2 days`
            PhraseKind::At
                if starts_with_number(rest)
                    && matches!(
                        rest.get(1..).and_then(first_phrase),
                        Some((PhraseKind::Unit(_), _))
                    ) =>
            {
                return None;
            }
            PhraseKind::And if self.last_unit().is_some() && starts_with_duration(rest) => {}
            PhraseKind::And
                if is_duration_expected && self.words.duration(phrase.end, true).is_some() => {}
            PhraseKind::In | PhraseKind::Within if starts_with_number(rest) => {
                if kind == PhraseKind::In {
                    self.expected.duration_of = Some(position);
                }
                self.expected.expect_duration(Direction::Future);
            }
            PhraseKind::AgoPrefix if starts_with_number(rest) => {
                self.expected.expect_duration(Direction::PastPrefix);
            }
            PhraseKind::AgoOrBefore if starts_with_duration(rest) => {
                self.expected.expect_duration(Direction::PastPrefix);
            }
            PhraseKind::Filler
            | PhraseKind::FillerUnlessAfterDuration
            | PhraseKind::Within
            | PhraseKind::Before => {
                self.expected.object_of = Some(position);
                if is_duration_expected {
                    self.expected.next = None;
                }
            }
            PhraseKind::At | PhraseKind::BeforeAt | PhraseKind::AgoOrBefore => {
                self.expected.next = Some(ExpectedPhrase::Hour);
                self.expected.hour_at = Some(phrase.end);
                self.expected.object_of = Some(position);
            }
            PhraseKind::FromNow
                if matches!(self.expected.direction, None | Some(Direction::Future)) =>
            {
                self.expected.direction = Some(Direction::Future);
                self.expected.duration_of = Some(position);
            }
            PhraseKind::Ago
                if matches!(self.expected.direction, None | Some(Direction::PastSuffix)) =>
            {
                self.expected.direction = Some(Direction::PastSuffix);
                self.push("ago", position);
            }
            PhraseKind::Number(number) => {
                self.expected.spelled_number = Some(position);
                self.push(number, position);
            }
            PhraseKind::Replacement(text) | PhraseKind::Unit(text) => self.push(text, position),
            PhraseKind::Hour if is_duration_expected || starts_with_duration_suffix(rest) => {
                self.push("hours", position);
            }
            PhraseKind::OClock
                if self.last_word().contains([':', '.']) && !self.last_word().ends_with('.') => {}
            PhraseKind::And
            | PhraseKind::In
            | PhraseKind::AgoPrefix
            | PhraseKind::FromNow
            | PhraseKind::Ago
            | PhraseKind::Hour
            | PhraseKind::OClock
            | PhraseKind::WithinOrBefore
            | PhraseKind::WithinOrBeforeAt
            | PhraseKind::FillerUnlessAfterNumber
            | PhraseKind::TuesdayOrOf
            | PhraseKind::TuesdayOrMarch
            | PhraseKind::OfMonth => return None,
            PhraseKind::NextSuffix => self.insert_before_last_phrase("next")?,
            PhraseKind::LastSuffix => self.insert_before_last_phrase("last")?,
            PhraseKind::ThisEvening(_)
            | PhraseKind::PartOfDay(..)
            | PhraseKind::TomorrowOrMorning => {
                let text = self.words.slice(index, phrase.len())?;
                self.push_part_of_day(kind, text, position)?;
            }
        }
        Some(())
    }

    /// `None` if it has no hour in common with the part of the day before it.
    fn push_part_of_day(&mut self, kind: PhraseKind, text: &str, position: usize) -> Option<()> {
        let kind = match kind {
            PhraseKind::TomorrowOrMorning if self.ends_in_named_day() => MORNING,
            kind => kind,
        };
        let (hours, default) = match kind {
            PhraseKind::ThisEvening(hour) => (THIS_EVENING_HOURS, Some(hour)),
            PhraseKind::PartOfDay(first, last) => (first..=last, None),
            _ => {
                self.push("tomorrow", position);
                return Some(());
            }
        };
        if default.is_some() {
            self.push("today", position);
        }
        let default = default.map(|hour| TimeOfDay::at(hour, 0));
        let (hours, default) = match &self.part_of_day {
            Some(PartOfDay {
                hours: other,
                default: of_other,
                ..
            }) => {
                let first = *hours.start().max(other.start());
                let last = *hours.end().min(other.end());
                (first <= last).then_some((first..=last, default.or(*of_other)))?
            }
            None => (hours, default),
        };
        self.part_of_day = Some(PartOfDay {
            text: text.trim_end_matches(',').to_owned(),
            hours,
            default,
        });
        Some(())
    }

    fn push(&mut self, words: &str, position: usize) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        self.original_positions.push((self.text.len(), position));
        self.text.push_str(words);
    }

    fn insert_before_last_phrase(&mut self, word: &str) -> Option<()> {
        let (start, _) = *self.original_positions.last()?;
        self.text.insert(start, ' ');
        self.text.insert_str(start, word);
        Some(())
    }

    /// The unit of the duration with which the text ends.
    fn last_unit(&self) -> Option<Unit> {
        let is_number = |char: char| char.is_ascii_digit() || "+-".contains(char);
        Unit::parse(self.last_word().trim_start_matches(is_number))
    }

    fn ends_in_named_day(&self) -> bool {
        let word = self.last_word().trim_end_matches(',');
        ["today", "yesterday"].contains(&word) || value_of(word, WEEKDAYS).is_some()
    }

    /// Whether the text contains an amount whose unit satisfies `matches_unit`; `None` for working days.
    fn has_duration(&self, matches_unit: impl Fn(Option<Unit>) -> bool) -> bool {
        let mut start = 0;
        while let Some(token) = lexer::token_at(&self.text, start) {
            let unit = token
                .text
                .trim_start_matches(|char: char| !char.is_alphabetic());
            if token.kind == TokenKind::Amount && matches_unit(Unit::parse(unit)) {
                return true;
            }
            start = token.end();
        }
        false
    }

    pub(super) fn last_word(&self) -> &str {
        self.text.rsplit(' ').next().unwrap_or_default()
    }
}
