//! Parses a time slot definition in TOML into a `TimeSlot` or a list of mistakes.

mod consistency;
mod fields;

use std::{
    collections::BTreeMap,
    ops::{Range, RangeInclusive},
};

use jiff::civil::Date;
use serde::de::DeserializeOwned;
use toml::{
    Spanned,
    de::{DeValue, ValueDeserializer},
};

use super::{
    TimeSlot,
    calendar::Calendar,
    opening_hours_entry::{Hours, OpeningHoursEntry},
};
use crate::definition::{Fields, Mistake, read_toml};

const MAX_BYTES: usize = 32 * 1024;
const MAX_OPENING_HOURS: usize = 32;
const MAX_CLOSED: usize = 366;
const MAX_CAPACITY: u32 = 1_000_000;
/// Keeps the error response short.
const MAX_MISTAKES: usize = 20;

const KEYS: &str = "name, opening_hours, interval, prior_notice, same_day_cutoff, \
     previous_day_cutoff, working_days_only, slot_length, closed, capacity, slots";

impl TimeSlot {
    /// Parses a definition in TOML. The country (ISO 3166-1 alpha-2) determines public holidays
    /// and weekends. Reports up to 20 mistakes at once, in the order of the text.
    pub fn parse(definition: &str, country: &str) -> Result<Self, Vec<Mistake>> {
        if definition.len() > MAX_BYTES {
            let message = format!("a definition has at most {MAX_BYTES} bytes");
            return Err(vec![Mistake::at(definition, 0..0, message)]);
        }
        read_toml(definition, MAX_MISTAKES, |mut fields| {
            let spans: BTreeMap<_, _> = fields
                .table
                .iter()
                .map(|(key, value)| (key.get_ref().to_string(), value.span()))
                .collect();
            fields.required_keys();
            let time_slot = fields.time_slot(country);
            fields.unknown_keys();
            for (key, message) in time_slot.iter().flat_map(consistency::inconsistencies) {
                let span = spans.get(key).cloned().unwrap_or_default();
                fields.mistake(span, format!("{key}: {message}"));
            }
            time_slot
        })
    }
}

