//! Patterns shared by the rules: numbers, dates, times, zones. The byte `\0` in a set stands for
//! the end of the text.

use crate::before::pattern::{ByteSet, Pattern};
use crate::before::word_tables::{MONTHS, ORDINALS, RELATIVE_WORDS, WEEKDAYS, WORKDAYS};
use Pattern::{Any, AnyCase, Exact, Optional, Repeat, Seq, Word};

pub(super) const DIGIT: ByteSet = ByteSet::range(b'0', b'9');
pub(super) const LETTER: ByteSet = ByteSet::range(b'a', b'z').union(ByteSet::range(b'A', b'Z'));
pub(super) const SIGN: ByteSet = ByteSet::of(b"+-");
pub(super) const SPACE: ByteSet = ByteSet::of(b" \t");

pub(super) const fn one(set: ByteSet) -> Pattern {
    Pattern::Bytes {
        set,
        min: 1,
        max: 1,
    }
}

pub(super) const fn any_number_of(bytes: &[u8]) -> Pattern {
    Pattern::Bytes {
        set: ByteSet::of(bytes),
        min: 0,
        max: Pattern::UNLIMITED,
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
pub(super) const fn one_or_two_digits(from: u16, to: u16) -> Pattern {
    Pattern::Number {
        min: 1,
        max: 2,
        from,
        to,
    }
}

pub(super) const SPACES: Pattern = Pattern::Bytes {
    set: SPACE,
    min: 1,
    max: Pattern::UNLIMITED,
};
pub(super) const DIGITS: Pattern = Pattern::Bytes {
    set: DIGIT,
    min: 1,
    max: Pattern::UNLIMITED,
};
pub(super) const FRACTION: Pattern = Seq(&[Exact("."), DIGITS]);
pub(super) const COLON_OR_POINT: Pattern = one(ByteSet::of(b":."));

pub(super) const HOUR24: Pattern = one_or_two_digits(0, 24);
pub(super) const HOUR24_PADDED: Pattern = padded(2, 0, 24);
pub(super) const HOUR12: Pattern = one_or_two_digits(1, 12);
pub(super) const MINUTE: Pattern = one_or_two_digits(0, 59);
pub(super) const MINUTE_PADDED: Pattern = padded(2, 0, 59);
pub(super) const SECOND: Pattern = one_or_two_digits(0, 60);
pub(super) const SECOND_PADDED: Pattern = padded(2, 0, 60);
/// `am` or `p.m.`, and the space or end of the text that must follow.
pub(super) const MERIDIEM: Pattern = Seq(&[
    one(ByteSet::of(b"aApP")),
    Optional(&Exact(".")),
    one(ByteSet::of(b"mM")),
    Optional(&Exact(".")),
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
pub(super) const MONTH: Pattern = one_or_two_digits(0, 12);
pub(super) const MONTH_PADDED: Pattern = padded(2, 0, 12);
pub(super) const DAY: Pattern = Seq(&[
    one_or_two_digits(0, 31),
    Optional(&Any(&[Exact("st"), Exact("nd"), Exact("rd"), Exact("th")])),
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
/// After a day; includes the letters of `st`, `nd`, `rd` and `th`.
pub(super) const DAY_SEPARATORS: Pattern = Pattern::Bytes {
    set: ByteSet::of(b",.stndrh\t "),
    min: 1,
    max: Pattern::UNLIMITED,
};
pub(super) const MONTH_SEPARATORS: Pattern = Pattern::Bytes {
    set: ByteSet::of(b",. \t"),
    min: 1,
    max: Pattern::UNLIMITED,
};
pub(super) const MONTH_NAME_DAY: Pattern = Seq(&[
    MONTH_TEXT,
    DATE_SEPARATORS,
    DAY,
    Any(&[DAY_SEPARATORS, one(ByteSet::of(b"\0"))]),
]);
pub(super) const DAY_MONTH_NAME: Pattern = Seq(&[DAY, DATE_SEPARATORS, MONTH_TEXT]);

pub(super) const OPTIONAL_T: Pattern = Optional(&AnyCase("t"));
pub(super) const TIME12_HOUR: Pattern = Seq(&[HOUR12, Optional(&SPACES), MERIDIEM]);
pub(super) const TIME12: Pattern = Seq(&[
    HOUR12,
    COLON_OR_POINT,
    Any(&[MINUTE_PADDED, Seq(&[MINUTE, COLON_OR_POINT, SECOND_PADDED])]),
    Optional(&SPACES),
    MERIDIEM,
]);
pub(super) const TIME24_MINUTES: Pattern = Seq(&[OPTIONAL_T, HOUR24, COLON_OR_POINT, MINUTE]);
pub(super) const TIME24_SECONDS: Pattern = Seq(&[TIME24_MINUTES, COLON_OR_POINT, SECOND]);
pub(super) const TIME24_ZONED: Pattern = Seq(&[
    TIME24_MINUTES,
    COLON_OR_POINT,
    SECOND_PADDED,
    Optional(&SPACES),
    ZONE,
]);
pub(super) const TIME_PADDED: Pattern = Seq(&[
    HOUR24_PADDED,
    Exact(":"),
    MINUTE_PADDED,
    Exact(":"),
    SECOND_PADDED,
]);

/// Times for use after a day and a month, such as `24 dec`. A point cannot separate their parts,
/// because a number before a point is a year there.
pub(super) const COLON_TIME24: Pattern = Seq(&[
    HOUR24,
    Exact(":"),
    MINUTE,
    Optional(&Seq(&[Exact(":"), SECOND, Optional(&FRACTION)])),
]);
pub(super) const COLON_TIME12: Pattern = Seq(&[
    HOUR12,
    Exact(":"),
    MINUTE_PADDED,
    Optional(&Seq(&[Exact(":"), SECOND_PADDED])),
    Optional(&SPACES),
    MERIDIEM,
]);

pub(super) const OFFSET: Pattern = Seq(&[
    Optional(&Exact("GMT")),
    one(SIGN),
    Any(&[
        Seq(&[HOUR24, Optional(&Seq(&[Optional(&Exact(":")), MINUTE]))]),
        Seq(&[HOUR24_PADDED, MINUTE_PADDED, SECOND_PADDED]),
        TIME_PADDED,
    ]),
]);
pub(super) const ZONE_NAME: Pattern = Any(&[
    Seq(&[
        Optional(&Exact("(")),
        Pattern::Bytes {
            set: LETTER,
            min: 1,
            max: 6,
        },
        Optional(&Exact(")")),
    ]),
    Seq(&[
        one(ByteSet::range(b'A', b'Z')),
        Pattern::Bytes {
            set: ByteSet::range(b'a', b'z'),
            min: 1,
            max: Pattern::UNLIMITED,
        },
        Repeat(&Seq(&[
            one(ByteSet::of(b"_/-")),
            Pattern::Bytes {
                set: LETTER,
                min: 1,
                max: Pattern::UNLIMITED,
            },
        ])),
    ]),
]);
pub(super) const ZONE: Pattern = Any(&[OFFSET, ZONE_NAME]);

pub(super) const ORDINAL: Pattern = Any(&[Word(ORDINALS), Word(RELATIVE_WORDS)]);
pub(super) const AMOUNT: Pattern = Seq(&[
    any_number_of(b"+-"),
    any_number_of(b" \t"),
    Pattern::Bytes {
        set: DIGIT,
        min: 1,
        max: 13,
    },
]);
