//! The time zone of a local time: which numbers are UTC offsets, and which are ranges or durations.

use super::super::error::Error;
use super::super::lexer::Token;
use super::super::time_zone::{self, TimeZoneDesignator};
use super::super::word_tables::abbreviated_unit;
use super::ParsedTime;
use std::ops::Range;

impl ParsedTime<'_> {
    pub(super) fn apply_zone(&mut self, token: &Token<'_>) -> Result<(), Error> {
        self.zone_count += 1;
        if self.zone_count == 1 {
            return self.set_zone(token.text, self.is_after_time, token);
        }
        // `-0800 (PST)`
        if let Some(TimeZoneDesignator::Fixed(first)) = &self.zone
            && time_zone::offsets_of_ambiguous(token.text).is_some_and(|all| all.contains(first))
        {
            return Ok(());
        }
        let second = zone_called(token.text)?;
        match (&self.zone, second) {
            _ if token.text.starts_with(['+', '-']) => Err(self.context.unrecognized(token.start)),
            (_, None) => Err(self.context.unrecognized(token.start)),
            // `+02:00 CEST`
            (Some(TimeZoneDesignator::Fixed(first)), Some(TimeZoneDesignator::Fixed(second)))
                if *first == second =>
            {
                Ok(())
            }
            _ => Err(self.context.duplicate("time zone", token.start)),
        }
    }

    /// Sets the time zone called `name`, a suffix of the token. A signed number is a UTC offset
    /// only directly after a time of day and in the notation of an offset; otherwise it may be a
    /// duration.
    pub(super) fn set_zone(
        &mut self,
        name: &str,
        is_after_time: bool,
        token: &Token<'_>,
    ) -> Result<(), Error> {
        let start = token.end() - name.len();
        let context = self.context;
        let unrecognized = || context.unrecognized(start);
        // The grammar ends a token before digits that no offset has: the token may be only the beginning
        // of a longer number. The source has all of it.
        let text = token.source_from(name);
        let number = time_zone::signed_number(text);
        let rest = number.and_then(|number| text.strip_prefix(number));
        if rest.is_some_and(starts_with_unit_or_fraction) {
            return Err(unrecognized());
        }
        let name = number.unwrap_or(name);
        let zone = zone_called(name)?.ok_or_else(unrecognized)?;
        if let Some(range) = self.range(&zone, name, start) {
            return Err(self.context.range(range));
        }
        if number.is_some_and(|number| !is_after_time || !time_zone::is_written_as_offset(number)) {
            return Err(unrecognized());
        }
        if let TimeZoneDesignator::Fixed(seconds) = zone
            && !time_zone::UTC_OFFSETS.contains(&seconds)
        {
            return Err(Error::NoSuchOffset {
                offset: name.to_owned(),
            });
        }
        self.zone = Some(zone);
        Ok(())
    }

    /// `10:00-11:00` is a range, not a time eleven hours west of UTC, and so is `10:00 -11:00`.
    /// After a `T`, the number is a UTC offset if such an offset exists; so is the `-0300` of
    /// a full date in RFC 5322, which may omit the seconds. `09:00 GMT-11:00` is a range, too,
    /// because 11:00 is later.
    fn range(&self, zone: &TimeZoneDesignator, name: &str, start: usize) -> Option<Range<usize>> {
        let time = self.last_short_time.as_ref()?;
        let TimeZoneDesignator::Fixed(seconds) = zone else {
            return None;
        };
        let is_rfc_5322 = self.has_date()
            && self.year.is_some()
            && time.text.contains(':')
            && time.end() < start
            && name.len() == "-0300".len();
        let is_range = !time.text.starts_with(['t', 'T']) && !is_rfc_5322;
        if let Some(number) = name.strip_prefix("GMT-") {
            let start_hour = self.time.unwrap_or_default().hour;
            let is_end = number.len() > 2 && -seconds / 3600 > start_hour && is_range;
            return is_end.then(|| time.start..start + name.len());
        }
        (name.starts_with('-') && (is_range || seconds < time_zone::UTC_OFFSETS.start()))
            .then(|| time.start..start + name.len())
    }
}

/// `None`: there is no such time zone.
fn zone_called(name: &str) -> Result<Option<TimeZoneDesignator>, Error> {
    match time_zone::parse(name) {
        None if time_zone::offsets_of_ambiguous(name).is_some() => Err(Error::AmbiguousTimeZone {
            abbreviation: name.trim_matches([' ', '\t', '(', ')']).to_owned(),
        }),
        zone => Ok(zone),
    }
}

/// Whether a number before this text is an amount: `h`, ` h`, `.5 hours`.
fn starts_with_unit_or_fraction(text: &str) -> bool {
    if text.is_empty() {
        return false;
    }
    let fraction = text.strip_prefix(['.', ',']);
    let words = text.trim_start();
    let word = words.strip_suffix(words.trim_start_matches(char::is_alphabetic));
    text.starts_with(char::is_alphabetic)
        || fraction.is_some_and(|digits| digits.starts_with(|char: char| char.is_ascii_digit()))
        || word.and_then(abbreviated_unit).is_some()
}
