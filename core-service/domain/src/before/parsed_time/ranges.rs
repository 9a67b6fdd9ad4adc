//! The ends of a range, which the text does not call one: `14.12. bis 15.12`, `15h -18 h`.

use super::super::error::Error;
use super::super::lexer::Token;
use super::super::natural_language::duration;
use super::ParsedTime;

impl ParsedTime<'_> {
    /// Rejects a token after a word such as `bis` that has a day or a time of day before it.
    pub(super) fn check_range(&self, token: &Token<'_>) -> Result<(), Error> {
        let undecided = self.undecided.as_ref().map(|readings| readings.token.start);
        let others = self.days_at().chain(self.time_at).chain(undecided);
        let before = others.filter(|other| *other < token.start).max();
        if before.is_some_and(|before| self.context.is_range(before, token.start)) {
            return Err(self.context.whole_range());
        }
        Ok(())
    }

    /// The positions of the days. A week is none: `nächste Woche bis Freitag` is one day.
    fn days_at(&self) -> impl Iterator<Item = usize> {
        let days = &self.days;
        let days = [
            self.date_at,
            days.word.map(|(_, start)| start),
            days.weekday.map(|(_, start)| start),
            days.counted_weekday,
        ];
        days.into_iter().flatten()
    }

    /// Rejects hours with a minus sign that may be a time of day: `15h -18 h`, `friday -18h`. They are
    /// a duration directly after a time with minutes that is not earlier: `18:00 -2h`.
    pub(super) fn check_minus_hours(&self) -> Result<(), Error> {
        let Some(start) = self.days.minus_hours else {
            return Ok(());
        };
        let text = self.context.text_from(start).trim_start_matches('-');
        let Some((hour, minutes, length)) = duration::hour_of_day(text) else {
            return Ok(());
        };
        let (Some(time_at), Some(time)) = (self.time_at, self.time) else {
            if self.counts_from_now() {
                return Ok(());
            }
            let duration = match minutes {
                "" => format!("-{hour} hours"),
                _ => format!("-{hour} hours -{minutes} minutes"),
            };
            let time = format!("{hour:0>2}:{minutes:0>2}");
            return Err(duration::time_or_duration(&text[..length], time, duration));
        };
        let from = self.context.text_from(time_at);
        // `9pm` is the hour 9 of a range.
        let first = from.split(|char: char| !char.is_ascii_digit()).next();
        let first = first
            .and_then(|hour| hour.parse().ok())
            .map_or(time.hour, |hour| time.hour.min(hour));
        let end = [hour, minutes].map(|number| number.parse().unwrap_or_default());
        let is_after_day = self.days_at().any(|day| time_at < day && day < start);
        let is_end = is_after_day || self.context.has_hour_alone || end > [first, time.minute];
        if time_at < start && is_end {
            let range = from.get(..from.len() - text.len() + length);
            let range = range.unwrap_or(from).to_owned();
            return Err(Error::Range { range });
        }
        Ok(())
    }
}
