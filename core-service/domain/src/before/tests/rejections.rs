//! Rejected texts, and the advice in their messages.

use super::{assert_parsed, assert_rejected, now};
use crate::before::{DateOrder, Error, parse};

/// The end of the message about a text that is not understood.
const ADVICE: &str = "; write a time such as 2026-11-25 17:30, tomorrow 17:30 or +2h";

#[test]
fn rejected_texts_get_a_message_about_their_mistake() {
    let rows = [
        (
            "2026-11-25 10:00-11:00",
            r#""10:00-11:00" is a range, not one time: use timeSlot"#,
        ),
        (
            "24 dec 10:00-11:00",
            r#""10:00-11:00" is a range, not one time: use timeSlot"#,
        ),
        (
            "tomorrow 10:00 - 11:00",
            r#""10:00 - 11:00" is a range, not one time: use timeSlot"#,
        ),
        (
            "tomorrow 9am-11am",
            r#""9am-11am" is a range, not one time: use timeSlot"#,
        ),
        (
            "2026-11-25T18:00-19:00",
            r#""T18:00-19:00" is a range, not one time: use timeSlot"#,
        ),
        (
            "2026-11-25T10:00:00Z/2026-11-25T11:00:00Z",
            r#""2026-11-25T10:00:00Z/2026-11-25T11:00:00Z" is a range, not one time: use timeSlot"#,
        ),
        ("2026-02-30", "2026-02-30 is not a date of the calendar"),
        (
            "31 november 10:00",
            "2026-11-31 is not a date of the calendar",
        ),
        (
            "03/12/2026 10:00",
            r#""03/12/2026" is ambiguous: write 2026-12-03 or 2026-03-12"#,
        ),
        (
            "10:00 11:00",
            r#"understood "10:00", but "11:00" is a second time: write only one"#,
        ),
        (
            "10:00 UTC CET EST",
            r#"understood "10:00 UTC", but "CET" is a second time zone: write only one"#,
        ),
        (
            "10:00 IST",
            r#""IST" is the abbreviation of several time zones: write an offset such as +02:00 or a name such as Europe/Paris"#,
        ),
        (
            "10:00 +05:00 (ist)",
            r#""ist" is the abbreviation of several time zones: write an offset such as +02:00 or a name such as Europe/Paris"#,
        ),
        (
            "UTC @1792600000",
            r#"understood "UTC", but "@1792600000" is a second time zone: write only one"#,
        ),
        (
            "2026-11-25T14:00:00+99:00",
            r#""+99:00" is not a UTC offset: they are from -12:00 to +14:00"#,
        ),
        (
            "10:00 +15:00",
            r#""+15:00" is not a UTC offset: they are from -12:00 to +14:00"#,
        ),
        (
            "24 H",
            r#""24 H" is a time of day or a duration: write 24:00 or +24h"#,
        ),
        (
            "tonight 8:00",
            r#""tonight" needs a time of day with it, from 12:00 to 23:59"#,
        ),
        (
            "demain soir à 8h",
            r#""soir" needs a time of day with it, from 16:00 to 23:59"#,
        ),
        (
            "@99999999999999999999",
            "out of range: dates are from the year 2000 to ten years ahead",
        ),
        (
            "   ",
            "empty: write a time such as 2026-11-25 17:30, tomorrow 17:30 or +2h",
        ),
    ];
    for (text, message) in rows {
        let error = parse(text, &now(), DateOrder::DayFirst).unwrap_err();
        assert_eq!(error.to_string(), message, "{text:?}");
    }
    let long = "tomorrow ".repeat(20);
    assert_eq!(
        parse(&long, &now(), DateOrder::DayFirst),
        Err(Error::TooLong {
            length: 180,
            limit: 128
        })
    );
}

#[test]
fn a_preposition_alone_is_not_a_time() {
    for text in [
        "at", "by", "in", "before", "à", "um", "alle", "a las", "at at",
    ] {
        let parsed = parse(text, &now(), DateOrder::DayFirst);
        assert!(
            matches!(parsed, Err(Error::Unrecognized { .. })),
            "{text:?}: {parsed:?}"
        );
    }
}

