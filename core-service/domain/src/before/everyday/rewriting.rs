//! Puts the writer's phrases in the words of the strict grammar, and remembers where they stood.

use super::super::context::Context;
use super::super::error::Error;
use super::super::reading::Clock;
use super::super::words::Unit;
use super::phrase::{Sense, at_start, fold};
use std::borrow::Cow;

#[derive(Debug, Default)]
pub(super) struct Rewriting {
    pub(super) text: String,
    /// Pairs of a place in `text` and one in the original.
    pub(super) origins: Vec<(usize, usize)>,
    /// When an evening without a time ends, and where it is said.
    pub(super) evening: Option<(Clock, usize)>,
}

/// The writer's words: where they stand, as they are, and folded.
struct Words<'a> {
    places: Vec<usize>,
    said: Vec<&'a str>,
    folded: Vec<Cow<'a, str>>,
}

/// What the words so far lead to.
#[derive(Default)]
struct Expectation {
    /// What follows a preposition.
    next: Option<Next>,
    /// Where a number was spelled out that only a distance makes one.
    spelled: Option<usize>,
    /// Which way the distance goes, if something says that there is one.
    direction: Option<Direction>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Distance,
    Hour,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Forward,
    /// Said before the distance, where the strict grammar has `ago` after it.
    Back,
    AlreadyBack,
}

impl Expectation {
    fn is(&self, next: Next) -> bool {
        self.next == Some(next)
    }

    fn distance(&mut self, direction: Direction) {
        self.next = Some(Next::Distance);
        self.direction = Some(direction);
    }
}

impl Rewriting {
    /// Rewrites a text word by word. What no table knows stays as it is.
    pub(super) fn of(context: Context<'_>) -> Result<Self, Error> {
        let words = Words::of(context.original);
        let mut rewriting = Self::default();
        let mut expected = Expectation::default();
        let mut index = 0;
        while index < words.said.len() {
            if let Some(range) = words.range(index, context.original) {
                return Err(Error::Range {
                    range: range.to_owned(),
                });
            }
            index += rewriting
                .word(index, &words, &mut expected)
                .ok_or_else(|| context.not_understood(words.places[index]))?;
        }
        if expected.direction == Some(Direction::Back) {
            rewriting.push("ago", context.original.len());
        }
        match expected.spelled {
            Some(place) if expected.direction.is_none() => Err(context.not_understood(place)),
            _ => Ok(rewriting),
        }
    }

    /// Rewrites the word at `index`, and says how many words that took. `None` if it can't stand
    /// where it does.
    fn word(
        &mut self,
        index: usize,
        words: &Words<'_>,
        expected: &mut Expectation,
    ) -> Option<usize> {
        let place = words.places[index];
        if let Some((time, length)) = words.time(index, expected) {
            self.push(&time, place);
            if expected.is(Next::Hour) {
                expected.next = None;
            }
            return Some(length);
        }
        let Some((sense, length)) = at_start(&words.folded[index..]) else {
            let said = words.said[index];
            if expected.is(Next::Distance) && !is_number(said) {
                expected.next = None;
            }
            self.push(without_ordinal(said), place);
            return Some(1);
        };
        let next = words.folded.get(index + length..).unwrap_or_default();
        match sense {
            Sense::LinkButAfterNumber if is_number(self.last()) => {
                self.push(words.said[index], place);
            }
            Sense::And if self.ends_in_unit() && is_distance(next) => {}
            Sense::In | Sense::Within if starts_distance(next) => {
                expected.distance(Direction::Forward);
            }
            Sense::Since if starts_distance(next) => expected.distance(Direction::Back),
            Sense::Link | Sense::LinkButAfterNumber | Sense::Within => {}
            Sense::AtHour => expected.next = Some(Next::Hour),
            Sense::FromNow => expected.direction = Some(Direction::Forward),
            Sense::Ago => {
                expected.direction = Some(Direction::AlreadyBack);
                self.push("ago", place);
            }
            Sense::Count(number) => {
                expected.spelled = Some(place);
                self.push(number, place);
            }
            Sense::Words(said) | Sense::Unit(said) => self.push(said, place),
            Sense::Hour if expected.is(Next::Distance) || ends_distance(next) => {
                self.push("hours", place);
            }
            Sense::OClock if self.last().contains([':', '.']) => {}
            Sense::And | Sense::In | Sense::Since | Sense::Hour | Sense::OClock => return None,
            Sense::NextBefore => self.put_before_last("next")?,
            Sense::LastBefore => self.put_before_last("last")?,
            Sense::Evening(hour) => {
                let clock = Clock {
                    hour,
                    ..Clock::default()
                };
                self.evening = Some((clock, place));
                self.push("today", place);
            }
        }
        Some(length)
    }

    fn push(&mut self, words: &str, place: usize) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        self.origins.push((self.text.len(), place));
        self.text.push_str(words);
    }

    fn put_before_last(&mut self, word: &str) -> Option<()> {
        let (start, _) = *self.origins.last()?;
        self.text.insert(start, ' ');
        self.text.insert_str(start, word);
        Some(())
    }

    fn ends_in_unit(&self) -> bool {
        Unit::named(self.last()).is_some()
    }

    fn last(&self) -> &str {
        self.text.rsplit(' ').next().unwrap_or_default()
    }
}

