//! Definitions and their mistakes.

use std::cell::{Cell, RefCell};

use proptest::{prelude::*, test_runner::TestRunner};

use super::*;
use crate::time_slot::{CalendarDuration, SlotPolicy};

const SAMPLE: &str = r#"
name = "Tour"
opening_hours = ["Mo-Su 12:00-14:00", "Mo-Su 14:00-17:00"]
interval = "2 days"
prior_notice = "1 hour"
same_day_cutoff = "11:00"
previous_day_cutoff = "18:00"
working_days_only = false
slot_length = "1 hour"
closed = ["2026-12-24/2026-12-28", 2027-01-02]
capacity = 10
slots = "any"
"#;

#[test]
fn every_key_is_read() {
    let calendar = Calendar::of("FR");
    let entry = |text| OpeningHoursEntry::parse(text, &calendar).unwrap();
    let date = jiff::civil::date;
    let expected = TimeSlot {
        display_name: "Tour".to_owned(),
        opening_hours: vec![entry("Mo-Su 12:00-14:00"), entry("Mo-Su 14:00-17:00")],
        interval: CalendarDuration::parse("2 days").unwrap(),
        prior_notice: CalendarDuration::parse("1 hour"),
        same_day_cutoff: Some(jiff::civil::time(11, 0, 0, 0)),
        previous_day_cutoff: Some(jiff::civil::time(18, 0, 0, 0)),
        working_days_only: false,
        slot_minutes: Some(60),
        closed: vec![
            date(2026, 12, 24)..=date(2026, 12, 28),
            date(2027, 1, 2)..=date(2027, 1, 2),
        ],
        capacity: Some(10),
        slot_policy: SlotPolicy::Any,
        calendar: calendar.clone(),
    };

    assert_eq!(TimeSlot::parse(SAMPLE, "FR"), Ok(expected));
}

#[test]
fn the_settings_that_operators_see_are_those_of_the_definition() {
    for days in [true, false] {
        let text = SAMPLE.replace("only = false", &format!("only = {days}"));
        let time_slot = TimeSlot::parse(&text, "FR").unwrap();
        assert_eq!(time_slot.working_days_only, days);
        assert_eq!(time_slot.capacity, Some(10));
        assert_eq!(time_slot.display_name, "Tour");
        assert_eq!(time_slot.prior_notice, CalendarDuration::parse("1 hour"));
    }
}

#[test]
fn a_capacity_implies_that_only_offered_slots_are_accepted() {
    let minimal = "name = \"T\"\nopening_hours = [\"24/7\"]\ninterval = \"1 day\"\n";
    for (more, expected) in [
        ("", false),
        ("slots = \"any\"", false),
        ("slots = \"offered\"", true),
        ("slots = \"required\"", true),
        ("capacity = 1", true),
        ("capacity = 1\nslots = \"any\"", true),
    ] {
        let time_slot = TimeSlot::parse(&format!("{minimal}{more}"), "FR").unwrap();
        assert_eq!(time_slot.offered_only(), expected, "{more}");
    }
}

