//! One entry of `opening_hours`, in OpenStreetMap's syntax, and the slots it opens on the clock.

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
use rule::{Effect, effect};

/// The longest entry that is read, in bytes.
pub(super) const MAX_BYTES: usize = 256;

const DAY: i64 = 24 * 60;

/// When a store opens. What it can say is a weekly pattern and days it does not open, so that
/// schema.org's opening hours can say it, too.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Openings {
    /// As written, with the country's holidays.
    actual: OpeningHours,
    /// Without the rules about dates and holidays: an ordinary week.
    weekly: OpeningHours,
    /// Whether public holidays change anything.
    pub(super) heeds_holidays: bool,
}

/// What to evaluate: the entry as it is, or the ordinary week without closed days.
#[derive(Clone, Copy)]
pub(super) enum Pattern {
    Actual,
    Weekly,
}

/// What is wrong with an entry, and where in it, in bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Misread {
    pub(super) offset: usize,
    pub(super) message: String,
}

impl Openings {
    pub(super) fn parse(entry: &str, calendar: &Calendar) -> Result<Self, Misread> {
        if entry.len() > MAX_BYTES {
            return Err(misread(
                0,
                format!("an entry has at most {MAX_BYTES} bytes"),
            ));
        }
        let parsed: OpeningHours = entry
            .parse()
            .map_err(|error: SyntaxError| not_parsed(entry, &error))?;
        let mut expression = parsed.get_expression().as_ref().clone();

        let mut heeds_holidays = false;
        let mut weekly_rules = Vec::new();
        for rule in &expression.rules {
            match effect(rule).map_err(|message| misread(0, message))? {
                Effect::Week => weekly_rules.push(rule.clone()),
                Effect::ClosesDays { holidays } => heeds_holidays |= holidays,
            }
        }
        expression.rules = weekly_rules;
        let weekly = expression
            .to_string()
            .parse()
            .map_err(|_| misread(0, "it opens on no day of the week"))?;

        let context = Context::default().with_holidays(calendar.holidays());
        Ok(Self {
            actual: parsed.with_context(context),
            weekly,
            heeds_holidays,
        })
    }

    /// The slots that start on these days, cut to the length in minutes if one is given; what is
    /// left of a range after the last whole slot is not offered.
    pub(super) fn slots(
        &self,
        pattern: Pattern,
        days: Range<Date>,
        length: Option<i64>,
    ) -> Vec<Range<DateTime>> {
        let hours = match pattern {
            Pattern::Actual => &self.actual,
            Pattern::Weekly => &self.weekly,
        };
        let mut slots: Vec<_> = ranges(hours, &days)
            .into_iter()
            .flat_map(by_day)
            .flat_map(|range| cut(range, length))
            .collect();
        slots.retain(|slot| days.start <= slot.start.date() && slot.start.date() < days.end);
        slots
    }
}

/// The times a store is open around these days, joined where they touch, also over midnight.
fn ranges(hours: &OpeningHours, days: &Range<Date>) -> Vec<Range<DateTime>> {
    // Enough on both sides that no range of a day or less is cut by where we start or end.
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
            let at = |time: ExtendedTime| later(midnight, time.mins_from_midnight().into());
            let (start, end) = (at(range.range.start), at(range.range.end));
            match ranges.last_mut() {
                Some(previous) if previous.end == start => previous.end = end,
                _ => ranges.push(start..end),
            }
        }
    }
    ranges
}

/// A range as it is, if it lasts a day at most; else cut at each midnight.
fn by_day(range: Range<DateTime>) -> Vec<Range<DateTime>> {
    if minutes(&range) <= DAY {
        return vec![range];
    }
    let mut days = Vec::new();
    let mut start = range.start;
    while start < range.end {
        let midnight = later(start.date().to_datetime(Time::midnight()), DAY);
        // At the end of the calendar time does not move on.
        if midnight <= start {
            break;
        }
        days.push(start..midnight.min(range.end));
        start = midnight;
    }
    days
}

fn cut(range: Range<DateTime>, length: Option<i64>) -> Vec<Range<DateTime>> {
    let Some(length) = length else {
        return vec![range];
    };
    (0..minutes(&range) / length)
        .map(|slot| later(range.start, slot * length)..later(range.start, (slot + 1) * length))
        .collect()
}

pub(super) fn minutes(range: &Range<DateTime>) -> i64 {
    range.end.duration_since(range.start).as_secs() / 60
}

fn later(time: DateTime, minutes: i64) -> DateTime {
    time.saturating_add(jiff::SignedDuration::from_secs(minutes * 60))
}

fn not_parsed(entry: &str, error: &SyntaxError) -> Misread {
    let SyntaxError::Syntax(syntax) = error else {
        return misread(0, format!("{entry:?} is not understood: {error}"));
    };
    let offset = match syntax.location {
        InputLocation::Pos(start) | InputLocation::Span((start, _)) => start,
    };
    let rest = entry.get(offset..).unwrap_or_default();
    let place = if rest.is_empty() {
        "it ends too early".to_owned()
    } else {
        format!("not understood from {rest:?} on")
    };
    misread(
        offset,
        format!(
            "not opening hours in OpenStreetMap's syntax, {place}: write \"Mo-Fr 09:00-12:00\""
        ),
    )
}

fn misread(offset: usize, message: impl Into<String>) -> Misread {
    Misread {
        offset,
        message: message.into(),
    }
}

#[cfg(test)]
mod tests;
