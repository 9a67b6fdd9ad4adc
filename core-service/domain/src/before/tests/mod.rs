//! Deliberate differences from PHP, the forms of ISO 8601, and natural language.

mod agreement;
mod cldr;
mod corpus;
mod durations;
mod elapsed;
mod offsets;
mod prepositions;
mod readings;
mod rejections;
mod two_readings;
mod two_readings_messages;
mod two_readings_numbers;

use jiff::{Timestamp, Zoned};

use super::{DateOrder, parse};

/// Wednesday 21 October 2026, 14:30:45 in Paris, four days before summer time ends.
fn now() -> Zoned {
    "2026-10-21T14:30:45[Europe/Paris]".parse().unwrap()
}

fn assert_parsed(text: &str, expected: &str) {
    let expected: Timestamp = expected.parse::<Zoned>().unwrap().timestamp();
    assert_eq!(
        parse(text, &now(), DateOrder::DayFirst),
        Ok(expected),
        "{text:?}"
    );
}

fn assert_rejected(text: &str) {
    let parsed = parse(text, &now(), DateOrder::DayFirst);
    assert!(parsed.is_err(), "{text:?}: {parsed:?}");
}

/// Asserts the message of each text.
fn assert_messages(rows: &[(&str, &str)]) {
    let failures: Vec<_> = rows
        .iter()
        .map(|(text, message)| (text, message, parse(text, &now(), DateOrder::DayFirst)))
        .filter(|(_, message, parsed)| {
            parsed.as_ref().map_err(ToString::to_string) != Err(message.to_string())
        })
        .map(|(text, _, parsed)| format!("{text:?}: {:?}", parsed.map_err(|e| e.to_string())))
        .collect();
    assert_eq!(failures, Vec::<String>::new());
}

/// Each row is a text, its understood part and its rejected word. Asserts that the message has both
/// and the advice.
fn assert_not_understood(rows: &[(&str, &str, &str)]) {
    for (text, understood, rejected) in rows {
        let part = match *understood {
            "" => format!("not understood: {rejected:?}"),
            _ => format!("understood {understood:?}, but not {rejected:?}"),
        };
        let advice = "write a time such as 2026-11-25 17:30, tomorrow 17:30 or +2h";
        assert_messages(&[(text, &format!("{part}; {advice}"))]);
    }
}

#[test]
fn slash_dates_follow_the_order_of_the_country_and_ambiguous_day_first_ones_are_rejected() {
    let parsed = |text, order| parse(text, &now(), order).ok();
    let instant = |text: &str| Some(text.parse::<Zoned>().unwrap().timestamp());

    assert_eq!(DateOrder::of_country("us"), DateOrder::MonthFirst);
    assert_eq!(DateOrder::of_country("FR"), DateOrder::DayFirst);
    for order in [DateOrder::DayFirst, DateOrder::MonthFirst] {
        assert_eq!(
            parsed("12/24/2026", order),
            instant("2026-12-24T00:00[Europe/Paris]")
        );
        assert_eq!(
            parsed("2026/03/12", order),
            instant("2026-03-12T00:00[Europe/Paris]")
        );
        assert_eq!(
            parsed("5/5/2027", order),
            instant("2027-05-05T00:00[Europe/Paris]")
        );
    }
    assert_eq!(
        parsed("24/12/2026", DateOrder::DayFirst),
        instant("2026-12-24T00:00[Europe/Paris]")
    );
    assert_eq!(parsed("24/12/2026", DateOrder::MonthFirst), None);
    assert_eq!(parsed("03/12/2026", DateOrder::DayFirst), None);
    assert_eq!(
        parsed("03/12/2026", DateOrder::MonthFirst),
        instant("2026-03-12T00:00[Europe/Paris]")
    );
}

#[test]
fn iso_8601_and_rfc_3339_are_parsed_in_all_common_forms() {
    let forms = [
        "2026-11-25T10:00:00+01:00",
        "2026-11-25T10:00+01:00",
        "2026-11-25T09:00Z",
        "2026-11-25t09:00:00z",
        "2026-11-25 10:00:00+01:00",
        "2026-11-25T10:00:00.123456789+01:00",
        "2026-11-25T10:00:00,5+01:00",
        "2026-11-25T04:00-05:00",
        "20261125T100000+0100",
        "20261125T1000",
        "2026-W48-3T10:00",
        "2026-329T10:00",
        "2026-11-25T10",
        "2026-11-25T10:00+01:00[Europe/Paris]",
        "2026-11-25T09:00Z[Europe/Paris]",
        "2026-11-25T10:00[Europe/Paris]",
        "2026-11-25T04:00:00[America/New_York]",
    ];
    for text in forms {
        assert_parsed(text, "2026-11-25T10:00[Europe/Paris]");
    }
    assert!(
        parse(
            "2026-11-25T10:00+05:00[Europe/Paris]",
            &now(),
            DateOrder::DayFirst
        )
        .is_err()
    );
}

