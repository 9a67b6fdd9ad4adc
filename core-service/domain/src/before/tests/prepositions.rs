//! Numbers after a preposition or a date, and words without the rest of their phrase. Now is Sunday
//! 29 November 2026, 10:00 in Paris.

use super::two_readings::{assert_read, read};

#[track_caller]
fn assert_refused_with(texts: &[&str], message: &str) {
    for text in texts {
        let error = read(text).map_err(|error| error.to_string());
        assert!(
            error.as_ref().is_err_and(|error| error.contains(message)),
            "{text:?}: {error:?}"
        );
    }
}

#[test]
fn four_digits_after_a_preposition_are_a_time_or_refused_if_a_year_may_follow_it() {
    assert_read(&[
        ("5 dec at 2030", "2026-12-05 20:30"),
        ("bis 5. Dezember um 2030", "2026-12-05 20:30"),
        ("le 5 décembre à 2030", "2026-12-05 20:30"),
        ("5 de diciembre a las 2030", "2026-12-05 20:30"),
        ("5 dicembre alle 2015", "2026-12-05 20:15"),
        ("5.12. um 2030", "2026-12-05 20:30"),
        ("13/12 at 2030", "2026-12-13 20:30"),
        ("um 2030 am 5.12.", "2026-12-05 20:30"),
        ("um 2030 Uhr", "2026-11-29 20:30"),
        ("prima delle 2030", "2026-11-29 20:30"),
        ("bis um 2030", "2026-11-29 20:30"),
        ("by 1745", "2026-11-29 17:45"),
        ("at 1745 friday", "2026-12-04 17:45"),
        ("bis 1745 Freitag", "2026-12-04 17:45"),
    ]);
    assert_refused_with(
        &[
            "5 dec by 2030",
            "5 dec by 2027",
            "before 2030",
            "5. Dezember bis 2030",
            "avant 2030",
            "le 5 décembre pour 2030",
            "jusqu'à 2030",
            "vor 2030",
            "antes de 2030",
            "5 dicembre entro il 2030",
        ],
        "is a time of day or a year: write 20:",
    );
    assert_read(&[(
        "1745 friday",
        "\"1745 friday\" is an hour or a day of the month beside a weekday: \
         write 17:45 or a date such as 2026-11-25",
    )]);
}

#[test]
fn a_year_after_a_date_is_refused_if_it_is_rather_a_time() {
    assert_refused_with(
        &[
            "5.12. 2030",
            "5 dec 2030",
            "dec 5, 2030",
            "5. Dezember 2030",
        ],
        "\"2030\" is a time of day or a year: write 2026-12-05 20:30 or 2030-12-05",
    );
    assert_refused_with(
        &[
            "13/12 2030",
            "5 décembre, 2040",
            "5 dicembre 2015",
            "Saturday 5 December 2030",
        ],
        " is a time of day or a year: write 2026-12-",
    );
    assert_read(&[
        ("5 dec 2025", "2025-12-05 00:00"),
        ("5 dec 2029", "2029-12-05 00:00"),
        ("5 dec 2030 18:00", "2030-12-05 18:00"),
        ("Thu, 05 Dec 2030 10:00:00 +0100", "2030-12-05 10:00"),
        ("Thursday 5 December 2030", "2030-12-05 00:00"),
        ("5 de diciembre de 2030", "2030-12-05 00:00"),
        ("5.12.2030", "2030-12-05 00:00"),
        ("5-dec-2030", "2030-12-05 00:00"),
        ("5 dec 1970", "1970-12-05 00:00"),
        (
            "5 dec, 26",
            "\"26\" is a year of two digits: write 2026-12-05",
        ),
    ]);
}

#[test]
fn german_am_is_no_meridiem_of_noon_and_never_ignored() {
    assert_refused_with(
        &[
            "bis 12:00 am 5. Dezember",
            "um 12 am 5.12.",
            "12 am 5.12.",
            "12 am Di 8.12.",
        ],
        "is at midnight or at noon: write 00:00 or 12:00",
    );
    assert_refused_with(
        &[
            "um 12.30 am 5.12.",
            "12:30 am Montag",
            "12:30 am 5 december",
        ],
        "is at midnight or at noon: write 00:30 or 12:30",
    );
    assert_refused_with(
        &[
            "tomorrow 12h am",
            "tomorrow 12h30 am",
            "tomorrow 13:00 am",
            "18 Uhr am",
            "18:00 am friday",
        ],
        ", but not \"am\"",
    );
    assert_read(&[
        ("um 11:00 am 5. Dezember", "2026-12-05 11:00"),
        ("18 Uhr am 5.12.", "2026-12-05 18:00"),
        ("um 18:00 am Di", "2026-12-01 18:00"),
        ("12 AM dec 5", "2026-12-05 00:00"),
        ("tomorrow 12:30 am", "2026-11-30 00:30"),
    ]);
}

