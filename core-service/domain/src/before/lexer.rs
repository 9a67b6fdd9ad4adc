//! Splits a text into tokens, and reads the numbers and words of a token.

use super::grammar::{TokenKind, longest_match};

/// A match of a rule of the grammar.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind,
    /// The byte position in the text.
    pub(super) start: usize,
    pub(super) text: &'a str,
    /// The whole text.
    source: &'a str,
}

impl<'a> Token<'a> {
    pub(super) fn end(&self) -> usize {
        self.start + self.text.len()
    }

    /// Whether one of these bytes follows.
    pub(super) fn is_before(&self, bytes: &[u8]) -> bool {
        let next = self.source.as_bytes().get(self.end());
        next.is_some_and(|next| bytes.contains(next))
    }

    /// The text before the token.
    pub(super) fn before(&self) -> &'a str {
        self.source.get(..self.start).unwrap_or_default()
    }

    /// The source from the start of `suffix`, which is the end of the token's text.
    pub(super) fn source_from(&self, suffix: &str) -> &'a str {
        self.source
            .get(self.end() - suffix.len()..)
            .unwrap_or_default()
    }
}

/// The token at byte `start`, or `None` if no rule matches there.
pub(super) fn token_at(source: &str, start: usize) -> Option<Token<'_>> {
    let rest = source.get(start..)?;
    let (length, kind) = longest_match(rest.as_bytes())?;
    // A match may include the end of the text, one byte past the last.
    let text = rest.get(..length.min(rest.len()))?;
    Some(Token {
        kind,
        start,
        text,
        source,
    })
}

/// The maximum of parsed numbers: too large for a valid date, but sums of them do not overflow.
const MAX_NUMBER: i64 = 1_000_000_000_000_000;

/// Reads the fields of a token from left to right, skipping separators.
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

    /// The unread text, without leading spaces.
    pub(super) fn remainder(&self) -> &'a str {
        self.rest.trim_start_matches([' ', '\t'])
    }

    /// The next number, of at most `width` digits. Larger numbers become [`MAX_NUMBER`].
    pub(super) fn number(&mut self, width: usize) -> Option<i64> {
        number(self.digits(width))
    }

    /// The next year, of at most `width` digits: two digits mean 1970 to 2069.
    pub(super) fn year(&mut self, width: usize) -> Option<i64> {
        let digits = self.digits(width);
        Some(match number(digits)? {
            year @ 0..70 if digits.len() < 4 => year + 2000,
            year @ 70..100 if digits.len() < 4 => year + 1900,
            year => year,
        })
    }

    /// The fraction of a second after a point or colon, or 0.
    pub(super) fn microseconds(&mut self) -> i64 {
        if !matches!(self.peek(), Some(b'.' | b':')) {
            return 0;
        }
        let digits = self.digits(usize::MAX);
        number(&format!("{digits:0<6}")[..6]).unwrap_or_default()
    }

    /// Skips the suffix of `1st`, `2nd`, `3rd` or `4th`.
    pub(super) fn skip_ordinal_suffix(&mut self) {
        for suffix in ["st", "nd", "rd", "th"] {
            if let Some(rest) = self.rest.strip_prefix(suffix) {
                self.rest = rest;
                return;
            }
        }
    }

    /// The next sequence of letters.
    pub(super) fn word(&mut self) -> &'a str {
        self.skip_until(char::is_alphabetic);
        self.take(usize::MAX, char::is_alphabetic)
    }

    /// The sign before the next number: -1 after an odd number of hyphens.
    pub(super) fn sign(&mut self) -> i64 {
        let signs = self.take(usize::MAX, |char| !char.is_ascii_digit());
        if signs.matches('-').count().is_multiple_of(2) {
            1
        } else {
            -1
        }
    }

    /// Whether another number of a time follows, not a meridiem or a time zone.
    pub(super) fn is_before_number(&self) -> bool {
        self.peek()
            .is_some_and(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.'))
    }

    /// The hours that the `am` or `pm` that follows adds to an hour.
    pub(super) fn meridiem_hours(&self, hour: i64) -> i64 {
        match (self.remainder().bytes().next(), hour) {
            (Some(b'a' | b'A'), 12) => -12,
            (Some(b'p' | b'P'), 12) => 0,
            (Some(b'p' | b'P'), _) => 12,
            _ => 0,
        }
    }

    fn digits(&mut self, width: usize) -> &'a str {
        self.skip_until(|char| char.is_ascii_digit());
        self.take(width, |char| char.is_ascii_digit())
    }

    fn skip_until(&mut self, matches: impl Fn(char) -> bool) {
        self.take(usize::MAX, |char| !matches(char));
    }

    fn take(&mut self, width: usize, matches: impl Fn(char) -> bool) -> &'a str {
        let end = self
            .rest
            .char_indices()
            .enumerate()
            .find(|(count, (_, char))| *count >= width || !matches(*char))
            .map_or(self.rest.len(), |(_, (at, _))| at);
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }
}

fn number(digits: &str) -> Option<i64> {
    (!digits.is_empty()).then(|| digits.parse().unwrap_or(MAX_NUMBER).min(MAX_NUMBER))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<&str> {
        let mut tokens = Vec::new();
        let mut start = 0;
        while let Some(token) = token_at(text, start) {
            start = token.end();
            if token.kind != TokenKind::Separator {
                tokens.push(token.text);
            }
        }
        tokens
    }

    #[test]
    fn the_longest_match_wins() {
        assert_eq!(
            tokens("monday next week 10:00"),
            ["monday", "next week", "10:00"]
        );
        assert_eq!(tokens("20261125T100000Z"), ["20261125T100000", "Z"]);
        assert_eq!(tokens("2026-329 10:00"), ["2026-329", "10:00"]);
        assert_eq!(
            tokens("last day of february 2028"),
            ["last day of", "february 2028"]
        );
        assert_eq!(tokens("5 pm"), ["5 pm"]);
        assert_eq!(tokens("24 dec 12:30"), ["24 dec", "12:30"]);
        assert_eq!(tokens("+1 week 2 days"), ["+1 week", " 2 days"]);
    }

    #[test]
    fn a_cursor_skips_separators() {
        let mut cursor = Cursor::new("2026-11-25T10");
        assert_eq!(cursor.number(4), Some(2026));
        assert_eq!(cursor.number(2), Some(11));
        assert_eq!(cursor.number(2), Some(25));
        assert_eq!(cursor.number(2), Some(10));
        assert_eq!(cursor.number(2), None);
    }
}