#[test]
fn the_message_about_an_unrecognized_text_shows_texts_that_are_recognized() {
    for (text, understood) in [
        ("10:00 A", r#"understood "10:00", but not "A""#),
        (
            "tomorrow 13h75",
            r#"understood "tomorrow", but not "13h75""#,
        ),
        (
            "tomorrow 10:75",
            r#"understood "tomorrow", but not "10:75""#,
        ),
        (
            "demain à 10h pile",
            r#"understood "demain à 10h", but not "pile""#,
        ),
        ("asap", r#"not understood: "asap""#),
        ("30m", r#"not understood: "30m""#),
        (
            "15 min before 18:00",
            r#"understood "15 min", but not "before""#,
        ),
    ] {
        let error = parse(text, &now(), DateOrder::DayFirst).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("{understood}{ADVICE}"),
            "{text:?}"
        );
    }
    // For a signed number, the message also shows how a UTC offset is written.
    let error = parse("10:00 +2", &now(), DateOrder::DayFirst).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(r#"understood "10:00", but not "+2"{ADVICE}; a UTC offset is written +02:00"#)
    );
    // The texts that the advice names are parsed.
    assert_parsed("2026-11-25 17:30", "2026-11-25T17:30[Europe/Paris]");
    assert_parsed("tomorrow 17:30", "2026-10-22T17:30[Europe/Paris]");
    assert_parsed("+2h", "2026-10-21T16:30:45[Europe/Paris]");
}

#[test]
fn a_zone_without_a_time_of_day_and_punctuation_are_rejected() {
    for text in [
        ".",
        "..",
        ", ,",
        "UTC",
        "Z",
        "CET",
        "(UTC)",
        "Europe/Paris",
        "+02:00",
        "+0200",
        "+2",
        "GMT+2",
        "UTC UTC",
        "now UTC",
        "+2 hours UTC",
        "next week CET",
    ] {
        assert_rejected(text);
    }
}

#[test]
fn most_parts_of_the_day_need_a_time_of_day_within_them() {
    for text in [
        "tomorrow morning",
        "monday afternoon",
        "friday night",
        "this morning",
        "lundi après-midi",
        "demain soir",
        "morgen früh",
        "Montag morgen",
        "am Abend des 24. Dezember",
        "morning",
        "tomorrow morning 14:00",
        "tomorrow evening 8:00",
        "a las 8 de la tarde",
        "um 12:30 am Montag",
        "um 8 Uhr abends",
    ] {
        assert_rejected(text);
    }
    for (text, local) in [
        ("tomorrow morning 9:30", "2026-10-22T09:30"),
        ("tomorrow evening at 8pm", "2026-10-22T20:00"),
        ("this afternoon 15:00", "2026-10-21T15:00"),
        ("demain matin à 9h", "2026-10-22T09:00"),
        ("lundi soir 20h30", "2026-10-26T20:30"),
        ("8h du matin", "2026-10-21T08:00"),
        ("morgen früh um 8 Uhr", "2026-10-22T08:00"),
        ("morgen Abend um 20 Uhr", "2026-10-22T20:00"),
        ("Montag morgen um 9 Uhr", "2026-10-26T09:00"),
        ("heute morgen um 9 Uhr", "2026-10-21T09:00"),
        ("am Abend des 24. Dezember um 18 Uhr", "2026-12-24T18:00"),
        ("hoy a las 9 de la mañana", "2026-10-21T09:00"),
        ("mañana por la tarde a las 16:00", "2026-10-22T16:00"),
        ("domani sera alle 20", "2026-10-22T20:00"),
        ("this evening", "2026-10-21T20:00"),
        ("by 12:30 am", "2026-10-21T00:30"),
        ("tomorrow 12:30 am +1h", "2026-10-22T01:30"),
        ("um 10:00 am Montag", "2026-10-26T10:00"),
        ("um 18:00 am Montag", "2026-10-26T18:00"),
        ("um 12 Uhr am Montag", "2026-10-26T12:00"),
    ] {
        assert_parsed(text, &format!("{local}[Europe/Paris]"));
    }
}

/// `13h` to `23h`, or an hour with `h` beside a day or a preposition.
#[test]
fn an_hour_is_a_time_of_day_if_nothing_else_can_be_meant() {
    for (text, local) in [
        ("14h", "2026-10-21T14:00"),
        ("17h30", "2026-10-21T17:30"),
        ("à 2h", "2026-10-21T02:00"),
        ("avant 10h", "2026-10-21T10:00"),
        ("demain 8h", "2026-10-22T08:00"),
        ("lundi 10h30", "2026-10-26T10:30"),
        ("tomorrow 13h +1h", "2026-10-22T14:00"),
    ] {
        assert_parsed(text, &format!("{local}[Europe/Paris]"));
    }
    for text in [
        "12h",
        "10h30",
        "0h",
        "24h",
        "2 h",
        "48h",
        "five o'clock",
        "six heures et demie",
        "las seis y media",
        "le sei e mezza",
        "5",
        "at 5",
    ] {
        assert_rejected(text);
    }
}

/// Phrases in five languages that are rejected, and the messages, without the general advice.
const PHRASES: &str = r#"
Monday morning                   -> "morning" needs a time of day with it, from 00:00 to 11:59
tomorrow evening                 -> "evening" needs a time of day with it, from 16:00 to 23:59
demain matin                     -> "matin" needs a time of day with it, from 00:00 to 11:59
lundi soir                       -> "soir" needs a time of day with it, from 16:00 to 23:59
Montag früh                      -> "früh" needs a time of day with it, from 00:00 to 11:59
morgen Abend                     -> "Abend" needs a time of day with it, from 16:00 to 23:59
mañana por la mañana             -> "por la mañana" needs a time of day with it, from 00:00 to 11:59
lunes por la tarde               -> "por la tarde" needs a time of day with it, from 12:00 to 19:59
domani mattina                   -> "mattina" needs a time of day with it, from 00:00 to 11:59
lunedì sera                      -> "sera" needs a time of day with it, from 16:00 to 23:59
half past five                   -> not understood: "half"
cinq heures et demie             -> understood "cinq", but not "heures"
halb sechs                       -> not understood: "halb"
las cinco y media                -> understood "las cinco", but not "y"
le cinque e mezza                -> understood "le cinque", but not "e"
quarter to six tomorrow          -> not understood: "quarter"
demain six heures moins le quart -> understood "demain six", but not "heures"
morgen Viertel vor sechs         -> understood "morgen", but not "Viertel"
mañana a las seis menos cuarto   -> understood "mañana a las", but not "seis"
domani alle sei meno un quarto   -> understood "domani alle", but not "sei"
2h                               -> "2h" is a time of day or a duration: write 02:00 or +2h
1h30                             -> "1h30" is a time of day or a duration: write 01:30 or +1h30
2 heures                         -> "2 heures" is a time of day or a duration: write 02:00 or +2h
2 horas                          -> "2 horas" is a time of day or a duration: write 02:00 or +2h
2 ore                            -> "2 ore" is a time of day or a duration: write 02:00 or +2h
14 heures                        -> "14 heures" is a time of day or a duration: write 14:00 or +14h
18 horas                         -> "18 horas" is a time of day or a duration: write 18:00 or +18h
2 heures 30                      -> "2 heures 30" is a time of day or a duration: write 02:30 or +2h30
"#;

#[test]
fn common_phrases_that_are_rejected_get_these_messages() {
    for row in PHRASES.trim().lines() {
        let (text, message) = row.split_once("->").unwrap();
        let error = parse(text.trim(), &now(), DateOrder::DayFirst).unwrap_err();
        let actual = error.to_string();
        let actual = actual.strip_suffix(ADVICE).unwrap_or(&actual);
        assert_eq!(actual, message.trim(), "{text:?}");
    }
}
