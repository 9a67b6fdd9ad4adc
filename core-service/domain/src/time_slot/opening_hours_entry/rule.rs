//! The effect of one rule of an `opening_hours` entry. Rejects the rules that a weekly pattern with
//! closed days can't express.

use opening_hours::RuleKind;
use opening_hours_syntax::rules::{
    RuleOperator, RuleSequence,
    day::{HolidayKind, WeekDayRange},
    time::{Time, TimeSelector},
};

/// The effect of a rule on the weekly pattern.
pub(super) enum Effect {
    /// Opens or closes weekdays of every week.
    Weekly,
    /// Closes dates or holidays.
    ClosesDays { holidays: bool },
}

/// The effect of a supported rule; an error says why a rule is not supported.
pub(super) fn effect(rule: &RuleSequence) -> Result<Effect, String> {
    let reject = |reason: &str| Err(format!("\"{rule}\" {reason}"));
    if rule.operator == RuleOperator::Fallback {
        return reject(
            "is a fallback (\"||\"), which a weekly pattern can't express: separate rules by \";\"",
        );
    }
    for span in &rule.time_selector.spans {
        if span.open_end {
            return reject("has no end: write when it closes");
        }
        if span.repeats.is_some() {
            return reject("repeats: write the range, and slot_length to divide it");
        }
        let (Time::Fixed(_), Time::Fixed(_)) = (span.range.start, span.range.end) else {
            return reject("depends on the sun: write times of day");
        };
    }

    let whole_days = rule.time_selector == TimeSelector::default();
    match rule.kind {
        RuleKind::Unknown => reject("is undecided: write \"open\" or \"off\""),
        _ if is_weekly(rule) => Ok(Effect::Weekly),
        RuleKind::Open => reject(
            "opens on certain dates or holidays, which a weekly pattern can't express: \
             write weekdays and times, \"Mo-Fr 09:00-12:00\"",
        ),
        RuleKind::Closed if !whole_days => {
            reject("closes for part of certain days: close the whole day, \"Dec 24 off\"")
        }
        RuleKind::Closed => match holiday_kind(rule) {
            Some(HolidayKind::School) => reject(
                "names school holidays, which differ by region: list the dates under the key closed",
            ),
            kind => Ok(Effect::ClosesDays {
                holidays: kind.is_some(),
            }),
        },
    }
}

/// Whether a rule applies to every week: it names no dates or holidays, and no weekday of certain
/// weeks of a month, such as `Mo[1]`.
fn is_weekly(rule: &RuleSequence) -> bool {
    let days = &rule.day_selector;
    days.year.is_empty()
        && days.monthday.is_empty()
        && days.week.is_empty()
        && days.weekday.iter().all(|range| {
            matches!(
                range,
                WeekDayRange::Fixed { offset: 0, nth_from_start, nth_from_end, .. }
                    if nth_from_start.iter().chain(nth_from_end).all(|nth| *nth)
            )
        })
}

/// The kind of holiday in a rule; school holidays take precedence.
fn holiday_kind(rule: &RuleSequence) -> Option<HolidayKind> {
    let kinds = rule
        .day_selector
        .weekday
        .iter()
        .filter_map(|range| match range {
            WeekDayRange::Holiday { kind, .. } => Some(*kind),
            WeekDayRange::Fixed { .. } => None,
        });
    kinds.reduce(|found, kind| match found {
        HolidayKind::School => found,
        HolidayKind::Public => kind,
    })
}
