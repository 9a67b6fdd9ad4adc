//! Words with several meanings, such as `mar`, `di`, `am` and `ago`: the words around them decide.

use super::super::error::{Error, noon_or_midnight};
use super::super::word_tables::{WEEKDAYS, value_of};
use super::normalizer::NormalizedText;
use super::phrases::PhraseKind;
use super::words::{is_number, is_year, starts_with_day, starts_with_digit};
use std::ops::Range;

impl NormalizedText<'_> {
    /// The meaning of a phrase that the words around it decide.
    pub(super) fn resolve_kind(
        &mut self,
        kind: PhraseKind,
        phrase: &Range<usize>,
    ) -> Option<PhraseKind> {
        let rest = self.words.rest(phrase.end);
        Some(match kind {
            PhraseKind::TuesdayOrOf if self.words.is_of(phrase.end) => PhraseKind::Filler,
            PhraseKind::TuesdayOrOf => PhraseKind::Replacement("tuesday"),
            PhraseKind::TuesdayOrMarch => {
                // German `Mär.` is folded to `mar`.
                let is_german = self.words.original[phrase.start].contains(['ä', 'Ä']);
                let name = if is_german {
                    Some("march")
                } else {
                    self.tuesday_or_march(phrase.end)
                };
                if name.is_none() {
                    self.rejection = Some(Error::Ambiguous {
                        text: self.words.original[phrase.start]
                            .trim_end_matches(',')
                            .to_owned(),
                        readings: "Tuesday or March",
                        write: vec!["tuesday".to_owned(), "march".to_owned()],
                    });
                }
                PhraseKind::Replacement(name?)
            }
            // `10 ago 2027` and `10 ago 18:00` are in August.
            PhraseKind::Ago
                if is_number(self.last_word()) && self.words.folded[phrase.start] == "ago" =>
            {
                if self.text.contains(':') || rest.iter().any(|word| starts_with_digit(word)) {
                    return Some(PhraseKind::Replacement("august"));
                }
                let day = self.last_word();
                self.rejection = Some(Error::Ambiguous {
                    text: self.words.slice(phrase.start - 1, 2)?.to_owned(),
                    readings: "in August or in the past",
                    write: vec![format!("{day} august"), format!("{day} days ago")],
                });
                return None;
            }
            PhraseKind::FillerUnlessAfterNumber => self.am(phrase)?,
            PhraseKind::OfMonth
                if starts_with_digit(self.last_word()) && self.words.is_month(phrase.end) =>
            {
                PhraseKind::Filler
            }
            PhraseKind::OfMonth => PhraseKind::Replacement("of"),
            // `4 dicembre ore 18`, but not `2 ore 18`.
            PhraseKind::Hour
                if self.words.folded[phrase.start].starts_with("or")
                    && (!is_number(self.last_word()) || is_year(self.last_word()))
                    && rest.first().is_some_and(|word| starts_with_digit(word)) =>
            {
                PhraseKind::At
            }
            kind => self.words.resolve_kind(kind, phrase.end),
        })
    }

    /// What `am` means: a meridiem, or German `on` before a day. `12:30 am Montag` may be at noon or
    /// at midnight.
    fn am(&mut self, phrase: &Range<usize>) -> Option<PhraseKind> {
        let is_before_day = starts_with_day(self.words.rest(phrase.end));
        match self.words.hour_before(phrase.start) {
            Some(12) if is_before_day => {
                let text = self.words.slice(phrase.start - 1, 2)?;
                let minutes = text.split([':', '.', ' ']).nth(1)?;
                let minutes = if is_number(minutes) { minutes } else { "00" };
                self.rejection = Some(noon_or_midnight(text.to_owned(), minutes));
                None
            }
            Some(0..=12) => Some(PhraseKind::Replacement("am")),
            // `18 Uhr am`, `12h30 am`
            hour if !is_before_day && (hour.is_some() || self.last_word().contains(':')) => None,
            _ => Some(PhraseKind::Filler),
        }
    }

    /// What `mar` means, if the words around it decide: `mar 8 dic`, `mar 8 mar`, `mar 8 2027`. `next` is
    /// the index of the word after it.
    fn tuesday_or_march(&self, next: usize) -> Option<&'static str> {
        let is_weekday =
            |word: &str| value_of(word.trim_end_matches([',', '.']), WEEKDAYS).is_some();
        let mut before = self.text.split(' ');
        if before.any(is_weekday) {
            return Some("march");
        }
        if is_number(self.last_word()) {
            // `15 mar 18h` may be the 15th, a Tuesday.
            let is_year_next = self
                .words
                .rest(next)
                .first()
                .is_some_and(|word| is_year(word));
            return is_year_next.then_some("march");
        }
        let number = self.words.folded.get(next)?;
        let day = number.trim_end_matches(|char: char| !char.is_ascii_digit());
        if !is_number(day) {
            return None;
        }
        let after = self.words.rest(next + 1);
        // `mar 3 ago`, `mar 3 de ago`: after a day, it is rather August.
        let other = after.iter().find(|word| *word != "de");
        let is_august = other.is_some_and(|word| word == "ago");
        if is_august || self.words.is_month(next + 1) {
            return Some("tuesday");
        }
        let suffix = number.strip_prefix(day).unwrap_or_default();
        let is_ordinal = ["st", "nd", "rd", "th"].contains(&suffix);
        (is_ordinal || after.first().is_some_and(|word| is_year(word))).then_some("march")
    }
}
