//! `timeSlot` texts, also on days with a clock change.

mod offsets;

use proptest::prelude::*;

use super::*;

fn zone(name: &str) -> TimeZone {
    TimeZone::get(name).unwrap()
}

fn read(text: &str, name: &str) -> String {
    match parse(text, &zone(name)) {
        Ok(window) => format!("{}/{}", window.after, window.before),
        Err(error) => error,
    }
}

#[test]
fn a_date_and_range_is_read_in_the_zone() {
    for (text, name, expected) in [
        (
            "2026-11-25 10:00-11:00",
            "Europe/Paris",
            "2026-11-25T09:00:00Z/2026-11-25T10:00:00Z",
        ),
        (
            "2026-07-25 10:00-11:00",
            "Europe/Paris",
            "2026-07-25T08:00:00Z/2026-07-25T09:00:00Z",
        ),
        (
            " 2026-11-25 10:00-11:00\n",
            "Asia/Tokyo",
            "2026-11-25T01:00:00Z/2026-11-25T02:00:00Z",
        ),
        (
            "2026-11-25 20:00-24:00",
            "UTC",
            "2026-11-25T20:00:00Z/2026-11-26T00:00:00Z",
        ),
        (
            "2028-02-29 00:00-00:01",
            "UTC",
            "2028-02-29T00:00:00Z/2028-02-29T00:01:00Z",
        ),
    ] {
        assert_eq!(read(text, name), expected, "{text} in {name}");
    }
}

#[test]
fn an_interval_is_read_with_its_offsets_or_in_the_zone() {
    for (text, expected) in [
        (
            "2020-04-02T10:00:00Z/2020-04-02T12:00:00Z",
            "2020-04-02T10:00:00Z/2020-04-02T12:00:00Z",
        ),
        (
            "2020-04-02T12:00:00+02:00/2020-04-02T14:00:00+02:00",
            "2020-04-02T10:00:00Z/2020-04-02T12:00:00Z",
        ),
        (
            "2020-04-02T12:00:00/2020-04-02T14:00:00",
            "2020-04-02T10:00:00Z/2020-04-02T12:00:00Z",
        ),
        (
            "2020-04-02T10:00:00.000Z/2020-04-02T12:00:00.000Z",
            "2020-04-02T10:00:00Z/2020-04-02T12:00:00Z",
        ),
        (
            "20200402T100000Z/20200402T120000Z",
            "2020-04-02T10:00:00Z/2020-04-02T12:00:00Z",
        ),
        (
            "2020-04-02T22:00:00+02:00/2020-04-03T02:00:00+02:00",
            "2020-04-02T20:00:00Z/2020-04-03T00:00:00Z",
        ),
    ] {
        assert_eq!(read(text, "Europe/Paris"), expected, "{text}");
    }
}

/// ISO 8601: what the end leaves out, it has of the start.
#[test]
fn an_interval_is_called_empty_only_if_it_is() {
    let late = "ends before it starts; a window past midnight is written as two instants, \
                2026-11-25T22:00:00Z/2026-11-26T01:00:00Z";
    for (text, message) in [
        (
            "2026-12-01T10:00Z/2026-12-01T10:00",
            "is empty: it must end after it starts",
        ),
        (
            "2026-12-01T10:00:00.2Z/2026-12-01T10:00:00.8Z",
            "is shorter than a second",
        ),
        (
            "2026-03-29T02:10/2026-03-29T02:50",
            "does not exist: the clocks of Europe/Paris skip it that day",
        ),
        ("2026-12-01T10:00Z/2026-12-01T09:30", late),
        ("2026-10-25T02:30+02:00/2026-10-25T02:15", late),
        ("2026-12-01T10:00+01:00/2026-12-01T10:30+02:00", late),
    ] {
        assert_eq!(read(text, "Europe/Paris"), format!("{text:?} {message}"));
    }
}

