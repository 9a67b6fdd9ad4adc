//! UTC offsets of the start and the end of an interval.

use super::read;

#[test]
fn an_end_without_an_offset_has_that_of_the_start() {
    for (text, expected) in [
        (
            "2026-12-01T10:00:00Z/2026-12-01T13:00:00",
            "2026-12-01T10:00:00Z/2026-12-01T13:00:00Z",
        ),
        (
            "2026-12-01T10:00:00-05:00/2026-12-01T20:00:00",
            "2026-12-01T15:00:00Z/2026-12-02T01:00:00Z",
        ),
        (
            "2026-12-01T10:00Z/2026-12-01T11:00",
            "2026-12-01T10:00:00Z/2026-12-01T11:00:00Z",
        ),
        (
            "2026-12-01T10:00+09:00/2026-12-01T12:00",
            "2026-12-01T01:00:00Z/2026-12-01T03:00:00Z",
        ),
        (
            "20261201T100000Z/20261201T130000",
            "2026-12-01T10:00:00Z/2026-12-01T13:00:00Z",
        ),
        (
            "2026-12-01 10:00Z/2026-12-01 13:00",
            "2026-12-01T10:00:00Z/2026-12-01T13:00:00Z",
        ),
        (
            "2026-12-01t10:00z/2026-12-01t13:00",
            "2026-12-01T10:00:00Z/2026-12-01T13:00:00Z",
        ),
        (
            "2026-12-01T23:00-05:00/2026-12-02T01:00",
            "2026-12-02T04:00:00Z/2026-12-02T06:00:00Z",
        ),
        (
            "2026-12-01T10:00:00+01:00/2026-12-01T12:00:00Z",
            "2026-12-01T09:00:00Z/2026-12-01T12:00:00Z",
        ),
        // Within summer time, and in the offset of another zone than the store's.
        (
            "2026-10-25T02:00+02:00/2026-10-25T02:59",
            "2026-10-25T00:00:00Z/2026-10-25T00:59:00Z",
        ),
        (
            "2026-10-25T00:30Z/2026-10-25T01:30",
            "2026-10-25T00:30:00Z/2026-10-25T01:30:00Z",
        ),
    ] {
        assert_eq!(read(text, "Europe/Paris"), expected, "{text}");
    }
    for text in [
        "2026-12-01T10:00/2026-12-01T13:00Z",
        "2026-12-01T10:00:00/2026-12-01T14:00:00+01:00",
        "20261201T100000/20261201T130000Z",
        "2026-12-01 10:00/2026-12-01 13:00-05:00",
    ] {
        let message = format!("{text:?} has an offset at its end only: write it at the start too");
        assert_eq!(read(text, "Europe/Paris"), message);
    }
    for text in [
        "2026-10-25T02:30+02:00/2026-10-25T03:30",
        "2026-03-29T01:30+01:00/2026-03-29T03:30",
    ] {
        let message = format!("{text:?} ends after a clock change: write an offset at its end too");
        assert_eq!(read(text, "Europe/Paris"), message);
    }
}

#[test]
fn an_offset_that_no_place_has_is_rejected() {
    for (text, point, offset) in [
        (
            "2026-12-05T10:00:00+25:00/2026-12-05T12:00",
            "2026-12-05T10:00:00+25:00",
            "+25",
        ),
        (
            "2026-12-05T10:00Z/2026-12-05T12:00-12:30",
            "2026-12-05T12:00-12:30",
            "-12:30",
        ),
    ] {
        let message =
            format!("{point:?} has the UTC offset {offset}: they are from -12:00 to +14:00");
        assert_eq!(read(text, "Europe/Paris"), message);
    }
}
