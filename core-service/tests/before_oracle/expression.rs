//! Random expressions: pieces of every kind the grammar has, in any order, at any time of any zone.

use core_service::domain::before::DateOrder;
use jiff::{Timestamp, Zoned};
use std::fmt;

/// SplitMix64: small, and the same on every machine.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: i64) -> i64 {
        let limit = u64::try_from(limit).expect("limits are positive");
        i64::try_from(self.next() % limit).expect("it is below the limit")
    }

    fn between(&mut self, from: i64, to: i64) -> i64 {
        from + self.below(to - from + 1)
    }

    fn chance(&mut self, percent: i64) -> bool {
        self.below(100) < percent
    }

    fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[usize::try_from(self.below(i64::try_from(words.len()).expect("tables are short")))
            .expect("it is not negative")]
    }
}

/// A piece of an expression.
struct Piece {
    text: String,
    /// What may be read as a time of day in it.
    clocks: Vec<String>,
    /// Sets the time to midnight in PHP; with us only one that stands before it keeps it.
    is_day: bool,
}

impl Piece {
    fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            clocks: Vec::new(),
            is_day: false,
        }
    }

    fn day(text: impl Into<String>) -> Self {
        Self {
            is_day: true,
            ..Self::new(text)
        }
    }

    fn clock(text: impl Into<String>, clock: impl Into<String>) -> Self {
        Self {
            clocks: vec![clock.into()],
            ..Self::new(text)
        }
    }
}

#[derive(Debug)]
pub(crate) struct Expression {
    pub(crate) text: String,
    /// The same with one of its times once more at the end, if that stands before a day word.
    pub(crate) repeated: Vec<String>,
    pub(crate) now: Zoned,
    pub(crate) order: DateOrder,
}

const ZONES: [&str; 8] = [
    "Europe/Paris",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Kolkata",
    "UTC",
    "Europe/London",
    "Atlantic/Azores",
    "America/St_Johns",
];
const MONTHS: [&str; 26] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
    "jan",
    "feb",
    "mar",
    "apr",
    "jun",
    "jul",
    "aug",
    "sep",
    "sept",
    "oct",
    "nov",
    "dec",
    "Dec",
    "II",
];
const WEEKDAYS: [&str; 16] = [
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
    "mon",
    "tue",
    "wed",
    "thu",
    "fri",
    "sat",
    "sun",
    "Friday",
    "mondays",
];
const UNITS: [&str; 22] = [
    "sec",
    "second",
    "seconds",
    "min",
    "mins",
    "minute",
    "minutes",
    "hour",
    "hours",
    "day",
    "days",
    "week",
    "weeks",
    "fortnight",
    "month",
    "months",
    "year",
    "years",
    "weekday",
    "weekdays",
    "msec",
    "ms",
];
const ORDINALS: [&str; 12] = [
    "first", "second", "third", "fourth", "fifth", "sixth", "eighth", "twelfth", "next", "last",
    "previous", "this",
];

impl Expression {
    pub(crate) fn random(random: &mut Random) -> Self {
        let count = random.between(1, 4);
        let pieces: Vec<Piece> = (0..count).map(|_| piece(random)).collect();
        let separator = if random.chance(5) { ", " } else { " " };
        let texts: Vec<&str> = pieces.iter().map(|piece| piece.text.as_str()).collect();
        let text = texts.join(separator);
        let is_before_day = |index: usize| pieces[index..].iter().any(|piece| piece.is_day);
        let clocks = (0..pieces.len())
            .filter(|index| is_before_day(*index))
            .flat_map(|index| &pieces[index].clocks);
        let repeated = clocks
            .map(|clock| format!("{text} midnight {clock}"))
            .collect();
        let order = if random.chance(20) {
            DateOrder::DayFirst
        } else {
            DateOrder::MonthFirst
        };
        Self {
            text,
            repeated,
            now: now(random),
            order,
        }
    }

    /// Has a meridian that PHP does not see as one: before a comma, or after a day and a month,
    /// where the hour is a year to it. What is left of it are military zones or a second zone,
    /// which it passes over.
    pub(crate) fn has_lost_meridian(&self) -> bool {
        let text = self.text.to_lowercase();
        let has = |meridians: &[&str]| meridians.iter().any(|meridian| text.contains(meridian));
        has(&["m,", "m.,"]) || (has(&["am", "pm", "a.m.", "p.m."]) && self.is_beyond_php())
    }

    /// Has what PHP refuses and we read: a day and a month before a time, whose hour is a year to
    /// PHP; a day before a month with slashes.
    pub(crate) fn is_beyond_php(&self) -> bool {
        let words: Vec<&str> = self
            .text
            .split([' ', ','])
            .filter(|word| !word.is_empty())
            .collect();
        let starts_with_digit = |word: &str| {
            word.trim_start_matches('-')
                .starts_with(|char: char| char.is_ascii_digit())
        };
        let ends_in_month = |word: &str| {
            let name =
                word.trim_start_matches(|char: char| char.is_ascii_digit() || "-. ".contains(char));
            MONTHS.iter().any(|month| name.eq_ignore_ascii_case(month))
        };
        let day_month_time = words.windows(2).any(|pair| {
            starts_with_digit(pair[1]) && (ends_in_month(pair[0]) || starts_with_digit(pair[0]))
        });
        day_month_time || (self.order == DateOrder::DayFirst && self.text.contains('/'))
    }

