//! Durations: abbreviated units, numbers that look like UTC offsets, fractions.

use super::{assert_not_understood, assert_parsed, assert_rejected};

#[test]
fn a_signed_number_with_an_abbreviated_unit_is_a_duration() {
    for (text, local) in [
        ("+2h", "2026-10-21T16:30:45"),
        ("+2 h", "2026-10-21T16:30:45"),
        ("+ 2h", "2026-10-21T16:30:45"),
        ("+2H", "2026-10-21T16:30:45"),
        ("+2 hrs", "2026-10-21T16:30:45"),
        ("+1hr", "2026-10-21T15:30:45"),
        ("+30m", "2026-10-21T15:00:45"),
        ("+90 m", "2026-10-21T16:00:45"),
        ("+30s", "2026-10-21T14:31:15"),
        ("+24h", "2026-10-22T14:30:45"),
        ("+1d", "2026-10-22T14:30:45"),
        ("+1w", "2026-10-28T14:30:45"),
        ("+1h30", "2026-10-21T16:00:45"),
        ("+1h30m", "2026-10-21T16:00:45"),
        ("+1h 30", "2026-10-21T16:00:45"),
        ("+1d2h30min", "2026-10-22T17:00:45"),
        ("+1h 30m 15s", "2026-10-21T16:01:00"),
        ("+1d +2h", "2026-10-22T16:30:45"),
        ("18:00 +30 h", "2026-10-23T00:00"),
        ("18:00 -36 h", "2026-10-20T06:00"),
        ("-2h", "2026-10-21T12:30:45"),
        ("-1h30", "2026-10-21T13:00:45"),
        ("tomorrow 13:00 +1h", "2026-10-22T14:00"),
        ("tomorrow 13:00 +01 h", "2026-10-22T14:00"),
        ("18:00 -2h", "2026-10-21T16:00"),
        ("18.30 Uhr -2h", "2026-10-21T16:30"),
        ("18:30 -18h15", "2026-10-21T00:15"),
        ("18:30 -18h30", "2026-10-21T00:00"),
        ("-20h 18:00", "2026-10-20T22:00"),
        ("+2 heures", "2026-10-21T16:30:45"),
        ("+2 jours", "2026-10-23T14:30:45"),
        ("+2j", "2026-10-23T14:30:45"),
        ("demain 13h +1h", "2026-10-22T14:00"),
        ("+2 Stunden", "2026-10-21T16:30:45"),
        ("+2 horas", "2026-10-21T16:30:45"),
        ("+2 ore", "2026-10-21T16:30:45"),
    ] {
        assert_parsed(text, &in_paris(local));
    }
    // A capital M may mean months, 18h may be a time of day, the minus may apply to the minutes
    // too, and years have no abbreviation.
    for text in [
        "+6M",
        "+2y",
        "+2x",
        "+2hx",
        "+h",
        "+2h x",
        "-1h 30m",
        "+1d 18h",
        "+8d 2033W04 second",
        "+2 days 18h",
        "in 2 days 18h",
        "dans 2 jours 18 heures",
    ] {
        assert_rejected(text);
    }
}

#[test]
fn a_preposition_of_duration_takes_abbreviated_units_too() {
    for (text, local) in [
        ("in 30m", "2026-10-21T15:00:45"),
        ("in 1d", "2026-10-22T14:30:45"),
        ("in 2h30", "2026-10-21T17:00:45"),
        ("in 2h and 30m", "2026-10-21T17:00:45"),
        ("within 90min", "2026-10-21T16:00:45"),
        ("dans 30m", "2026-10-21T15:00:45"),
        ("dans 2 h 30 minutes", "2026-10-21T17:00:45"),
        ("in 45 min", "2026-10-21T15:15:45"),
        ("2h from now", "2026-10-21T16:30:45"),
        ("in 2 hours from now", "2026-10-21T16:30:45"),
        ("2h ago", "2026-10-21T12:30:45"),
        ("in 2 days at 18h", "2026-10-23T18:00"),
        ("dans 2 jours à 18h", "2026-10-23T18:00"),
    ] {
        assert_parsed(text, &in_paris(local));
    }
    for text in ["in 2 hours ago", "in +2h", "in 30"] {
        assert_rejected(text);
    }
}

#[test]
fn an_offset_of_any_number_of_digits_is_rejected_without_overflow() {
    for text in [
        ",+2:5044422222222222222222",
        "10:00 +99999999999999999:00",
        "10:00 +02:00:9999999999999999999",
        "10:00 +9999999999999999999999",
    ] {
        assert_rejected(text);
    }
}

#[test]
fn a_utc_offset_follows_a_time_of_day_and_has_hours_of_two_digits() {
    for text in [
        "10:00+02:00",
        "10:00 +02:00",
        "10:00 +0200",
        "10:00 +02",
        "10 am +0200",
        "10:00 GMT+2",
        // In C's date format the year is between the time and the offset.
        "Wed Oct 21 10:00:00 2026 +0200",
        "10:00 +02:00 CEST",
    ] {
        assert_parsed(text, "2026-10-21T10:00[Europe/Paris]");
    }
    for text in [
        "10:00 +2",
        "10:00+2",
        "10:00 +200",
        "10:00 +2:00",
        "10:00 UTC+2",
        "10:00 UTC +02:00",
        "10:00 CET foo",
        // Not after a time of day in digits.
        "tomorrow +02:00",
        "tomorrow +2",
        "noon +02",
        "2026-11-25 +02:00",
    ] {
        assert_rejected(text);
    }
}

