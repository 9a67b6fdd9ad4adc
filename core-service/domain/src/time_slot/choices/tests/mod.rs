//! The windows offered at different times.

mod clock_changes;
mod rejections;

use super::*;

fn time_slot(opening_hours: &str, more: &str) -> TimeSlot {
    let definition =
        format!("name = \"Tour\"\nopening_hours = {opening_hours}\ninterval = \"2 days\"\n{more}");
    TimeSlot::parse(&definition, "FR").unwrap()
}

fn daily(more: &str) -> TimeSlot {
    time_slot(r#"["Mo-Su 12:00-14:00", "Mo-Su 14:00-17:00"]"#, more)
}

fn at(now: &str) -> Zoned {
    now.parse().unwrap()
}

/// Each choice in local time, in the short form of `timeSlot`.
fn choices(time_slot: &TimeSlot, now: &str) -> Vec<String> {
    let now = at(now);
    time_slot
        .choices(&now, |_| 0)
        .into_iter()
        .map(|choice| window::text(choice, now.time_zone()))
        .collect()
}

#[test]
fn the_slots_of_two_days_are_offered_in_order() {
    let now = at("2020-04-02T11:00[Europe/Paris]");

    let offered: Vec<_> = daily("")
        .choices(&now, |_| 0)
        .iter()
        .map(|choice| format!("{}/{}", choice.after, choice.before))
        .collect();

    assert_eq!(
        offered,
        [
            "2020-04-02T10:00:00Z/2020-04-02T12:00:00Z",
            "2020-04-02T12:00:00Z/2020-04-02T15:00:00Z",
            "2020-04-03T10:00:00Z/2020-04-03T12:00:00Z",
            "2020-04-03T12:00:00Z/2020-04-03T15:00:00Z",
        ]
    );
}

#[test]
fn working_days_only_excludes_the_saturday_after_a_friday() {
    assert_eq!(
        choices(
            &daily("working_days_only = true"),
            "2024-05-31T11:00[Europe/Paris]"
        ),
        ["2024-05-31 12:00-14:00", "2024-05-31 14:00-17:00"]
    );
}

#[test]
fn the_first_choice_follows_from_start_notice_cutoffs_and_closed_days() {
    for (more, now, expected) in [
        (
            "",
            "2020-04-02T12:00[Europe/Paris]",
            "2020-04-02 12:00-14:00",
        ),
        (
            "",
            "2020-04-02T12:00:01[Europe/Paris]",
            "2020-04-02 14:00-17:00",
        ),
        (
            "prior_notice = \"1 hour\"",
            "2020-04-02T11:00[Europe/Paris]",
            "2020-04-02 12:00-14:00",
        ),
        (
            "prior_notice = \"1 hour\"",
            "2020-04-02T11:00:01[Europe/Paris]",
            "2020-04-02 14:00-17:00",
        ),
        (
            "same_day_cutoff = \"11:00\"",
            "2020-04-02T11:00[Europe/Paris]",
            "2020-04-02 12:00-14:00",
        ),
        (
            "same_day_cutoff = \"11:00\"",
            "2020-04-02T11:01[Europe/Paris]",
            "2020-04-03 12:00-14:00",
        ),
        (
            "previous_day_cutoff = \"18:00\"",
            "2020-04-02T18:00[Europe/Paris]",
            "2020-04-03 12:00-14:00",
        ),
        (
            "previous_day_cutoff = \"18:00\"",
            "2020-04-02T18:01[Europe/Paris]",
            "2020-04-04 12:00-14:00",
        ),
        (
            "closed = [\"2020-04-02/2020-04-03\"]",
            "2020-04-02T11:00[Europe/Paris]",
            "",
        ),
        (
            "closed = [\"2020-04-02\"]",
            "2020-04-02T11:00[Europe/Paris]",
            "2020-04-03 12:00-14:00",
        ),
    ] {
        let offered = choices(&daily(more), now);
        assert_eq!(
            offered.first().map_or("", String::as_str),
            expected,
            "{more} at {now}"
        );
    }
}

#[test]
fn the_interval_excludes_its_end() {
    let last = |now| choices(&daily(""), now).pop().unwrap_or_default();

    assert_eq!(
        last("2020-04-02T12:00[Europe/Paris]"),
        "2020-04-03 14:00-17:00"
    );
    assert_eq!(
        last("2020-04-02T12:00:01[Europe/Paris]"),
        "2020-04-04 12:00-14:00"
    );
    // Two calendar days of 47 hours in total.
    assert_eq!(
        last("2026-03-28T12:00:01[Europe/Paris]"),
        "2026-03-30 12:00-14:00"
    );
}

#[test]
fn adjacent_entries_stay_two_slots_and_equal_entries_become_one() {
    let time_slot = time_slot(
        r#"["Th 12:00-14:00", "Th 14:00-17:00", "Th 14:00-17:00", "Th 13:00-15:00"]"#,
        "",
    );
    assert_eq!(
        choices(&time_slot, "2020-04-02T11:00[Europe/Paris]"),
        [
            "2020-04-02 12:00-14:00",
            "2020-04-02 13:00-15:00",
            "2020-04-02 14:00-17:00"
        ]
    );
}

#[test]
fn the_limits_of_the_calendar_cause_no_panic() {
    let time_slot = time_slot(
        r#"["24/7"]"#,
        "slot_length = \"1 hour\"\nprior_notice = \"1 hour\"",
    );
    for instant in [Timestamp::MIN, Timestamp::MAX] {
        let now = instant.to_zoned(TimeZone::UTC);
        let window = TimeWindow {
            after: Timestamp::MIN,
            before: Timestamp::MAX,
        };

        let rejection = time_slot.rejection(window, &now, |_| 0).unwrap();

        assert!(
            rejection.contains("the store offers no slot with this start and end"),
            "{rejection}"
        );
        assert!(!time_slot.opening_hours_specification(&now).is_empty());
    }
}
