//! Translates phrases into the strict grammar, and records their positions in the original.

use super::super::context::Context;
use super::super::error::Error;
use super::super::parsed_time::TimeOfDay;
use super::super::word_tables::Unit;
use super::dictionary::{first_phrase, fold};
use super::phrase::PhraseKind;
use std::borrow::Cow;

#[derive(Debug, Default)]
pub(super) struct NormalizedText {
    pub(super) text: String,
    /// Pairs of a position in `text` and its position in the original.
    pub(super) original_positions: Vec<(usize, usize)>,
    /// The default time of an evening, and the position of its phrase.
    pub(super) evening: Option<(TimeOfDay, usize)>,
}

/// The words of the original text.
struct Words<'a> {
    positions: Vec<usize>,
    original: Vec<&'a str>,
    folded: Vec<Cow<'a, str>>,
}

/// Expectations set by the preceding words.
#[derive(Default)]
struct Expectation {
    /// Expected after the last preposition.
    next: Option<ExpectedPhrase>,
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

impl NormalizedText {
    /// Normalizes a text phrase by phrase. Unknown words stay unchanged.
    pub(super) fn of(context: Context<'_>) -> Result<Self, Error> {
        let words = Words::of(context.original);
        let mut normalized = Self::default();
        let mut expected = Expectation::default();
        let mut index = 0;
        while index < words.original.len() {
            if let Some(range) = words.range(index, context.original) {
                return Err(Error::Range {
                    range: range.to_owned(),
                });
            }
            index += normalized
                .push_phrase(index, &words, &mut expected)
                .ok_or_else(|| context.unrecognized(words.positions[index]))?;
        }
        if expected.direction == Some(Direction::PastPrefix) {
            normalized.push("ago", context.original.len());
        }
        match expected.spelled_number {
            Some(position) if expected.direction.is_none() => Err(context.unrecognized(position)),
            _ => Ok(normalized),
        }
    }