#[test]
fn local_times_around_a_clock_change_are_unambiguous() {
    for (text, name, expected) in [
        // Spring: local times from 02:00 to 03:00 are skipped.
        (
            "2026-03-29 01:00-04:00",
            "Europe/Paris",
            "2026-03-29T00:00:00Z/2026-03-29T02:00:00Z",
        ),
        (
            "2026-03-29 01:00-02:30",
            "Europe/Paris",
            "2026-03-29T00:00:00Z/2026-03-29T01:00:00Z",
        ),
        (
            "2026-03-29 02:30-04:00",
            "Europe/Paris",
            "2026-03-29T01:00:00Z/2026-03-29T02:00:00Z",
        ),
        (
            "2026-03-29 02:00-04:00",
            "Europe/Paris",
            "2026-03-29T01:00:00Z/2026-03-29T02:00:00Z",
        ),
        (
            "2026-03-08 02:30-03:30",
            "America/New_York",
            "2026-03-08T07:00:00Z/2026-03-08T07:30:00Z",
        ),
        (
            "2026-10-04 02:15-03:00",
            "Australia/Lord_Howe",
            "2026-10-03T15:30:00Z/2026-10-03T16:00:00Z",
        ),
        // Autumn: a repeated local time is its first occurrence.
        (
            "2026-10-25 01:00-04:00",
            "Europe/Paris",
            "2026-10-24T23:00:00Z/2026-10-25T03:00:00Z",
        ),
        (
            "2026-10-25 02:00-02:30",
            "Europe/Paris",
            "2026-10-25T00:00:00Z/2026-10-25T00:30:00Z",
        ),
        (
            "2026-10-25 02:30-03:00",
            "Europe/Paris",
            "2026-10-25T00:30:00Z/2026-10-25T02:00:00Z",
        ),
        (
            "2026-11-01 01:30-02:00",
            "America/New_York",
            "2026-11-01T05:30:00Z/2026-11-01T07:00:00Z",
        ),
        (
            "2026-04-05 01:30-02:00",
            "Australia/Lord_Howe",
            "2026-04-04T14:30:00Z/2026-04-04T15:30:00Z",
        ),
        // No clock change.
        (
            "2026-03-29 02:30-03:30",
            "Asia/Kolkata",
            "2026-03-28T21:00:00Z/2026-03-28T22:00:00Z",
        ),
    ] {
        assert_eq!(read(text, name), expected, "{text} in {name}");
    }
}

#[test]
fn an_invalid_time_slot_is_rejected_with_a_valid_example() {
    for (text, expected) in [
        (
            "",
            "\"\" is not a time slot: write 2026-11-25 10:00-11:00, or 2026-11-25T09:00:00Z/2026-11-25T10:00:00Z",
        ),
        (
            "2026-11-25 9:00-11:00",
            "\"2026-11-25 9:00-11:00\" is not a time slot: write 2026-11-25 10:00-11:00, or 2026-11-25T09:00:00Z/2026-11-25T10:00:00Z",
        ),
        (
            "2026-11-25 10:00:30-11:00",
            "\"2026-11-25 10:00:30-11:00\" is not a time slot: write 2026-11-25 10:00-11:00, or 2026-11-25T09:00:00Z/2026-11-25T10:00:00Z",
        ),
        (
            "2026-02-30 10:00-11:00",
            "\"2026-02-30\" is not a date: write a calendar date such as 2026-11-25",
        ),
        (
            "2026-11-25 10:00-25:00",
            "\"25:00\" is not a time of day: write 00:00 to 23:59, or 24:00 to end with the day",
        ),
        (
            "2026-11-25 24:00-24:00",
            "\"24:00\" is not a time of day: write 00:00 to 23:59, or 24:00 to end with the day",
        ),
        (
            "2026-11-25 22:00-02:00",
            "\"2026-11-25 22:00-02:00\" ends before it starts; a window past midnight is written as two instants, 2026-11-25T22:00:00Z/2026-11-26T01:00:00Z",
        ),
        (
            "2026-11-25 10:00-10:00",
            "\"2026-11-25 10:00-10:00\" is empty: it must end after it starts",
        ),
        (
            "2026-03-29 02:10-02:50",
            "\"2026-03-29 02:10-02:50\" does not exist: the clocks of Europe/Paris skip it that day",
        ),
        (
            "2026-03-29 02:00-03:00",
            "\"2026-03-29 02:00-03:00\" does not exist: the clocks of Europe/Paris skip it that day",
        ),
        (
            "2026-11-25/2026-11-26",
            "\"2026-11-25\" is not an instant: write 2026-11-25T09:00:00Z",
        ),
        (
            "/api/time_slots/x",
            "\"/api/time_slots/x\" is not a time slot: send the value of one of the choices of GET /api/time_slots/choices",
        ),
        (
            "2026-11-25T10:00:00Z/PT2H",
            "\"PT2H\" is not an instant: write 2026-11-25T09:00:00Z",
        ),
        (
            "2026-11-25T10:00:00Z/2026-11-25T10:00:00Z",
            "\"2026-11-25T10:00:00Z/2026-11-25T10:00:00Z\" is empty: it must end after it starts",
        ),
        (
            "2026-11-25T10:00:00Z/2026-11-25T09:00:00Z",
            "\"2026-11-25T10:00:00Z/2026-11-25T09:00:00Z\" ends before it starts; a window past midnight is written as two instants, 2026-11-25T22:00:00Z/2026-11-26T01:00:00Z",
        ),
        (
            "9999-12-31 10:00-24:00",
            "\"9999-12-31\" is not a date: write a calendar date such as 2026-11-25",
        ),
    ] {
        assert_eq!(read(text, "Europe/Paris"), expected, "{text:?}");
    }
    let longest = "1".repeat(128);
    assert_eq!(
        read(&longest, "UTC"),
        format!(
            "{longest:?} is not a time slot: write 2026-11-25 10:00-11:00, or 2026-11-25T09:00:00Z/2026-11-25T10:00:00Z"
        )
    );
    assert_eq!(
        read(&(longest + "1"), "UTC"),
        "a time slot has at most 128 bytes, this one has 129"
    );
}

