//! Hours after a preposition that have two readings: `at 5`, `bis 2030`, `d'ici 18h`.

use super::super::error::Error;
use super::dictionary::first_phrase;
use super::duration;
use super::phrases::PhraseKind;
use super::words::{Words, is_number, is_year, time_of_four_digits};

/// The prepositions of times of day in English, which counts hours to twelve twice.
const IN_ENGLISH: [&str; 3] = ["at", "by", "before"];

impl Words<'_> {
    /// The error for an hour at or after the phrase at `index` that has two readings: `d'ici 18h`,
    /// `at 5`.
    pub(super) fn ambiguity_error(&self, index: usize) -> Option<Error> {
        self.twelve_hour_error(index)
            .or_else(|| self.time_or_year_error(index))
            .or_else(|| self.hours_after_preposition_error(index))
            .or_else(|| self.time_or_duration_error(index))
    }

    /// English counts to twelve twice: `at 5`, `by 5:30`, `5 o'clock`. Two digits and minutes, as in
    /// `at 05:30`, are of the 24-hour clock.
    fn twelve_hour_error(&self, index: usize) -> Option<Error> {
        let word = self.folded.get(index)?;
        let next = self.folded.get(index + 1)?;
        let time = if IN_ENGLISH.contains(&word.as_ref()) && self.is_hour_of_twelve(index + 1) {
            next
        } else if next == "o'clock" {
            word
        } else {
            return None;
        };
        let (hour, minutes) = time.split_once([':', '.']).unwrap_or((time, "00"));
        let part_of_day = first_phrase(self.rest(index + 2));
        match (hour.parse().ok()?, part_of_day) {
            (1..=12, Some((PhraseKind::PartOfDay(..), _))) => None,
            (hour @ 1..=12, _) => Some(Error::Ambiguous {
                text: self.slice(index, 2)?.trim_end_matches(',').to_owned(),
                readings: "in the morning or in the afternoon",
                write: [hour % 12, hour % 12 + 12]
                    .map(|hour| format!("{hour:02}:{minutes}"))
                    .to_vec(),
            }),
            _ => None,
        }
    }

    /// Whether the word at `index` is an hour without a meridiem: `5`, or `5:30`.
    fn is_hour_of_twelve(&self, index: usize) -> bool {
        let meridiems = ["am", "pm", "a.m", "p.m"];
        match self.folded[index].split_once([':', '.']) {
            None => self.is_bare_hour(index),
            Some((hour, minutes)) => {
                let next = self.folded.get(index + 1);
                (hour.len(), minutes.len()) == (1, 2)
                    && is_number(minutes)
                    && next.is_none_or(|next| !meridiems.contains(&next.as_ref()))
            }
        }
    }

    /// Four digits that are a year or a time after a preposition of both: `bis 2030`.
    fn time_or_year_error(&self, index: usize) -> Option<Error> {
        let (kind, length) = first_phrase(self.rest(index))?;
        let is_preposition = match kind {
            PhraseKind::Before => true,
            PhraseKind::At | PhraseKind::BeforeAt | PhraseKind::AgoOrBefore => {
                !self.is_after_at(index + length)
            }
            _ => false,
        };
        let year = self.folded.get(index + length)?;
        let time = time_of_four_digits(year)?;
        (is_preposition && is_year(year)).then(|| Error::Ambiguous {
            text: year.to_string(),
            readings: "a time of day or a year",
            write: vec![time, format!("a date such as {year}-11-25")],
        })
    }

    /// Hours after a preposition of time, with the unit of a duration: `at 14 hours`, `um 18
    /// Stunden`. An `h` is that of times of day; not in English, and not after `vor`.
    fn hours_after_preposition_error(&self, index: usize) -> Option<Error> {
        let (kind, length) = first_phrase(self.rest(index))?;
        let start = *self.positions.get(index + length)?;
        let after = self.text.get(start..)?;
        let (hour, minutes, length) = duration::hour_at_start(after)?;
        let is_duration = match kind {
            PhraseKind::At | PhraseKind::BeforeAt | PhraseKind::AgoOrBefore
                if duration::has_h(after) =>
            {
                let preposition = self.folded[index].as_ref();
                matches!(hour.parse(), Ok(0..=12 | 24))
                    && (preposition == "vor" || IN_ENGLISH.contains(&preposition))
            }
            PhraseKind::At | PhraseKind::BeforeAt => !duration::has_hour_of_day(after),
            _ => false,
        };
        let end = start + length;
        is_duration.then(|| {
            duration::time_or_duration(
                &self.text[self.positions[index]..end],
                format!("{hour:0>2}:{minutes:0>2}"),
                format!("in {}", &self.text[start..end]),
            )
        })
    }

    fn time_or_duration_error(&self, index: usize) -> Option<Error> {
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
            // Italian `entro 18h`, but not `entro 2 ore`.
            (PhraseKind::Within, _) if self.folded[index] == "entro" && self.has_h(next) => {
                let (hour, minutes, length) = duration::hour(after)?;
                (hour, minutes, start + length)
            }
            (PhraseKind::WithinOrBefore | PhraseKind::WithinOrBeforeAt, _) => {
                let (hour, minutes, length) = duration::hour(after)?;
                (hour, minutes, start + length)
            }
            _ => return None,
        };
        let text = self.text.get(*self.positions.get(index)?..end)?;
        let (time, duration) = if kind == PhraseKind::Within {
            (
                format!("entro le {hour}:{minutes:0>2}"),
                format!("+{hour}h{minutes}"),
            )
        } else {
            let duration = format!("dans {hour} h {minutes}");
            (
                format!("d'ici à {hour}h{minutes}"),
                duration.trim_end().to_owned(),
            )
        };
        Some(duration::time_or_duration(text, time, duration))
    }
}
