//! Definitions that operators write (time slots, price lists, zones), and their mistakes with
//! positions.

mod fields;

use std::ops::Range;

pub(crate) use fields::{Fields, read_toml};

/// A mistake at a position of a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Counts from 1.
    pub line: usize,
    /// In characters, counts from 1.
    pub column: usize,
    /// States the problem and its correction, without a full stop.
    pub message: String,
}

impl Mistake {
    /// A mistake at a range of bytes of the text.
    pub fn at(text: &str, span: Range<usize>, message: impl Into<String>) -> Self {
        let start = text.floor_char_boundary(span.start);
        let before = &text[..start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message: printable(&message.into()),
        }
    }

    /// Converts an error of the TOML parser.
    pub fn of_toml(text: &str, error: &toml::de::Error) -> Self {
        Self::at(text, error.span().unwrap_or(0..0), error.message().trim())
    }
}

/// A mistake at a byte offset of a string in a definition.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MistakeInString {
    pub(crate) offset: usize,
    pub(crate) message: String,
}

impl MistakeInString {
    pub(crate) fn at(offset: usize, message: impl Into<String>) -> Self {
        Self {
            offset,
            message: message.into(),
        }
    }
}

/// Escapes the control characters that a parser's message quotes from the text, so that it is safe
/// in a terminal and a log. Keeps line breaks.
pub(crate) fn printable(message: &str) -> String {
    let is_control = |character: char| character.is_control() && character != '\n';
    let mut escaped = String::new();
    for character in message.chars() {
        match character {
            control if is_control(control) => escaped.extend(control.escape_default()),
            character => escaped.push(character),
        }
    }
    escaped
}

impl std::fmt::Display for Mistake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_in_messages_are_escaped() {
        for (message, expected) in [
            ("a\u{7f}b\u{1b}[2J", "a\\u{7f}b\\u{1b}[2J"),
            ("expected\nà or \"b\"", "expected\nà or \"b\""),
        ] {
            assert_eq!(Mistake::at("", 0..0, message).message, expected);
        }
    }

    #[test]
    fn positions_count_characters_from_one() {
        let text = "à = 1\nçé = ?\n";

        let mistake = Mistake::at(text, 14..15, "no value");

        assert_eq!(mistake.to_string(), "2:6: no value");
    }
}