    /// A Unix time after a zone, which PHP counts from the year 0.
    pub(crate) fn has_timestamp(&self) -> bool {
        self.text.contains('@')
    }

    /// A time with another directly after its hyphen.
    pub(crate) fn has_range(&self) -> bool {
        self.text
            .as_bytes()
            .windows(3)
            .any(|bytes| bytes[0].is_ascii_digit() && bytes[1] == b'-' && bytes[2].is_ascii_digit())
            || self.text.contains(" -1")
            || self.text.contains(" -2")
    }

    /// A military zone, or what PHP takes for one: of `dec 24 thu` only the `u` is left to it.
    pub(crate) fn has_lone_letter(&self) -> bool {
        let rest = self.text.replace("thu", " u");
        rest.split(|char: char| !char.is_ascii_alphabetic())
            .any(|word| word.len() == 1 && !word.eq_ignore_ascii_case("z"))
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {} {:?}", self.text, self.now, self.order)
    }
}

/// Any second from 2020 to 2036, often one on a day when clocks change.
fn now(random: &mut Random) -> Zoned {
    let zone = random.pick(&ZONES);
    if random.chance(25) {
        let year = random.between(2024, 2030);
        let (month, day) = [(3, 25), (3, 8), (10, 25), (11, 1), (4, 3), (10, 2)]
            [usize::try_from(random.below(6)).expect("it is small")];
        let day = (day + random.below(7)).min(30);
        let (hour, minute, second) = (random.below(24), random.below(60), random.below(60));
        let local = format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}[{zone}]");
        return local.parse().expect("it is a date and a time");
    }
    let instant = Timestamp::from_second(random.between(1_577_836_800, 2_082_758_400))
        .expect("it is in range");
    instant.in_tz(zone).expect("every zone here is known")
}

fn piece(random: &mut Random) -> Piece {
    match random.below(100) {
        0..22 => date(random),
        22..42 => clock(random),
        42..56 => Piece::day(amount(random)),
        56..66 => Piece::day(random.pick(&WEEKDAYS)),
        66..72 => keyword(random),
        72..76 => Piece::day(format!(
            "{} {}",
            random.pick(&ORDINALS),
            random.pick(&UNITS)
        )),
        76..78 => Piece::day(format!(
            "{} {}",
            random.pick(&ORDINALS),
            random.pick(&WEEKDAYS)
        )),
        78..82 => Piece::new(format!(
            "{} week",
            random.pick(&["this", "next", "last", "previous"])
        )),
        82..87 => Piece::day(format!(
            "{} {} of",
            random.pick(&ORDINALS),
            random.pick(&WEEKDAYS)
        )),
        87..92 => Piece::new(format!("{} day of", random.pick(&["first", "last"]))),
        92..94 => Piece::new(random.pick(&MONTHS[..25])),
        94..98 => Piece::new(zone(random)),
        _ => Piece::new("ago"),
    }
}

fn keyword(random: &mut Random) -> Piece {
    match random.below(7) {
        0 => Piece::new("now"),
        1 => Piece::new("midnight"),
        2 => Piece::clock("noon", "noon"),
        3 => {
            let quarter = random.pick(&["back of", "front of"]);
            let text = format!(
                "{quarter} {}{}",
                random.between(0, 24),
                random.pick(&["", "am", " pm"])
            );
            Piece::clock(text.clone(), text)
        }
        _ => Piece::day(random.pick(&["today", "tomorrow", "yesterday"])),
    }
}

fn amount(random: &mut Random) -> String {
    let sign = random.pick(&["+", "-", "+ ", "", "", "--", "-+"]);
    let number = if random.chance(3) {
        random.below(1_000_000)
    } else {
        random.below(40)
    };
    let blank = random.pick(&["", " "]);
    let unit = if random.chance(10) {
        random.pick(&WEEKDAYS)
    } else {
        random.pick(&UNITS)
    };
    let ago = if random.chance(15) { " ago" } else { "" };
    format!("{sign}{number}{blank}{unit}{ago}")
}

fn zone(random: &mut Random) -> String {
    let hours = random.below(15);
    match random.below(7) {
        0 => random.pick(&ZONES[..7]).to_owned(),
        1 => random
            .pick(&[
                "UTC", "CET", "CEST", "EST", "Z", "GMT", "(PST)", "met", "Japan", "BST",
            ])
            .to_owned(),
        2 => format!("+{hours:02}:{:02}", random.pick(&["00", "30", "45"])),
        3 => format!("-{hours:02}{}", random.pick(&["00", "30"])),
        4 => format!("GMT+{hours}"),
        5 => random.pick(&["A", "t", "Y", "Europe/Lutetia"]).to_owned(),
        _ => format!("-{hours}"),
    }
}

