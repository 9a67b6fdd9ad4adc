//! Random expressions: parts of every kind, in any order, at any time, in any zone.

use crate::piece::{MONTHS, Piece, ZONES};
use crate::random::Random;
use domain::before::DateOrder;
use jiff::{SignedDuration, Timestamp, Zoned};
use std::collections::BTreeSet;
use std::fmt;

#[derive(Debug)]
pub(crate) struct Expression {
    pub(crate) text: String,
    /// For each time before a day word: the text with `midnight` and that time appended. PHP resets
    /// the time at a day word, so it keeps such a time only if the time is repeated at the end.
    pub(crate) repeated: Vec<String>,
    /// The text without its weekdays, its day words, both, or its day words and numbers of days,
    /// also with a time repeated.
    pub(crate) with_fewer_days: Vec<String>,
    /// The text in words that PHP has.
    pub(crate) in_php: String,
    pub(crate) has_zone: bool,
    /// How many pieces may be a time of day.
    pub(crate) time_count: usize,
    pub(crate) now: Zoned,
    pub(crate) order: DateOrder,
}

impl Expression {
    pub(crate) fn random(random: &mut Random) -> Self {
        let count = random.between(1, 4);
        let pieces: Vec<Piece> = (0..count).map(|_| Piece::random(random)).collect();
        let separator = if random.chance(5) { ", " } else { " " };
        let texts: Vec<&str> = pieces.iter().map(|piece| piece.text.as_str()).collect();
        let text = texts.join(separator);
        let (in_php, repeated) = in_php_of(&pieces, separator);
        // At a day, PHP resets the time, as at `midnight`.
        let without = |is_day: fn(&Piece) -> bool| {
            let pieces = pieces.iter().cloned();
            let rest: Vec<Piece> = pieces
                .map(|piece| {
                    if is_day(&piece) {
                        Piece::midnight()
                    } else {
                        piece
                    }
                })
                .collect();
            let (text, repeated) = in_php_of(&rest, separator);
            [text].into_iter().chain(repeated)
        };
        let with_fewer_days = [
            Piece::is_weekday,
            Piece::is_day_word,
            |piece: &Piece| piece.is_weekday() || piece.is_day_word(),
            |piece: &Piece| piece.is_day_word() || piece.is_number_of_days(),
        ];
        let with_fewer_days = with_fewer_days.into_iter().flat_map(without).collect();
        let order = if random.chance(20) {
            DateOrder::DayFirst
        } else {
            DateOrder::MonthFirst
        };
        Self {
            text,
            repeated,
            with_fewer_days,
            in_php,
            has_zone: pieces.iter().any(|piece| piece.has_zone),
            time_count: pieces.iter().filter(|piece| piece.may_be_time()).count(),
            now: now(random),
            order,
        }
    }

    /// Contains a meridiem that PHP does not recognize: before a comma, or after a day and a month,
    /// where PHP takes the hour for a year. PHP then rejects the text, takes the first letter for a
    /// military zone, or ignores the meridiem as a second zone.
    pub(crate) fn has_lost_meridiem(&self) -> bool {
        let text = self.text.to_lowercase();
        let has = |meridiems: &[&str]| meridiems.iter().any(|meridiem| text.contains(meridiem));
        has(&["m,", "m.,"]) || (has(&["am", "pm", "a.m.", "p.m."]) && self.is_beyond_php())
    }