fn mistakes(definition: &str, country: &str) -> Vec<String> {
    TimeSlot::parse(definition, country)
        .unwrap_err()
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn all_invalid_values_are_reported_at_once_with_their_positions() {
    let definition = r#"name = " "
opening_hours = ["Mo-Su 12h-14h", "Mo 12:00-14:00", "Mo-Su \u0031x"]
interval = "2 jours"
prior_notice = "3"
same_day_cutoff = "11h"
slot_length = "1 minute"
closed = ["2026-02-30", "2026-12-28/2026-12-24", 5]
capacity = 0
"#;
    assert_eq!(
        mistakes(definition, "FR"),
        [
            "1:8: a name is one line of 1 to 100 characters, without controls",
            "2:25: not opening hours in OpenStreetMap's syntax, unexpected text from \"12h-14h\": write \"Mo-Fr 09:00-12:00\"",
            "2:53: not opening hours in OpenStreetMap's syntax, unexpected text from \"1x\": write \"Mo-Fr 09:00-12:00\"",
            "3:12: \"2 jours\" is not a duration: write a whole number and a unit, \"36 hours\", \"2 days\", \"1 month\"",
            "4:16: \"3\" is not a duration: write a whole number and a unit, \"36 hours\", \"2 days\", \"1 month\"",
            "5:19: \"11h\" is not a time of day: write \"11:00\"",
            "6:15: 1 minute is too short: at least 5 minutes",
            "7:11: write a date, \"2026-12-24\", or a first and a last one, \"2026-12-24/2026-12-28\"",
            "7:25: the last date is before the first",
            "7:50: write a date, \"2026-12-24\", or a first and a last one, \"2026-12-24/2026-12-28\"",
            "8:12: write a whole number from 1 to 1000000",
        ]
    );
}

#[test]
fn an_unknown_or_missing_key_or_a_value_of_a_wrong_type_is_reported_with_what_is_right() {
    for (replaced, by, expected) in [
        (
            "name = ",
            "nom = ",
            "2:1: unknown field `nom`, expected one of `name`, `opening_hours`, `interval`, `prior_notice`, `same_day_cutoff`, `previous_day_cutoff`, `working_days_only`, `slot_length`, `closed`, `capacity`, `slots`",
        ),
        ("name = \"Tour\"", "", "1:1: missing field `name`"),
        (
            "\"1 hour\"",
            "3",
            "5:16: invalid type: integer `3`, expected a string",
        ),
        (
            "\"Mo-Su 12:00-14:00\"",
            "5",
            "3:18: invalid type: integer `5`, expected a string",
        ),
        (
            "= false",
            "= \"no\"",
            "8:21: invalid type: string \"no\", expected a boolean",
        ),
        (
            "= 10",
            "= \"no\"",
            "11:12: invalid type: string \"no\", expected i64",
        ),
        (
            "\"any\"",
            "\"some\"",
            "12:9: unknown variant `some`, expected one of `any`, `offered`, `required`",
        ),
    ] {
        let definition = SAMPLE.replacen(replaced, by, 1);
        assert_eq!(mistakes(&definition, "FR"), [expected]);
    }
}

#[test]
fn inconsistent_or_out_of_range_fields_are_mistakes() {
    let minimal = |entry: &str, interval: &str, more: &str| {
        format!("name = \"T\"\nopening_hours = [\"{entry}\"]\ninterval = \"{interval}\"\n{more}")
    };
    for (definition, country, expected) in [
        (
            minimal("Sa 10:00-12:00", "7 days", "working_days_only = true"),
            "FR",
            "4:21: working_days_only: the store opens on weekends only",
        ),
        (
            minimal("Mo 10:00-12:00", "7 days", "working_days_only = true"),
            "XX",
            "4:21: working_days_only: no public holidays are known for the store's country; list them under closed, and write weekdays in opening_hours",
        ),
        (
            minimal("Mo 10:00-12:00; PH off", "7 days", ""),
            "XX",
            "2:19: no public holidays (PH) are known for the store's country: list them under closed",
        ),
        (
            minimal("Mo 10:00-12:00; Mo off", "7 days", ""),
            "FR",
            "2:19: it opens on no day of the week",
        ),
        (
            minimal("PH off", "7 days", ""),
            "FR",
            "2:19: it opens on no day of the week",
        ),
        (
            minimal("Mo 10:00-12:00", "7 days", "slot_length = \"3 hours\""),
            "FR",
            "2:19: it is never open for as long as slot_length",
        ),
        (
            minimal("24/7", "1 day", "prior_notice = \"24 hours\""),
            "FR",
            "4:16: 24 hours is not shorter than the interval, 1 day: no slot could be booked",
        ),
        (
            minimal("24/7", "1 month", "slot_length = \"30 minutes\""),
            "FR",
            "3:12: 1488 slots would start within 1 month, at most 1000 are allowed: shorten the interval or lengthen the slots",
        ),
        (
            minimal("24/7", "4 months", ""),
            "FR",
            "3:12: 4 months is too long: at most 3 months",
        ),
        (
            minimal("24/7", "1 day", "slot_length = \"25 hours\""),
            "FR",
            "4:15: 25 hours is too long: at most 1 day",
        ),
        (
            "name = \"\u{7}\"\nopening_hours = []\ninterval = \"1 day\"".to_owned(),
            "FR",
            "1:9",
        ),
        (
            minimal("24/7", "1 day", "").replacen("\"T\"", "\"\u{202e}T\"", 1),
            "FR",
            "1:8: a name is one line of 1 to 100 characters, without controls",
        ),
        (
            "name = \" \"\nopening_hours = [\"24/7\"]\ninterval = \"1 day\"".to_owned(),
            "FR",
            "1:8: a name is one line of 1 to 100 characters, without controls",
        ),
        (
            minimal("24/7", "1 day", "").replacen("\"T\"", &format!("\"{}\"", "é".repeat(101)), 1),
            "FR",
            "1:8: a name is one line of 1 to 100 characters, without controls",
        ),
        (
            "name = \"T\"\nopening_hours = []\ninterval = \"1 day\"".to_owned(),
            "FR",
            "2:17: write 1 to 32 entries, not 0",
        ),
        (
            "a".repeat(MAX_BYTES + 1),
            "FR",
            "1:1: a definition has at most 32768 bytes",
        ),
    ] {
        let found = mistakes(&definition, country);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with(expected), "{found:?}, not {expected}");
    }
}

#[test]
fn a_limit_itself_is_accepted() {
    for definition in [
        format!("{SAMPLE}{}", " ".repeat(MAX_BYTES - SAMPLE.len())),
        SAMPLE.replace("Tour", &"é".repeat(100)),
        "name = \"T\"\nopening_hours = [\"24/7\"]\ninterval = \"3 months\"\nslot_length = \"1 day\""
            .to_owned(),
    ] {
        let parsed = TimeSlot::parse(&definition, "FR");
        assert!(parsed.is_ok(), "{parsed:?}");
    }
}

