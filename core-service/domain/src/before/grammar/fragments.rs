//! Patterns shared by the rules: numbers, dates, times, zones.

use crate::before::pattern::{ByteSet, Pattern};
use crate::before::word_tables::{MONTHS, ORDINALS, RELATIVE_WORDS, WEEKDAYS, WORKDAYS};
use Pattern::{Any, Exact, Maybe, Repeat, Seq, Text, Word};

pub(super) const DIGIT: ByteSet = ByteSet::range(b'0', b'9');
pub(super) const LETTER: ByteSet = ByteSet::range(b'a', b'z').union(ByteSet::range(b'A', b'Z'));
pub(super) const SIGN: ByteSet = ByteSet::of(b"+-");
pub(super) const SPACE: ByteSet = ByteSet::of(b" \t");

pub(super) const fn one(of: ByteSet) -> Pattern {
    Pattern::Bytes { of, min: 1, max: 1 }
}

pub(super) const fn any_number_of(bytes: &[u8]) -> Pattern {
    Pattern::Bytes {
        of: ByteSet::of(bytes),
        min: 0,
        max: Pattern::MANY,
    }
}

/// A number of exactly `width` digits, padded with zeros.
pub(super) const fn padded(width: u8, from: u16, to: u16) -> Pattern {
    Pattern::Number {
        min: width,
        max: width,
        from,
        to,
    }
}

/// A number of one or two digits.
pub(super) const fn short(from: u16, to: u16) -> Pattern {
    Pattern::Number {
        min: 1,
        max: 2,
        from,
        to,
    }
}

pub(super) const SPACES: Pattern = Pattern::Bytes {
    of: SPACE,
    min: 1,
    max: Pattern::MANY,
};
pub(super) const DIGITS: Pattern = Pattern::Bytes {
    of: DIGIT,
    min: 1,
    max: Pattern::MANY,
};
pub(super) const FRACTION: Pattern = Seq(&[Exact("."), DIGITS]);
pub(super) const COLON: Pattern = one(ByteSet::of(b":."));

pub(super) const HOUR24: Pattern = short(0, 24);
pub(super) const HOUR24_PADDED: Pattern = padded(2, 0, 24);
pub(super) const HOUR12: Pattern = short(1, 12);
pub(super) const MINUTE: Pattern = short(0, 59);
pub(super) const MINUTE_PADDED: Pattern = padded(2, 0, 59);
pub(super) const SECOND: Pattern = short(0, 60);
pub(super) const SECOND_PADDED: Pattern = padded(2, 0, 60);
/// `am` and `p.m.`, with the required space or end of the text after it.
pub(super) const MERIDIAN: Pattern = Seq(&[
    one(ByteSet::of(b"aApP")),
    Maybe(&Exact(".")),
    one(ByteSet::of(b"mM")),
    Maybe(&Exact(".")),
    one(ByteSet::of(b"\0\t ")),
]);

pub(super) const YEAR: Pattern = Pattern::Number {
    min: 1,
    max: 4,
    from: 0,
    to: 9999,
};
pub(super) const YEAR2: Pattern = padded(2, 0, 99);
pub(super) const YEAR4: Pattern = padded(4, 0, 9999);
pub(super) const MONTH: Pattern = short(0, 12);
pub(super) const MONTH_PADDED: Pattern = padded(2, 0, 12);
pub(super) const DAY: Pattern = Seq(&[
    short(0, 31),
    Maybe(&Any(&[Exact("st"), Exact("nd"), Exact("rd"), Exact("th")])),
]);
pub(super) const DAY_PADDED: Pattern = padded(2, 0, 31);
pub(super) const WEEK_OF_YEAR: Pattern = padded(2, 1, 53);
pub(super) const ROMAN_MONTH: Pattern = Any(&[
    Exact("I"),
    Exact("II"),
    Exact("III"),
    Exact("IV"),
    Exact("V"),
    Exact("VI"),
    Exact("VII"),
    Exact("VIII"),
    Exact("IX"),
    Exact("X"),
    Exact("XI"),
    Exact("XII"),
]);
pub(super) const MONTH_TEXT: Pattern = Any(&[Word(MONTHS), ROMAN_MONTH]);
pub(super) const WEEKDAY: Pattern = Any(&[Word(WEEKDAYS), Word(WORKDAYS)]);

