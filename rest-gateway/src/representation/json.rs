//! Parses JSON of which only known members are read: the others are ignored, with any value.

use std::{fmt, str::Utf8Error};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::api_description::Shape;

/// Limits the repeated, and the unknown members, that are stored: a client finds the cause with fewer.
const MAX_PATHS: usize = 20;

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
mod tests {
    use proptest::{collection, prelude::*, sample};
    use serde_json::json;

    use super::*;
    use crate::api_description::class;

    fn parse_delivery(text: &[u8]) -> Result<Document, ParseError> {
        parse(text, Shape::Class(class("Delivery")))
    }

    #[test]
    fn a_message_that_names_a_key_with_a_control_character_is_one_line() {
        for key in ["a\u{7f}", r"a\n"] {
            let error = parse_delivery(format!(r#"{{"{key}": {{x"#).as_bytes());
            let message = error.unwrap_err().to_string();
            assert!(message.ends_with(", in a\u{fffd}"), "{message:?}");
        }
    }

    #[test]
    fn only_known_members_are_kept() {
        let pickup = [
            r#""url": {"a": 1, "a": 1}, "tags": ["a", {"b": 1}, [1], []]"#,
            r#""address": {"geo": {"latitude": 1.5, "longitude": -1e30, "x": 0}}"#,
            r#""packages": [{"type": "XL", "quantity": 2, "x": 0}]"#,
            r#""metadata": {"x": "y", "z": {"a": 1}}"#,
        ];
        let ignored = r#""x": 1e400, "x": [[["\ud800"]]], "distance": 5"#;
        let pickup = pickup.join(",");
        let text = format!(r#"{{{ignored}, "externalReference": "7", "pickup": {{{pickup}}}}}"#);

        let document = parse_delivery(text.as_bytes()).unwrap();

        assert_eq!(document.repeated, [""; 0]);
        let unknown: Vec<_> = document.unknown.iter().map(|member| &member.path).collect();
        assert_eq!(
            unknown,
            [
                "x",
                "pickup.url",
                "pickup.address.geo.x",
                "pickup.packages[0].x"
            ]
        );
        assert_eq!(
            document.value,
            json!({
                "externalReference": "7",
                "pickup": {
                    "tags": ["a", {}, [null], []],
                    "address": {"geo": {"latitude": 1.5, "longitude": -1e30}},
                    "packages": [{"type": "XL", "quantity": 2}],
                    "metadata": {"x": "y", "z": {}},
                },
            })
        );
    }

    #[test]
    fn an_unknown_member_has_the_similar_one_of_its_class() {
        for (name, similar) in [
            ("timeslot", Some("timeSlot")),
            ("time_slot", Some("timeSlot")),
            ("Adress", Some("address")),
            ("weigth", Some("weight")),
            ("befor", Some("before")),
            ("coment", Some("comments")),
            ("status", None),
            ("x", None),
            ("price", None),
            (&"weight".repeat(100_000), None),
        ] {
            let found = Shape::Class(class("Task")).similar_member(name);
            assert_eq!(found, similar, "{name}");
        }
        for (class_name, name, similar) in [
            ("Delivery", "dropOff", "dropoff"),
            ("Delivery", "external_reference", "externalReference"),
            ("Webhook", "events", "event"),
        ] {
            let found = Shape::Class(class(class_name)).similar_member(name);
            assert_eq!(found, Some(similar), "{name}");
        }
    }

    #[test]
    fn a_repeated_member_is_noted_once_by_its_path() {
        let dropoff = r#""dropoff": {"metadata": {"": "", "": "", "": ""}}"#;
        let pickup = r#""pickup": {"packages": [{"type": 1, "type": 2}]}"#;
        let text = format!(r#"{{"dropoff": 1, {pickup}, {dropoff}}}"#);

        let document = parse_delivery(text.as_bytes()).unwrap();

        assert_eq!(
            document.repeated,
            ["pickup.packages[0].type", "dropoff", "dropoff.metadata."]
        );
        assert_eq!(document.value["pickup"]["packages"][0]["type"], 2);
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
            b"[01]",
            b"\"\xff\"",
            b"\"\n\"",
            b"\"\\ud80\"",
            br#"{"externalReference": "\ud800"}"#,
            br#"{"\ud800": 0}"#,
            br#"{"externalReference": 1e400}"#,
            br#"{"pickup": {"weight": 1e400}}"#,
            "[".repeat(200_000).as_bytes(),
        ] {
            assert!(
                parse_delivery(wrong).is_err(),
                "{}",
                String::from_utf8_lossy(wrong)
            );
        }
    }

    #[test]
    fn what_is_ignored_may_be_nested_to_any_depth() {
        let nested = "[".repeat(200_000) + &"]".repeat(200_000);

        for text in [format!(r#"{{"x": {nested}}}"#), nested] {
            assert!(parse_delivery(text.as_bytes()).is_ok());
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
        fn metadata_is_kept(
            members in collection::hash_map(any::<String>(), any::<String>(), 0..4),
        ) {
            let body = json!({"pickup": {"metadata": members}});

            let document = parse_delivery(body.to_string().as_bytes()).unwrap();

            prop_assert_eq!(document, Document { value: body, repeated: Vec::new(), unknown: Vec::new() });
        }

        /// One byte of a valid text is replaced.
        #[test]
        fn a_damaged_text_is_read_or_rejected_as_by_serde_json(
            value in any_json(), index in any::<sample::Index>(), byte in any::<u8>(),
        ) {
            let mut text = value.to_string().into_bytes();
            let index = index.index(text.len());
            // A number beyond the range of `f64` is rejected, which `IgnoredAny` accepts.
            prop_assume!(!byte.eq_ignore_ascii_case(&b'e'));
            text[index] = byte;

            let expected = serde_json::from_slice::<IgnoredAny>(&text).is_ok()
                && std::str::from_utf8(&text).is_ok();
            prop_assert_eq!(parse_delivery(&text).is_ok(), expected);
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in any::<Vec<u8>>()) {
            let _ = parse_delivery(&text);
        }
    }
}
