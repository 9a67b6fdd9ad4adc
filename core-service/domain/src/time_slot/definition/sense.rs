//! What is wrong with fields that are well formed each by itself but make no sense together.

use crate::time_slot::TimeSlot;

/// The most slots that may start within the interval, by the ordinary week.
const MAX_SLOTS: u64 = 1000;

pub(super) struct Problem {
    pub(super) key: &'static str,
    pub(super) message: String,
}

pub(super) fn problems(time_slot: &TimeSlot) -> Vec<Problem> {
    [
        ("working_days_only", working_days(time_slot)),
        ("prior_notice", notice(time_slot)),
        ("interval", count(time_slot)),
    ]
    .into_iter()
    .filter_map(|(key, message)| message.map(|message| Problem { key, message }))
    .collect()
}

fn working_days(time_slot: &TimeSlot) -> Option<String> {
    if !time_slot.working_days_only {
        return None;
    }
    if !time_slot.calendar.knows_holidays() {
        return Some(
            "no public holidays are known for the store's country; list them under closed, \
             and write weekdays in opening_hours"
                .to_owned(),
        );
    }
    time_slot
        .ordinary_week()
        .is_empty()
        .then(|| "the store opens at weekends only".to_owned())
}

fn notice(time_slot: &TimeSlot) -> Option<String> {
    let interval = time_slot.interval;
    let notice = time_slot.prior_notice?;
    (notice.minutes() >= interval.minutes()).then(|| {
        format!("{notice} is not shorter than the interval, {interval}: no slot could be booked")
    })
}

fn count(time_slot: &TimeSlot) -> Option<String> {
    const WEEK: u64 = 7 * 24 * 60;
    let interval = time_slot.interval;
    let rows = time_slot.ordinary_week();
    let per_week: usize = rows.iter().map(|row| row.days.len()).sum();
    let slots = u64::try_from(per_week)
        .unwrap_or(u64::MAX)
        .saturating_mul(interval.minutes())
        .div_ceil(WEEK);
    (slots > MAX_SLOTS).then(|| {
        format!(
            "{slots} slots would start within {interval}, at most {MAX_SLOTS} may: \
             a shorter interval, or longer slots"
        )
    })
}