#[test]
fn a_time_next_to_a_day_is_kept() {
    assert_parsed("10:00 monday next week", "2026-10-26T10:00[Europe/Paris]");
    assert_parsed(
        "noon first monday of december 2026",
        "2026-12-07T12:00[Europe/Paris]",
    );
    // PHP takes the last of two times.
    assert_rejected("9am tomorrow 11am");
    assert_rejected("10:00 tomorrow midnight");
    // PHP takes an hour after a day and a month for a year.
    assert_parsed("24 dec 12:30", "2026-12-24T12:30[Europe/Paris]");
    assert_parsed("Dec 24 12:30", "2026-12-24T12:30[Europe/Paris]");
    assert_parsed("Dec 24 2pm", "2026-12-24T14:00[Europe/Paris]");
}

#[test]
fn natural_language_is_parsed_in_five_languages() {
    let rows = [
        ("by tomorrow at 5pm", "2026-10-22T17:00"),
        ("2 hours and 30 minutes from now", "2026-10-21T17:00:45"),
        ("in half an hour", "2026-10-21T15:00:45"),
        ("an hour from now", "2026-10-21T15:30:45"),
        ("in two weeks", "2026-11-04T14:30:45"),
        ("tonight at 8pm", "2026-10-21T20:00"),
        ("the day after tomorrow at 10:00", "2026-10-23T10:00"),
        ("tomorrow end of day", "2026-10-22T23:59"),
        ("avant demain 18h", "2026-10-22T18:00"),
        ("dans une demi-heure", "2026-10-21T15:00:45"),
        ("le mardi 27 octobre à 10 h 30", "2026-10-27T10:30"),
        ("1er décembre 2026 à midi", "2026-12-01T12:00"),
        ("vendredi prochain à 9h", "2026-10-23T09:00"),
        ("ce soir à 21h", "2026-10-21T21:00"),
        ("il y a deux heures", "2026-10-21T12:30:45"),
        ("dans sept jours", "2026-10-28T14:30:45"),
        ("après-demain avant 8 heures", "2026-10-23T08:00"),
        ("morgen um 10 Uhr", "2026-10-22T10:00"),
        ("am Montag bis 18 Uhr 30", "2026-10-26T18:30"),
        ("in einer halben Stunde", "2026-10-21T15:00:45"),
        ("bis 25. November 2026, 10:00 Uhr", "2026-11-25T10:00"),
        ("vor zwei Tagen", "2026-10-19T14:30:45"),
        ("heute Abend", "2026-10-21T20:00"),
        ("nächsten Freitag um 9", "2026-10-23T09:00"),
        ("mañana a las 10", "2026-10-22T10:00"),
        ("dentro de 2 horas", "2026-10-21T16:30:45"),
        ("25 de noviembre de 2026 a las 18:30", "2026-11-25T18:30"),
        ("antes de las 17h", "2026-10-21T17:00"),
        ("esta noche", "2026-10-21T22:00"),
        ("domani alle 10", "2026-10-22T10:00"),
        ("tra un'ora", "2026-10-21T15:30:45"),
        ("entro le 18:30", "2026-10-21T18:30"),
        ("lunedì prossimo alle 9", "2026-10-26T09:00"),
        ("due ore fa", "2026-10-21T12:30:45"),
        ("stasera", "2026-10-21T20:00"),
    ];
    let mut failures = Vec::new();
    for (text, local) in rows {
        let expected = format!("{local}[Europe/Paris]")
            .parse::<Zoned>()
            .unwrap()
            .timestamp();
        let ours = parse(text, &now(), DateOrder::DayFirst);
        if ours != Ok(expected) {
            failures.push(format!("{text:?}: {ours:?}, not {expected}"));
        }
    }
    assert_eq!(failures, Vec::<String>::new());
}

