//! Parses JSON of which only known members are read: the others are ignored, with any value.
//!
//! The syntax of the whole text is checked first. Only then are the known values read, each by
//! itself: a string that is not Unicode is a fault of its member, not of the text.

use std::{fmt, str::Utf8Error};

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value, value::RawValue};

use crate::api_description::Shape;

/// Limits the faults, and the unknown members, that are stored: a client finds the cause with fewer.
const MAX_FAULTS: usize = 20;
/// Of arrays and objects, the outermost included.
const MAX_DEPTH: usize = 128;

/// A JSON document, reduced to its known members.
#[derive(Debug, PartialEq)]
pub(crate) struct Document {
    pub(crate) value: Value,
    /// The paths, such as `dropoff.packages[0].type`, of known members with a fault.
    pub(crate) faults: Vec<(String, Fault)>,
    /// The paths of members that the class at their path does not have, neither in requests nor in
    /// responses. Without those of JSON-LD, which begin with `@`.
    pub(crate) unknown: Vec<String>,
}

/// What is wrong with a known member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The last value is read. Parsers differ in which one they use.
    Repeated,
    /// A string with half of a surrogate pair (RFC 8259 §8.2). Read as null.
    NotUnicode,
}

/// Why a text cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ParseError {
    #[error("is not UTF-8: byte {} is malformed", .0.valid_up_to() + 1)]
    NotUtf8(#[from] Utf8Error),
    #[error("is not JSON: {0}")]
    NotJson(#[from] serde_json::Error),
    #[error("is nested more than {MAX_DEPTH} levels deep")]
    TooDeep,
}

/// Parses a whole text as JSON. Numbers beyond the range of an `f64` become its largest or smallest
/// value.
pub(crate) fn parse(text: &[u8], shape: Shape) -> Result<Document, ParseError> {
    let text = std::str::from_utf8(text)?;
    let raw: &RawValue = serde_json::from_str(text)?;
    if is_too_deep(raw.get()) {
        return Err(ParseError::TooDeep);
    }
    let mut reader = Reader::default();
    let value = reader.read(raw, shape)?;
    Ok(Document {
        value,
        faults: reader.faults,
        unknown: reader.unknown,
    })
}

/// Whether valid JSON is nested too deeply.
fn is_too_deep(json: &str) -> bool {
    let mut depth = 0_usize;
    let mut is_in_string = false;
    let mut bytes = json.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => is_in_string = !is_in_string,
            b'\\' => {
                bytes.next();
            }
            b'[' | b'{' if !is_in_string => depth += 1,
            b']' | b'}' if !is_in_string => depth -= 1,
            _ => {}
        }
        if depth > MAX_DEPTH {
            return true;
        }
    }
    false
}

/// The position of the reader, and the faults found so far.
#[derive(Default)]
struct Reader {
    path: String,
    faults: Vec<(String, Fault)>,
    unknown: Vec<String>,
}

impl Reader {
    fn read(&mut self, raw: &RawValue, shape: Shape) -> Result<Value, serde_json::Error> {
        match raw.get().as_bytes() {
            [b'{', ..] => self.read_object(raw, shape),
            [b'[', ..] => self.read_array(raw, shape),
            [b'"', ..] => Ok(serde_json::from_str(raw.get()).unwrap_or_else(|_| {
                self.add(Fault::NotUnicode);
                Value::Null
            })),
            [b'-' | b'0'..=b'9', ..] => Ok(read_number(raw.get())),
            _ => serde_json::from_str(raw.get()),
        }
    }

    fn read_object(&mut self, raw: &RawValue, shape: Shape) -> Result<Value, serde_json::Error> {
        let Members(members) = serde_json::from_str(raw.get())?;
        let mut known = Map::new();
        for (name, value) in members {
            // A name that is not Unicode is no known name.
            let Ok(name) = serde_json::from_str::<String>(name.get()) else {
                continue;
            };
            let separator = if self.path.is_empty() { "" } else { "." };
            let Some(member) = shape.of_member(&name) else {
                let is_unknown = !name.starts_with('@') && !shape.has_member(&name);
                let path = format!("{}{separator}{name}", self.path);
                let is_full = self.unknown.len() == MAX_FAULTS;
                if is_unknown && !is_full && !self.unknown.contains(&path) {
                    self.unknown.push(path);
                }
                continue;
            };
            let value = self.within(format_args!("{separator}{name}"), |reader| {
                if known.contains_key(&name) {
                    reader.add(Fault::Repeated);
                }
                reader.read(value, member)
            })?;
            known.insert(name, value);
        }
        Ok(Value::Object(known))
    }

