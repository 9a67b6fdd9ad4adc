//! UTC offsets with an abbreviation or a name beside them, and those that no place has.

use super::{assert_messages, assert_parsed, assert_rejected};

#[test]
fn an_offset_decides_what_the_abbreviation_after_it_means() {
    for (text, instant) in [
        ("Fri, 04 Dec 2026 10:00:00 -0800 (PST)", "2026-12-04T18:00"),
        ("Fri, 04 Dec 2026 10:00:00 -0600 (CST)", "2026-12-04T16:00"),
        ("Fri, 04 Dec 2026 10:00:00 +0800 CST", "2026-12-04T02:00"),
        ("Fri, 04 Dec 2026 10:00:00 +0530 (IST)", "2026-12-04T04:30"),
        ("2026-12-04 10:00:00 -0400 (AMT)", "2026-12-04T14:00"),
        ("2026-12-04 10:00 PST8PDT", "2026-12-04T18:00"),
        ("2026-12-04 10:00 EST5EDT", "2026-12-04T15:00"),
    ] {
        assert_parsed(text, &format!("{instant}[UTC]"));
    }
    assert_messages(&[(
        "2026-12-05 10-12",
        "\"10-12\" is a range, not one time: use timeSlot",
    )]);
    assert_parsed("2026-12-05T10-12", "2026-12-05T22:00[UTC]");
    for text in [
        "2026-12-05 18-00",
        "Fri, 04 Dec 2026 10:00:00 -0700 (PST)",
        "Fri, 04 Dec 2026 10:00:00 -0800 (PST) CST",
        "10:00 (PST) -08:00",
        "10:00 ABC1DEF",
    ] {
        assert_rejected(text);
    }
}

#[test]
fn offsets_out_of_range_are_rejected_in_every_form() {
    let message =
        |offset| format!("\"{offset}\" is not a UTC offset: they are from -12:00 to +14:00");
    assert_messages(&[
        ("2026-12-05T10:00:00+16:00", &*message("+16:00")),
        ("2026-12-05T10:00:00,5+16:00", &*message("+16")),
        (
            "2026-12-05T10:00:00,5-13:00[Europe/Paris]",
            &*message("-13"),
        ),
    ]);
    assert_parsed("2026-12-05T10:00:00,5+14:00", "2026-12-04T20:00[UTC]");
}
