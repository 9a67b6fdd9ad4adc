//! Numbers: every text of some forms, none of which is read in one of several ways, and texts with dots.

use std::collections::HashSet;

use jiff::civil::Date;

use super::two_readings::{assert_read, assert_refused, read};
use crate::before::{DateOrder, parse};

/// The days of a text of three numbers, read in each order, and as a time of day with dots.
fn days_of(separator: char, numbers: [i8; 3], has_time: bool) -> HashSet<Date> {
    let [first, second, third] = numbers;
    let day = |year: i8, month: i8, day: i8| Date::new(2000 + i16::from(year), month, day).ok();
    let mut days = vec![day(third, second, first)];
    if separator != '.' {
        days.extend([day(third, first, second), day(first, second, third)]);
    } else if !has_time && first < 24 && second < 60 && third < 60 {
        days.push(Date::new(2026, 11, 29).ok());
    }
    days.into_iter().flatten().collect()
}

#[test]
fn three_numbers_are_read_only_if_all_their_readings_are_of_one_day() {
    let numbers = (1..=31).step_by(2).flat_map(|first| {
        (1..=13).flat_map(move |second| (24..=33).map(move |third| [first, second, third]))
    });
    for numbers @ [first, second, third] in numbers {
        for (separator, time) in [('.', ""), ('.', " 18:00"), ('-', ""), ('/', " 18:00")] {
            let text = format!("{first:02}{separator}{second:02}{separator}{third}{time}");
            let days = days_of(separator, numbers, !time.is_empty());
            if let Ok(instant) = read(&text) {
                let day = instant.in_tz("Europe/Paris").unwrap().date();
                assert_eq!(HashSet::from([day]), days, "{text:?}");
            }
        }
    }
}

#[test]
fn a_country_that_writes_the_month_first_refuses_what_may_have_its_year_first() {
    let now = "2026-11-29T10:00[America/New_York]".parse().unwrap();
    let read_there = |text: &str| parse(text, &now, DateOrder::MonthFirst);
    for (first, second, third) in (1..=31).flat_map(|first| {
        (1..=31).flat_map(move |second| (24..=33).map(move |third| (first, second, third)))
    }) {
        let day = |month: i8, day: i8| Date::new(2000 + i16::from(third), month, day).ok();
        let year_first = Date::new(2000 + i16::from(first), second, third).ok();
        let of_country = if first <= 12 {
            day(first, second)
        } else {
            day(second, first)
        };
        let days: HashSet<_> = [of_country, year_first].into_iter().flatten().collect();
        let text = format!("{first:02}/{second:02}/{third} 18:00");
        if let Ok(instant) = read_there(&text) {
            let day = instant.in_tz("America/New_York").unwrap().date();
            assert_eq!(HashSet::from([day]), days, "{text:?}");
        }
    }
    for text in ["30/11/26 18:00", "31/12/26", "26/11/30", "24/12/26"] {
        assert!(read_there(text).is_err(), "{text:?}");
    }
    let expected = "2026-12-25T23:00:00Z".parse().unwrap();
    assert_eq!(read_there("12/25/26 18:00"), Ok(expected));
}

#[test]
fn hyphens_and_a_full_year_have_two_orders_in_a_country_that_writes_the_month_first() {
    let now = "2026-11-29T10:00[America/New_York]".parse().unwrap();
    let read_there = |text| parse(text, &now, DateOrder::MonthFirst);
    for text in ["12-05-2026 17:00", "12-05-2026", "Saturday 12-05-2026"] {
        let message = "\"12-05-2026\" is ambiguous: write 2026-05-12 or 2026-12-05";
        let error = read_there(text).map_err(|error| error.to_string());
        assert_eq!(error, Err(message.to_owned()), "{text:?}");
    }
    for text in ["12-13-2026 17:00", "13-12-2026 17:00", "2026-12-13 17:00"] {
        let expected = "2026-12-13T22:00:00Z".parse().unwrap();
        assert_eq!(read_there(text), Ok(expected), "{text:?}");
    }
    assert_read(&[
        ("12-05-2026 17:00", "2026-05-12 17:00"),
        ("31-04-2026", "2026-04-31 is not a date of the calendar"),
    ]);
    assert!(read("12-13-2026").is_err());
}

