//! The messages about texts with two readings, and about those that are not understood.

use super::two_readings::{assert_read, read};

#[test]
fn messages_name_the_readings_or_what_to_write() {
    const ADVICE: &str = "write a time such as 2026-11-25 17:30, tomorrow 17:30 or +2h";
    let not_understood = format!("not understood: \"2026.12.01\"; {ADVICE}");
    assert_read(&[
        (
            "at 5 friday",
            "\"at 5\" is in the morning or in the afternoon: write 05:00 or 17:00",
        ),
        (
            "by 5 on friday",
            "\"by 5\" is in the morning or in the afternoon: write 05:00 or 17:00",
        ),
        (
            "12 monday 10:00",
            "\"12 monday\" is an hour or a day of the month beside a weekday: \
             write 12:00 or a date such as 2026-11-25",
        ),
        (
            "9 di sabato",
            "\"9 di sabato\" is an hour or a day of the month beside a weekday: \
             write 09:00 or a date such as 2026-11-25",
        ),
        (
            "entro 18h",
            "\"entro 18h\" is a time of day or a duration: write entro le 18:00 or +18h",
        ),
        (
            "mar 18h30",
            "\"mar\" is Tuesday or March: write tuesday or march",
        ),
        (
            "dec 18h30",
            "\"dec\" is a month without a day: write a date such as 2026-11-25",
        ),
        (
            "30-11-26 18:00",
            "\"30-11-26\" is ambiguous: write 2026-11-30 or 2030-11-26",
        ),
        (
            "26/11/30",
            "\"26/11/30\" is ambiguous: write 2030-11-26 or 2026-11-30",
        ),
        (
            "30.11.26",
            "\"30.11.26\" is ambiguous: write 2026-11-30 or 2030-11-26",
        ),
        (
            "31-04-26",
            "\"31-04-26\" is ambiguous: write 2026-04-31 or 2031-04-26",
        ),
        (
            "tomorrow 2027",
            "\"2027\" is a time of day or a year without a month: write 20:27 or 2027-11-25",
        ),
        (
            "07.12.26",
            "\"07.12.26\" is a time of day or a date: write 07:12:26 or 2026-12-07",
        ),
        (
            "9.30h",
            "\"9.30h\" is a time of day or a duration: write 09:30 or +9h30",
        ),
        (
            "1.25h",
            "\"1.25h\" is a time of day or a duration: write 01:25 or +1.25h",
        ),
        (
            "am 10.12",
            "\"10.12\" is a time of day or a date: write 10:12 or 2026-12-10",
        ),
        (
            "tomorrow 15h CET - 18h CET",
            "\"15h CET - 18h\" is a range, not one time: use timeSlot",
        ),
        (
            "14.12. bis 15.12.2026",
            "\"14.12. bis 15.12.2026\" is a range, not one time: use timeSlot",
        ),
        ("2026.12.01 10:00", &not_understood),
        (
            "3 dec 10",
            "\"10\" is an hour or a year of two digits: write 10:00 or 2010-12-03",
        ),
    ]);
}

#[test]
fn messages_about_a_second_date_or_the_end_of_a_range_name_what_it_may_be() {
    assert_read(&[
        (
            "morgen 07.12.26",
            "\"07.12.26\" is a time of day or a date: write 07:12:26 or 2026-12-07",
        ),
        (
            "10.12 bis 18:00",
            "\"10.12\" is a time of day or a date: write 10:12 or 2026-12-10",
        ),
        (
            "24.12.26 07.01.27",
            "understood \"24.12.26\", but \"07.01.27\" is a second date: write only one",
        ),
        (
            "15.12.26 5. Dezember",
            "understood \"15.12.26\", but \"5.\" is a second date: write only one",
        ),
        (
            "friday -18h",
            "\"18h\" is a time of day or a duration: write 18:00 or -18 hours",
        ),
        (
            "friday -1h30",
            "\"1h30\" is a time of day or a duration: write 01:30 or -1 hours -30 minutes",
        ),
        (
            "demain 15 h -18 h",
            "\"15 h -18 h\" is a range, not one time: use timeSlot",
        ),
    ]);
}

#[test]
fn every_message_quotes_what_was_understood_or_nothing() {
    for text in [
        "2026.12.01 10:00",
        "2026.12.01",
        "2026.12.01 18:00",
        "10:00:00:00:00",
        "3.4.5.6",
        "2026:12:01:10",
        "2026/12.01",
        "18:00/19:00",
        "1.2.3",
        "20261201.10",
        "12:00.12:00",
    ] {
        let error = read(text);
        let message = error.as_ref().map_err(ToString::to_string);
        assert!(
            message
                .as_ref()
                .is_err_and(|message| !message.contains("\"\"")),
            "{text:?}: {message:?}"
        );
    }
}