/// Each reader removes its key from the table; the remaining keys are unknown.
impl<'t> Fields<'_, 't> {
    /// Records a mistake for every field that cannot be parsed.
    fn time_slot(&mut self, country: &str) -> Option<TimeSlot> {
        let calendar = Calendar::of(country);
        let name = self.string("name", fields::name);
        let slot_minutes = self.string("slot_length", fields::slot_length);
        let opening_hours = self.opening_hours(&calendar, slot_minutes);
        let interval = self.string("interval", fields::interval);
        let prior_notice = self.string("prior_notice", fields::duration);
        let working_days_only = self
            .typed("working_days_only", |_| true, "write true or false")
            .unwrap_or_default();
        let same_day_cutoff = self.string("same_day_cutoff", fields::time_of_day);
        let previous_day_cutoff = self.string("previous_day_cutoff", fields::time_of_day);
        let closed = self.closed();
        let capacity = self.typed(
            "capacity",
            |capacity| (1..=MAX_CAPACITY).contains(capacity),
            &format!("write a whole number from 1 to {MAX_CAPACITY}"),
        );
        let slot_policy = self
            .string("slots", fields::slot_policy)
            .unwrap_or_default();

        Some(TimeSlot {
            display_name: name?,
            opening_hours: opening_hours?,
            interval: interval?,
            prior_notice,
            same_day_cutoff,
            previous_day_cutoff,
            working_days_only,
            slot_minutes,
            closed,
            capacity,
            slot_policy,
            calendar,
        })
    }

    fn required_keys(&mut self) {
        for (key, example) in [
            ("name", "name = \"Tour\""),
            ("opening_hours", "opening_hours = [\"Mo-Fr 09:00-12:00\"]"),
            ("interval", "interval = \"2 days\""),
        ] {
            if !self.table.contains_key(key) {
                self.mistake(0..0, format!("{key} is missing: add {example}"));
            }
        }
    }

    fn unknown_keys(&mut self) {
        for (key, _) in std::mem::take(&mut self.table) {
            let message = format!(
                "{} is not a known key: the keys are {KEYS}",
                fields::quoted(key.get_ref())
            );
            self.mistake(key.span(), message);
        }
    }

    fn opening_hours(
        &mut self,
        calendar: &Calendar,
        slot_minutes: Option<i64>,
    ) -> Option<Vec<OpeningHoursEntry>> {
        let entries = self.array("opening_hours", 1..=MAX_OPENING_HOURS)?;
        let count = entries.len();
        let parsed: Vec<_> = entries
            .into_iter()
            .filter_map(|entry| {
                let span = entry.span();
                let DeValue::String(text) = entry.into_inner() else {
                    let message = "opening_hours: write text, \"Mo-Fr 09:00-12:00\"";
                    return self.reject(span, message);
                };
                self.opening_hours_entry(&text, span, calendar, slot_minutes)
            })
            .collect();
        (parsed.len() == count).then_some(parsed)
    }

    fn opening_hours_entry(
        &mut self,
        text: &str,
        span: Range<usize>,
        calendar: &Calendar,
        slot_minutes: Option<i64>,
    ) -> Option<OpeningHoursEntry> {
        let entry = match OpeningHoursEntry::parse(text, calendar) {
            Ok(entry) => entry,
            Err(error) => {
                let place = self.span_in_string(span, text, error.offset);
                return self.reject(place, format!("opening_hours: {}", error.message));
            }
        };
        let week = jiff::civil::date(2001, 1, 1)..jiff::civil::date(2001, 1, 8);
        let message = if entry.uses_holidays && !calendar.has_holidays() {
            "no public holidays (PH) are known for the store's country: list them under closed"
        } else if entry
            .slots(Hours::RegularWeek, week.clone(), None)
            .is_empty()
        {
            "it opens on no day of the week"
        } else if entry
            .slots(Hours::RegularWeek, week, slot_minutes)
            .is_empty()
        {
            "it is never open for as long as slot_length"
        } else {
            return Some(entry);
        };
        self.reject(span, format!("opening_hours: {message}"))
    }

    fn closed(&mut self) -> Vec<RangeInclusive<Date>> {
        let mut closed = Vec::new();
        for entry in self.array("closed", 0..=MAX_CLOSED).unwrap_or_default() {
            let span = entry.span();
            let dates = match entry.into_inner() {
                DeValue::String(text) => fields::dates(&text),
                // TOML also has dates without quotes.
                DeValue::Datetime(date) => fields::dates(&date.to_string()),
                _ => None,
            };
            match dates {
                Some(dates) if dates.start() > dates.end() => {
                    self.mistake(span, "closed: the last date is before the first");
                }
                Some(dates) => closed.push(dates),
                None => self.mistake(
                    span,
                    "closed: write a date, \"2026-12-24\", or a first and a last one, \
                     \"2026-12-24/2026-12-28\"",
                ),
            }
        }
        closed
    }

    /// A value of a TOML type that is not text; `message` says what is valid.
    fn typed<T: DeserializeOwned>(
        &mut self,
        key: &str,
        is_valid: impl Fn(&T) -> bool,
        message: &str,
    ) -> Option<T> {
        let value = self.table.remove(key)?;
        let span = value.span();
        let typed = T::deserialize(ValueDeserializer::from(value)).ok();
        typed
            .filter(is_valid)
            .or_else(|| self.reject(span, format!("{key}: {message}")))
    }

    fn string<T>(&mut self, key: &str, read: fn(&str) -> Result<T, String>) -> Option<T> {
        let value = self.table.remove(key)?;
        let read = match value.get_ref() {
            DeValue::String(text) => read(text),
            other => Err(format!(
                "write text in quotes, not {}",
                fields::type_name(other)
            )),
        };
        read.map_err(|message| self.mistake(value.span(), format!("{key}: {message}")))
            .ok()
    }

    fn array(
        &mut self,
        key: &str,
        count: RangeInclusive<usize>,
    ) -> Option<Vec<Spanned<DeValue<'t>>>> {
        let value = self.table.remove(key)?;
        let span = value.span();
        let DeValue::Array(array) = value.into_inner() else {
            return self.reject(span, format!("{key}: write a list, [\"…\", \"…\"]"));
        };
        if !count.contains(&array.len()) {
            let (least, most) = (count.start(), count.end());
            let message = format!(
                "{key}: write {least} to {most} entries, not {}",
                array.len()
            );
            return self.reject(span, message);
        }
        Some(array.into_iter().collect())
    }
}

#[cfg(test)]
mod tests;