pub(super) const DATE_SEPARATORS: Pattern = any_number_of(b" \t.-");
pub(super) const DAY_SEPARATORS: Pattern = Pattern::Bytes {
    of: ByteSet::of(b",.stndrh\t "),
    min: 1,
    max: Pattern::MANY,
};
pub(super) const MONTH_SEPARATORS: Pattern = Pattern::Bytes {
    of: ByteSet::of(b",. \t"),
    min: 1,
    max: Pattern::MANY,
};
pub(super) const MONTH_NAME_DAY: Pattern = Seq(&[
    MONTH_TEXT,
    DATE_SEPARATORS,
    DAY,
    Any(&[DAY_SEPARATORS, one(ByteSet::of(b"\0"))]),
]);
pub(super) const DAY_MONTH_NAME: Pattern = Seq(&[DAY, DATE_SEPARATORS, MONTH_TEXT]);

pub(super) const OPTIONAL_T: Pattern = Maybe(&Text("t"));
pub(super) const TIME12_HOUR: Pattern = Seq(&[HOUR12, Maybe(&SPACES), MERIDIAN]);
pub(super) const TIME12: Pattern = Seq(&[
    HOUR12,
    COLON,
    Any(&[MINUTE_PADDED, Seq(&[MINUTE, COLON, SECOND_PADDED])]),
    Maybe(&SPACES),
    MERIDIAN,
]);
pub(super) const TIME24_MINUTES: Pattern = Seq(&[OPTIONAL_T, HOUR24, COLON, MINUTE]);
pub(super) const TIME24_SECONDS: Pattern = Seq(&[TIME24_MINUTES, COLON, SECOND]);
pub(super) const TIME24_ZONED: Pattern =
    Seq(&[TIME24_MINUTES, COLON, SECOND_PADDED, Maybe(&SPACES), ZONE]);
pub(super) const TIME_PADDED: Pattern = Seq(&[
    HOUR24_PADDED,
    Exact(":"),
    MINUTE_PADDED,
    Exact(":"),
    SECOND_PADDED,
]);

/// Times with colons only: after `24 dec`, a point would end a year.
pub(super) const COLON_TIME24: Pattern = Seq(&[
    HOUR24,
    Exact(":"),
    MINUTE,
    Maybe(&Seq(&[Exact(":"), SECOND, Maybe(&FRACTION)])),
]);
pub(super) const COLON_TIME12: Pattern = Seq(&[
    HOUR12,
    Exact(":"),
    MINUTE_PADDED,
    Maybe(&Seq(&[Exact(":"), SECOND_PADDED])),
    Maybe(&SPACES),
    MERIDIAN,
]);

pub(super) const OFFSET: Pattern = Seq(&[
    Maybe(&Exact("GMT")),
    one(SIGN),
    Any(&[
        Seq(&[HOUR24, Maybe(&Seq(&[Maybe(&Exact(":")), MINUTE]))]),
        Seq(&[HOUR24_PADDED, MINUTE_PADDED, SECOND_PADDED]),
        TIME_PADDED,
    ]),
]);
pub(super) const ZONE_NAME: Pattern = Any(&[
    Seq(&[
        Maybe(&Exact("(")),
        Pattern::Bytes {
            of: LETTER,
            min: 1,
            max: 6,
        },
        Maybe(&Exact(")")),
    ]),
    Seq(&[
        one(ByteSet::range(b'A', b'Z')),
        Pattern::Bytes {
            of: ByteSet::range(b'a', b'z'),
            min: 1,
            max: Pattern::MANY,
        },
        Repeat(&Seq(&[
            one(ByteSet::of(b"_/-")),
            Pattern::Bytes {
                of: LETTER,
                min: 1,
                max: Pattern::MANY,
            },
        ])),
    ]),
]);
pub(super) const ZONE: Pattern = Any(&[OFFSET, ZONE_NAME]);

pub(super) const ORDINAL: Pattern = Any(&[Word(ORDINALS), Word(RELATIVE_WORDS)]);
pub(super) const COUNT: Pattern = Seq(&[
    any_number_of(b"+-"),
    any_number_of(b" \t"),
    Pattern::Bytes {
        of: DIGIT,
        min: 1,
        max: 13,
    },
]);