#[test]
fn numbers_that_are_rather_a_mistake_in_a_date_are_refused() {
    for text in [
        "05.13.26",
        "10.25.26",
        "05.13.26 18:00",
        "0.12.",
        "15.13.",
        "10.13.",
        "32.12. 18:00",
        "32-12-26",
        "32/12/26 18:00",
        "85-03-15",
        "00-12-05",
    ] {
        assert!(read(text).is_err(), "{text:?}: {:?}", read(text));
    }
    assert_read(&[
        (
            "32-12-26",
            "\"32-12-26\" is a date with a year of two digits first: write 2032-12-26",
        ),
        ("31/12/35", "2035-12-31 00:00"),
        ("18.30.15", "2026-11-29 18:30:15"),
    ]);
}

#[test]
fn a_dot_makes_a_date_or_a_time_if_only_one_is_possible() {
    assert_read(&[
        ("Freitag, 18.12.26", "2026-12-18 00:00"),
        ("am 10.12.", "2026-12-10 00:00"),
        ("bis 10.12.", "2026-12-10 00:00"),
        ("freitag 4.12.", "2026-12-04 00:00"),
        ("07.12.26, 08:26", "2026-12-07 08:26"),
        ("25.12.26", "2026-12-25 00:00"),
        ("24.12.26 18:00", "2026-12-24 18:00"),
        ("Montag 30.11.26", "2026-11-30 00:00"),
        ("30.11.26 Mo. 18:00", "2026-11-30 18:00"),
        ("31.12.26 18:00", "2026-12-31 18:00"),
        ("bis 30.11.26, 18 Uhr", "2026-11-30 18:00"),
        ("Montag, 07.12.26", "2026-12-07 00:00"),
        ("Mo. 7.12.26", "2026-12-07 00:00"),
        ("bis 7.12.26, 18 Uhr", "2026-12-07 18:00"),
        ("18:00 07.12.26", "2026-12-07 18:00"),
        ("am 4.12. um 18 Uhr", "2026-12-04 18:00"),
        ("4.12.", "2026-12-04 00:00"),
        ("Fr 4.12. 18:00", "2026-12-04 18:00"),
        ("donnerstag 3.12.", "2026-12-03 00:00"),
        ("freitag 4.12", "2026-12-04 00:00"),
        ("um 10.12", "2026-11-29 10:12"),
        ("um 10.12 Uhr", "2026-11-29 10:12"),
        ("10.12 Uhr", "2026-11-29 10:12"),
        ("18.30", "2026-11-29 18:30"),
        ("18.30.15", "2026-11-29 18:30:15"),
        ("morgen 9.05", "2026-11-30 09:05"),
        ("5.05pm", "2026-11-29 17:05"),
        ("2026-12-01 9.05", "2026-12-01 09:05"),
        ("10.12. 9.05", "2026-12-10 09:05"),
        ("18:00 10.12", "2026-12-10 18:00"),
        ("10.12. 2027", "2027-12-10 00:00"),
        ("Freitag 4.12 18:00 +02:00", "2026-12-04 17:00"),
        ("Freitag 4.12 CET", "2026-12-04 00:00"),
        ("30.2.", "2026-02-30 is not a date of the calendar"),
        ("31.4. 18:00", "2026-04-31 is not a date of the calendar"),
    ]);
    assert_refused(&[
        "07.12.26",
        "30.11.26",
        "26.11.30",
        "bis 31.12.26",
        "Dienstag 30.11.26",
        "32.12.26",
        "10.12",
        "am 10.12",
        "bis 9.05",
        "montag 10.12",
        "montag 18.12.26",
        "8.11.26",
        "9.1.27",
        "4.12",
        "24.12.26 07.01.27",
        "morgen 07.12.26",
        "in 2 days 07.12.26",
        "december 2026 7.12",
        "5. Dezember 20261205",
        "2026-W50-15.12.26",
        "07.12.26 am Montag",
        "5.7 dec 2026",
        "24.12. -10:00",
        "24.12.26 -10:00",
        "24.12 -10",
        "freitag 4.12. +02:00",
        "freitag 4.12 +02:00",
        "18:00 4.12. +02:00",
    ]);
}

