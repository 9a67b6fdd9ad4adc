//! Reads the members of a JSON body, and collects violations instead of failing at the first:
//! core adds its own, and the client gets all of them in one response.

use proto::limits::NumberRange;
use serde_json::{Map, Value};

use crate::{
    api_description::Shape,
    error::{Details, Error, Violation},
    representation::{
        field_names::FieldNames,
        json::{self, Document, Fault, ParseError},
    },
};

/// Core returns violations in response headers, whose size is limited.
pub(crate) const MAX_VIOLATIONS: usize = 100;
/// In characters. A client's keys may have any length.
const MAX_FIELD: usize = 200;
const MAX_DESCRIPTION: usize = 500;

/// The violations found in a request so far, and the names of its fields.
#[derive(Clone, Debug, Default)]
pub struct ViolationCollector {
    violations: Vec<proto::Violation>,
    names: FieldNames,
    unknown_members: Vec<String>,
}

/// A JSON object, and the path of the message that it becomes.
pub(crate) struct Object<'v> {
    members: Option<&'v Map<String, Value>>,
    path: String,
}

impl ViolationCollector {
    /// Parses the known members of a body that must be a JSON object. If it is not, adds a
    /// violation and returns null. A byte order mark is skipped (RFC 8259 §8.1).
    pub(crate) fn parse(&mut self, body: &[u8], shape: Shape) -> Value {
        let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
        if body.trim_ascii().is_empty() {
            self.add(
                "",
                "REQUIRED",
                "the body is empty; it must be a JSON object",
            );
            return Value::Null;
        }
        let Document {
            value,
            faults,
            unknown,
        } = match json::parse(body, shape) {
            Ok(document) => document,
            Err(error) => {
                let reason = match error {
                    ParseError::NotUtf8(_) | ParseError::NotJson(_) => "INVALID_JSON",
                    ParseError::TooDeep => "TOO_DEEP",
                };
                self.add("", reason, format!("the body {error}"));
                return Value::Null;
            }
        };
        self.unknown_members = unknown;
        for (path, fault) in faults {
            let (reason, description) = match fault {
                Fault::Repeated => ("REPEATED", "must occur only once"),
                Fault::NotUnicode => ("NOT_UNICODE", "must not have half of a surrogate pair"),
            };
            self.add_verbatim(&path, reason, description);
        }
        if !value.is_object() {
            let description = format!("the body must be a JSON object, not {}", type_name(&value));
            self.add("", "WRONG_TYPE", description);
            return Value::Null;
        }
        value
    }

    pub(crate) fn add(
        &mut self,
        field: impl AsRef<str>,
        reason: &str,
        description: impl AsRef<str>,
    ) {
        if self.violations.len() < MAX_VIOLATIONS {
            self.violations.push(proto::Violation {
                field: shorten(field.as_ref(), MAX_FIELD),
                description: shorten(description.as_ref(), MAX_DESCRIPTION),
                reason: reason.to_owned(),
            });
        }
    }

    /// Like [`ViolationCollector::add`], for a name that the client chose: it is not translated as
    /// the names of core's fields are.
    pub(crate) fn add_verbatim(&mut self, name: &str, reason: &str, description: impl AsRef<str>) {
        self.names.verbatim.insert(shorten(name, MAX_FIELD));
        self.add(name, reason, description);
    }

    pub(crate) fn add_wrong_type(&mut self, field: impl AsRef<str>, expected: &str, value: &Value) {
        let description = format!("must be {expected}, not {}", type_name(value));
        self.add(field, "WRONG_TYPE", description);
    }

    /// Records the member that the client used for a field with several names.
    pub(crate) fn add_alias(&mut self, field: String, member: &'static str) {
        self.names.aliases.insert(field, member);
    }

    /// The paths of the body's members that were ignored because no class has them.
    pub(crate) fn unknown_members(&self) -> impl Iterator<Item = String> {
        self.unknown_members
            .iter()
            .map(|path| shorten(path, MAX_FIELD))
    }

    /// A field's path in the client's names, such as `dropoff.address.latLng`.
    pub fn path(&self, field: &str) -> String {
        self.names.path(field)
    }

    /// The violations, in core's names.
    pub fn to_proto(&self) -> Vec<proto::Violation> {
        self.violations.clone()
    }

    /// Translates the paths of core's violations into the client's names.
    pub(crate) fn translate(&self, mut error: Error) -> Error {
        if let Details::Violations(violations) = &mut error.details {
            // If the whole body is invalid, core reports every required field as missing.
            if self.violations.iter().any(|own| own.field.is_empty()) {
                violations.retain(|violation| violation.path.is_empty());
            }
            for violation in violations {
                violation.path = self.names.path(&violation.path);
            }
        }
        error
    }

    /// Fails if there are violations. For requests that are rejected without a call to core.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.violations.is_empty() {
            return Ok(());
        }
        let violations = self
            .violations
            .iter()
            .map(|violation| Violation {
                path: violation.field.clone(),
                message: violation.description.clone(),
                code: violation.reason.to_ascii_lowercase(),
            })
            .collect();
        Err(self.translate(Error::invalid(violations)))
    }
}

