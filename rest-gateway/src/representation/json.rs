//! Parses JSON of which only known members are read: the others are ignored, with any value.

use std::{fmt, str::Utf8Error};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::api_description::{self, Access, Class, Range};

/// Limits the repeated, and the unknown members, that are stored: a client finds the cause with fewer.
const MAX_PATHS: usize = 20;

/// The known content of a JSON value in a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    /// The members of a class.
    Class(&'static Class),
    /// Members with names chosen by the client.
    Map,
    /// Not an object: its members are not checked.
    Value,
}

/// In bytes. No member is so long that a longer name could be similar to it.
const MAX_MISSPELT: usize = 64;

impl Shape {
    /// Whether an object of this shape has the member in requests or in responses. True for a value
    /// that must not be an object: that is reported as a violation of its own.
    fn has_member(self, name: &str) -> bool {
        match self {
            Self::Class(class) => class.fields.iter().any(|field| field.name == name),
            Self::Map | Self::Value => true,
        }
    }

    /// The member of a request that an unknown name most likely means: the same in another case, or
    /// with a few other letters.
    fn similar_member(self, name: &str) -> Option<&'static str> {
        let Self::Class(class) = self else {
            return None;
        };
        if name.len() > MAX_MISSPELT {
            return None;
        }
        let plain = |name: &str| name.replace(['_', '-'], "").to_lowercase();
        let name = plain(name);
        let distance = |member| strsim::damerau_levenshtein(&plain(member), &name);
        let fields = class.fields.iter();
        let members = fields.filter(|field| field.access != Access::Read);
        let by_distance = members.map(|field| (distance(&field.name), &*field.name));
        let (distance, member) = by_distance.min()?;
        (distance <= member.len() / 4 + 1).then_some(member)
    }

    /// The shape of a member; none if it is unknown.
    fn of_member(self, name: &str) -> Option<Self> {
        match self {
            Self::Class(class) => {
                let mut fields = class.fields.iter();
                let field = fields.find(|field| field.name == name)?;
                if field.access == Access::Read {
                    return None;
                }
                Some(match &field.range {
                    Range::Object(name) => Self::Class(api_description::class(name)),
                    Range::Json => Self::Map,
                    _ => Self::Value,
                })
            }
            Self::Map => Some(Self::Value),
            Self::Value => None,
        }
    }
}

/// A JSON document, reduced to its known members.
#[derive(Debug)]
#[cfg_attr(test, derive(PartialEq))]
pub(crate) struct Document {
    pub(crate) value: Value,
    /// The paths, such as `dropoff.packages[0].type`, of known members that occur more than once. The
    /// last value is read; parsers differ in which one they use.
    pub(crate) repeated: Vec<String>,
    /// The paths of members that the class at their path does not have, neither in requests nor in
    /// responses. Without those of JSON-LD, which begin with `@`.
    pub(crate) unknown: Vec<UnknownMember>,
}

/// A member that its class does not have.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(PartialEq))]
pub(crate) struct UnknownMember {
    pub(crate) path: String,
    /// The member of the class that it most likely means.
    pub(crate) similar: Option<&'static str>,
}

/// Why a text cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ParseError {
    #[error("is not UTF-8: byte {} is malformed", .0.valid_up_to() + 1)]
    NotUtf8(#[from] Utf8Error),
    #[error("is not JSON: {reason}{}", within(.path))]
    NotJson {
        /// What is wrong, and the line and column.
        reason: String,
        /// Of the member that was read; empty outside of all.
        path: String,
    },
}

/// Parses a whole text as JSON.
pub(crate) fn parse(text: &[u8], shape: Shape) -> Result<Document, ParseError> {
    let text = std::str::from_utf8(text)?;
    let mut json = serde_json::Deserializer::from_str(text);
    let mut reader = Reader::default();
    let value = reader.value(shape).deserialize(&mut json);
    let value = value.and_then(|value| json.end().map(|()| value));
    let value = value.map_err(|error| ParseError::NotJson {
        reason: reason(&error, text),
        path: std::mem::take(&mut reader.path),
    })?;
    Ok(Document {
        value,
        repeated: reader.repeated,
        unknown: reader.unknown,
    })
}

