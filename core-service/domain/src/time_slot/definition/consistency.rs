//! Checks that valid fields are consistent with each other.

use crate::time_slot::TimeSlot;

/// The maximum number of slots that start within the interval, calculated from the regular week.
const MAX_SLOTS: i64 = 1000;

/// The key and the message of each inconsistency.
pub(super) fn inconsistencies(time_slot: &TimeSlot) -> Vec<(&'static str, String)> {
    [
        ("working_days_only", check_working_days(time_slot)),
        ("prior_notice", check_prior_notice(time_slot)),
        ("interval", check_slot_count(time_slot)),
    ]
    .into_iter()
    .filter_map(|(key, message)| Some((key, message?)))
    .collect()
}

fn check_working_days(time_slot: &TimeSlot) -> Option<String> {
    if !time_slot.working_days_only {
        return None;
    }
    if !time_slot.calendar.has_holidays() {
        return Some(
            "no public holidays are known for the store's country; list them under closed, \
             and write weekdays in opening_hours"
                .to_owned(),
        );
    }
    time_slot
        .regular_week()
        .is_empty()
        .then(|| "the store opens on weekends only".to_owned())
}

fn check_prior_notice(time_slot: &TimeSlot) -> Option<String> {
    let interval = time_slot.interval;
    let notice = time_slot.prior_notice?;
    (notice.minutes() >= interval.minutes()).then(|| {
        format!("{notice} is not shorter than the interval, {interval}: no slot could be booked")
    })
}

fn check_slot_count(time_slot: &TimeSlot) -> Option<String> {
    const WEEK: i64 = 7 * 24 * 60;
    let interval = time_slot.interval;
    let rows = time_slot.regular_week();
    let per_week: usize = rows.iter().map(|row| row.days.len()).sum();
    let slots = i64::try_from(per_week)
        .unwrap_or(i64::MAX)
        .saturating_mul(interval.minutes())
        .saturating_add(WEEK - 1)
        / WEEK;
    (slots > MAX_SLOTS).then(|| {
        format!(
            "{slots} slots would start within {interval}, at most {MAX_SLOTS} are allowed: \
             shorten the interval or lengthen the slots"
        )
    })
}
