//! Cuts a text into tokens, and reads the numbers and words of a token.

use super::automaton::Automaton;
use super::grammar::{self, Meaning};
use std::sync::LazyLock;

/// A match of a rule.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) meaning: Meaning,
    /// The bytes it takes of the text.
    pub(super) start: usize,
    pub(super) text: &'a str,
}

impl Token<'_> {
    pub(super) fn end(&self) -> usize {
        self.start + self.text.len()
    }
}

/// The grammar's rules as they are matched. Made at the first use, in a few milliseconds.
static AUTOMATON: LazyLock<Automaton> = LazyLock::new(|| Automaton::of(grammar::rules()));

/// The token at byte `start`, or `None` if the grammar has nothing for what stands there.
pub(super) fn token(text: &str, start: usize) -> Option<Token<'_>> {
    let rest = text.get(start..)?;
    let (length, meaning) = AUTOMATON.longest(rest.as_bytes())?;
    // The end of the text may be part of a match.
    let text = rest.get(..length.min(rest.len()))?;
    Some(Token {
        meaning,
        start,
        text,
    })
}

/// Far beyond what a calendar can say, and near enough for no sum of such numbers to overflow.
const LARGEST: i64 = 1_000_000_000_000_000;

/// Reads the fields of a token from left to right, passing over what separates them.
pub(super) struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text }
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.rest.bytes().next()
    }

    /// What is left, without the blanks before it.
    pub(super) fn remainder(&self) -> &'a str {
        self.rest.trim_start_matches([' ', '\t'])
    }

    /// The next number, of which at most `width` digits are read, and how many were. Numbers too
    /// large for any calendar come out as the largest of them.
    pub(super) fn number(&mut self, width: usize) -> Option<(i64, usize)> {
        self.skip_until(|char| char.is_ascii_digit());
        let digits = self.take(width, |char| char.is_ascii_digit());
        let value = digits.parse().unwrap_or(LARGEST).min(LARGEST);
        (!digits.is_empty()).then_some((value, digits.len()))
    }

    /// The fraction of a second, after its point or colon, if there is one.
    pub(super) fn microseconds(&mut self) -> i64 {
        if !matches!(self.peek(), Some(b'.' | b':')) {
            return 0;
        }
        let (value, digits) = self.number(6).unwrap_or((0, 6));
        self.take(usize::MAX, |char| char.is_ascii_digit());
        (digits..6).fold(value, |value, _| value * 10)
    }

    /// The letters of `1st`, `2nd`, `3rd`, `4th`.
    pub(super) fn skip_ordinal_suffix(&mut self) {
        for suffix in ["st", "nd", "rd", "th"] {
            if let Some(rest) = self.rest.strip_prefix(suffix) {
                self.rest = rest;
                return;
            }
        }
    }

    /// The next word made of letters.
    pub(super) fn word(&mut self) -> &'a str {
        self.skip_until(char::is_alphabetic);
        self.take(usize::MAX, char::is_alphabetic)
    }

    /// The sign of all the hyphens and pluses before the next number.
    pub(super) fn sign(&mut self) -> i64 {
        let signs = self.take(usize::MAX, |char| !char.is_ascii_digit());
        if signs.matches('-').count().is_multiple_of(2) {
            1
        } else {
            -1
        }
    }

    fn skip_until(&mut self, wanted: impl Fn(char) -> bool) {
        self.take(usize::MAX, |char| !wanted(char));
    }

    fn take(&mut self, width: usize, wanted: impl Fn(char) -> bool) -> &'a str {
        let end = self
            .rest
            .char_indices()
            .enumerate()
            .find(|(count, (_, char))| *count >= width || !wanted(*char))
            .map_or(self.rest.len(), |(_, (at, _))| at);
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Vec<&str> {
        let mut tokens = Vec::new();
        let mut start = 0;
        while let Some(token) = token(text, start) {
            start = token.end();
            if token.meaning != Meaning::Blank {
                tokens.push(token.text);
            }
        }
        tokens
    }

    #[test]
    fn the_longest_match_wins() {
        assert_eq!(
            cut("monday next week 10:00"),
            ["monday", "next week", "10:00"]
        );
        assert_eq!(cut("20261125T100000Z"), ["20261125T100000", "Z"]);
        assert_eq!(cut("2026-329 10:00"), ["2026-329", "10:00"]);
        assert_eq!(
            cut("last day of february 2028"),
            ["last day of", "february 2028"]
        );
        assert_eq!(cut("5 pm"), ["5 pm"]);
        assert_eq!(cut("24 dec 12:30"), ["24 dec 12:30"]);
        assert_eq!(cut("+1 week 2 days"), ["+1 week", " 2 days"]);
    }

    #[test]
    fn a_cursor_passes_over_separators() {
        let mut cursor = Cursor::new("2026-11-25T10");
        assert_eq!(cursor.number(4), Some((2026, 4)));
        assert_eq!(cursor.number(2), Some((11, 2)));
        assert_eq!(cursor.number(2), Some((25, 2)));
        assert_eq!(cursor.number(2), Some((10, 2)));
        assert_eq!(cursor.number(2), None);
    }
}
