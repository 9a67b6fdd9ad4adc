//! Slots on days with a clock change.

use jiff::Span;

use super::*;

#[test]
fn slots_follow_local_time_across_clock_changes() {
    let night = time_slot(r#"["Su 00:00-04:00"]"#, "slot_length = \"30 minutes\"");
    for (zone, now, expected) in [
        // The clock moves from 02:00 to 03:00.
        (
            "Europe/Paris",
            "2026-03-28T23:00",
            vec![
                "2026-03-29 00:00-00:30 30",
                "2026-03-29 00:30-01:00 30",
                "2026-03-29 01:00-01:30 30",
                "2026-03-29 01:30-03:00 30",
                "2026-03-29 03:00-03:30 30",
                "2026-03-29 03:30-04:00 30",
            ],
        ),
        // The clock moves from 03:00 to 02:00.
        (
            "Europe/Paris",
            "2026-10-24T23:00",
            vec![
                "2026-10-25 00:00-00:30 30",
                "2026-10-25 00:30-01:00 30",
                "2026-10-25 01:00-01:30 30",
                "2026-10-25 01:30-02:00 30",
                "2026-10-25 02:00-02:30 30",
                "2026-10-25 02:30-03:00 90",
                "2026-10-25 03:00-03:30 30",
                "2026-10-25 03:30-04:00 30",
            ],
        ),
        // The clock moves from 02:00 to 03:00.
        (
            "America/New_York",
            "2026-03-07T23:00",
            vec![
                "2026-03-08 00:00-00:30 30",
                "2026-03-08 00:30-01:00 30",
                "2026-03-08 01:00-01:30 30",
                "2026-03-08 01:30-03:00 30",
                "2026-03-08 03:00-03:30 30",
                "2026-03-08 03:30-04:00 30",
            ],
        ),
        // The clock moves from 02:00 to 02:30.
        (
            "Australia/Lord_Howe",
            "2026-10-03T23:00",
            vec![
                "2026-10-04 00:00-00:30 30",
                "2026-10-04 00:30-01:00 30",
                "2026-10-04 01:00-01:30 30",
                "2026-10-04 01:30-02:30 30",
                "2026-10-04 02:30-03:00 30",
                "2026-10-04 03:00-03:30 30",
                "2026-10-04 03:30-04:00 30",
            ],
        ),
        // The clock moves from 02:00 to 01:30.
        (
            "Australia/Lord_Howe",
            "2026-04-04T23:00",
            vec![
                "2026-04-05 00:00-00:30 30",
                "2026-04-05 00:30-01:00 30",
                "2026-04-05 01:00-01:30 30",
                "2026-04-05 01:30-02:00 60",
                "2026-04-05 02:00-02:30 30",
                "2026-04-05 02:30-03:00 30",
                "2026-04-05 03:00-03:30 30",
                "2026-04-05 03:30-04:00 30",
            ],
        ),
        // No clock change.
        (
            "Asia/Kolkata",
            "2026-03-28T23:00",
            vec![
                "2026-03-29 00:00-00:30 30",
                "2026-03-29 00:30-01:00 30",
                "2026-03-29 01:00-01:30 30",
                "2026-03-29 01:30-02:00 30",
                "2026-03-29 02:00-02:30 30",
                "2026-03-29 02:30-03:00 30",
                "2026-03-29 03:00-03:30 30",
                "2026-03-29 03:30-04:00 30",
            ],
        ),
    ] {
        let now = at(&format!("{now}[{zone}]"));
        let offered = night.choices(&now, |_| 0);
        let local: Vec<_> = offered
            .iter()
            .map(|choice| {
                let minutes = choice.before.duration_since(choice.after).as_mins();
                format!("{} {minutes}", window::text(*choice, now.time_zone()))
            })
            .collect();

        assert_eq!(local, expected, "{zone}");
        assert!(
            offered
                .windows(2)
                .all(|pair| pair[0].before == pair[1].after)
        );
    }
}

#[test]
fn every_offered_window_can_be_booked_around_every_clock_change() {
    let time_slot = time_slot(
        r#"["Mo-Su 22:00-03:00", "Mo-Fr 09:00-12:00; PH off", "Sa,Su 01:15-02:45"]"#,
        "slot_length = \"1 hour\"\nprior_notice = \"90 minutes\"\nprevious_day_cutoff = \"18:00\"",
    );
    for zone in [
        "Europe/Paris",
        "America/New_York",
        "Australia/Lord_Howe",
        "Asia/Kolkata",
    ] {
        let new_year = at(&format!("2026-01-01T00:30[{zone}]"));
        let changes = new_year
            .time_zone()
            .following(new_year.timestamp())
            .take(2)
            .map(|change| change.timestamp().to_zoned(new_year.time_zone().clone()));
        for moment in changes.chain([new_year.clone()]) {
            for hours in (-60..12).step_by(3) {
                let now = moment.saturating_add(Span::new().hours(hours));
                let offered = time_slot.choices(&now, |_| 0);
                assert!(offered.is_sorted_by(|one, two| one.after <= two.after));
                for choice in &offered {
                    assert!(choice.after >= now.timestamp() && choice.after < choice.before);
                    let rejection = time_slot.rejection(*choice, &now, |_| 0);
                    assert_eq!(rejection, None, "{choice:?} at {now}");
                }
            }
        }
    }
}
