//! One entry of `opening_hours`, in OpenStreetMap's syntax, and its slots in local time.

mod rule;

use std::ops::Range;

use jiff::{
    Span,
    civil::{Date, DateTime, Time},
};
use opening_hours::{Context, OpeningHours, RuleKind};
use opening_hours_syntax::{Error as SyntaxError, ExtendedTime};
use pest::error::InputLocation;

use super::calendar::{Calendar, chrono_date};
use crate::definition::MistakeInString;
use rule::{Effect, effect};

/// Upper limit of an entry, in bytes.
const MAX_BYTES: usize = 256;

const MINUTES_PER_DAY: i64 = 24 * 60;

/// When a store opens: a weekly pattern and closed days. Other rules are rejected, because
/// schema.org's opening hours cannot express them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct OpeningHoursEntry {
    /// With the country's holidays.
    as_written: OpeningHours,
    /// Without the rules about dates and holidays.
    regular_week: OpeningHours,
    /// Whether any rule depends on public holidays.
    pub(super) uses_holidays: bool,
}

/// Which opening hours to evaluate: the entry as written, or the regular week, which ignores
/// closed days.
#[derive(Clone, Copy)]
pub(super) enum Hours {
    AsWritten,
    RegularWeek,
}

impl OpeningHoursEntry {
    pub(super) fn parse(entry: &str, calendar: &Calendar) -> Result<Self, MistakeInString> {
        if entry.len() > MAX_BYTES {
            return Err(MistakeInString::at(
                0,
                format!("an entry has at most {MAX_BYTES} bytes"),
            ));
        }
        let parsed: OpeningHours = entry
            .parse()
            .map_err(|error: SyntaxError| syntax_error(entry, &error))?;
        let mut expression = parsed.get_expression().as_ref().clone();

        let mut uses_holidays = false;
        let mut weekly_rules = Vec::new();
        for rule in &expression.rules {
            match effect(rule).map_err(|message| MistakeInString::at(0, message))? {
                Effect::Weekly => weekly_rules.push(rule.clone()),
                Effect::ClosesDays { holidays } => uses_holidays |= holidays,
            }
        }
        expression.rules = weekly_rules;
        let regular_week = expression
            .to_string()
            .parse()
            .map_err(|_| MistakeInString::at(0, "it opens on no day of the week"))?;

        let context = Context::default().with_holidays(calendar.holidays());
        Ok(Self {
            as_written: parsed.with_context(context),
            regular_week,
            uses_holidays,
        })
    }

    /// The slots that start on these days. A length in minutes divides each range into slots; a
    /// remainder shorter than a slot is dropped.
    pub(super) fn slots(
        &self,
        hours: Hours,
        days: Range<Date>,
        length: Option<i64>,
    ) -> Vec<Range<DateTime>> {
        let opening_hours = match hours {
            Hours::AsWritten => &self.as_written,
            Hours::RegularWeek => &self.regular_week,
        };
        let mut slots: Vec<_> = ranges(opening_hours, &days)
            .into_iter()
            .flat_map(split_by_day)
            .flat_map(|range| split_by_length(range, length))
            .collect();
        slots.retain(|slot| days.start <= slot.start.date() && slot.start.date() < days.end);
        slots
    }
}

/// The open ranges around these days; adjacent ranges are merged, also across midnight.
fn ranges(hours: &OpeningHours, days: &Range<Date>) -> Vec<Range<DateTime>> {
    // With margins, so that ranges of up to a day are complete.
    let first = days.start.saturating_sub(Span::new().days(2));
    let last = days.end.saturating_add(Span::new().days(2));

    let mut ranges: Vec<Range<DateTime>> = Vec::new();
    for date in first
        .series(Span::new().days(1))
        .take_while(|date| *date <= last)
    {
        let Some(chrono_date) = chrono_date(date) else {
            continue;
        };
        let midnight = date.to_datetime(Time::midnight());
        for range in hours.schedule_at(chrono_date) {
            if range.kind != RuleKind::Open {
                continue;
            }
            let at = |time: ExtendedTime| add_minutes(midnight, time.mins_from_midnight().into());
            let (start, end) = (at(range.range.start), at(range.range.end));
            match ranges.last_mut() {
                Some(previous) if previous.end == start => previous.end = end,
                _ => ranges.push(start..end),
            }
        }
    }
    ranges
}

/// Splits a range longer than a day at each midnight.
fn split_by_day(range: Range<DateTime>) -> Vec<Range<DateTime>> {
    if minutes(&range) <= MINUTES_PER_DAY {
        return vec![range];
    }
    let mut days = Vec::new();
    let mut start = range.start;
    while start < range.end {
        let midnight = add_minutes(start.date().to_datetime(Time::midnight()), MINUTES_PER_DAY);
        // At the limit of the calendar, adding a day saturates.
        if midnight <= start {
            break;
        }
        days.push(start..midnight.min(range.end));
        start = midnight;
    }
    days
}

fn split_by_length(range: Range<DateTime>, length: Option<i64>) -> Vec<Range<DateTime>> {
    let Some(length) = length else {
        return vec![range];
    };
    (0..minutes(&range) / length)
        .map(|slot| {
            add_minutes(range.start, slot * length)..add_minutes(range.start, (slot + 1) * length)
        })
        .collect()
}

fn minutes(range: &Range<DateTime>) -> i64 {
    range.end.duration_since(range.start).as_secs() / 60
}

fn add_minutes(time: DateTime, minutes: i64) -> DateTime {
    time.saturating_add(jiff::SignedDuration::from_secs(minutes * 60))
}

fn syntax_error(entry: &str, error: &SyntaxError) -> MistakeInString {
    let SyntaxError::Syntax(syntax) = error else {
        return MistakeInString::at(0, format!("{entry:?} cannot be parsed: {error}"));
    };
    let offset = match syntax.location {
        InputLocation::Pos(start) | InputLocation::Span((start, _)) => start,
    };
    let rest = entry.get(offset..).unwrap_or_default();
    let problem = if rest.is_empty() {
        "it ends too early".to_owned()
    } else {
        format!("unexpected text from {rest:?}")
    };
    MistakeInString::at(
        offset,
        format!(
            "not opening hours in OpenStreetMap's syntax, {problem}: write \"Mo-Fr 09:00-12:00\""
        ),
    )
}

#[cfg(test)]
mod tests;
