//! Parses a time slot definition in TOML into a `TimeSlot` or a list of mistakes.

mod fields;

use serde::Deserialize;
use toml::Spanned;

use super::{
    SlotPolicy, TimeSlot,
    calendar::Calendar,
    opening_hours_entry::{Hours, OpeningHoursEntry},
};
use crate::definition::{Mistake, MistakeInString, Mistakes, read_toml};

const MAX_BYTES: usize = 32 * 1024;
const MAX_OPENING_HOURS: usize = 32;
/// The maximum number of slots that start within the interval, calculated from the regular week.
const MAX_SLOTS: i64 = 1000;
/// Keeps the error response short.
const MAX_MISTAKES: usize = 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Definition {
    name: Spanned<String>,
    opening_hours: Spanned<Vec<Spanned<String>>>,
    interval: Spanned<String>,
    prior_notice: Option<Spanned<String>>,
    same_day_cutoff: Option<Spanned<String>>,
    previous_day_cutoff: Option<Spanned<String>>,
    working_days_only: Option<Spanned<bool>>,
    slot_length: Option<Spanned<String>>,
    /// Text, or TOML's dates without quotes.
    #[serde(default)]
    closed: Vec<Spanned<toml::Value>>,
    capacity: Option<Spanned<i64>>,
    #[serde(default)]
    slots: SlotPolicy,
}

impl TimeSlot {
    /// Parses a definition in TOML. The country (ISO 3166-1 alpha-2) determines public holidays
    /// and weekends. Reports up to 20 mistakes at once, in the order of the text.
    pub fn parse(definition: &str, country: &str) -> Result<Self, Vec<Mistake>> {
        if definition.len() > MAX_BYTES {
            let message = format!("a definition has at most {MAX_BYTES} bytes");
            return Err(vec![Mistake::at(definition, 0..0, message)]);
        }
        let form: Definition = read_toml(definition, MAX_MISTAKES)?;
        let mut mistakes = Mistakes::new(definition, MAX_MISTAKES);
        let time_slot = form.time_slot(country, &mut mistakes);
        mistakes.into_result(time_slot)
    }
}

impl Definition {
    /// Records a mistake for every value that is not valid.
    fn time_slot(self, country: &str, mistakes: &mut Mistakes<'_>) -> Option<TimeSlot> {
        let calendar = Calendar::of(country);
        let display_name = mistakes.read(&self.name, |text| fields::name(text));
        let slot_length = self.slot_length;
        let slot_minutes =
            slot_length.and_then(|text| mistakes.read(&text, |text| fields::slot_length(text)));
        let opening_hours = opening_hours(mistakes, &self.opening_hours, &calendar, slot_minutes);
        let interval = mistakes.read(&self.interval, |text| fields::interval(text));
        let mut duration =
            |text: &Spanned<String>| mistakes.read(text, |text| fields::duration(text));
        let prior_notice = self.prior_notice.as_ref().and_then(&mut duration);
        let mut time_of_day =
            |text: Spanned<String>| mistakes.read(&text, |text| fields::time_of_day(text));
        let same_day_cutoff = self.same_day_cutoff.and_then(&mut time_of_day);
        let previous_day_cutoff = self.previous_day_cutoff.and_then(&mut time_of_day);
        let closed = self.closed.iter().filter_map(|date| {
            let value = date.get_ref();
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            mistakes.read(date, |_| fields::dates(&text))
        });
        let time_slot = TimeSlot {
            closed: closed.collect(),
            prior_notice,
            working_days_only: self
                .working_days_only
                .as_ref()
                .is_some_and(|only| *only.get_ref()),
            same_day_cutoff,
            previous_day_cutoff,
            capacity: self
                .capacity
                .and_then(|number| mistakes.read(&number, |number| fields::capacity(*number))),
            slot_policy: self.slots,
            slot_minutes,
            calendar,
            display_name: display_name?,
            opening_hours: opening_hours?,
            interval: interval?,
        };
        if let Some(only) = self.working_days_only {
            mistakes.read(&only, |_| check_working_days(&time_slot));
        }
        if let Some(notice) = self.prior_notice {
            mistakes.read(&notice, |_| check_prior_notice(&time_slot));
        }
        mistakes.read(&self.interval, |_| check_slot_count(&time_slot));
        Some(time_slot)
    }
}

fn opening_hours(
    mistakes: &mut Mistakes<'_>,
    entries: &Spanned<Vec<Spanned<String>>>,
    calendar: &Calendar,
    slot_minutes: Option<i64>,
) -> Option<Vec<OpeningHoursEntry>> {
    let (span, entries) = (entries.span(), entries.get_ref());
    let count = entries.len();
    if !(1..=MAX_OPENING_HOURS).contains(&count) {
        let message = format!("write 1 to {MAX_OPENING_HOURS} entries, not {count}");
        mistakes.add(span, message);
        return None;
    }
    let mut parsed = Vec::new();
    for text in entries {
        match opening_hours_entry(text.get_ref(), calendar, slot_minutes) {
            Ok(entry) => parsed.push(entry),
            Err(mistake) => mistakes.add_in_string(text, mistake),
        }
    }
    (parsed.len() == count).then_some(parsed)
}

fn opening_hours_entry(
    text: &str,
    calendar: &Calendar,
    slot_minutes: Option<i64>,
) -> Result<OpeningHoursEntry, MistakeInString> {
    let entry = OpeningHoursEntry::parse(text, calendar)?;
    let week = jiff::civil::date(2001, 1, 1)..jiff::civil::date(2001, 1, 8);
    let is_closed = |slot_minutes| {
        entry
            .slots(Hours::RegularWeek, week.clone(), slot_minutes)
            .is_empty()
    };
    let message = if entry.uses_holidays && !calendar.has_holidays() {
        "no public holidays (PH) are known for the store's country: list them under closed"
    } else if is_closed(None) {
        "it opens on no day of the week"
    } else if is_closed(slot_minutes) {
        "it is never open for as long as slot_length"
    } else {
        return Ok(entry);
    };
    Err(MistakeInString::at(0, message))
}

#[cfg(test)]
mod tests;

fn check_working_days(time_slot: &TimeSlot) -> Result<(), &'static str> {
    if !time_slot.working_days_only {
        return Ok(());
    }
    if !time_slot.calendar.has_holidays() {
        return Err(
            "working_days_only: no public holidays are known for the store's country; list them \
             under closed, and write weekdays in opening_hours",
        );
    }
    if time_slot.regular_week().is_empty() {
        return Err("working_days_only: the store opens on weekends only");
    }
    Ok(())
}

fn check_prior_notice(time_slot: &TimeSlot) -> Result<(), String> {
    let interval = time_slot.interval;
    match time_slot.prior_notice {
        Some(notice) if notice.minutes() >= interval.minutes() => Err(format!(
            "{notice} is not shorter than the interval, {interval}: no slot could be booked"
        )),
        _ => Ok(()),
    }
}

fn check_slot_count(time_slot: &TimeSlot) -> Result<(), String> {
    const WEEK: i64 = 7 * 24 * 60;
    let interval = time_slot.interval;
    let rows = time_slot.regular_week();
    let per_week: usize = rows.iter().map(|row| row.days.len()).sum();
    let slots = i64::try_from(per_week)
        .unwrap_or(i64::MAX)
        .saturating_mul(interval.minutes())
        .saturating_add(WEEK - 1)
        / WEEK;
    if slots > MAX_SLOTS {
        return Err(format!(
            "{slots} slots would start within {interval}, at most {MAX_SLOTS} are allowed: \
             shorten the interval or lengthen the slots"
        ));
    }
    Ok(())
}