    /// Arrays in arrays are never read: only whether they are empty is kept.
    fn read_array(&mut self, raw: &RawValue, shape: Shape) -> Result<Value, serde_json::Error> {
        let elements: Vec<&RawValue> = serde_json::from_str(raw.get())?;
        let read = elements.into_iter().enumerate().map(|(index, element)| {
            if element.get().starts_with('[') {
                let inner: Vec<IgnoredAny> = serde_json::from_str(element.get())?;
                return Ok(Value::Array(vec![Value::Null; inner.len().min(1)]));
            }
            self.within(format_args!("[{index}]"), |reader| {
                reader.read(element, shape)
            })
        });
        read.collect::<Result<_, _>>().map(Value::Array)
    }

    /// Runs `work` with the path extended by `step`.
    fn within<T>(&mut self, step: fmt::Arguments<'_>, work: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.path.len();
        // Writing to a `String` cannot fail.
        let _ = fmt::Write::write_fmt(&mut self.path, step);
        let result = work(self);
        self.path.truncate(length);
        result
    }

    fn add(&mut self, fault: Fault) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push((self.path.clone(), fault));
        }
    }
}

fn read_number(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| {
        let is_negative = text.starts_with('-');
        Value::from(if is_negative { f64::MIN } else { f64::MAX })
    })
}

/// The members of an object in their order, repeated ones included.
struct Members<'j>(Vec<(&'j RawValue, &'j RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;

        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(MembersVisitor)
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
    fn only_known_members_are_kept() {
        let text = br#"{
            "x": 1e400, "x": [[["\ud800"]]], "\ud800": 0, "distance": 5, "externalReference": "7",
            "pickup": {
                "url": {"a": 1, "a": 1}, "tags": ["a", {"b": 1}, [1], []],
                "address": {"geo": {"latitude": 1e400, "longitude": -1e400, "x": 0}},
                "packages": [{"type": "XL", "quantity": 2, "x": 0}],
                "metadata": {"x": "y", "z": {"a": 1}}
            }
        }"#;

        let document = parse_delivery(text).unwrap();

        assert_eq!(document.faults, []);
        assert_eq!(
            document.unknown,
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
                    "address": {"geo": {"latitude": f64::MAX, "longitude": f64::MIN}},
                    "packages": [{"type": "XL", "quantity": 2}],
                    "metadata": {"x": "y", "z": {}},
                },
            })
        );
    }

    #[test]
    fn a_fault_has_the_path_of_its_member() {
        let text = br#"{"dropoff": 1, "pickup": {"packages": [{"type": 1, "type": 2}]},
            "dropoff": {"tags": ["\udc00"], "metadata": {"": "", "": ""}}}"#;

        let document = parse_delivery(text).unwrap();

        assert_eq!(
            document.faults,
            [
                ("pickup.packages[0].type".to_owned(), Fault::Repeated),
                ("dropoff".to_owned(), Fault::Repeated),
                ("dropoff.tags[0]".to_owned(), Fault::NotUnicode),
                ("dropoff.metadata.".to_owned(), Fault::Repeated),
            ]
        );
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
            "[".repeat(200_000).as_bytes(),
            "{\"a\":".repeat(129).as_bytes(),
        ] {
            assert!(
                parse_delivery(wrong).is_err(),
                "{}",
                String::from_utf8_lossy(wrong)
            );
        }
    }

    #[test]
    fn values_are_nested_up_to_128_levels() {
        let nested = |depth| format!("{}\"[{{\\\"[\"{}", "[".repeat(depth), "]".repeat(depth));

        assert!(parse_delivery(nested(128).as_bytes()).is_ok());
        assert!(matches!(
            parse_delivery(nested(129).as_bytes()),
            Err(ParseError::TooDeep)
        ));
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

            prop_assert_eq!(document, Document { value: body, faults: Vec::new(), unknown: Vec::new() });
        }

        /// One byte of a valid text is replaced.
        #[test]
        fn a_damaged_text_is_read_or_rejected_as_by_serde_json(
            value in any_json(), index in any::<sample::Index>(), byte in any::<u8>(),
        ) {
            let mut text = value.to_string().into_bytes();
            let index = index.index(text.len());
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
