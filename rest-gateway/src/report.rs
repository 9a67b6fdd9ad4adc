//! Reads the members of a body one by one, and reports whatever cannot go into core's message,
//! so that core can add what it finds and the client hears of everything at once.

use serde_json::{Map, Value};

use crate::{
    client_words::ClientWords,
    error::{Error, Violation},
    json::{self, Document},
};

/// More than these say nothing new, and core returns them in the headers of its answer.
const MAX_VIOLATIONS: usize = 100;
/// In characters; keys are the client's and may be of any length.
const MAX_FIELD: usize = 200;
const MAX_DESCRIPTION: usize = 500;

/// What is wrong with a request so far, and how the client calls things.
#[derive(Debug, Default)]
pub(crate) struct Report {
    violations: Vec<proto::Violation>,
    words: ClientWords,
}

/// A JSON object, and the path of the message it stands for.
pub(crate) struct Object<'v> {
    members: Option<&'v Map<String, Value>>,
    path: String,
}

impl Report {
    /// Parses a body that must be a JSON object. What comes back is null if it is none.
    pub(crate) fn parse(&mut self, body: &[u8]) -> Value {
        if body.trim_ascii().is_empty() {
            self.add(
                "",
                "REQUIRED",
                "the body is empty; it must be a JSON object",
            );
            return Value::Null;
        }
        let Document { value, repeated } = match json::parse(body) {
            Ok(document) => document,
            Err(error) => {
                self.add("", "INVALID_JSON", format!("the body is not JSON: {error}"));
                return Value::Null;
            }
        };
        for path in repeated {
            self.add_verbatim(&path, "REPEATED", "is there more than once");
        }
        if !value.is_object() {
            let wrong = format!("the body must be a JSON object, not {}", kind(&value));
            self.add("", "WRONG_TYPE", wrong);
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

    /// As [`Report::add`], of something that is the client's own word already.
    pub(crate) fn add_verbatim(&mut self, word: &str, reason: &str, description: impl AsRef<str>) {
        self.words.keep(shorten(word, MAX_FIELD));
        self.add(word, reason, description);
    }

    pub(crate) fn wrong_type(&mut self, field: impl AsRef<str>, expected: &str, value: &Value) {
        let wrong = format!("must be {expected}, not {}", kind(value));
        self.add(field, "WRONG_TYPE", wrong);
    }

    /// The client used this member for a field that has several.
    pub(crate) fn choose(&mut self, field: String, member: &'static str) {
        self.words.choose(field, member);
    }

    /// A field's path in the client's words.
    pub(crate) fn path(&self, field: &str) -> String {
        self.words.path(field)
    }

    /// What core is to be told.
    pub(crate) fn violations(&self) -> Vec<proto::Violation> {
        self.violations.clone()
    }

    /// Core's answer to the request, in the client's words.
    pub(crate) fn explain(&self, error: Error) -> Error {
        let Error::Invalid {
            code,
            mut violations,
        } = error
        else {
            return error;
        };
        // To a body that cannot be read at all core adds that everything is missing.
        if self.violations.iter().any(|ours| ours.field.is_empty()) {
            violations.retain(|violation| violation.path.is_empty());
        }
        for violation in &mut violations {
            violation.path = self.words.path(&violation.path);
        }
        Error::Invalid { code, violations }
    }

    /// What is wrong when there is no need to ask core.
    pub(crate) fn into_error(self) -> Option<Error> {
        if self.violations.is_empty() {
            return None;
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
        Some(self.explain(Error::Invalid {
            code: String::new(),
            violations,
        }))
    }
}

impl<'v> Object<'v> {
    /// The object that a whole body is.
    pub(crate) fn root(value: &'v Value) -> Self {
        Self {
            members: value.as_object(),
            path: String::new(),
        }
    }

    /// Reads an object. An empty array is an empty one too: PHP cannot tell them apart.
    pub(crate) fn of(value: &'v Value, path: String, report: &mut Report) -> Option<Self> {
        let members = match value {
            Value::Object(members) => Some(members),
            Value::Array(elements) if elements.is_empty() => None,
            _ => {
                report.wrong_type(path, "an object", value);
                return None;
            }
        };
        Some(Self { members, path })
    }

    /// The path of one of its fields.
    pub(crate) fn path(&self, field: &str) -> String {
        if self.path.is_empty() {
            field.to_owned()
        } else {
            format!("{}.{field}", self.path)
        }
    }

    /// A member that is there; null is absent.
    pub(crate) fn get(&self, member: &str) -> Option<&'v Value> {
        self.members?.get(member).filter(|value| !value.is_null())
    }

    /// All members that are there.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&'v String, &'v Value)> {
        self.members
            .into_iter()
            .flatten()
            .filter(|(_, value)| !value.is_null())
    }

    /// A member that is a text, for the field of that name.
    pub(crate) fn text(&self, member: &str, field: &str, report: &mut Report) -> Option<String> {
        let value = self.get(member)?;
        let text = value.as_str();
        if text.is_none() {
            report.wrong_type(self.path(field), "a text", value);
        }
        text.map(str::to_owned)
    }

    /// As `text`, under the member's old name if it is not there under the new one.
    pub(crate) fn renamed_text(
        &self,
        (member, old): (&str, &'static str),
        report: &mut Report,
    ) -> Option<String> {
        if self.get(member).is_some() || self.get(old).is_none() {
            return self.text(member, member, report);
        }
        report.choose(self.path(member), old);
        self.text(old, member, report)
    }

    /// A member that is an array; empty if it is not there.
    pub(crate) fn array(&self, member: &str, field: &str, report: &mut Report) -> &'v [Value] {
        match self.get(member) {
            Some(Value::Array(elements)) => elements,
            Some(other) => {
                report.wrong_type(self.path(field), "an array", other);
                &[]
            }
            None => &[],
        }
    }

    /// A member that is an object.
    pub(crate) fn object(
        &self,
        member: &str,
        field: &str,
        report: &mut Report,
    ) -> Option<Object<'v>> {
        Object::of(self.get(member)?, self.path(field), report)
    }

    /// A member that is a whole number, however it is written (`500`, `500.0`).
    pub(crate) fn integer(&self, member: &str, field: &str, report: &mut Report) -> Option<i64> {
        let value = self.get(member)?;
        let integer = as_integer(value);
        if integer.is_none() {
            report.wrong_type(self.path(field), "a whole number", value);
        }
        integer
    }
}

fn shorten(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn as_integer(value: &Value) -> Option<i64> {
    /// Up to here every whole number has a double of its own.
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

/// What a value is, for people.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_whole_number_may_be_written_with_a_fraction_of_nothing() {
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
