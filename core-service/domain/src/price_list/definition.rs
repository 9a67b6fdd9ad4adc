//! The TOML structure of a price list. All mistakes are reported: a value of the wrong type is
//! absent from the result.

use std::ops::Range;

use serde::{Deserialize, de::DeserializeOwned};
use toml::{
    Spanned,
    de::{DeTable, DeValue, ValueDeserializer},
};

use crate::definition::Mistake;

/// The maximum number of reported mistakes, so that the error response is short.
pub(super) const MAX_MISTAKES: usize = 100;

/// How rules combine into a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Strategy {
    /// The first matching rule sets the price.
    First,
    /// All matching rules add to the price.
    Sum,
}

/// What a rule is evaluated for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Target {
    #[default]
    Delivery,
    /// Each of the two tasks.
    Task,
}

/// The quantity that steps are counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Measure {
    /// Metres.
    Distance,
    /// Seconds.
    Duration,
    /// Grams.
    Weight,
    /// In the units of `[packages]`.
    Volume,
}

impl Measure {
    pub(super) const ALL: [Self; 4] = [Self::Distance, Self::Duration, Self::Weight, Self::Volume];

    /// The name of the CEL variable.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Distance => "distance",
            Self::Duration => "duration",
            Self::Weight => "weight",
            Self::Volume => "volume",
        }
    }
}

/// The fields of a table that have not been read yet.
pub(super) struct Fields<'a, 't> {
    pub(super) text: &'t str,
    pub(super) span: Range<usize>,
    pub(super) table: DeTable<'t>,
    mistakes: &'a mut Vec<Mistake>,
}

impl<'a, 't> Fields<'a, 't> {
    /// The fields of a whole definition; `None` if it is not TOML.
    pub(super) fn of_definition(text: &'t str, mistakes: &'a mut Vec<Mistake>) -> Option<Self> {
        let (document, errors) = DeTable::parse_recoverable(text);
        let errors = errors.iter().take(MAX_MISTAKES);
        mistakes.extend(errors.map(|error| Mistake::of_toml(text, error)));
        mistakes.is_empty().then(|| Self {
            text,
            span: 0..0,
            table: document.into_inner(),
            mistakes,
        })
    }

    /// Reads a field; `None` if it is absent or has the wrong type.
    pub(super) fn optional<T: DeserializeOwned>(&mut self, key: &str) -> Option<T> {
        let value = self.table.remove(key)?;
        self.value(value)
    }

    /// Like [`Fields::optional`]; it is a mistake if the field is absent.
    pub(super) fn require<T: DeserializeOwned>(&mut self, key: &str) -> Option<T> {
        let value = self.require_value(key)?;
        self.value(value)
    }

    /// An optional whole number; it is a mistake if it is smaller than `least`.
    pub(super) fn at_least(&mut self, key: &str, least: i64, message: &str) -> Option<i64> {
        let number: Spanned<i64> = self.optional(key)?;
        if *number.get_ref() < least {
            return self.reject(number.span(), message);
        }
        Some(number.into_inner())
    }

    pub(super) fn require_value(&mut self, key: &str) -> Option<Spanned<DeValue<'t>>> {
        let value = self.table.remove(key);
        if value.is_none() {
            self.mistake(self.span.clone(), format!("`{key}` is missing"));
        }
        value
    }

    /// Deserializes a value of this table; `None` if it has the wrong type.
    pub(super) fn value<T: DeserializeOwned>(&mut self, value: Spanned<DeValue<'t>>) -> Option<T> {
        T::deserialize(ValueDeserializer::from(value))
            .map_err(|error| {
                let message = error.message().trim().to_owned();
                self.mistake(error.span().unwrap_or(0..0), message);
            })
            .ok()
    }

    /// The fields of a table within this one.
    pub(super) fn fields(
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
    pub(super) fn reject_unknown_fields(&mut self, known: &str) {
        for (key, _) in std::mem::take(&mut self.table) {
            let message = format!("unknown field `{}`; the fields are {known}", key.get_ref());
            self.mistake(key.span(), message);
        }
    }

    /// Adds a mistake, up to [`MAX_MISTAKES`]: to find its line and column costs a pass over the
    /// text.
    pub(super) fn mistake(&mut self, span: Range<usize>, message: impl Into<String>) {
        if self.mistakes.len() < MAX_MISTAKES {
            self.mistakes.push(Mistake::at(self.text, span, message));
        }
    }

    /// Adds a mistake and returns `None`, so that the rejected value counts as absent.
    pub(super) fn reject<T>(
        &mut self,
        span: Range<usize>,
        message: impl Into<String>,
    ) -> Option<T> {
        self.mistake(span, message);
        None
    }

    pub(super) fn mistake_count(&self) -> usize {
        self.mistakes.len()
    }
}