#[test]
fn a_thousand_slots_start_within_an_interval_at_most() {
    let definition = |days: u32| {
        format!(
            "name = \"T\"\nopening_hours = [\"Mo-Su 00:00-20:00\"]\n\
             interval = \"{days} days\"\nslot_length = \"1 hour\""
        )
    };

    assert!(TimeSlot::parse(&definition(50), "FR").is_ok());
    assert_eq!(
        mistakes(&definition(51), "FR"),
        [
            "3:12: 1020 slots would start within 51 days, at most 1000 are allowed: \
             shorten the interval or lengthen the slots"
        ]
    );
}

#[test]
fn a_hostile_definition_gets_a_short_response() {
    for definition in [
        (0..2000)
            .map(|key| format!("k{key} = 1"))
            .collect::<Vec<_>>()
            .join("\n"),
        format!("name = {}", "[".repeat(30_000)),
        "= \n".repeat(10_000),
        format!(
            "{} = \"{}\"\ninterval = \"{0}\"",
            "k".repeat(9000),
            "v".repeat(9000)
        ),
        format!("opening_hours = [{}]", "\"x\",".repeat(5000)),
        format!("opening_hours = [{}]", "\"é(\",".repeat(32)),
    ] {
        let found = mistakes(&definition, "FR");
        assert!((1..=20).contains(&found.len()), "{found:?}");
        assert!(
            found.iter().map(String::len).sum::<usize>() < 6000,
            "{found:?}"
        );
    }
}

#[test]
fn invalid_toml_is_reported_with_its_position() {
    let found = mistakes("name = \nclosed = [\n", "FR");

    assert!(
        found.iter().any(|mistake| mistake.starts_with("1:8: ")),
        "{found:?}"
    );
}

/// Opening hours, mostly a weekly pattern: days, hours, and an exception.
fn opening_hours() -> impl Strategy<Value = String> {
    let days = prop_oneof![
        7 => "Mo|Tu-Sa|Mo-Su|Sa,Su|Mo,We-Fr",
        1 => "Jan-Mar Fr|week 1-53/2 Tu|Dec 24-Jan 2",
    ];
    let hours = prop_oneof![
        7 => "0[6-9]:[0-5]0-1[0-2]:[0-5]0(,1[3-5]:00-1[6-9]:30)?|22:00-26:00",
        1 => "sunset-23:00",
    ];
    let exception = prop_oneof![4 => Just(String::new()), 1 => "; PH off", 1 => "; Sa off| x"];
    (days, hours, exception).prop_map(|(days, hours, rest)| format!("{days} {hours}{rest}"))
}

#[test]
fn every_choice_of_a_valid_definition_is_accepted() {
    let interval = "[1-9] days|[1-4]0 hours|1 month";
    let more = "|prior_notice = \"[1-9] hours\"|slot_length = \"[1-9]0 minutes\"|capacity = [1-9]";
    let now: jiff::Zoned = "2026-10-24T12:00[Europe/Paris]".parse().unwrap();
    let (cases, choices, rejected) = (Cell::new(0), Cell::new(0), RefCell::new(Vec::new()));
    TestRunner::default()
        .run(
            &(opening_hours(), interval, more),
            |(entry, interval, more)| {
                cases.set(cases.get() + 1);
                let definition = format!(
                    "name = \"T\"\nopening_hours = [\"{entry}\"]\ninterval = \"{interval}\"\n{more}"
                );
                let time_slot = match TimeSlot::parse(&definition, "FR") {
                    Ok(time_slot) => time_slot,
                    Err(mistakes) => {
                        rejected
                            .borrow_mut()
                            .push(format!("{entry}: {}", mistakes[0]));
                        return Ok(());
                    }
                };
                prop_assert!(!time_slot.opening_hours_specification(&now).is_empty());
                for choice in time_slot.choices(&now, |_| 0) {
                    choices.set(choices.get() + 1);
                    prop_assert_eq!(time_slot.rejection(choice, &now, |_| 0), None);
                }
                Ok(())
            },
        )
        .unwrap();
    let (cases, choices, rejected) = (cases.get(), choices.get(), rejected.into_inner());
    assert!(2 * rejected.len() <= cases, "of {cases}: {rejected:#?}");
    assert!(choices >= cases, "{choices} choices of {cases} definitions");
}

proptest! {
    #[test]
    fn no_definition_panics_the_parser(
        entry in "(Mo|Tu-Sa|PH|SH|Feb 29|easter|week 1-53/2|2026-2030/2|Mo\\[-1\\]|24/7|Dec 24-Jan 2|;|,| |10:00-12:00|22:00-26:00|off|open|unknown|\\|\\|| \\+2 days|sunset|\"x\"){0,8}",
        interval in "[0-9]{1,3} (hours|days|months)",
        rest in "\\PC{0,40}",
    ) {
        let entry = entry.replace('"', "\\\"");
        let definition = format!("name = \"T\"\nopening_hours = [\"{entry}\"]\ninterval = \"{interval}\"\n{rest}");
        for definition in [definition, rest, format!("opening_hours = [\"{entry}\"]")] {
            let _ = TimeSlot::parse(&definition, "FR");
        }
    }
}