fn clock(random: &mut Random) -> Piece {
    let (hour, minute, second) = (random.below(25), random.below(60), random.below(61));
    let hour12 = random.between(1, 12);
    let meridian = random.pick(&["am", "pm", " am", " pm", "AM", " PM", "a.m.", " p.m."]);
    let zone = match random.below(12) {
        0 => zone(random),
        _ => String::new(),
    };
    let clock = match random.below(14) {
        0 | 1 => format!("{hour:02}:{minute:02}"),
        2 => format!("{hour:02}:{minute:02}:{second:02}"),
        3 | 4 => format!("{hour12}{meridian}"),
        5 => format!("{hour12}:{minute:02}{meridian}"),
        6 => format!("{hour12}:{minute:02}:{second:02}{meridian}"),
        7 => format!("T{hour:02}:{minute:02}"),
        8 => format!("{hour}:{minute}"),
        9 => format!("{hour:02}.{minute:02}"),
        10 => format!("T{hour:02}{minute:02}{second:02}"),
        11 => format!("{hour:02}{minute:02}"),
        12 => format!(
            "{hour:02}:{minute:02}:{second:02}.{}",
            random.below(100_000)
        ),
        _ => format!("t{hour}"),
    };
    Piece::clock(format!("{clock}{zone}"), clock)
}

fn date(random: &mut Random) -> Piece {
    let year = random.between(2019, 2037);
    let (month, day) = if random.chance(25) {
        [
            (3, 29),
            (10, 25),
            (3, 8),
            (11, 1),
            (4, 5),
            (10, 4),
            (2, 29),
            (12, 31),
        ][usize::try_from(random.below(8)).expect("it is small")]
    } else if random.chance(4) {
        (random.below(13), random.below(32))
    } else {
        (random.between(1, 12), random.between(1, 28))
    };
    let name = random.pick(&MONTHS);
    let short = random.pick(&MONTHS[12..24]);
    let two = year % 100;
    let suffix = random.pick(&["", "", "st", "nd", "rd", "th"]);
    let (hour, minute, second) = (random.below(24), random.below(60), random.below(60));
    let time = format!("{hour:02}:{minute:02}:{second:02}");
    let date = match random.below(34) {
        0..=2 => format!("{year}-{month:02}-{day:02}"),
        3 => format!("{year}/{month}/{day}"),
        4 => format!("{year}/{month:02}/{day:02}"),
        5 => format!("{month}/{day}/{year}"),
        6 => format!("{month:02}/{day:02}"),
        7 => format!("{month}/{day}/{two:02}"),
        8 => format!("{day:02}.{month:02}.{year}"),
        9 => format!("{day}-{month}-{year}"),
        // Also a time, if the numbers are small enough, or the end of one.
        10 => {
            let clocks = vec![
                format!("{day}:{month}:{two:02}"),
                format!("{month}:{two:02}"),
            ];
            return Piece {
                clocks,
                ..Piece::new(format!("{day}.{month}.{two:02}"))
            };
        }
        11 => format!("{day}{suffix} {name} {year}"),
        12 => format!("{day} {name}"),
        13 => format!("{name} {day}{suffix}"),
        14 => format!("{name} {day}{suffix}, {year}"),
        15 => format!("{day}-{short}-{year}"),
        16 => format!("{short}-{day:02}-{year}"),
        17 => format!("{year}-{short}-{day:02}"),
        // The year is a time, if the month has one already.
        18 => return Piece::clock(format!("{name} {year}"), year.to_string()),
        19 => format!("{year} {name}"),
        20 => format!("{year}-{month}"),
        // After a month, the last four digits are a time.
        21 => {
            return Piece::clock(
                format!("{year}{month:02}{day:02}"),
                format!("{month:02}{day:02}"),
            );
        }
        22 => format!("{year}-{:03}", random.between(1, 366)),
        23 => format!("{year}.{:03}", random.between(1, 366)),
        24 => format!(
            "{year}-W{:02}-{}",
            random.between(1, 53),
            random.between(0, 7)
        ),
        25 => format!("{year}W{:02}", random.between(1, 53)),
        26 => format!(
            "{year}W{:02}{}",
            random.between(1, 53),
            random.between(1, 7)
        ),
        27 => format!("@{}", random.below(2_000_000_000)),
        28 => format!("{two:02}-{month:02}-{day:02}"),
        29 => return Piece::clock(year.to_string(), year.to_string()),
        30 => {
            let time = format!("{time}.{:03}", random.below(1000));
            return Piece::clock(format!("{year}-{month:02}-{day:02}T{time}"), time);
        }
        31 => {
            return Piece::clock(
                format!("{year}{month:02}{day:02}T{hour:02}{minute:02}{second:02}"),
                time,
            );
        }
        32 => return Piece::clock(format!("{day}/{short}/{year}:{time} +0200"), time),
        _ => return Piece::clock(format!("{year}:{month:02}:{day:02} {time}"), time),
    };
    Piece::new(date)
}
