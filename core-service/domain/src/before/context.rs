//! The context in which tokens are parsed. Maps error positions to the original text.

use super::error::Error;
use super::natural_language::is_to;
use super::natural_language::words::phrase_at;
use jiff::civil::Date;
use std::ops::Range;

/// The order of day and month in dates with slashes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DateOrder {
    #[default]
    DayFirst,
    MonthFirst,
}

impl DateOrder {
    /// The order in the country with this ISO 3166-1 code: month first in the United States, its
    /// territories, the states in free association with it and the Philippines, day first
    /// elsewhere.
    pub fn of_country(iso_alpha2: &str) -> Self {
        const MONTH_FIRST: [&str; 12] = [
            "AS", "FM", "GU", "MH", "MP", "PA", "PH", "PR", "PW", "UM", "US", "VI",
        ];
        if MONTH_FIRST
            .iter()
            .any(|country| country.eq_ignore_ascii_case(iso_alpha2))
        {
            Self::MonthFirst
        } else {
            Self::DayFirst
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Context<'a> {
    /// The client's text, for error messages.
    pub(super) original: &'a str,
    /// Pairs of a position in the normalized text and its position in the original, both ascending.
    /// Empty if the original itself is parsed.
    pub(super) original_positions: &'a [(usize, usize)],
    /// A phrase such as `in` or `from now` counts durations from now.
    pub(super) is_from_now: bool,
    /// The time of day is an hour without minutes after a colon or a dot: `15h`, `10 heures`, `um 18`.
    pub(super) has_hour_alone: bool,
    pub(super) today: Date,
    pub(super) date_order: DateOrder,
}

impl<'a> Context<'a> {
    /// Rejects the word at a position.
    pub(super) fn unrecognized(&self, position: usize) -> Error {
        let (understood, rejected) = self.split(position);
        Error::Unrecognized {
            understood,
            rejected,
        }
    }

    /// Rejects a second date, day, time or time zone at a position. If the first one is in the same
    /// word, that word is not understood.
    pub(super) fn duplicate(&self, kind: &'static str, position: usize) -> Error {
        let (understood, rejected) = self.split(position);
        if understood.is_empty() {
            return self.unrecognized(position);
        }
        Error::Duplicate {
            kind,
            understood,
            rejected,
        }
    }

    /// The client's text before the word at a position, and that word.
    fn split(&self, position: usize) -> (String, String) {
        let position = self.original_position(position);
        let mut spaces = self.original.char_indices().rev();
        let start = spaces
            .find(|(index, char)| *index <= position && char.is_whitespace())
            .map_or(0, |(index, _)| index);
        let (understood, rest) = self.original.split_at(start);
        let word = rest.split_whitespace().next().unwrap_or_default();
        (understood.trim().to_owned(), word.to_owned())
    }

    /// The client's words for the token at a position: a phrase of a language, or one word.
    pub(super) fn phrase(&self, position: usize) -> String {
        phrase_at(self.original, self.original_position(position))
            .unwrap_or(self.original)
            .to_owned()
    }

    pub(super) fn range(&self, range: Range<usize>) -> Error {
        Error::Range {
            range: self.text(range),
        }
    }

    /// The whole text is a range.
    pub(super) fn whole_range(&self) -> Error {
        Error::Range {
            range: self.original.to_owned(),
        }
    }

    pub(super) fn ambiguous(
        &self,
        range: Range<usize>,
        readings: &'static str,
        write: Vec<String>,
    ) -> Error {
        Error::Ambiguous {
            text: self.text(range),
            readings,
            write,
        }
    }

    /// The client's text of a range, to the end of its last word.
    fn text(&self, range: Range<usize>) -> String {
        let start = self.original_position(range.start);
        let last = self.original_position(range.end.saturating_sub(1));
        // The phrase is a slice of the text, so the difference of addresses is its position.
        let end = phrase_at(self.original, last).map_or(self.original.len(), |phrase| {
            phrase.as_ptr().addr() - self.original.as_ptr().addr() + phrase.len()
        });
        let text = self.original.get(start..end).unwrap_or(self.original);
        text.to_owned()
    }

    /// Whether one of these words is directly before a position.
    pub(super) fn is_after(&self, position: usize, words: &[&str]) -> bool {
        let before = self.original.get(..self.original_position(position));
        let word = before.and_then(|before| before.split_whitespace().next_back());
        word.is_some_and(|word| words.iter().any(|other| other.eq_ignore_ascii_case(word)))
    }

    /// Whether a word such as `bis` is between two positions.
    pub(super) fn is_range(&self, first: usize, second: usize) -> bool {
        let [first, second] = [first, second].map(|at| self.original_position(at));
        let between = self.original.get(first..second);
        between.is_some_and(|between| between.split_whitespace().any(is_to))
    }

    /// The client's text from a position.
    pub(super) fn text_from(&self, position: usize) -> &'a str {
        let start = self.original_position(position);
        self.original.get(start..).unwrap_or_default()
    }

    fn original_position(&self, position: usize) -> usize {
        let next = self
            .original_positions
            .partition_point(|(start, _)| *start <= position);
        match next
            .checked_sub(1)
            .and_then(|index| self.original_positions.get(index))
        {
            Some((_, original_position)) => *original_position,
            None => position,
        }
    }
}
