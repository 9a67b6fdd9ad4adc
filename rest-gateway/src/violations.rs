//! What is found invalid in a request: collected instead of failing at the first, because core adds its
//! own, and the client gets all of them in one response, with the member names that it used.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::{
    error::{Details, Error, Violation},
    representation::json::{self, Document, Shape, UnknownMember},
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
    unknown_members: Vec<UnknownMember>,
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
            repeated,
            unknown,
        } = match json::parse(body, shape) {
            Ok(document) => document,
            Err(error) => {
                self.add("", "INVALID_JSON", format!("the body {error}"));
                return Value::Null;
            }
        };
        self.unknown_members = unknown;
        for path in repeated {
            self.add_verbatim(&path, "REPEATED", "must occur only once");
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

    /// Like [`ViolationCollector::add`], for a name that the client chose: it stays as it is,
    /// unlike the names of core's fields.
    pub(crate) fn add_verbatim(&mut self, name: &str, reason: &str, description: impl AsRef<str>) {
        self.names.verbatim.insert(shorten(name, MAX_FIELD));
        self.add(name, reason, description);
    }

    pub(crate) fn add_wrong_type(&mut self, field: impl AsRef<str>, expected: &str, value: &Value) {
        let description = format!("must be {expected}, not {}", type_name(value));
        self.add(field, "WRONG_TYPE", description);
    }

    /// Records the member that the client used for a field with several names; an empty one for a field whose members
    /// are members of what it is in.
    pub(crate) fn add_alias(&mut self, field: String, member: &'static str) {
        self.names.aliases.insert(field, member);
    }

    /// The warnings about the body: the members that were ignored because no class has them, and those
    /// of core.
    pub(crate) fn warnings(&self, of_core: Vec<proto::Warning>) -> Vec<Violation> {
        let ignored = self.unknown_members.iter().map(|member| Violation {
            path: shorten(&member.path, MAX_FIELD),
            message: match member.similar {
                Some(similar) => {
                    format!("is ignored: there is no such member; did you mean {similar}?")
                }
                None => "is ignored: there is no such member".to_owned(),
            },
            code: "unknown_member".to_owned(),
        });
        let of_core = of_core.into_iter().map(|warning| Violation {
            path: self.path(&warning.field),
            message: warning.description,
            code: warning.reason.to_ascii_lowercase(),
        });
        ignored.chain(of_core).collect()
    }

    /// A field's path in the client's names, such as `dropoff.address.latLng`.
    pub fn path(&self, field: &str) -> String {
        self.names.path(field)
    }

    /// The violations, in core's names.
    pub fn to_proto(&self) -> Vec<proto::Violation> {
        self.violations.clone()
    }

    /// Writes the paths of core's violations in the client's names, and adds the warnings about
    /// the body: a misspelt member is often why another is missing.
    pub(crate) fn in_client_names(&self, mut error: Error) -> Error {
        error.warnings = self.warnings(Vec::new()).into();
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
        Err(self.in_client_names(Error::invalid(violations)))
    }
}

fn shorten(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The name of a value's type, for messages.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// The member names of one request.
#[derive(Clone, Debug, Default)]
struct FieldNames {
    /// Path of a field → the member that the client used, for fields with several names.
    aliases: HashMap<String, &'static str>,
    /// Paths that the client chose.
    verbatim: HashSet<String>,
}

impl FieldNames {
    /// A field's path in the client's names: `dropoff.address.lat_lng` →
    /// `dropoff.address.latLng`, or `….geo` if the client used that.
    fn path(&self, field: &str) -> String {
        if self.verbatim.contains(field) {
            return field.to_owned();
        }
        let mut path = String::with_capacity(field.len());
        let mut end = 0;
        for segment in field.split('.') {
            let start = end;
            end += segment.len();
            let (name, index) = segment.split_at(segment.find('[').unwrap_or(segment.len()));
            let field_path = &field[..start + name.len()];
            match self.aliases.get(field_path) {
                Some(member) => path.push_str(member),
                None => push_member(&mut path, name),
            }
            path.push_str(index);
            if name == "metadata" {
                // The rest of the path is the client's own keys.
                path.push_str(&field[end..]);
                return path;
            }
            if end < field.len() {
                if !path.is_empty() {
                    path.push('.');
                }
                end += 1;
            }
        }
        path
    }
}

/// Appends the API's name of a field.
fn push_member(path: &mut String, field: &str) {
    if field == "place_name" {
        path.push_str("name");
        return;
    }
    let mut words = field.split('_');
    path.push_str(words.next().unwrap_or_default());
    for word in words {
        let mut letters = word.chars();
        path.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        path.push_str(letters.as_str());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_the_names_of_the_api() {
        let names = FieldNames::default();

        for (field, path) in [
            ("", ""),
            ("dropoff", "dropoff"),
            ("dropoff.time_slot", "dropoff.timeSlot"),
            (
                "pickup.address.street_address",
                "pickup.address.streetAddress",
            ),
            ("pickup.address.place_name", "pickup.address.name"),
            (
                "dropoff.packages[2].quantity",
                "dropoff.packages[2].quantity",
            ),
            (
                "dropoff.metadata.my_own.key_1",
                "dropoff.metadata.my_own.key_1",
            ),
            ("tax", "tax"),
            ("a..b_", "a..b"),
        ] {
            assert_eq!(names.path(field), path);
        }
    }

    #[test]
    fn a_field_has_the_name_that_the_client_used() {
        let names = FieldNames {
            aliases: HashMap::from([
                ("dropoff.before".to_owned(), "doneBefore"),
                ("dropoff.address.lat_lng".to_owned(), "geo"),
            ]),
            verbatim: HashSet::from(["dropoff.my_own".to_owned()]),
        };

        for (field, path) in [
            ("dropoff.before", "dropoff.doneBefore"),
            ("pickup.before", "pickup.before"),
            ("dropoff.address.lat_lng", "dropoff.address.geo"),
            (
                "dropoff.address.lat_lng.latitude",
                "dropoff.address.geo.latitude",
            ),
            ("dropoff.my_own", "dropoff.my_own"),
        ] {
            assert_eq!(names.path(field), path);
        }
    }
}
