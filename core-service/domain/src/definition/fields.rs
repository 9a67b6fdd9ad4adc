//! The fields of a definition in TOML. All mistakes are reported: a value of the wrong type is absent
//! from the result.

use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::{
    Spanned,
    de::{DeTable, DeValue, ValueDeserializer},
};

use super::Mistake;

/// The maximum number of recorded mistakes.
const MAX_RECORDED: usize = 100;

/// Reads a definition, even after a mistake, to report all of them, or the first ones of too many.
pub(crate) fn read_toml<T>(
    text: &str,
    max_mistakes: usize,
    read: impl FnOnce(Fields<'_, '_>) -> Option<T>,
) -> Result<T, Vec<Mistake>> {
    let (document, errors) = DeTable::parse_recoverable(text);
    let errors = errors.iter().take(MAX_RECORDED);
    let mut mistakes: Vec<_> = errors.map(|error| Mistake::of_toml(text, error)).collect();
    let value = mistakes.is_empty().then(|| {
        read(Fields {
            text,
            span: 0..0,
            table: document.into_inner(),
            mistakes: &mut mistakes,
        })
    });
    match value.flatten() {
        Some(value) if mistakes.is_empty() => Ok(value),
        _ => {
            mistakes.sort_by_key(|mistake| (mistake.line, mistake.column));
            mistakes.truncate(max_mistakes);
            Err(mistakes)
        }
    }
}

/// The fields of a table that have not been read yet.
pub(crate) struct Fields<'a, 't> {
    pub(crate) text: &'t str,
    pub(crate) span: Range<usize>,
    pub(crate) table: DeTable<'t>,
    mistakes: &'a mut Vec<Mistake>,
}

impl<'t> Fields<'_, 't> {
    /// Reads a field; `None` if it is absent or has the wrong type.
    pub(crate) fn optional<T: DeserializeOwned>(&mut self, key: &str) -> Option<T> {
        let value = self.table.remove(key)?;
        self.value(value)
    }

    /// Like [`Fields::optional`]; it is a mistake if the field is absent.
    pub(crate) fn require<T: DeserializeOwned>(&mut self, key: &str) -> Option<T> {
        let value = self.require_value(key)?;
        self.value(value)
    }

    /// An optional whole number; it is a mistake if it is smaller than `least`.
    pub(crate) fn at_least(&mut self, key: &str, least: i64, message: &str) -> Option<i64> {
        let number: Spanned<i64> = self.optional(key)?;
        if *number.get_ref() < least {
            return self.reject(number.span(), message);
        }
        Some(number.into_inner())
    }

    pub(crate) fn require_value(&mut self, key: &str) -> Option<Spanned<DeValue<'t>>> {
        let value = self.table.remove(key);
        if value.is_none() {
            self.mistake(self.span.clone(), format!("`{key}` is missing"));
        }
        value
    }

    /// Deserializes a value of this table; `None` if it has the wrong type.
    pub(crate) fn value<T: DeserializeOwned>(&mut self, value: Spanned<DeValue<'t>>) -> Option<T> {
        T::deserialize(ValueDeserializer::from(value))
            .map_err(|error| {
                let message = error.message().trim().to_owned();
                self.mistake(error.span().unwrap_or(0..0), message);
            })
            .ok()
    }

    /// The fields of a table within this one.
    pub(crate) fn fields(
        &mut self,
        value: Spanned<DeValue<'t>>,
        key: &str,
    ) -> Option<Fields<'_, 't>> {
        let span = value.span();
        let DeValue::Table(table) = value.into_inner() else {
            self.mistake(span, format!("`{key}` must be a table"));
            return None;
        };
        Some(Fields {
            text: self.text,
            span,
            table,
            mistakes: self.mistakes,
        })
    }

    /// Reports the fields that are not known.
    pub(crate) fn reject_unknown_fields(&mut self, known: &str) {
        for (key, _) in std::mem::take(&mut self.table) {
            let message = format!("unknown field `{}`; the fields are {known}", key.get_ref());
            self.mistake(key.span(), message);
        }
    }

    /// Adds a mistake, up to [`MAX_RECORDED`]: to find its line and column costs a pass over the
    /// text.
    pub(crate) fn mistake(&mut self, span: Range<usize>, message: impl Into<String>) {
        if self.mistakes.len() < MAX_RECORDED {
            self.mistakes.push(Mistake::at(self.text, span, message));
        }
    }

    /// Adds a mistake and returns `None`, so that the rejected value counts as absent.
    pub(crate) fn reject<T>(
        &mut self,
        span: Range<usize>,
        message: impl Into<String>,
    ) -> Option<T> {
        self.mistake(span, message);
        None
    }

    /// The span of the part of a string from an offset on, given the span of its literal; the whole
    /// literal if it has escapes.
    pub(crate) fn span_in_string(
        &self,
        literal: Range<usize>,
        value: &str,
        offset: usize,
    ) -> Range<usize> {
        let written = &self.text[literal.clone()];
        let is_triple = ["\"\"\"", "'''"]
            .iter()
            .any(|quotes| written.starts_with(quotes));
        let quotes = if is_triple { 3 } else { 1 };
        match written[quotes..].find(value) {
            Some(start) => literal.start + quotes + start + offset.min(value.len())..literal.end,
            None => literal,
        }
    }

    pub(crate) fn mistake_count(&self) -> usize {
        self.mistakes.len()
    }
}
