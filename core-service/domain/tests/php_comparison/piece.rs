//! Random parts of expressions: dates, times, days, relative offsets and zones.

mod date;

use self::date::date;
use crate::random::Random;

#[derive(Clone, Default)]
pub(crate) struct Piece {
    pub(crate) text: String,
    /// An equivalent text that PHP parses, if it does not parse `text`.
    pub(crate) in_php: Option<String>,
    pub(crate) has_zone: bool,
    /// The parts that may be parsed as a time of day.
    pub(crate) times: Vec<String>,
    /// May contain a day word, at which PHP resets the time to midnight; we keep a time before it.
    pub(crate) is_day: bool,
}

impl Piece {
    fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    fn with_zone(mut self, zone: &str) -> Self {
        self.text.push_str(zone);
        self.has_zone = !zone.is_empty();
        self
    }

    fn day(text: impl Into<String>) -> Self {
        Self {
            is_day: true,
            ..Self::new(text)
        }
    }

    /// In place of a day that is left out.
    pub(crate) fn midnight() -> Self {
        Self::day("midnight")
    }

    fn time(text: impl Into<String>, time: impl Into<String>) -> Self {
        Self {
            times: vec![time.into()],
            ..Self::new(text)
        }
    }
}

pub(crate) const ZONES: [&str; 8] = [
    "Europe/Paris",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Kolkata",
    "UTC",
    "Europe/London",
    "Atlantic/Azores",
    "America/St_Johns",
];
pub(crate) const MONTHS: [&str; 26] = [
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
/// Abbreviations that PHP parses as letters of time zones, and its names of these units.
const ABBREVIATIONS: [(&str, &str); 7] = [
    ("h", "hours"),
    ("hr", "hours"),
    ("H", "hours"),
    ("m", "minutes"),
    ("s", "seconds"),
    ("d", "days"),
    ("w", "weeks"),
];
const ORDINALS: [&str; 12] = [
    "first", "second", "third", "fourth", "fifth", "sixth", "eighth", "twelfth", "next", "last",
    "previous", "this",
];

const DAY_WORDS: [&str; 3] = ["today", "tomorrow", "yesterday"];

impl Piece {
    pub(crate) fn is_weekday(&self) -> bool {
        WEEKDAYS.contains(&self.text.as_str())
    }

    pub(crate) fn is_day_word(&self) -> bool {
        DAY_WORDS.contains(&self.text.as_str())
    }

    pub(crate) fn may_be_time(&self) -> bool {
        !self.times.is_empty() || self.text == "midnight" || self.text.starts_with('@')
    }

    /// `twelfth day`, `+3 days`.
    pub(crate) fn is_number_of_days(&self) -> bool {
        self.text.ends_with(" day") || self.text.ends_with(" days")
    }

    /// A piece of any kind.
    pub(crate) fn random(random: &mut Random) -> Piece {
        match random.below(100) {
            0..22 => date(random),
            22..42 => time_of_day(random),
            42..53 => Piece::day(offset(random)),
            53..56 => duration(random),
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
            94..98 => Piece::default().with_zone(&zone(random)),
            _ => Piece::new("ago"),
        }
    }
}

fn keyword(random: &mut Random) -> Piece {
    match random.below(7) {
        0 => Piece::new("now"),
        1 => Piece::new("midnight"),
        2 => Piece::time("noon", "noon"),
        3 => {
            let quarter = random.pick(&["back of", "front of"]);
            let text = format!(
                "{quarter} {}{}",
                random.between(0, 24),
                random.pick(&["", "am", " pm"])
            );
            Piece::time(text.clone(), text)
        }
        _ => Piece::day(random.pick(&DAY_WORDS)),
    }
}

fn offset(random: &mut Random) -> String {
    let sign = random.pick(&["+", "-", "+ ", "", "", "--", "-+"]);
    let number = if random.chance(3) {
        random.below(1_000_000)
    } else {
        random.below(40)
    };
    let space = random.pick(&["", " "]);
    let unit = if random.chance(10) {
        random.pick(&WEEKDAYS)
    } else {
        random.pick(&UNITS)
    };
    let ago = if random.chance(15) { " ago" } else { "" };
    format!("{sign}{number}{space}{unit}{ago}")
}

/// A signed number with an abbreviated unit, or one and a half hours.
fn duration(random: &mut Random) -> Piece {
    let sign = random.pick(&["+", "-"]);
    let number = random.between(1, 40);
    let space = random.pick(&["", " "]);
    let index = usize::try_from(random.below(7)).expect("the index is below 7");
    let (abbreviation, unit) = ABBREVIATIONS[index];
    let (text, in_php) = if random.chance(10) {
        (
            format!("{sign}{number}.5{space}hours"),
            format!("{sign}{number} hours {sign}30 minutes"),
        )
    } else {
        (
            format!("{sign}{number}{space}{abbreviation}"),
            format!("{sign}{number} {unit}"),
        )
    };
    Piece {
        in_php: Some(in_php),
        ..Piece::day(text)
    }
}

fn zone(random: &mut Random) -> String {
    let hours = random.below(15);
    match random.below(7) {
        0 => random.pick(&ZONES[..7]).to_owned(),
        1 => random
            .pick(&[
                "UTC", "CET", "CEST", "EST", "Z", "GMT", "(PDT)", "met", "Japan", "BST",
            ])
            .to_owned(),
        2 => format!("+{hours:02}:{:02}", random.pick(&["00", "30", "45"])),
        3 => format!("-{hours:02}{}", random.pick(&["00", "30"])),
        4 => format!("GMT+{hours}"),
        5 => random.pick(&["A", "t", "Y", "Europe/Lutetia"]).to_owned(),
        _ => format!("-{hours}"),
    }
}

fn time_of_day(random: &mut Random) -> Piece {
    let (hour, minute, second) = (random.below(25), random.below(60), random.below(61));
    let hour12 = random.between(1, 12);
    let meridiem = random.pick(&["am", "pm", " am", " pm", "AM", " PM", "a.m.", " p.m."]);
    let shape = random.below(14);
    let time = match shape {
        0 | 1 => format!("{hour:02}:{minute:02}"),
        2 => format!("{hour:02}:{minute:02}:{second:02}"),
        3 | 4 => format!("{hour12}{meridiem}"),
        5 => format!("{hour12}:{minute:02}{meridiem}"),
        6 => format!("{hour12}:{minute:02}:{second:02}{meridiem}"),
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
    let can_have_zone = !(3..=6).contains(&shape);
    let zone = if can_have_zone && random.chance(10) {
        zone(random)
    } else {
        String::new()
    };
    Piece::time(time.clone(), time).with_zone(&zone)
}
