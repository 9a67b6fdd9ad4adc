//! Why a window can't be booked.

use super::*;

fn rejection(time_slot: &TimeSlot, slot: &str, now: &str) -> Option<String> {
    let now = at(now);
    let window = window::parse(slot, now.time_zone()).unwrap();
    time_slot.rejection(window, &now, |_| 0)
}

#[test]
fn a_dropoff_without_a_window_is_rejected_only_if_one_is_required() {
    let now = at("2020-04-02T11:30[Europe/Paris]");
    for (more, booked, expected) in [
        ("", 0, None),
        ("slots = \"offered\"", 0, None),
        ("capacity = 1", 0, None),
        (
            "slots = \"required\"",
            0,
            Some("the next available slot is 2020-04-02 12:00-14:00"),
        ),
        (
            "slots = \"required\"\ncapacity = 1",
            1,
            Some("no slot can be booked now"),
        ),
    ] {
        let missing = daily(more).missing_slot(&now, |_| booked);

        let expected = expected.map(|next| {
            format!("is required: the store delivers in the slots that it offers; {next}")
        });
        assert_eq!(missing, expected, "{more}");
    }
}

#[test]
fn a_rejection_has_a_reason_and_the_next_available_slot() {
    let now = "2020-04-02T11:30[Europe/Paris]";
    for (more, slot, reason) in [
        ("", "2020-04-02 12:00-14:00", ""),
        ("", "2020-04-02T10:00:00Z/2020-04-02T12:00:00Z", ""),
        (
            "",
            "2020-04-02 12:00-13:00",
            "the store offers no slot with this start and end; the next available slot is 2020-04-02 12:00-14:00",
        ),
        (
            "",
            "2020-04-03 12:00-13:00",
            "the store offers no slot with this start and end; the next available slot is 2020-04-03 12:00-14:00",
        ),
        (
            "",
            "2020-04-01 12:00-14:00",
            "it has already started; the next available slot is 2020-04-02 12:00-14:00",
        ),
        (
            "",
            "2020-04-04 12:00-14:00",
            "too early, slots are offered 2 days ahead; the next available slot is 2020-04-02 12:00-14:00",
        ),
        (
            "prior_notice = \"1 hour\"",
            "2020-04-02 12:00-14:00",
            "too late, a slot is booked at least 1 hour before it starts; the next available slot is 2020-04-02 14:00-17:00",
        ),
        (
            "same_day_cutoff = \"11:00\"",
            "2020-04-02 14:00-17:00",
            "past cutoff, today's slots could be booked until 11:00; the next available slot is 2020-04-03 12:00-14:00",
        ),
        (
            "previous_day_cutoff = \"09:00\"",
            "2020-04-03 14:00-17:00",
            "past cutoff, tomorrow's slots could be booked until 09:00; the next available slot is 2020-04-02 12:00-14:00",
        ),
        (
            "closed = [\"2020-04-02/2020-04-30\"]",
            "2020-04-02 14:00-17:00",
            "the store is closed on 2020-04-02; no slot can be booked now",
        ),
    ] {
        let expected =
            (!reason.is_empty()).then(|| format!("the slot {slot} is not offered: {reason}"));
        assert_eq!(rejection(&daily(more), slot, now), expected, "{more}");
    }
}

#[test]
fn the_reason_may_be_a_holiday_or_a_weekend() {
    let working = daily("working_days_only = true");
    let holidays_off = time_slot(r#"["Mo-Su 12:00-14:00; PH off; Jul 16 off"]"#, "");
    let now = "2026-07-14T09:00[Europe/Paris]";
    for (time_slot, slot, reason) in [
        (
            &working,
            "2026-07-14 12:00-14:00",
            "2026-07-14 is a public holiday; the next available slot is 2026-07-15 12:00-14:00",
        ),
        (
            &working,
            "2026-07-18 12:00-14:00",
            "2026-07-18 is on a weekend; the next available slot is 2026-07-15 12:00-14:00",
        ),
        (
            &holidays_off,
            "2026-07-14 12:00-14:00",
            "2026-07-14 is a public holiday; the next available slot is 2026-07-15 12:00-14:00",
        ),
        (
            &holidays_off,
            "2026-07-14 12:00-13:00",
            "the store offers no slot with this start and end; the next available slot is 2026-07-15 12:00-14:00",
        ),
        (
            &holidays_off,
            "2026-07-16 12:00-14:00",
            "the store is closed on 2026-07-16; the next available slot is 2026-07-15 12:00-14:00",
        ),
    ] {
        let expected = format!("the slot {slot} is not offered: {reason}");
        assert_eq!(rejection(time_slot, slot, now), Some(expected));
    }
}

#[test]
fn a_full_slot_is_neither_offered_nor_accepted() {
    let time_slot = daily("capacity = 10");
    let now = at("2020-04-02T11:00[Europe/Paris]");
    let full = window::parse("2020-04-02 12:00-14:00", now.time_zone()).unwrap();
    let next = window::parse("2020-04-02 14:00-17:00", now.time_zone()).unwrap();
    let booked = |window| if window == full { 10 } else { 9 };

    assert_eq!(time_slot.choices(&now, booked).first(), Some(&next));
    assert_eq!(
        time_slot.rejection(full, &now, booked).as_deref(),
        Some(
            "the slot 2020-04-02 12:00-14:00 is not offered: full, its capacity of 10 is booked; the next available slot is 2020-04-02 14:00-17:00"
        )
    );
    assert_eq!(time_slot.rejection(next, &now, booked), None);
}
