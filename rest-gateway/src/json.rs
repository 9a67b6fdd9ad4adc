//! Parses any JSON and detects repeated keys: parsers differ in which value they use, so a body
//! with a repeated key is rejected.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Limits the paths that are stored: a client finds the cause with fewer.
const MAX_REPEATED: usize = 20;

/// A JSON document.
#[derive(Debug, PartialEq)]
pub(crate) struct Document {
    pub(crate) value: Value,
    /// Paths of the repeated members, such as `dropoff.packages[0].type`.
    pub(crate) repeated: Vec<String>,
}

/// Parses a whole text as JSON, nested up to 128 levels (`serde_json`'s limit).
pub(crate) fn parse(text: &[u8]) -> Result<Document, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let mut state = State::default();
    let value = Element(&mut state).deserialize(&mut reader)?;
    reader.end()?;
    Ok(Document {
        value,
        repeated: state.repeated,
    })
}

/// The position of the parser, and the repeated members found so far.
#[derive(Default)]
struct State {
    path: String,
    repeated: Vec<String>,
}

impl State {
    /// Runs `work` with the path extended by `step`.
    fn within<T>(&mut self, step: fmt::Arguments<'_>, work: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.path.len();
        // Writing to a `String` cannot fail.
        let _ = fmt::Write::write_fmt(&mut self.path, step);
        let result = work(self);
        self.path.truncate(length);
        result
    }

    fn separator(&self) -> &'static str {
        if self.path.is_empty() { "" } else { "." }
    }
}

struct Element<'s>(&'s mut State);

impl<'de> DeserializeSeed<'de> for Element<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Element<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Value, A::Error> {
        let mut elements = Vec::new();
        loop {
            let index = elements.len();
            let next = self.0.within(format_args!("[{index}]"), |state| {
                sequence.next_element_seed(Element(state))
            })?;
            match next {
                Some(element) => elements.push(element),
                None => return Ok(Value::Array(elements)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let state = self.0;
        let mut members = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let separator = state.separator();
            let value = state.within(format_args!("{separator}{key}"), |state| {
                if members.contains_key(&key) && state.repeated.len() < MAX_REPEATED {
                    state.repeated.push(state.path.clone());
                }
                map.next_value_seed(Element(state))
            })?;
            members.insert(key, value);
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection, prelude::*, sample};

    use super::*;

    #[test]
    fn a_repeated_member_is_reported_with_its_path() {
        let text = br#"{"a": 1, "b": [{"c": 1, "c": 2}], "a": {"d": {}, "d": []}, "": 0, "": 1}"#;

        let document = parse(text).unwrap();

        assert_eq!(document.repeated, ["b[0].c", "a", "a.d", ""]);
    }

    #[test]
    fn invalid_json_is_an_error() {
        for wrong in [
            b"".as_slice(),
            b"{",
            b"{\"a\":1,}",
            b"{} {}",
            b"{'a':1}",
            b"NaN",
            b"[1e400]",
            b"\"\xff\"",
            b"\"\\ud800\"",
            b"\"\n\"",
            "[".repeat(200_000).as_bytes(),
            "{\"a\":".repeat(129).as_bytes(),
        ] {
            assert!(parse(wrong).is_err(), "{}", String::from_utf8_lossy(wrong));
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                collection::btree_map(any::<String>(), inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_serialized_value_is_parsed(value in any_json()) {
            let document = parse(value.to_string().as_bytes()).unwrap();

            prop_assert_eq!(document, Document { value, repeated: Vec::new() });
        }

        /// One byte of a valid text is replaced.
        #[test]
        fn a_damaged_text_is_read_or_rejected_as_by_serde_json(
            value in any_json(), index in any::<sample::Index>(), byte in any::<u8>(),
        ) {
            let mut text = value.to_string().into_bytes();
            let index = index.index(text.len());
            text[index] = byte;

            let expected: Option<Value> = serde_json::from_slice(&text).ok();
            let document = parse(&text).ok();
            prop_assert_eq!(document.is_some(), expected.is_some());
            if let Some(document) = document.filter(|document| document.repeated.is_empty()) {
                prop_assert_eq!(Some(document.value), expected);
            }
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in any::<Vec<u8>>()) {
            let _ = parse(&text);
        }
    }
}