#[test]
fn only_quarters_of_an_hour_after_a_sign_or_preposition_can_be_fractions() {
    for (text, local) in [
        ("+1.5 hours", "2026-10-21T16:00:45"),
        ("+1.5h", "2026-10-21T16:00:45"),
        ("+0,75 heures", "2026-10-21T15:15:45"),
        ("in 1.25 hours", "2026-10-21T15:45:45"),
        ("dans 1,5 heure", "2026-10-21T16:00:45"),
        ("in 2,5 Stunden", "2026-10-21T17:00:45"),
        ("tomorrow 13:00 +1.5 hours", "2026-10-22T14:30"),
        ("10:00 +01.5 hours", "2026-10-21T11:30"),
    ] {
        assert_parsed(text, &in_paris(local));
    }
    for text in [
        "1.5 hours",
        "1,5 hours",
        ".5 hours",
        "+.5 hours",
        "tomorrow 10:00,5 hours",
        "10:00 .5 hours",
        "+1.3 hours",
        "in 2.30 hours",
        "+1.5 days",
    ] {
        assert_rejected(text);
    }
}

#[test]
fn a_duration_beside_a_preposition_and_another_time_is_rejected() {
    assert_not_understood(&[
        ("15 min before 18:00", "15 min", "before"),
        ("15min before 18:00", "15min", "before"),
        ("+15m before 18:00", "+15m", "before"),
        ("2 days before friday", "2 days", "before"),
        ("2 days before", "2 days", "before"),
        ("3 weekdays before friday", "3 weekdays", "before"),
        ("half an hour before noon", "half an hour", "before"),
        ("an hour before 18:00", "an hour", "before"),
        ("2 hours by 18:00", "2 hours", "by"),
        ("in 2 days before 18:00", "in 2 days", "before"),
        ("2 days after friday", "2 days", "after"),
        ("1 hour until noon", "1 hour", "until"),
        ("10 minutes past 6pm", "10 minutes", "past"),
        ("15 minutes to 18:00", "15 minutes", "to"),
        ("2 hours from 18:00", "2 hours", "from"),
        ("30 minutes avant 18h", "30 minutes", "avant"),
        ("2 heures avant midi", "2", "heures"),
        ("30 minutes jusqu'à 18h", "30 minutes", "jusqu'à"),
        ("2 jours après lundi", "2 jours", "après"),
        ("2 Stunden vor 18 Uhr", "2 Stunden", "vor"),
        ("30 Minuten bis 18 Uhr", "30 Minuten", "bis"),
        ("2 Tage vor dem 25. November", "2 Tage", "vor"),
        ("2 Stunden nach 18 Uhr", "2 Stunden", "nach"),
        ("30 minutos antes de las 18", "30 minutos", "antes"),
        ("2 días antes del lunes", "2 días", "antes"),
        ("30 minuti prima delle 18", "30 minuti", "prima"),
        ("un'ora prima delle 18", "un'ora", "prima"),
        ("2 giorni prima di lunedì", "2 giorni", "prima"),
        ("30 minutos para las 18", "30 minutos", "para"),
        ("15 minuti alle 18", "15 minuti", "alle"),
        ("15 minuti per le 18", "15 minuti", "per"),
        ("15 minutes pour 18h", "15 minutes", "pour"),
        ("+15m pour 18h", "+15m", "pour"),
        ("15 Minuten um 18", "15 Minuten", "um"),
    ]);
    for (text, local) in [
        ("the day after tomorrow before 10:00", "2026-10-23T10:00"),
        ("vor 18 Uhr", "2026-10-21T18:00"),
        ("morgen vor 18 Uhr", "2026-10-22T18:00"),
        ("vor einer halben Stunde", "2026-10-21T14:00:45"),
        ("vor dem 25. November", "2026-11-25T00:00"),
        ("dans 2 jours pour 18h", "2026-10-23T18:00"),
        ("2 giorni alle 18", "2026-10-23T18:00"),
    ] {
        assert_parsed(text, &in_paris(local));
    }
}

#[test]
fn a_duration_of_clock_units_from_now_beside_a_day_or_a_time_of_day_is_rejected() {
    assert_not_understood(&[
        ("heute in 2 Stunden", "heute", "in"),
        ("today in 2 hours", "today", "in"),
        ("in 2 hours today", "", "in"),
        ("today, 2 hours from now", "today, 2 hours", "from"),
        ("aujourd'hui dans 2 heures", "aujourd'hui", "dans"),
        ("dans 2 heures aujourd'hui", "", "dans"),
        ("hoy dentro de 2 horas", "hoy", "dentro"),
        ("domani tra 2 ore", "domani", "tra"),
        ("in 2 hours monday", "", "in"),
        ("in 2 hours on 25 november", "in 2 hours", "on"),
        ("2026-11-25 in 30 min", "2026-11-25", "in"),
        ("in 2 hours at 18:00", "in 2 hours", "at"),
        ("heute Abend in 2 Stunden", "heute Abend", "in"),
    ]);
    for (text, local) in [
        ("in 2 days, 18:00", "2026-10-23T18:00"),
        ("today +20 hours", "2026-10-21T20:00"),
    ] {
        assert_parsed(text, &in_paris(local));
    }
}

fn in_paris(local: &str) -> String {
    format!("{local}[Europe/Paris]")
}