    /// Contains a notation that only our parser accepts: a day and a month before a time, where PHP
    /// takes the hour for a year, or a slash date with the day first.
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
        let day_month_time = words.windows(2).any(|pair| {
            starts_with_digit(pair[1]) && (ends_in_month(pair[0]) || starts_with_digit(pair[0]))
        });
        day_month_time || (self.order == DateOrder::DayFirst && self.text.contains('/'))
    }

    /// Contains a duration that PHP would read as a zone.
    pub(crate) fn has_duration(&self) -> bool {
        self.text != self.in_php
    }

    /// Whether our parser may reject this word because of a duration ago: it is `ago`, or, in a text
    /// with `ago`, a signed duration that PHP cannot read.
    pub(crate) fn is_ago_rejected_at(&self, word: &str) -> bool {
        let is_ago = |word: &str| word.trim_end_matches(',') == "ago";
        is_ago(word)
            || (self.has_duration()
                && Self::has_signed_number(word)
                && self.text.split(' ').any(is_ago))
    }

    /// The word contains a signed number, which PHP may take for an offset from UTC.
    pub(crate) fn has_signed_number(word: &str) -> bool {
        let mut pairs = word.as_bytes().windows(2);
        pairs.any(|pair| b"+-".contains(&pair[0]) && pair[1].is_ascii_digit())
    }

    /// Whether our parser may reject this word because of a duration without a sign: it is one, or,
    /// in a text with one, a signed duration that PHP cannot read.
    pub(crate) fn is_unsigned_rejected_at(&self, word: &str) -> bool {
        let is_unsigned = |word: &str| {
            let unit = word.trim_start_matches(|char: char| char.is_ascii_digit());
            let mut unit = unit.trim_end_matches(',').chars();
            word.starts_with(|char: char| char.is_ascii_digit()) && unit.all(char::is_alphabetic)
        };
        // `march -792132mins` is 32 minutes in March 7921.
        let follows_month = || {
            let mut pairs = self.text.split(' ').zip(self.text.split(' ').skip(1));
            pairs.any(|(month, next)| ends_in_month(month) && next == word)
        };
        is_unsigned(word)
            || (is_unsigned(word.trim_start_matches('-')) && follows_month())
            || (self.has_duration()
                && Self::has_signed_number(word)
                && self.text.split(' ').any(is_unsigned))
    }

    /// The text is numbers, a number before a weekday, or a month.
    pub(crate) fn has_readings(text: &str) -> bool {
        text.starts_with(|char: char| char.is_ascii_digit()) || ends_in_month(text)
    }

    /// The word is a date with a month or a day of 0.
    pub(crate) fn has_zero(word: &str) -> bool {
        let mut parts = word.split(['/', '-']);
        parts.any(|part| !part.is_empty() && part.bytes().all(|byte| byte == b'0'))
    }

    /// Contains a weekday or a week, and a time that may be on the day before or after it: from 24:00,
    /// `back of 14 pm`, `front of 0`.
    pub(crate) fn ends_with_day(&self) -> bool {
        let mut words = self.text.split([' ', ',']);
        let is_end = |word: &str| word.trim_start_matches(['t', 'T']).starts_with("24");
        let may_be_end = words.any(is_end)
            || ["back of", "front of"]
                .iter()
                .any(|word| self.text.contains(word));
        may_be_end && (self.has_day() || self.text.contains("week"))
    }

    pub(crate) fn has_hyphens(&self) -> bool {
        self.text.contains(['-', '.'])
    }

    /// Contains two or three numbers with dots or hyphens, or a month and four digits or an hour
    /// after `t`, which PHP takes for a year.
    pub(crate) fn has_numbers(&self) -> bool {
        let is_number = |part: &str| part.len() <= 2 && part.parse::<u8>().is_ok();
        let words: Vec<&str> = self.text.split([' ', ',']).collect();
        let has_numbers = |word: &&str| {
            let parts = || word.split(['.', '-', '+']);
            parts().count() > 1 && parts().take(2).all(is_number)
        };
        let has_digits = |text: Option<&str>| {
            text.is_some_and(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let may_be_year = |word: &&str| {
            has_digits(word.get(..4)) || word.starts_with('-') || has_digits(word.strip_prefix('t'))
        };
        words.iter().any(has_numbers)
            || (words.iter().any(may_be_year) && words.iter().any(|word| ends_in_month(word)))
    }

    /// The word contains a decimal point before digits.
    pub(crate) fn has_fraction(word: &str) -> bool {
        let mut pairs = word.as_bytes().windows(2);
        pairs.any(|pair| pair[0] == b'.' && pair[1].is_ascii_digit())
    }

    /// The differences, in seconds, between the zone's UTC offsets from the present to `instant`,
    /// with a margin of two days, or of a year if the text moves the day by more.
    pub(crate) fn clock_changes(&self, instant: Timestamp) -> BTreeSet<u64> {
        let moves_day = ["day of", "fortnight", "week", "month", "year"];
        let is_far = moves_day.iter().any(|unit| self.text.contains(unit));
        let margin = SignedDuration::from_hours(if is_far { 24 * 366 } else { 48 });
        let (zone, now) = (self.now.time_zone(), self.now.timestamp());
        let first = now
            .min(instant)
            .saturating_sub(margin)
            .expect("no calendar units");
        let last = now
            .max(instant)
            .saturating_add(margin)
            .expect("no calendar units");
        let changes = zone.following(first);
        let offsets: BTreeSet<i32> = changes
            .take_while(|change| change.timestamp() < last)
            .map(|change| change.offset().seconds())
            .chain([zone.to_offset(first).seconds()])
            .collect();
        let differences = offsets.iter().flat_map(|one| {
            let others = offsets.iter();
            others.map(move |other| u64::from(one.abs_diff(*other)))
        });
        differences.filter(|difference| *difference > 0).collect()
    }

    /// Contains an amount so large that a part of the text may be outside our calendar.
    pub(crate) fn has_large_amount(&self) -> bool {
        let mut numbers = self.text.split(|char: char| !char.is_ascii_digit());
        numbers.any(|number| number.len() > 4)
    }

    /// Contains a weekday, a day word, or a week such as `2026-W48`.
    pub(crate) fn has_day(&self) -> bool {
        let text = self.text.to_lowercase();
        let names = [
            "today",
            "tomorrow",
            "yesterday",
            "mon",
            "tue",
            "wed",
            "thu",
            "fri",
            "sat",
            "sun",
            "weekday",
        ];
        let mut pairs = text.as_bytes().windows(2);
        let has_week = pairs.any(|pair| pair[0] == b'w' && pair[1].is_ascii_digit());
        has_week || names.iter().any(|name| text.contains(name))
    }

    /// Contains a Unix time. If a zone precedes it, PHP counts it from the year 0.
    pub(crate) fn has_timestamp(&self) -> bool {
        self.text.contains('@')
    }

    /// Contains a time with a hyphen and another time directly after it.
    pub(crate) fn has_range(&self) -> bool {
        self.text
            .as_bytes()
            .windows(3)
            .any(|bytes| bytes[0].is_ascii_digit() && bytes[1] == b'-' && bytes[2].is_ascii_digit())
            || self.text.split(' ').any(|word| {
                let number = word.strip_prefix('-');
                number.is_some_and(|number| number.starts_with(|char: char| char.is_ascii_digit()))
            })
    }

    /// Contains a military zone, or a letter that PHP takes for one, as the `u` of `dec 24 thu`.
    pub(crate) fn has_lone_letter(&self) -> bool {
        let rest = self.in_php.replace("thu", " u");
        rest.split(|char: char| !char.is_ascii_alphabetic())
            .any(|word| word.len() == 1 && !word.eq_ignore_ascii_case("z"))
    }
}

fn ends_in_month(word: &str) -> bool {
    let name = word.trim_start_matches(|char: char| char.is_ascii_digit() || "-. ".contains(char));
    MONTHS.iter().any(|month| name.eq_ignore_ascii_case(month))
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {} {:?}", self.text, self.now, self.order)
    }
}

