//! Texts that may mean two times: hours after `d'ici`, ranges, several days and durations.

use super::{assert_messages, assert_not_understood, assert_parsed, now};
use crate::before::{DateOrder, parse};

fn assert_all_parsed(rows: &[(&str, &str)]) {
    for (text, local) in rows {
        assert_parsed(text, &format!("{local}[Europe/Paris]"));
    }
}

#[test]
fn hours_after_d_ici_are_ambiguous_and_rejected() {
    const MIDDLE: &str = "is a time of day or a duration: write";
    for (text, quoted, time, duration) in [
        ("d'ici 18h", "d'ici 18h", "d'ici à 18h", "dans 18 h"),
        ("d’ici 2h30", "d’ici 2h30", "d'ici à 2h30", "dans 2 h 30"),
        ("d'ici 2 heures", "d'ici 2 heures", "d'ici à 2h", "dans 2 h"),
        (
            "d'ici 18 heures 30",
            "d'ici 18 heures 30",
            "d'ici à 18h30",
            "dans 18 h 30",
        ),
        (
            "d'ici à 2 heures",
            "d'ici à 2 heures",
            "d'ici à 2h",
            "dans 2 h",
        ),
        (
            "d'ici deux heures",
            "d'ici deux heures",
            "d'ici à 2h",
            "dans 2 h",
        ),
        ("demain d'ici 18h", "d'ici 18h", "d'ici à 18h", "dans 18 h"),
        ("d'ici 18h demain", "d'ici 18h", "d'ici à 18h", "dans 18 h"),
    ] {
        let error = parse(text, &now(), DateOrder::DayFirst).map_err(|error| error.to_string());
        let message = format!("{quoted:?} {MIDDLE} {time} or {duration}");
        assert_eq!(error, Err(message), "{text:?}");
    }
    // After "d'ici à", an hour with "h" is a time of day. 48h is no time of day.
    assert_all_parsed(&[
        ("d'ici à 18h", "2026-10-21T18:00"),
        ("d'ici à 2h30", "2026-10-21T02:30"),
        ("d’ici à 18 h 30", "2026-10-21T18:30"),
        ("d'ici à 18:00", "2026-10-21T18:00"),
        ("d'ici 18:00", "2026-10-21T18:00"),
        ("d'ici à demain 18h", "2026-10-22T18:00"),
        ("d'ici demain 18h", "2026-10-22T18:00"),
        ("d'ici 48h", "2026-10-23T14:30:45"),
        ("d'ici 2 h 30 minutes", "2026-10-21T17:00:45"),
        ("d'ici 1,5 heure", "2026-10-21T16:00:45"),
        ("d'ici 30 minutes", "2026-10-21T15:00:45"),
        ("d'ici à 30 minutes", "2026-10-21T15:00:45"),
        ("d'ici à 2 jours", "2026-10-23T14:30:45"),
        ("dans 18 h", "2026-10-22T08:30:45"),
        ("dans 2 h 30", "2026-10-21T17:00:45"),
    ]);
    assert_messages(&[(
        "30 minutes d'ici à 18h",
        "understood \"30 minutes\", but not \"d'ici\"; \
         write a time such as 2026-11-25 17:30, tomorrow 17:30 or +2h",
    )]);
}

#[test]
fn a_hyphen_after_a_time_without_seconds_is_a_range() {
    for (text, range) in [
        ("10:00 -11:00", "10:00 -11:00"),
        ("10:00 -03:00", "10:00 -03:00"),
        ("10:00 -0300", "10:00 -0300"),
        ("10:00 -03", "10:00 -03"),
        ("2026-10-21 10:00 -11:00", "10:00 -11:00"),
        ("2026-10-21 1000 -1100", "1000 -1100"),
        ("tomorrow 10:00 -11:00", "10:00 -11:00"),
    ] {
        let message = format!("{range:?} is a range, not one time: use timeSlot");
        assert_messages(&[(text, &message)]);
    }
    // No ranges: a time with seconds, after a "T" or in a date of RFC 5322, a plus sign, and a
    // number with a unit.
    assert_all_parsed(&[
        ("Wed, 21 Oct 2026 10:00:00 -0300", "2026-10-21T15:00"),
        ("Wed, 21 Oct 2026 10:00 -0300", "2026-10-21T15:00"),
        ("2026-10-21 10:00:00 -03:00", "2026-10-21T15:00"),
        ("2026-10-21 10:00:00-03:00", "2026-10-21T15:00"),
        ("2026-10-21T10:00 -03:00", "2026-10-21T15:00"),
        ("10:00:00 -03:00", "2026-10-21T15:00"),
        ("10:00 +02:00", "2026-10-21T10:00"),
        ("18:00 -2h", "2026-10-21T16:00"),
    ]);
}

