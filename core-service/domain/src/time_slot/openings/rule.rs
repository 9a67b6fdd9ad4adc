//! What a single rule of an entry does to the store's pattern, and which rules a weekly pattern
//! with closed days can't say.

use opening_hours::RuleKind;
use opening_hours_syntax::rules::{
    RuleOperator, RuleSequence,
    day::{HolidayKind, WeekDayRange},
    time::{Time, TimeSelector},
};

/// What a rule does to the pattern.
pub(super) enum Effect {
    Week,
    ClosesDays { holidays: bool },
}

/// What a rule does, or what is wrong with it.
pub(super) fn effect(rule: &RuleSequence) -> Result<Effect, String> {
    let refuse = |reason: &str| Err(format!("\"{rule}\" {reason}"));
    if rule.operator == RuleOperator::Fallback {
        return refuse(
            "is a fallback (\"||\"), which a weekly pattern can't say: separate rules by \";\"",
        );
    }
    for span in &rule.time_selector.spans {
        if span.open_end {
            return refuse("has no end: say when it closes");
        }
        if span.repeats.is_some() {
            return refuse("repeats: write the range, and slot_length to cut it");
        }
        let (Time::Fixed(_), Time::Fixed(_)) = (span.range.start, span.range.end) else {
            return refuse("depends on the sun: write times of day");
        };
    }

    let whole_days = rule.time_selector == TimeSelector::default();
    match rule.kind {
        RuleKind::Unknown => refuse("is open or not: say \"open\" or \"off\""),
        _ if is_of_the_week(rule) => Ok(Effect::Week),
        RuleKind::Open => refuse(
            "opens on certain dates or holidays, which a weekly pattern can't say: \
             write weekdays and times, \"Mo-Fr 09:00-12:00\"",
        ),
        RuleKind::Closed if !whole_days => {
            refuse("closes for a part of certain days: close the whole day, \"Dec 24 off\"")
        }
        RuleKind::Closed => match holidays(rule) {
            Some(HolidayKind::School) => {
                refuse("names school holidays, which differ by region: list the dates under closed")
            }
            kind => Ok(Effect::ClosesDays {
                holidays: kind.is_some(),
            }),
        },
    }
}

fn is_of_the_week(rule: &RuleSequence) -> bool {
    let days = &rule.day_selector;
    days.year.is_empty()
        && days.monthday.is_empty()
        && days.week.is_empty()
        && days.weekday.iter().all(|range| {
            matches!(
                range,
                WeekDayRange::Fixed { offset: 0, nth_from_start, nth_from_end, .. }
                    if !nth_from_start.contains(&false) && !nth_from_end.contains(&false)
            )
        })
}

/// The holidays a rule names; school holidays first.
fn holidays(rule: &RuleSequence) -> Option<HolidayKind> {
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
