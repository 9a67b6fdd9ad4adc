//! Definitions that operators write (time slots, price lists, zones), and their mistakes with
//! positions.

use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::{Deserializer, Spanned, de::DeTable};

/// The maximum number of characters of a parser's message, which quotes the text.
const MAX_PARSER_MESSAGE: usize = 1000;

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

    fn of_toml(text: &str, error: &toml::de::Error) -> Self {
        let message = error.message().trim().chars().take(MAX_PARSER_MESSAGE);
        Self::at(
            text,
            error.span().unwrap_or(0..0),
            message.collect::<String>(),
        )
    }
}

/// Reads a definition without checking its values: up to `max` errors of syntax, or the first value
/// of a wrong type.
pub(crate) fn read_toml<T: DeserializeOwned>(text: &str, max: usize) -> Result<T, Vec<Mistake>> {
    let (document, mut errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        match T::deserialize(Deserializer::from(document)) {
            Ok(definition) => return Ok(definition),
            Err(error) => errors.push(error),
        }
    }
    let errors = errors.iter().take(max);
    Err(errors.map(|error| Mistake::of_toml(text, error)).collect())
}

/// The mistakes in the values of a definition, up to a maximum: to find a line costs a pass over
/// the text.
pub(crate) struct Mistakes<'t> {
    text: &'t str,
    max: usize,
    found: Vec<Mistake>,
}

impl<'t> Mistakes<'t> {
    pub(crate) fn new(text: &'t str, max: usize) -> Self {
        Self {
            text,
            max,
            found: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, span: Range<usize>, message: impl Into<String>) {
        if self.found.len() < self.max {
            self.found.push(Mistake::at(self.text, span, message));
        }
    }

    /// Converts a value, or adds why it is not valid.
    pub(crate) fn read<V, T, E: Into<String>>(
        &mut self,
        value: &Spanned<V>,
        read: impl FnOnce(&V) -> Result<T, E>,
    ) -> Option<T> {
        read(value.get_ref())
            .map_err(|message| self.add(value.span(), message))
            .ok()
    }

    /// Adds a mistake in a string; at the start of its literal if that has escapes.
    pub(crate) fn add_in_string(&mut self, string: &Spanned<String>, mistake: MistakeInString) {
        let (literal, value) = (string.span(), string.get_ref());
        let written = &self.text[literal.clone()];
        let is_triple = written.starts_with("\"\"\"") || written.starts_with("'''");
        let quotes = if is_triple { 3 } else { 1 };
        let offset = written[quotes..]
            .find(value)
            .map_or(0, |start| quotes + start + mistake.offset.min(value.len()));
        self.add(literal.start + offset..literal.end, mistake.message);
    }

    /// The value, or all mistakes in the order of the text.
    pub(crate) fn into_result<T>(mut self, value: Option<T>) -> Result<T, Vec<Mistake>> {
        match value {
            Some(value) if self.found.is_empty() => Ok(value),
            _ => {
                self.found
                    .sort_by_key(|mistake| (mistake.line, mistake.column));
                Err(self.found)
            }
        }
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
