//! Texts with two readings, by the kind of their mistake: each is refused, or the rest of the text
//! decides. Now is Sunday 29 November 2026, 10:00 in Paris.

use jiff::{Timestamp, Zoned};

use crate::before::{DateOrder, Error, parse};

pub(super) fn read(text: &str) -> Result<Timestamp, Error> {
    let now: Zoned = "2026-11-29T10:00[Europe/Paris]".parse().unwrap();
    parse(text, &now, DateOrder::DayFirst)
}

/// Asserts each text's local time or message.
#[track_caller]
pub(super) fn assert_read(rows: &[(&str, &str)]) {
    let mut failures = Vec::new();
    for (text, expected) in rows {
        let actual = match read(text) {
            Ok(instant) => {
                let local = instant.in_tz("Europe/Paris").unwrap();
                let format = if local.second() == 0 {
                    "%F %H:%M"
                } else {
                    "%F %T"
                };
                local.strftime(format).to_string()
            }
            Err(error) => error.to_string(),
        };
        if actual != *expected {
            failures.push(format!("{text:?}: {actual}, not {expected}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[track_caller]
pub(super) fn assert_refused(texts: &[&str]) {
    let read: Vec<_> = texts
        .iter()
        .filter_map(|text| Some(format!("{text:?}: {}", read(text).ok()?)))
        .collect();
    assert!(read.is_empty(), "{}", read.join("\n"));
}

#[test]
fn a_number_after_a_preposition_of_time_is_an_hour() {
    assert_read(&[
        ("alle 9 di sabato", "2026-12-05 09:00"),
        ("à 9 samedi", "2026-12-05 09:00"),
        ("um 9 samstag", "2026-12-05 09:00"),
        ("à 18 vendredi", "2026-12-04 18:00"),
        ("um 14 am Freitag", "2026-12-04 14:00"),
        ("alle 15 di giovedì", "2026-12-03 15:00"),
        ("a las 17 el martes", "2026-12-01 17:00"),
        ("para las 9 del lunes", "2026-11-30 09:00"),
        ("avant 11 mercredi", "2026-12-02 11:00"),
        ("at 17 monday", "2026-11-30 17:00"),
        ("by 18 on thursday", "2026-12-03 18:00"),
        ("entro le 8 di venerdì", "2026-12-04 08:00"),
        ("bis 16 Dienstag", "2026-12-01 16:00"),
        ("bis zum 3.12.", "2026-12-03 00:00"),
        ("bis zum 3. Dezember, 18 Uhr", "2026-12-03 18:00"),
        ("entro 2 ore", "2026-11-29 12:00"),
        ("um 9 Montag", "2026-11-30 09:00"),
        ("vor 10 Mittwoch", "2026-12-02 10:00"),
        ("spätestens um 18 morgen", "2026-11-30 18:00"),
        ("pour 9 décembre", "2026-12-09 00:00"),
        ("by 5 december", "2026-12-05 00:00"),
        ("tomorrow at 5 pm", "2026-11-30 17:00"),
        ("dec 3, 4:56am", "2026-12-03 04:56"),
        ("friday 24:00", "2026-12-05 00:00"),
        ("sunday 24:00", "2026-11-30 00:00"),
        ("at 24 friday", "2026-12-05 00:00"),
    ]);
    assert_refused(&[
        "at 5 friday",
        "by 5 on friday",
        "entro 18h",
        "entro 2h",
        "at 9 tomorrow",
        "before 6 monday",
        "at 12 friday",
        "at 5 o'clock friday",
        "5 o'clock",
    ]);
}

#[test]
fn an_unsigned_number_before_a_weekday_is_refused() {
    assert_refused(&[
        "12 monday 10:00",
        "3 samedi",
        "7 friday 18:00",
        "4 viernes 10:00",
        "10 lundi",
        "2 Freitag um 9 Uhr",
        "15 giovedì",
        "le 4 vendredi",
        "1 sunday",
        "22 tue 08:00",
        "5 on friday",
        "9 di sabato",
    ]);
    assert_read(&[
        ("2 mondays", "2026-12-07 10:00"),
        ("3 weekdays", "2026-12-02 10:00"),
        ("+1 monday", "2026-11-30 10:00"),
    ]);
}

#[test]
fn a_number_with_h_is_a_time_and_mar_is_refused_unless_the_rest_decides() {
    assert_read(&[
        ("dec 3 18h30", "2026-12-03 18:30"),
        ("3 dec 18h", "2026-12-03 18:00"),
        ("3 dec 18 h 30", "2026-12-03 18:30"),
        ("mar 8 dic 18:00", "2026-12-08 18:00"),
        ("mar. 8 déc. 18h", "2026-12-08 18:00"),
        ("8 mar 2027 18:00", "2027-03-08 18:00"),
        ("Mar 8, 2027 18:00", "2027-03-08 18:00"),
        ("Tue Mar 9 10:00:00 2027", "2027-03-09 10:00"),
        ("mar 9 mar 2027", "2027-03-09 00:00"),
        ("mar, 3 ago 2027", "2027-08-03 00:00"),
        ("mar, 3 de ago de 2027, 14:35", "2027-08-03 14:35"),
        ("mar 9 de marzo de 2027", "2027-03-09 00:00"),
        ("mar 8 de diciembre a las 18", "2026-12-08 18:00"),
        ("mar 8th 18:00", "2026-03-08 18:00"),
        ("le 9 mar 2027 à 10h", "2027-03-09 10:00"),
        ("by 9 mar 2027", "2027-03-09 00:00"),
        ("bis 9 mar 2027", "2027-03-09 00:00"),
        ("9-mar-2027", "2027-03-09 00:00"),
        ("6. Mär. 2027", "2027-03-06 00:00"),
        ("8 Mär 18 Uhr", "2026-03-08 18:00"),
    ]);
    assert_refused(&[
        "mar 18h30",
        "dec 18h30",
        "mar 18h",
        "mar 8 18:00",
        "dec 9h",
        "jan 8h15",
        "oct 20h",
        "mai 14h30",
        "DEC 18H30",
        "18h30 dec",
        "dec 18 h 30",
        "dec 18.30",
        "mar 9h",
        "mar. 18h30",
        "le mar à 18h",
        "mar 18:00",
        "18h mar",
        "mar 1830",
        "mar 2030",
        "mar",
        "mar 7 18:00",
        "mar 8",
        "mar 8 de 18:00",
        "mar 3 ago",
        "9 h 13 ago",
        "9 Uhr 13 ago",
        "à 9 mar",
        "at 9 mar 2027",
        "by 9 mar",
        "8 mar",
        "15 mar 18h",
        "le 15 mar à 18h",
        "by 9 mar 2030",
        "by 9 mar 18:00",
    ]);
}

#[test]
fn a_date_with_a_year_of_two_digits_is_refused_if_it_has_two_orders() {
    assert_read(&[
        ("31/12/35", "2035-12-31 00:00"),
        ("12/25/26", "2026-12-25 00:00"),
        ("12/25/35", "2035-12-25 00:00"),
    ]);
    assert_refused(&[
        "30-11-26 18:00",
        "31-12-26 18:00",
        "26/11/30",
        "01-12-26",
        "05-12-26 18:00",
        "12-11-10",
        "29/11/26",
        "30/11/29 12:00",
        "11/12/26",
        "02-03-04",
        "5/5/27",
        "25-nov-26",
        "26-nov-30",
        "25 nov 26",
        "Wed, 25 Nov 26 10:00:00 +0100",
        "Wednesday, 25-Nov-26 10:00:00 GMT",
        "31-04-26",
        "30/02/26",
        "thu 3 dec 20",
        "3 dec 10",
        "dec 3 26",
        "friday 30-11-26",
        "mon 30-11-26 18:00",
        "30-11-26 Montag",
    ]);
}

#[test]
fn four_digits_are_a_year_beside_a_month_and_refused_elsewhere_if_they_may_be_one() {
    assert_read(&[
        ("3 December, 2027", "2027-12-03 00:00"),
        ("friday 4 december, 2026", "2026-12-04 00:00"),
        ("December, 2027", "2027-12-01 00:00"),
        ("3 Dezember, 2027", "2027-12-03 00:00"),
        ("3 diciembre, 2027", "2027-12-03 00:00"),
        ("3 dicembre, 2027 18:00", "2027-12-03 18:00"),
        ("3 décembre, 2027", "2027-12-03 00:00"),
        ("December 3rd, 2027", "2027-12-03 00:00"),
        ("jeudi 3 décembre, 2026", "2026-12-03 00:00"),
        ("Dezember 2027", "2027-12-01 00:00"),
        ("diciembre, 2027", "2027-12-01 00:00"),
        ("3 december 18:00 2027", "2027-12-03 18:00"),
        ("tomorrow 1830", "2026-11-30 18:30"),
        ("tomorrow 0930", "2026-11-30 09:30"),
        ("2026-12-01 2030", "2026-12-01 20:30"),
        ("3 december 1830", "2026-12-03 18:30"),
        ("24 dec 2027 2015", "2027-12-24 20:15"),
        ("tomorrow T2030", "2026-11-30 20:30"),
    ]);
    assert_refused(&[
        "20 December 2026 2027",
        "2026-12-24 2027",
        "in 2027",
        "tomorrow 2027",
        "2027",
        "monday 2027",
        "demain 2030",
        "18:00 2027",
        "by 2030",
        "in 2028",
        "heute 2026",
        "friday 2099",
        "2085",
        "2030 tomorrow",
    ]);
}

#[test]
fn a_range_of_dates_or_times_is_refused_as_a_range() {
    for text in [
        "14.12. bis 15.12.2026",
        "14.12. bis 16.12.",
        "Montag bis Freitag",
        "10 Uhr bis 12 Uhr",
        "1.12.2026 bis 2.12.2026",
        "tomorrow 15h CET - 18h CET",
        "tomorrow 15h Europe/Paris - 18h Europe/Paris",
        "tomorrow 15h GMT - 18h GMT",
        "tomorrow 15h UTC - 18h UTC",
        "15:00 CET - 18:00 CET",
        "tomorrow 3pm EST - 6pm EST",
        "demain 15h – 18h",
        "15h -18h",
        "tomorrow 15h CET -18h CET",
        "tomorrow 15:00 Europe/Berlin – 18:00",
        "friday 9h (CET) - 12h (CET)",
        "morgen 15 Uhr CET - 18 Uhr CET",
        "10:00 +01:00 - 12:00 +01:00",
        "2026-12-01 15:00 GMT - 18:00",
        "15 Uhr - 18 Uhr",
        "3.12. - 5.12.",
        "09:00 GMT-11:00",
        "14.12. bis 15.12.26",
        "1.12. bis 7.12.26",
        "24.12.26 bis 07.01.27",
        "5. Dezember bis 07.12.26",
        "2026-12-05 bis 07.12.26",
        "heute bis 5.12.26",
        "14.12. bis 15.12",
        "1.12.2026 bis 10.12",
        "le 5 décembre à 10.12",
        "5 décembre jusqu'à 10.12",
        "7.12 bis 5. Dezember",
        "morgen bis 10.12",
        "14.12. bis Montag",
        "Freitag bis Freitag",
        "nächsten Freitag bis 24.12.",
        "14.12. bis jetzt",
        "5. Dezember bis nächsten Freitag",
        "18 Uhr bis Freitag",
        "tomorrow 15h CET -18 h CET",
        "tomorrow 15h -18 h",
        "tomorrow 15h Europe/Paris -18 h Europe/Paris",
        "tomorrow 15:00 -18 h",
        "demain 15 h -18 h",
        "demain à 10 heures -12 heures",
        "domani alle 10 ore -12 ore",
        "22h -6h",
        "18.30 -22h",
        "midi -15h",
        "um 18 -20h",
        "dec 5 22h -6h",
        "18:00 friday -2h",
        "9am -10:00",
        "24.12.-10:00",
        "3.12-5.12",
        "14.12. - 15.12",
        "5.-7. Dezember",
        "5-7 dec",
        "dec 5-7",
        "5.12. -7.12.",
        "1. – 7. Dezember",
        "14 -18h",
    ] {
        let error = read(text);
        assert!(
            matches!(error, Err(Error::Range { .. })),
            "{text:?}: {error:?}"
        );
    }
}

#[test]
fn what_may_be_a_range_is_refused_and_a_duration_or_a_time_beside_a_day_is_read() {
    assert_refused(&[
        "10.12 bis 18:00",
        "10.12 à 18h",
        "10.12 alle 18",
        "18 Uhr 20 Uhr",
        "friday - 18h",
        "friday -18h",
        "-18h friday",
        "24.12. -2h",
        "du 14 décembre au 15 décembre",
        "from 15h to 18h",
        "15h CET-18h CET",
    ]);
    assert_read(&[
        ("18:00 -2h", "2026-11-29 16:00"),
        ("18:00 - 2 hours", "2026-11-29 16:00"),
        ("dec 5 18:00 -2h", "2026-12-05 16:00"),
        ("18:00 +1d -2h", "2026-11-30 16:00"),
        ("tomorrow -2 hours", "2026-11-29 22:00"),
        ("tomorrow -36h", "2026-11-28 12:00"),
        ("tomorrow - 1 week 2 days", "2026-11-25 00:00"),
        ("tomorrow 13:00 +1h", "2026-11-30 14:00"),
        ("10:00 GMT+2", "2026-11-29 09:00"),
        ("am Montag bis 18 Uhr 30", "2026-11-30 18:30"),
        ("morgen bis 18 Uhr", "2026-11-30 18:00"),
        ("5. Dezember bis 18.30", "2026-12-05 18:30"),
        ("Freitag 4.12 bis 18 Uhr", "2026-12-04 18:00"),
        ("am 10.12 bis 18 Uhr", "2026-12-10 18:00"),
        ("Am 10.12 bis 18 Uhr", "2026-12-10 18:00"),
        ("nächste Woche bis Freitag", "2026-12-04 00:00"),
        ("le 5 décembre à 18h -7 days", "2026-11-28 18:00"),
        ("demain à 10.12", "2026-11-30 10:12"),
        ("5 dicembre alle 10.12", "2026-12-05 10:12"),
    ]);
}