#[test]
fn clock_changes_are_resolved_as_in_php() {
    let rows = [
        // A repeated time: the later one east of Greenwich, the earlier one west of it.
        ("Europe/Paris", "2026-10-25 02:30", "2026-10-25T01:30:00Z"),
        (
            "America/New_York",
            "2026-11-01 01:30",
            "2026-11-01T05:30:00Z",
        ),
        (
            "Australia/Lord_Howe",
            "2026-04-05 01:45",
            "2026-04-04T15:15:00Z",
        ),
        // The earlier one if the text names the time zone.
        (
            "Asia/Kolkata",
            "2026-10-25 02:30 Europe/Paris",
            "2026-10-25T00:30:00Z",
        ),
        // Not if the token of the date includes the time zone.
        (
            "Asia/Kolkata",
            "oct 25 02:30:00 Europe/Paris",
            "2026-10-25T01:30:00Z",
        ),
        // A skipped time moves forward.
        ("Europe/Paris", "2026-03-29 02:30", "2026-03-29T01:30:00Z"),
        (
            "America/New_York",
            "2026-03-08 02:30",
            "2026-03-08T07:30:00Z",
        ),
        (
            "Australia/Lord_Howe",
            "2026-10-04 02:15",
            "2026-10-03T15:45:00Z",
        ),
        // Hours are added to the local time.
        (
            "Europe/Paris",
            "2026-10-25 00:00 +3 hours",
            "2026-10-25T02:00:00Z",
        ),
    ];
    for (zone, text, expected) in rows {
        let now = now().timestamp().in_tz(zone).unwrap();
        let expected: Timestamp = expected.parse().unwrap();
        assert_eq!(
            parse(text, &now, DateOrder::DayFirst),
            Ok(expected),
            "{zone} {text}"
        );
    }
}

proptest::proptest! {
    #[test]
    fn no_text_causes_a_panic(text in "\\PC{0,60}|[0-9a-zA-Z :/+.,@h-]{0,128}|[\\x00-\\x7f]{0,128}") {
        let _ = parse(&text, &now(), DateOrder::DayFirst);
    }

    #[test]
    fn no_sequence_of_known_words_causes_a_panic(
        words in proptest::collection::vec(
            proptest::sample::select(vec![
                "next", "last", "monday", "week", "99999999999999", "years", "-9999999999999", "fortnights",
                "ago", "@-9999999999999999", "in", "dans", "à", "10h", "Uhr", "prochain", "tonight", "2026-11-25",
                "last day of", "first sat of", "+13:00", "Europe/Paris", "9999-12-31", "24:60", "weekdays", "una",
            ]),
            0..12,
        )
    ) {
        let _ = parse(&words.join(" "), &now(), DateOrder::MonthFirst);
    }
}

#[test]
fn working_days_are_counted_from_a_weekend_as_in_php() {
    assert_parsed("2026-10-25 -3 weekdays", "2026-10-21T00:00[Europe/Paris]");
    assert_parsed("2026-11-07 +0 weekdays", "2026-11-09T00:00[Europe/Paris]");
    for weekend in ["2026-11-07", "2026-11-08"] {
        for (working_days, expected) in [("+5", "2026-11-13"), ("-5", "2026-11-02")] {
            let text = format!("{weekend} {working_days} weekdays");
            assert_parsed(&text, &format!("{expected}T00:00[Europe/Paris]"));
        }
    }
}

#[test]
fn an_offset_may_have_seconds_without_colons() {
    assert_parsed("2026-11-07 10:00 +053015", "2026-11-07T04:29:45Z[UTC]");
}

#[test]
fn a_fraction_of_a_timestamp_has_its_sign() {
    assert_parsed("@-1.5", "1969-12-31T23:59:58Z[UTC]");
    assert_parsed("@1792600000.75 +600000 usec", "2026-10-21T16:26:41Z[UTC]");
}

#[test]
fn a_year_is_read_with_its_sign_and_its_digits() {
    assert_parsed("-0044-03-15", "-000044-03-15T00:00[Europe/Paris]");
    assert_parsed("0085-03-15", "0085-03-15T00:00[Europe/Paris]");
}

#[test]
fn an_hour_after_a_weekday_is_not_a_duration() {
    assert_parsed("+2 days monday 18h", "2026-10-28T18:00[Europe/Paris]");
}

#[test]
fn a_range_has_a_time_on_both_sides() {
    assert_messages(&[(
        "14 - 18h",
        "\"14 - 18h\" is a range, not one time: use timeSlot",
    )]);
}