    /// Normalizes the phrase at `index`, and returns its number of words. `None` if it is not
    /// valid at this position.
    fn push_phrase(
        &mut self,
        index: usize,
        words: &Words<'_>,
        expected: &mut Expectation,
    ) -> Option<usize> {
        let position = words.positions[index];
        if let Some((time, length)) = words.time(index, expected) {
            self.push(&time, position);
            if expected.is(ExpectedPhrase::Hour) {
                expected.next = None;
            }
            return Some(length);
        }
        let Some((kind, length)) = first_phrase(&words.folded[index..]) else {
            let word = words.original[index];
            if expected.is(ExpectedPhrase::Duration) && !is_number(word) {
                expected.next = None;
            }
            self.push(without_ordinal_suffix(word), position);
            return Some(1);
        };
        let rest = words.folded.get(index + length..).unwrap_or_default();
        match kind {
            PhraseKind::FillerUnlessAfterNumber if is_number(self.last_word()) => {
                self.push(words.original[index], position);
            }
            PhraseKind::And if self.ends_in_unit() && starts_with_duration(rest) => {}
            PhraseKind::In | PhraseKind::Within if starts_with_number(rest) => {
                expected.expect_duration(Direction::Future);
            }
            PhraseKind::AgoPrefix if starts_with_number(rest) => {
                expected.expect_duration(Direction::PastPrefix);
            }
            PhraseKind::Filler | PhraseKind::FillerUnlessAfterNumber | PhraseKind::Within => {}
            PhraseKind::At => expected.next = Some(ExpectedPhrase::Hour),
            PhraseKind::FromNow => expected.direction = Some(Direction::Future),
            PhraseKind::Ago => {
                expected.direction = Some(Direction::PastSuffix);
                self.push("ago", position);
            }
            PhraseKind::Number(number) => {
                expected.spelled_number = Some(position);
                self.push(number, position);
            }
            PhraseKind::Replacement(text) | PhraseKind::Unit(text) => self.push(text, position),
            PhraseKind::Hour
                if expected.is(ExpectedPhrase::Duration) || starts_with_duration_suffix(rest) =>
            {
                self.push("hours", position);
            }
            PhraseKind::OClock if self.last_word().contains([':', '.']) => {}
            PhraseKind::And
            | PhraseKind::In
            | PhraseKind::AgoPrefix
            | PhraseKind::Hour
            | PhraseKind::OClock => return None,
            PhraseKind::NextSuffix => self.insert_before_last_phrase("next")?,
            PhraseKind::LastSuffix => self.insert_before_last_phrase("last")?,
            PhraseKind::Evening(hour) => {
                let time = TimeOfDay {
                    hour,
                    ..TimeOfDay::default()
                };
                self.evening = Some((time, position));
                self.push("today", position);
            }
        }
        Some(length)
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

    fn ends_in_unit(&self) -> bool {
        Unit::parse(self.last_word()).is_some()
    }

    fn last_word(&self) -> &str {
        self.text.rsplit(' ').next().unwrap_or_default()
    }
}

impl<'a> Words<'a> {
    fn of(text: &'a str) -> Self {
        let count = text.split_ascii_whitespace().count();
        let mut words = Self {
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

    /// A time in a notation that the strict grammar lacks, and its number of words: `10h30`,
    /// `10 Uhr 30`, `18.30h`. In a duration, `2h30` is hours and minutes.
    fn time(&self, index: usize, expected: &Expectation) -> Option<(String, usize)> {
        let word = self.folded.get(index)?;
        let digits = word.bytes().take_while(u8::is_ascii_digit).count();
        let (hour, rest) = word.split_at(digits);
        if !(1..=2).contains(&digits) {
            return None;
        }
        if rest.is_empty() {
            return self.time_in_separate_words(hour, index, expected);
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
        Some((
            format_time(hour, minutes, expected.is(ExpectedPhrase::Duration)),
            1,
        ))
    }

    /// An hour, its unit and the minutes, each a separate word.
    fn time_in_separate_words(
        &self,
        hour: &str,
        index: usize,
        expected: &Expectation,
    ) -> Option<(String, usize)> {
        let after = self.folded.get(index + 1..).unwrap_or_default();
        let length = match (after.first().map(AsRef::as_ref), first_phrase(after)) {
            (Some("h"), _) => 2,
            (_, Some((PhraseKind::OClock, length))) => 1 + length,
            (_, Some((PhraseKind::Hour, length))) if expected.is(ExpectedPhrase::Hour) => {
                1 + length
            }
            (None, _) if expected.is(ExpectedPhrase::Hour) => 1,
            _ => return None,
        };
        match self.folded.get(index + length) {
            Some(minutes) if length > 1 && minutes.len() <= 2 && is_number(minutes) => Some((
                format_time(hour, minutes, expected.is(ExpectedPhrase::Duration)),
                length + 1,
            )),
            _ => Some((
                format_time(hour, "", expected.is(ExpectedPhrase::Duration)),
                length,
            )),
        }
    }

    /// Two times with a dash between them at `index`, in one word or in three.
    fn range(&self, index: usize, text: &'a str) -> Option<&'a str> {
        const DASHES: [char; 3] = ['-', '–', '—'];
        let word = *self.original.get(index)?;
        let is_time = |word: &str| {
            word.starts_with(|char: char| char.is_ascii_digit())
                && word.contains(|char: char| char == ':' || char.is_alphabetic())
        };
        if let Some((from, to)) = word.split_once(DASHES)
            && is_time(to)
            && from.starts_with(|char: char| char.is_ascii_digit())
        {
            return Some(word);
        }
        let (dash, to) = (self.original.get(index + 1)?, self.original.get(index + 2)?);
        let end = self.positions.get(index + 2)? + to.len();
        (is_time(word)
            && is_time(to)
            && dash
                .parse::<char>()
                .is_ok_and(|char| DASHES.contains(&char)))
        .then(|| text.get(self.positions[index]..end))?
    }
}

fn format_time(hour: &str, minutes: &str, is_duration: bool) -> String {
    match (is_duration, minutes) {
        (true, "") => format!("{hour} hours"),
        (true, minutes) => format!("{hour} hours {minutes} minutes"),
        (false, "") => format!("{hour}:00"),
        (false, minutes) => format!("{hour}:{minutes}"),
    }
}

/// The number of `1er`, `1º` and `1ª`; other words unchanged.
fn without_ordinal_suffix(word: &str) -> &str {
    let number = word
        .trim_end_matches("er")
        .trim_end_matches(['º', 'ª', '°']);
    if is_number(number) { number } else { word }
}

/// Whether the words start with a number, spelled out or in digits.
fn starts_with_number(words: &[Cow<'_, str>]) -> bool {
    match first_phrase(words) {
        Some((PhraseKind::Number(_), _)) => true,
        Some((PhraseKind::Replacement(text), _)) => starts_with_digit(text),
        _ => words.first().is_some_and(|word| starts_with_digit(word)),
    }
}

/// Whether the words start with a number and a unit.
fn starts_with_duration(words: &[Cow<'_, str>]) -> bool {
    let unit = words.get(1..).and_then(first_phrase);
    starts_with_number(words) && matches!(unit, Some((PhraseKind::Unit(_) | PhraseKind::Hour, _)))
}

/// Whether the words start with a phrase that follows a duration.
fn starts_with_duration_suffix(words: &[Cow<'_, str>]) -> bool {
    matches!(
        first_phrase(words),
        Some((PhraseKind::Ago | PhraseKind::FromNow, _))
    )
}

fn starts_with_digit(word: &str) -> bool {
    word.starts_with(|char: char| char.is_ascii_digit())
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}