/// The error's own text, with the number that it calls out of range: `1e400`.
fn reason(error: &serde_json::Error, text: &str) -> String {
    let line = text.split('\n').nth(error.line().saturating_sub(1));
    let number = number_at(line.unwrap_or_default(), error.column());
    let shown = format!("number {number} out of range");
    error.to_string().replace("number out of range", &shown)
}

/// The number around a position in a line.
fn number_at(line: &str, position: usize) -> &str {
    let is_part = |char: char| char.is_ascii_digit() || "+-.eE".contains(char);
    let (before, after) = line.split_at_checked(position).unwrap_or((line, ""));
    let start = before.trim_end_matches(is_part).len();
    let end = line.len() - after.trim_start_matches(is_part).len();
    line.get(start..end).unwrap_or_default()
}

fn within(path: &str) -> String {
    if path.is_empty() {
        String::new()
    } else {
        // Keys may have control characters, and a message is one line.
        format!(", in {}", path.replace(char::is_control, "\u{fffd}"))
    }
}

/// The position of the reader, and what it has found so far.
#[derive(Default)]
struct Reader {
    path: String,
    repeated: Vec<String>,
    unknown: Vec<UnknownMember>,
}

impl Reader {
    fn value(&mut self, shape: Shape) -> Known<'_> {
        Known {
            reader: self,
            shape,
            is_element: false,
        }
    }

    fn note_repeated(&mut self) {
        if self.repeated.len() < MAX_PATHS && !self.repeated.contains(&self.path) {
            self.repeated.push(self.path.clone());
        }
    }

    /// The limit comes first: to find a similar member is slow, and a body may have 100,000 unknown ones.
    fn note_unknown(&mut self, shape: Shape, name: &str) {
        let is_noted = |member: &UnknownMember| member.path == self.path;
        if self.unknown.len() < MAX_PATHS && !self.unknown.iter().any(is_noted) {
            self.unknown.push(UnknownMember {
                path: self.path.clone(),
                similar: shape.similar_member(name),
            });
        }
    }
}

/// Reads the value at the reader's path.
struct Known<'r> {
    reader: &'r mut Reader,
    shape: Shape,
    /// Whether it is an element of an array.
    is_element: bool,
}

impl<'de> DeserializeSeed<'de> for Known<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Known<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut read = Vec::new();
        if self.is_element {
            // Arrays in arrays are never read: only whether they are empty is kept.
            while elements.next_element::<IgnoredAny>()?.is_some() {
                read = vec![Value::Null];
            }
            return Ok(read.into());
        }
        let length = self.reader.path.len();
        loop {
            let index = read.len().to_string();
            self.reader.path.extend(["[", &index, "]"]);
            let element = Known {
                is_element: true,
                ..self.reader.value(self.shape)
            };
            let element = elements.next_element_seed(element)?;
            self.reader.path.truncate(length);
            match element {
                Some(element) => read.push(element),
                None => return Ok(read.into()),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let reader = self.reader;
        let mut known = Map::new();
        let length = reader.path.len();
        while let Some(name) = members.next_key::<String>()? {
            let separator = if length == 0 { "" } else { "." };
            reader.path.extend([separator, &name]);
            if let Some(shape) = self.shape.of_member(&name) {
                if known.contains_key(&name) {
                    reader.note_repeated();
                }
                let value = members.next_value_seed(reader.value(shape))?;
                known.insert(name, value);
            } else {
                if !name.starts_with('@') && !self.shape.has_member(&name) {
                    reader.note_unknown(self.shape, &name);
                }
                members.next_value::<IgnoredAny>()?;
            }
            reader.path.truncate(length);
        }
        Ok(known.into())
    }
}

#[cfg(test)]
mod tests;