/// The pieces in words that PHP has, and the variants with a repeated time.
fn in_php_of(pieces: &[Piece], separator: &str) -> (String, Vec<String>) {
    let words: Vec<&str> = pieces
        .iter()
        .map(|piece| piece.in_php.as_deref().unwrap_or(&piece.text))
        .collect();
    let text = words.join(separator);
    let is_before_day = |index: usize| pieces[index..].iter().any(|piece| piece.is_day);
    let times = (0..pieces.len())
        .filter(|index| is_before_day(*index))
        .flat_map(|index| &pieces[index].times);
    let repeated = times
        .map(|time| format!("{text} midnight {time}"))
        .collect();
    (text, repeated)
}

/// Any second from 2020 to 2036, often in a week with a clock change.
fn now(random: &mut Random) -> Zoned {
    let zone = random.pick(&ZONES);
    if random.chance(25) {
        let year = random.between(2024, 2030);
        let (month, day) = [(3, 25), (3, 8), (10, 25), (11, 1), (4, 3), (10, 2)]
            [usize::try_from(random.below(6)).expect("the index is below 6")];
        let day = (day + random.below(7)).min(30);
        let (hour, minute, second) = (random.below(24), random.below(60), random.below(60));
        let local = format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}[{zone}]");
        return local.parse().expect("this is a valid date and time");
    }
    let instant = Timestamp::from_second(random.between(1_577_836_800, 2_082_758_400))
        .expect("the second is in range");
    instant.in_tz(zone).expect("all test zones are known")
}