#[test]
fn two_numbers_with_a_dot_are_read_only_if_they_are_no_day_of_another_month() {
    for (first, second) in (0..=23).flat_map(|first| (0..=59).map(move |second| (first, second))) {
        let date = Date::new(2026, second, first).ok();
        for text in [
            format!("{first}.{second:02}"),
            format!("am {first}.{second:02}"),
        ] {
            assert!(read(&text).is_err() || date.is_none(), "{text:?}");
        }
        let text = format!("{first}.{second:02}.");
        if let (Ok(instant), Some(date)) = (read(&text), date) {
            assert_eq!(
                instant.in_tz("Europe/Paris").unwrap().date(),
                date,
                "{text:?}"
            );
        }
    }
}

#[test]
fn an_hour_with_h_is_never_a_day_or_a_year() {
    let months = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
        "janv.", "févr.", "mai", "juin", "Okt.", "Dez.", "ene", "gen", "lug",
    ];
    for month in months {
        for hour in 0..=24 {
            for text in [
                format!("{month} {hour}h"),
                format!("{month} {hour}h30"),
                format!("{month} {hour} h 30"),
                format!("{hour}h {month}"),
            ] {
                assert!(read(&text).is_err(), "{text:?}");
            }
        }
    }
}

#[test]
fn words_that_only_introduce_an_hour_or_a_month_are_understood() {
    assert_read(&[
        ("ore 18", "2026-11-29 18:00"),
        ("lunedì ore 18", "2026-11-30 18:00"),
        ("lunedì, ore 18.30", "2026-11-30 18:30"),
        ("4 dicembre 2026 ore 9", "2026-12-04 09:00"),
        ("venerdì 4 dicembre ore 18:00", "2026-12-04 18:00"),
        ("entro le ore 18", "2026-11-29 18:00"),
        ("tra 2 ore", "2026-11-29 12:00"),
        ("the 4th of december", "2026-12-04 00:00"),
        ("4th of december 2026 18:00", "2026-12-04 18:00"),
        ("on friday the 4th of december at 18:00", "2026-12-04 18:00"),
        ("first monday of december 2026", "2026-12-07 00:00"),
        ("thurs 18:00", "2026-12-03 18:00"),
        ("Thur. 18:00", "2026-12-03 18:00"),
        ("tues 18:00", "2026-12-01 18:00"),
    ]);
    assert_refused(&["2 ore 18", "ore", "friday of december", "4th of friday"]);
}

#[test]
fn the_text_of_a_javascript_date_is_read_by_its_offset() {
    let read_as = |text| (text, "2026-11-30 18:00");
    assert_read(
        &[
            "Mon Nov 30 2026 18:00:00 GMT+0100 (Central European Standard Time)",
            "Mon Nov 30 2026 18:00:00 GMT+0100 (heure normale d’Europe centrale)",
            "Mon Nov 30 2026 12:00:00 GMT-0500 (Eastern Standard Time)",
            "Mon Nov 30 2026 18:00:00 GMT+0100 (GMT+01:00)",
            "Mon Nov 30 2026 18:00:00 GMT+0100",
        ]
        .map(read_as),
    );
    assert_refused(&[
        "30 November 2026 18:00 (Central European Standard Time)",
        "Mon Nov 30 2026 18:00:00 GMT+0100 (Central",
    ]);
}