#[test]
fn a_formatted_window_parses_back() {
    for (text_in, expected) in [
        ("2026-11-25 10:00-11:00", "2026-11-25 10:00-11:00"),
        ("2026-11-25 20:00-24:00", "2026-11-25 20:00-24:00"),
        (
            "2026-11-25T21:00Z/2026-11-26T01:00Z",
            "2026-11-25T22:00:00+01:00/2026-11-26T02:00:00+01:00",
        ),
        // The second pass of the repeated hour has no short form.
        (
            "2026-10-25T01:00Z/2026-10-25T01:30Z",
            "2026-10-25T02:00:00+01:00/2026-10-25T02:30:00+01:00",
        ),
    ] {
        let window = parse(text_in, &zone("Europe/Paris")).unwrap();

        assert_eq!(text(window, &zone("Europe/Paris")), expected);
        assert_eq!(parse(expected, &zone("Europe/Paris")), Ok(window));
    }
}

proptest! {
    #[test]
    fn no_text_panics_the_parser(text in "[0-9TZ:/ +.\\[\\]\u{e9}-]{0,60}|\\PC{0,60}") {
        let _ = parse(&text, &zone("Europe/Paris"));
    }

    #[test]
    fn a_window_is_parsed_again_from_its_text(
        day in 0_i32..800, start in 0_i64..1439, length in 1_i64..1440, is_interval: bool,
    ) {
        let date = jiff::civil::date(2026, 1, 1).checked_add(jiff::Span::new().days(day)).unwrap();
        let time = |minute: i64| format!("{:02}:{:02}", minute / 60, minute % 60);
        let (start, end) = (time(start), time((start + length).min(1440)));
        let written = if is_interval {
            format!("{date}T{start}:00Z/{date}T{}:59Z", end.replace("24:00", "23:59"))
        } else {
            format!("{date} {start}-{end}")
        };
        for name in ["Europe/Paris", "America/New_York", "Australia/Lord_Howe"] {
            let zone = zone(name);
            match parse(&written, &zone) {
                Ok(window) => {
                    prop_assert!(window.after < window.before);
                    prop_assert_eq!(parse(&text(window, &zone), &zone), Ok(window));
                }
                // On the day of the year on which the clocks move forward.
                Err(error) => prop_assert!(error.contains("does not exist"), "{error}"),
            }
        }
    }

    #[test]
    fn a_later_local_time_is_never_an_earlier_instant(day in 0_i32..800, minute in 1_i64..1439) {
        let date = jiff::civil::date(2026, 1, 1).checked_add(jiff::Span::new().days(day)).unwrap();
        for name in ["Europe/Paris", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"] {
            let zone = zone(name);
            let at = |minute: i64| {
                let local = date.at(0, 0, 0, 0).checked_add(jiff::Span::new().minutes(minute)).unwrap();
                first_instant(local, &zone).unwrap()
            };
            prop_assert!(at(minute - 1) <= at(minute) && at(minute) <= at(minute + 1));
        }
    }
}