impl<'v> Object<'v> {
    /// The object of a whole body.
    pub(crate) fn root(value: &'v Value) -> Self {
        Self {
            members: value.as_object(),
            path: String::new(),
        }
    }

    /// Reads an object. An empty array counts as an empty object: PHP encodes both as `[]`.
    pub(crate) fn of(
        value: &'v Value,
        path: String,
        violations: &mut ViolationCollector,
    ) -> Option<Self> {
        let members = match value {
            Value::Object(members) => Some(members),
            Value::Array(elements) if elements.is_empty() => None,
            _ => {
                violations.add_wrong_type(path, "an object", value);
                return None;
            }
        };
        Some(Self { members, path })
    }

    /// The path of a field of this object.
    pub(crate) fn path(&self, field: &str) -> String {
        if self.path.is_empty() {
            field.to_owned()
        } else {
            format!("{}.{field}", self.path)
        }
    }

    /// A member's value; none if it is absent or null.
    pub(crate) fn get(&self, member: &str) -> Option<&'v Value> {
        self.members?.get(member).filter(|value| !value.is_null())
    }

    /// All members that are not null.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&'v String, &'v Value)> {
        self.members
            .into_iter()
            .flatten()
            .filter(|(_, value)| !value.is_null())
    }

    /// Reads a string member into a field.
    pub(crate) fn text(
        &self,
        member: &str,
        field: &str,
        violations: &mut ViolationCollector,
    ) -> Option<String> {
        let value = self.get(member)?;
        let text = value.as_str();
        if text.is_none() {
            violations.add_wrong_type(self.path(field), "a string", value);
        }
        text.map(str::to_owned)
    }

    /// Like `text`, but falls back to the member's old name if the new one is absent or blank.
    pub(crate) fn renamed_text(
        &self,
        member: &str,
        old: &'static str,
        violations: &mut ViolationCollector,
    ) -> Option<String> {
        let is_given = match self.get(member) {
            Some(Value::String(text)) => !text.trim().is_empty(),
            value => value.is_some(),
        };
        if is_given || self.get(old).is_none() {
            return self.text(member, member, violations);
        }
        violations.add_alias(self.path(member), old);
        self.text(old, member, violations)
    }

    /// Reads an array member; empty if it is absent.
    pub(crate) fn array(
        &self,
        member: &str,
        field: &str,
        violations: &mut ViolationCollector,
    ) -> &'v [Value] {
        match self.get(member) {
            Some(Value::Array(elements)) => elements,
            Some(other) => {
                violations.add_wrong_type(self.path(field), "an array", other);
                &[]
            }
            None => &[],
        }
    }

    /// Reads an object member.
    pub(crate) fn object(
        &self,
        member: &str,
        field: &str,
        violations: &mut ViolationCollector,
    ) -> Option<Object<'v>> {
        Object::of(self.get(member)?, self.path(field), violations)
    }

    /// Reads an integer member, with or without a fraction of zero (`500`, `500.0`).
    pub(crate) fn integer(
        &self,
        member: &str,
        field: &str,
        violations: &mut ViolationCollector,
    ) -> Option<i64> {
        let value = self.get(member)?;
        let integer = as_integer(value);
        if integer.is_none() {
            let found = match value {
                Value::Number(number) => &number.to_string(),
                _ => type_name(value),
            };
            let description = format!("must be a whole number, not {found}");
            violations.add(self.path(field), "WRONG_TYPE", description);
        }
        integer
    }

    /// Like `integer`, for a field with a range. Core checks the range; only a number that the
    /// field's type cannot hold is rejected here, with core's description.
    pub(crate) fn integer_in<T: TryFrom<i64>>(
        &self,
        member: &str,
        range: &NumberRange,
        violations: &mut ViolationCollector,
    ) -> Option<T> {
        let value = self.get(member)?;
        let is_whole = value.as_f64().is_some_and(|number| number.fract() == 0.0);
        if !is_whole {
            self.integer(member, member, violations);
            return None;
        }
        let number = as_integer(value).and_then(|number| T::try_from(number).ok());
        if number.is_none() {
            violations.add(self.path(member), "OUT_OF_RANGE", range.rejection(value));
        }
        number
    }
}

fn shorten(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn as_integer(value: &Value) -> Option<i64> {
    /// Every integer up to 2^53 has an exact `f64`.
    const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

    if let Some(integer) = value.as_i64() {
        return Some(integer);
    }
    let double = value.as_f64()?;
    if double.fract() != 0.0 || double.abs() > MAX_EXACT || value.is_u64() {
        return None;
    }
    format!("{double:.0}").parse().ok()
}

/// The name of a value's type, for messages.
fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_integer_may_have_a_fraction_of_zero() {
        for (value, integer) in [
            (json!(0), Some(0)),
            (json!(-5), Some(-5)),
            (json!(500.0), Some(500)),
            (json!(i64::MAX), Some(i64::MAX)),
            (json!(u64::MAX), None),
            (json!(1e300), None),
            (json!(0.5), None),
            (json!("5"), None),
            (json!(true), None),
        ] {
            assert_eq!(as_integer(&value), integer, "{value}");
        }
    }
}
