//! Checks that valid fields are consistent with each other.

use crate::time_slot::TimeSlot;

/// The maximum number of slots that start within the interval, calculated from the regular week.
const MAX_SLOTS: i64 = 1000;

pub(super) fn check_working_days(time_slot: &TimeSlot) -> Result<(), &'static str> {
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

pub(super) fn check_prior_notice(time_slot: &TimeSlot) -> Result<(), String> {
    let interval = time_slot.interval;
    match time_slot.prior_notice {
        Some(notice) if notice.minutes() >= interval.minutes() => Err(format!(
            "{notice} is not shorter than the interval, {interval}: no slot could be booked"
        )),
        _ => Ok(()),
    }
}

pub(super) fn check_slot_count(time_slot: &TimeSlot) -> Result<(), String> {
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
