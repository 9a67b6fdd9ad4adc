//! Reads the members of a JSON object; those that cannot be read are violations.

use jiff::Timestamp;
use proto::limits::NumberRange;
use serde_json::{Map, Value};

use crate::violations::{ViolationCollector, type_name};

/// A JSON object, and the path of the message that it becomes.
pub(crate) struct Object<'v> {
    members: Option<&'v Map<String, Value>>,
    path: String,
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

    /// Whether a member is given, even as null.
    pub(crate) fn has(&self, member: &str) -> bool {
        self.members
            .is_some_and(|members| members.contains_key(member))
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

    /// Reads an instant with its offset.
    pub(crate) fn instant(
        &self,
        member: &str,
        violations: &mut ViolationCollector,
    ) -> Option<prost_types::Timestamp> {
        /// The first year of RFC 3339, as responses repeat instants; in seconds since the Unix epoch.
        const YEAR_ZERO: i64 = -62_167_219_200;

        let text = self.text(member, member, violations)?;
        let instant = text.parse::<Timestamp>().ok();
        let Some(instant) = instant.filter(|instant| instant.as_second() >= YEAR_ZERO) else {
            violations.add(
                self.path(member),
                "INVALID_INSTANT",
                "must be an instant with its offset, such as 2020-04-02T12:00:00+02:00",
            );
            return None;
        };
        Some(std::time::SystemTime::from(instant).into())
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
