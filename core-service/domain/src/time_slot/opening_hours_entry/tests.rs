//! Opening hours, from their text to slots in local time.

use jiff::civil::date;

use super::*;

fn slots(entry: &str, first: Date, days: i32, length: Option<i64>) -> Vec<String> {
    let parsed = OpeningHoursEntry::parse(entry, &Calendar::of("FR")).unwrap();
    let last = first.saturating_add(Span::new().days(days));
    parsed
        .slots(Hours::AsWritten, first..last, length)
        .iter()
        .map(|slot| {
            format!(
                "{}-{}",
                slot.start.strftime("%a %H:%M"),
                slot.end.strftime("%a %H:%M")
            )
        })
        .collect()
}

#[test]
fn ranges_are_merged_and_split_independently_of_the_first_day() {
    let monday = date(2026, 6, 1);
    for (entry, length, expected) in [
        (
            "Mo 12:00-14:00,16:00-17:00",
            None,
            vec!["Mon 12:00-Mon 14:00", "Mon 16:00-Mon 17:00"],
        ),
        (
            "Mo 12:00-14:30",
            Some(60),
            vec!["Mon 12:00-Mon 13:00", "Mon 13:00-Mon 14:00"],
        ),
        ("Mo 22:00-02:00", None, vec!["Mon 22:00-Tue 02:00"]),
        (
            "Mo 22:00-02:00",
            Some(120),
            vec!["Mon 22:00-Tue 00:00", "Tue 00:00-Tue 02:00"],
        ),
        (
            "24/7",
            None,
            vec![
                "Mon 00:00-Tue 00:00",
                "Tue 00:00-Wed 00:00",
                "Wed 00:00-Thu 00:00",
            ],
        ),
        (
            "Mo 12:00-48:00",
            None,
            vec!["Mon 12:00-Tue 00:00", "Tue 00:00-Wed 00:00"],
        ),
        (
            "Mo-Su 10:00-18:00; Mo-Su 12:00-17:00 off; We off",
            None,
            vec![
                "Mon 10:00-Mon 12:00",
                "Mon 17:00-Mon 18:00",
                "Tue 10:00-Tue 12:00",
                "Tue 17:00-Tue 18:00",
            ],
        ),
    ] {
        assert_eq!(slots(entry, monday, 3, length), expected, "{entry}");

        let by_day: Vec<_> = (0..3)
            .flat_map(|day| {
                slots(
                    entry,
                    monday.saturating_add(Span::new().days(day)),
                    1,
                    length,
                )
            })
            .collect();
        assert_eq!(by_day, expected, "{entry}, a day at a time");
    }
}

#[test]
fn closed_days_apply_but_not_to_the_regular_week() {
    let entry = "Mo-Su 12:00-14:00; PH off; Dec 24-28 off; Mo[1] off";
    let parsed = OpeningHoursEntry::parse(entry, &Calendar::of("FR")).unwrap();
    let day = |hours, date: Date| {
        parsed
            .slots(hours, date..date.tomorrow().unwrap(), None)
            .len()
    };
    for (date, expected) in [
        (date(2026, 7, 14), 0),
        (date(2026, 7, 15), 1),
        (date(2026, 12, 24), 0),
        (date(2026, 12, 29), 1),
        (date(2026, 6, 1), 0),
        (date(2026, 6, 8), 1),
    ] {
        assert_eq!(day(Hours::AsWritten, date), expected, "{date}");
        assert_eq!(day(Hours::RegularWeek, date), 1, "{date}");
    }
    assert!(parsed.uses_holidays);
}

#[test]
fn an_entry_that_a_weekly_pattern_cannot_express_is_rejected() {
    for (entry, offset, message) in [
        (
            "8h-12h",
            0,
            "not opening hours in OpenStreetMap's syntax, unexpected text from \"8h-12h\": write \"Mo-Fr 09:00-12:00\"",
        ),
        (
            "Mo-Fr 8h-12h",
            6,
            "not opening hours in OpenStreetMap's syntax, unexpected text from \"8h-12h\": write \"Mo-Fr 09:00-12:00\"",
        ),
        (
            "",
            0,
            "not opening hours in OpenStreetMap's syntax, it ends too early: write \"Mo-Fr 09:00-12:00\"",
        ),
        (
            "Jun-Aug Mo-Su 10:00-12:00",
            0,
            "\"Jun-Aug Mo-Su 10:00-12:00\" opens on certain dates or holidays, which a weekly pattern can't express: write weekdays and times, \"Mo-Fr 09:00-12:00\"",
        ),
        (
            "Mo[1] 10:00-12:00",
            0,
            "\"Mo[1] 10:00-12:00\" opens on certain dates or holidays, which a weekly pattern can't express: write weekdays and times, \"Mo-Fr 09:00-12:00\"",
        ),
        (
            "PH 10:00-12:00",
            0,
            "\"PH 10:00-12:00\" opens on certain dates or holidays, which a weekly pattern can't express: write weekdays and times, \"Mo-Fr 09:00-12:00\"",
        ),
        (
            "Mo 10:00-12:00; SH off",
            0,
            "\"SH closed\" names school holidays, which differ by region: list the dates under the key closed",
        ),
        (
            "Mo 10:00-12:00; Dec 24 11:00-12:00 off",
            0,
            "\"Dec 24 11:00-12:00 closed\" closes for part of certain days: close the whole day, \"Dec 24 off\"",
        ),
        (
            "Mo 10:00+",
            0,
            "\"Mo 10:00+\" has no end: write when it closes",
        ),
        (
            "Mo sunrise-12:00",
            0,
            "\"Mo sunrise-12:00\" depends on the sun: write times of day",
        ),
        (
            "Mo 10:00-12:00 || Tu 10:00-12:00",
            0,
            "\"Tu 10:00-12:00\" is a fallback (\"||\"), which a weekly pattern can't express: separate rules by \";\"",
        ),
        (
            "Mo 10:00-12:00 unknown",
            0,
            "\"Mo 10:00-12:00 unknown\" is undecided: write \"open\" or \"off\"",
        ),
    ] {
        let expected = MistakeInString::at(offset, message);
        assert_eq!(
            OpeningHoursEntry::parse(entry, &Calendar::of("FR")),
            Err(expected),
            "{entry:?}"
        );
    }
    for (length, is_too_long) in [(256, false), (257, true)] {
        let parsed = OpeningHoursEntry::parse(&"a".repeat(length), &Calendar::of("FR"));
        let too_long = MistakeInString::at(0, "an entry has at most 256 bytes");
        assert_eq!(parsed == Err(too_long), is_too_long, "{length}: {parsed:?}");
    }
}