#[test]
fn a_preposition_or_article_at_the_end_is_not_ignored() {
    for (text, word) in [
        ("10:00 bis", "bis"),
        ("de 18:00 à", "à"),
        ("18:00 alle", "alle"),
        ("18 Uhr vor", "vor"),
        ("18:00 d'ici", "d'ici"),
        ("18:00 by", "by"),
        ("5 dec before", "before"),
        ("tomorrow 18:00 on", "on"),
        ("18:00 the", "the"),
        ("demain 18:00 le", "le"),
        ("mañana 18:00 a las", "a"),
        ("morgen 18 Uhr am", "am"),
        ("18:00 within", "within"),
        ("domani 18:00 entro", "entro"),
        ("18:00 by ,", "by"),
        ("bis 5.12. Uhr", "Uhr"),
        ("friday from now", "from"),
        ("fri noon from now", "from"),
        ("friday 2026-12-04 ago", "ago"),
        ("venerdì 4.12. fa", "fa"),
        ("tomorrow morning evening 18:00", "evening"),
        ("demain matin ce soir", "ce"),
    ] {
        assert_refused_with(&[text], &format!(", but not {word:?}"));
    }
}

#[test]
fn hours_after_a_preposition_of_time_are_refused_if_they_may_be_a_duration() {
    for (text, write) in [
        ("at 14 hours", "14:00 or in 14 hours"),
        ("by 18 hours", "18:00 or in 18 hours"),
        ("by 18 hours 30 minutes", "18:00 or in 18 hours"),
        ("um 18 Stunden", "18:00 or in 18 Stunden"),
        ("bis 18 Stunden", "18:00 or in 18 Stunden"),
        ("at 2h", "02:00 or in 2h"),
        ("by 2h30", "02:30 or in 2h30"),
        ("vor 2h", "02:00 or in 2h"),
    ] {
        assert_refused_with(
            &[text],
            &format!("is a time of day or a duration: write {write}"),
        );
    }
    assert_refused_with(
        &["at 15 minutes", "um 2 Tage", "pour 2 jours"],
        "not understood",
    );
    assert_refused_with(
        &["at 5:30 friday", "by 5:30", "before 5.30"],
        "is in the morning or in the afternoon: write 05:30 or 17:30",
    );
    assert_read(&[
        ("avant 2h", "2026-11-29 02:00"),
        ("à 2 heures", "2026-11-29 02:00"),
        ("alle 14 ore", "2026-11-29 14:00"),
        ("by 18h", "2026-11-29 18:00"),
        ("by 48 hours", "2026-12-01 10:00"),
        ("at 05:30 friday", "2026-12-04 05:30"),
        ("at 5:30pm friday", "2026-12-04 17:30"),
        ("at 5:30 in the morning", "2026-11-29 05:30"),
        ("before 10:00", "2026-11-29 10:00"),
        ("lundi 9 heures", "2026-11-30 09:00"),
        ("demain 9 heures 30", "2026-11-30 09:30"),
        ("le 5 décembre 2026 9 heures", "2026-12-05 09:00"),
        ("lundi prochain 9 heures", "2026-11-30 09:00"),
    ]);
    assert_refused_with(
        &["lundi 2 heures avant midi", "9 heures", "2 jours 9 heures"],
        "",
    );
}

#[test]
fn a_time_after_in_is_not_read_as_a_time_of_day() {
    assert_refused_with(
        &[
            "in 18:00",
            "dans 9:30",
            "tra 18:00",
            "in 5.12. 18:00",
            "dans 2026-12-05",
        ],
        "not understood",
    );
    assert_read(&[
        ("d'ici 18:00", "2026-11-29 18:00"),
        ("in 3 weekdays", "2026-12-02 10:00"),
        ("18:00 in 2 days", "2026-12-01 18:00"),
        ("stasera alle 21 di sera", "2026-11-29 21:00"),
    ]);
}

#[test]
fn ago_after_a_number_is_august_beside_a_time() {
    assert_read(&[
        ("5 ago 10:00", "2026-08-05 10:00"),
        ("2 ago 18h", "2026-08-02 18:00"),
        ("mié 5 ago a las 18", "2026-08-05 18:00"),
        ("18:00 5 ago", "2026-08-05 18:00"),
        ("2 days ago", "2026-11-27 10:00"),
        (
            "10 ago",
            "\"10 ago\" is in August or in the past: write 10 august or 10 days ago",
        ),
    ]);
}

#[test]
fn ranges_in_words_are_called_ranges() {
    assert_refused_with(
        &[
            "10-12 Uhr",
            "5.12. 10-12 Uhr",
            "10 - 12 Uhr",
            "9-12 heures",
            "10:00 CET-12:00 CET",
            "10:00/12:00",
            "10:00 CET/12:00 CET",
            "2026-12-05T10:00/12:00",
            "10:00 until 12:00",
            "vom 5.12. bis 7.12.",
            "von 10 bis 12 Uhr",
            "zwischen 10 und 12 Uhr",
            "from 15h to 18h",
            "between 10 and 12",
            "du 5 au 7 décembre",
            "entre 10h et 12h",
            "dal 5 al 7 dicembre",
            "dalle 10 alle 12",
            "de 10:00 a 12:00",
        ],
        "is a range, not one time: use timeSlot",
    );
    assert_read(&[("bis 2026/12/05T10:00", "2026-12-05 10:00")]);
    assert_refused_with(
        &["10:00 UTC-05:00", "5 de diciembre a las 18 foo"],
        ", but not",
    );
}

#[test]
fn a_visible_blank_is_not_dropped() {
    for blank in ["\u{3164}", "\u{ffa0}", "\u{115f}", "\u{1160}"] {
        assert_refused_with(&[&*format!("1{blank}8:00")], "not understood");
    }
}
