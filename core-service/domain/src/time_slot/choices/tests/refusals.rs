//! Why a window can't be booked.

use super::*;

fn refusal(time_slot: &TimeSlot, slot: &str, now: &str) -> Option<String> {
    let now = at(now);
    let window = window::parse(slot, now.time_zone()).unwrap();
    time_slot
        .refuses(window, &now, |_| 0)
        .map(|refusal| refusal.to_string())
}

#[test]
fn a_refusal_says_why_and_names_the_next_slot() {
    let now = "2020-04-02T11:30[Europe/Paris]";
    for (more, slot, why) in [
        ("", "2020-04-02 12:00-14:00", ""),
        ("", "2020-04-02T10:00:00Z/2020-04-02T12:00:00Z", ""),
        (
            "",
            "2020-04-02 12:00-13:00",
            "the store offers no slot with this start and end; the next that can is 2020-04-02 12:00-14:00",
        ),
        (
            "",
            "2020-04-01 12:00-14:00",
            "it has begun; the next that can is 2020-04-02 12:00-14:00",
        ),
        (
            "",
            "2020-04-04 12:00-14:00",
            "too early, slots are offered 2 days ahead; the next that can is 2020-04-02 12:00-14:00",
        ),
        (
            "prior_notice = \"1 hour\"",
            "2020-04-02 12:00-14:00",
            "too late, a slot is booked at least 1 hour before it starts; the next that can is 2020-04-02 14:00-17:00",
        ),
        (
            "same_day_cutoff = \"11:00\"",
            "2020-04-02 14:00-17:00",
            "past cutoff, today's slots could be booked until 11:00; the next that can is 2020-04-03 12:00-14:00",
        ),
        (
            "previous_day_cutoff = \"09:00\"",
            "2020-04-03 14:00-17:00",
            "past cutoff, tomorrow's slots could be booked until 09:00; the next that can is 2020-04-02 12:00-14:00",
        ),
        (
            "closed = [\"2020-04-02/2020-04-30\"]",
            "2020-04-02 14:00-17:00",
            "the store is closed on 2020-04-02; no other can be booked now",
        ),
    ] {
        let expected = (!why.is_empty()).then(|| {
            let slot = slot.replace("T10:00:00Z/", " ");
            format!("the slot {slot} can't be booked: {why}")
        });
        assert_eq!(refusal(&daily(more), slot, now), expected, "{more}");
    }
}

#[test]
fn holidays_and_weekends_are_named_as_such() {
    let working = daily("working_days_only = true");
    let holidays_off = time_slot(r#"["Mo-Su 12:00-14:00; PH off; Jul 16 off"]"#, "");
    let now = "2026-07-14T09:00[Europe/Paris]";
    for (time_slot, slot, why) in [
        (
            &working,
            "2026-07-14 12:00-14:00",
            "2026-07-14 is a public holiday; the next that can is 2026-07-15 12:00-14:00",
        ),
        (
            &working,
            "2026-07-18 12:00-14:00",
            "2026-07-18 is at a weekend; the next that can is 2026-07-15 12:00-14:00",
        ),
        (
            &holidays_off,
            "2026-07-14 12:00-14:00",
            "2026-07-14 is a public holiday; the next that can is 2026-07-15 12:00-14:00",
        ),
        (
            &holidays_off,
            "2026-07-14 12:00-13:00",
            "the store offers no slot with this start and end; the next that can is 2026-07-15 12:00-14:00",
        ),
        (
            &holidays_off,
            "2026-07-16 12:00-14:00",
            "the store is closed on 2026-07-16; the next that can is 2026-07-15 12:00-14:00",
        ),
    ] {
        let expected = format!("the slot {slot} can't be booked: {why}");
        assert_eq!(refusal(time_slot, slot, now), Some(expected));
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
        time_slot.refuses(full, &now, booked),
        Some(Refusal {
            slot: "2020-04-02 12:00-14:00".to_owned(),
            reason: Reason::Full(10),
            next: Some(next),
            next_text: Some("2020-04-02 14:00-17:00".to_owned()),
        })
    );
    assert_eq!(time_slot.refuses(next, &now, booked), None);
}