#[test]
fn a_relative_day_agrees_with_the_weekday_or_the_date_beside_it() {
    assert_all_parsed(&[
        ("demain jeudi", "2026-10-22T00:00"),
        ("jeudi demain 18h", "2026-10-22T18:00"),
        ("tomorrow 22 october", "2026-10-22T00:00"),
        ("tomorrow 22 october 10:00", "2026-10-22T10:00"),
        ("2026-10-22 tomorrow 10:00", "2026-10-22T10:00"),
        ("tomorrow 2026-295", "2026-10-22T00:00"),
        (
            "tomorrow thursday 22 october 2026 18:00",
            "2026-10-22T18:00",
        ),
        ("the day after tomorrow, friday", "2026-10-23T00:00"),
        ("avant-hier lundi", "2026-10-19T00:00"),
        ("today wednesday 18:00", "2026-10-21T18:00"),
        ("yesterday tuesday", "2026-10-20T00:00"),
        ("après-demain vendredi 9h", "2026-10-23T09:00"),
        ("tomorrow thursday 10:00 +2 hours", "2026-10-22T12:00"),
        ("mercredi ce soir", "2026-10-21T20:00"),
        ("tomorrow thursday 24:00", "2026-10-23T00:00"),
    ]);
    let tomorrow = "is Thursday 2026-10-22, not";
    let today = "is Wednesday 2026-10-21, not";
    for (text, word, day, other) in [
        ("demain vendredi", "demain", tomorrow, r#""vendredi""#),
        ("Friday, tomorrow", "tomorrow", tomorrow, r#""Friday""#),
        ("today friday", "today", today, r#""friday""#),
        ("ce soir le vendredi", "ce soir", today, r#""vendredi""#),
        ("tomorrow 25 november", "tomorrow", tomorrow, "2026-11-25"),
        ("demain 25 novembre 18h", "demain", tomorrow, "2026-11-25"),
        ("tomorrow november", "tomorrow", tomorrow, "2026-11-22"),
        ("today 2026-10-22", "today", today, "2026-10-22"),
        (
            "the day after tomorrow, 22 october",
            "the day after tomorrow",
            "is Friday 2026-10-23, not",
            "2026-10-22",
        ),
    ] {
        let message = format!("{word:?} {day} {other}: write only one of the two");
        assert_messages(&[(text, &message)]);
    }
    assert_messages(&[(
        "tomorrow 2026-02-30",
        "2026-02-30 is not a date of the calendar",
    )]);
}

#[test]
fn a_weekday_agrees_with_the_date_beside_it() {
    assert_all_parsed(&[
        ("Wednesday 25 November 2026 10:00", "2026-11-25T10:00"),
        ("2026-11-25 wednesday", "2026-11-25T00:00"),
        ("wed 2026-329", "2026-11-25T00:00"),
        ("2026-W48-3 wednesday", "2026-11-25T00:00"),
        ("2026-W48-3 wednesday +2 days", "2026-11-27T00:00"),
        ("2026-W48 +8d", "2026-12-01T00:00"),
        ("wednesday 25 november 24:00", "2026-11-26T00:00"),
        ("2026-11-25 next monday", "2026-11-30T00:00"),
        ("monday november 2026", "2026-11-02T00:00"),
    ]);
    for (text, weekday) in [
        ("friday 2026-11-25", "friday"),
        ("Fri, 25 Nov 2026 10:00:00 +0100", "Fri"),
        ("vendredi 25 novembre 18h", "vendredi"),
        ("2026-W48-3 friday", "friday"),
        ("2026-329 friday", "friday"),
    ] {
        let message =
            format!("2026-11-25 is a Wednesday, not {weekday:?}: write only one of the two");
        assert_messages(&[(text, &message)]);
    }
    assert_messages(&[
        (
            "2026-W48 thursday",
            r#"2026-11-23 is a Monday, not "thursday": write only one of the two"#,
        ),
        (
            "friday 2026-02-30",
            "2026-02-30 is not a date of the calendar",
        ),
    ]);
}

#[test]
fn a_second_day_is_rejected() {
    for (text, understood, second) in [
        ("+8 days 2026-W48", "+8 days", "2026-W48"),
        // The amount is quoted, also if the other day follows it.
        ("in 2 days, friday 18:00", "in", "2"),
        ("Freitag in 2 Tagen", "Freitag in", "2"),
        ("dans 2 jours, le 23 octobre 18h", "dans", "2"),
        ("tomorrow in 2 days", "tomorrow in", "2"),
        ("in 2 weeks on monday 9:00", "in", "2"),
        ("in 2 days and 3 hours, friday", "in", "2"),
        ("+8d 2026W48 friday", "+8d", "2026W48"),
        ("tomorrow today", "tomorrow", "today"),
        ("demain ce soir", "demain", "ce"),
        ("monday tuesday", "monday", "tuesday"),
        ("monday 18:00 next friday", "monday 18:00", "next"),
        ("next monday friday", "next monday", "friday"),
        ("thu Friday 2019-W24-5", "thu", "Friday"),
        (
            "yesterday fri friday saturdays",
            "yesterday fri friday",
            "saturdays",
        ),
        ("tomorrow next monday", "tomorrow", "next"),
        ("tomorrow next week", "tomorrow", "next"),
        ("2 days tomorrow", "2 days", "tomorrow"),
        ("tomorrow +1 week tomorrow", "tomorrow +1 week", "tomorrow"),
        ("2027-W40 tomorrow", "2027-W40", "tomorrow"),
        ("2024-W01 tomorrow", "2024-W01", "tomorrow"),
        ("tomorrow 2027-W01", "tomorrow", "2027-W01"),
        ("tomorrow thursday +1 day", "tomorrow thursday", "+1"),
        ("today --16year thursday", "today --16year", "thursday"),
        ("tomorrow 22 october +1 week", "tomorrow 22 october", "+1"),
        ("tomorrow last day of october", "tomorrow", "last"),
        (
            "last day of october friday",
            "last day of october",
            "friday",
        ),
        ("@1790000000 tomorrow", "@1790000000", "tomorrow"),
        ("@1790000000 monday", "@1790000000", "monday"),
    ] {
        let message =
            format!("understood {understood:?}, but {second:?} is a second day: write only one");
        assert_messages(&[(text, &message)]);
    }
    assert_all_parsed(&[
        ("monday monday 18:00", "2026-10-26T18:00"),
        ("tomorrow tomorrow", "2026-10-22T00:00"),
        ("monday next week", "2026-10-26T00:00"),
        ("tomorrow +1 week", "2026-10-29T00:00"),
        ("today +1 month", "2026-11-21T00:00"),
        ("first day of next month 10:00", "2026-11-01T10:00"),
    ]);
}

#[test]
fn hours_without_a_direction_beside_a_time_and_days_beside_a_day_are_rejected() {
    assert_not_understood(&[
        ("18:00 15 minutes", "18:00", "15"),
        // The sign is that of the days.
        ("+2 days 18:00 15 minutes", "+2 days 18:00", "15"),
        ("monday 2 hours", "monday", "2"),
        ("tomorrow 2 hours", "tomorrow", "2"),
        ("today, 90 min", "today,", "90"),
        ("2026-11-25 2 hours", "2026-11-25", "2"),
        ("2026-11-25 3 days", "2026-11-25", "3"),
        ("friday 2 weeks", "friday", "2"),
        ("demain 20 minutes", "demain", "20"),
        ("mercredi 30 minutes", "mercredi", "30"),
        ("noon half an hour", "noon", "half"),
        ("15 minutes 18:00", "", "15"),
        ("15 Minuten am Montag", "15", "Minuten"),
        ("15 minutes lundi", "15 minutes", "lundi"),
        ("2 days friday", "", "2"),
        ("15 minutes at 18:00", "15 minutes", "at"),
        ("2 hours on monday", "2 hours", "on"),
    ]);
    assert_all_parsed(&[
        ("18:00 +15 minutes", "2026-10-21T18:15"),
        ("18:00 +1 hour 30 minutes", "2026-10-21T19:30"),
        ("tomorrow 00:00 +1 hour and 30 minutes", "2026-10-22T01:30"),
        // Not ambiguous: at that time, after two days.
        ("2 days 18:00", "2026-10-23T18:00"),
        ("1 hour 30 minutes", "2026-10-21T16:00:45"),
        ("2 mondays", "2026-11-02T14:30:45"),
    ]);
}

#[test]
fn hours_ago_beside_a_time_and_days_ago_beside_a_day_are_rejected() {
    assert_not_understood(&[
        (
            "il y a 2 heures aujourd'hui",
            "il y a 2 heures",
            "aujourd'hui",
        ),
        ("heute vor 2 Stunden", "heute vor 2", "Stunden"),
        ("today 2 hours ago", "today 2 hours", "ago"),
        ("2 hours ago today", "2 hours", "ago"),
        ("monday 30 minutes ago", "monday 30 minutes", "ago"),
        ("18:00 2 hours ago", "18:00 2 hours", "ago"),
        ("tomorrow 2 days ago", "tomorrow 2 days", "ago"),
    ]);
    assert_all_parsed(&[
        ("2 days ago 18:00", "2026-10-19T18:00"),
        ("2 days ago 18:00 +1 hour", "2026-10-19T19:00"),
        ("2 hours ago", "2026-10-21T12:30:45"),
        ("in 2 days at 18:00", "2026-10-23T18:00"),
    ]);
}