impl<'a> Words<'a> {
    fn of(text: &'a str) -> Self {
        let count = text.split_ascii_whitespace().count();
        let mut words = Self {
            places: Vec::with_capacity(count),
            said: Vec::with_capacity(count),
            folded: Vec::with_capacity(count),
        };
        for word in text.split_whitespace() {
            let bare = word.trim_end_matches(',');
            // A comma keeps numbers apart, but a meridian must not have one.
            let is_meridian = bare.trim_end_matches('.').ends_with(['m', 'M']);
            // The word is a part of the text, so the difference of their places is its place.
            let place = word.as_ptr().addr() - text.as_ptr().addr();
            words.places.push(place);
            words.said.push(if is_meridian { bare } else { word });
            words.folded.push(fold(bare));
        }
        words
    }

    /// A time that the strict grammar does not know, and how many words it takes: `10h30`,
    /// `10 Uhr 30`, `18.30h`. In a distance `2h30` is hours and minutes.
    fn time(&self, index: usize, expected: &Expectation) -> Option<(String, usize)> {
        let word = self.folded.get(index)?;
        let digits = word.bytes().take_while(u8::is_ascii_digit).count();
        let (hour, rest) = word.split_at(digits);
        if !(1..=2).contains(&digits) {
            return None;
        }
        if rest.is_empty() {
            return self.spaced_time(hour, index, expected);
        }
        if rest == "uhr" {
            return Some((format!("{hour}:00"), 1));
        }
        if rest.starts_with([':', '.']) {
            let time = word.strip_suffix('h')?;
            return time
                .ends_with(|char: char| char.is_ascii_digit())
                .then(|| (time.to_owned(), 1));
        }
        let minutes = rest.strip_prefix('h')?;
        if !minutes.is_empty() && !is_number(minutes) {
            return None;
        }
        Some((written(hour, minutes, expected.is(Next::Distance)), 1))
    }

    /// An hour in a word of its own, and the minutes in another.
    fn spaced_time(
        &self,
        hour: &str,
        index: usize,
        expected: &Expectation,
    ) -> Option<(String, usize)> {
        let after = self.folded.get(index + 1..).unwrap_or_default();
        let length = match (after.first().map(AsRef::as_ref), at_start(after)) {
            (Some("h"), _) => 2,
            (_, Some((Sense::OClock, length))) => 1 + length,
            (_, Some((Sense::Hour, length))) if expected.is(Next::Hour) => 1 + length,
            (None, _) if expected.is(Next::Hour) => 1,
            _ => return None,
        };
        match self.folded.get(index + length) {
            Some(minutes) if length > 1 && minutes.len() <= 2 && is_number(minutes) => Some((
                written(hour, minutes, expected.is(Next::Distance)),
                length + 1,
            )),
            _ => Some((written(hour, "", expected.is(Next::Distance)), length)),
        }
    }

    /// Two times at `index`, with a dash between them in the same word or in one of its own.
    fn range(&self, index: usize, text: &'a str) -> Option<&'a str> {
        const DASHES: [char; 3] = ['-', '–', '—'];
        let word = *self.said.get(index)?;
        let is_time = |word: &str| {
            word.starts_with(|char: char| char.is_ascii_digit())
                && word.contains(|char: char| char == ':' || char.is_alphabetic())
        };
        if let Some((from, to)) = word.split_once(DASHES)
            && is_time(to)
            && from.starts_with(|char: char| char.is_ascii_digit())
        {
            return Some(word);
        }
        let (dash, to) = (self.said.get(index + 1)?, self.said.get(index + 2)?);
        let end = self.places.get(index + 2)? + to.len();
        (is_time(word)
            && is_time(to)
            && dash
                .chars()
                .eq(dash.chars().filter(|char| DASHES.contains(char)).take(1)))
        .then(|| text.get(self.places[index]..end))?
    }
}

fn written(hour: &str, minutes: &str, distance: bool) -> String {
    match (distance, minutes) {
        (true, "") => format!("{hour} hours"),
        (true, minutes) => format!("{hour} hours {minutes} minutes"),
        (false, "") => format!("{hour}:00"),
        (false, minutes) => format!("{hour}:{minutes}"),
    }
}

/// The number of `1er`, `1º` and `1ª`; other words as they are.
fn without_ordinal(word: &str) -> &str {
    let number = word
        .trim_end_matches("er")
        .trim_end_matches(['º', 'ª', '°']);
    if is_number(number) { number } else { word }
}

/// A distance begins with these words.
fn starts_distance(words: &[Cow<'_, str>]) -> bool {
    match at_start(words) {
        Some((Sense::Count(_), _)) => true,
        Some((Sense::Words(said), _)) => starts_with_digit(said),
        _ => words.first().is_some_and(|word| starts_with_digit(word)),
    }
}

/// A distance is these words: a number and a unit.
fn is_distance(words: &[Cow<'_, str>]) -> bool {
    let unit = words.get(1..).and_then(at_start);
    starts_distance(words) && matches!(unit, Some((Sense::Unit(_) | Sense::Hour, _)))
}

/// A distance ends before these words.
fn ends_distance(words: &[Cow<'_, str>]) -> bool {
    matches!(at_start(words), Some((Sense::Ago | Sense::FromNow, _)))
}

fn starts_with_digit(word: &str) -> bool {
    word.starts_with(|char: char| char.is_ascii_digit())
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}
