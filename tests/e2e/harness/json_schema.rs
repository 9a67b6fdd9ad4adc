//! Validates JSON by a JSON Schema (2020-12), with the keywords that the platform's documentation
//! uses. Any other keyword fails the test, because it would not be checked.

use jiff::Timestamp;
use regex::Regex;
use serde_json::{Map, Value};

/// The errors of a value by a schema; empty if the value is valid. References in the schema have
/// their targets in `document`.
pub(crate) fn errors(document: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let mut errors = Vec::new();
    Check {
        document,
        errors: &mut errors,
    }
    .schema(schema, value, "");
    errors
}

struct Check<'d, 'e> {
    document: &'d Value,
    errors: &'e mut Vec<String>,
}

impl Check<'_, '_> {
    fn schema(&mut self, schema: &Value, value: &Value, path: &str) {
        let keywords = match schema {
            Value::Bool(true) => return,
            Value::Bool(false) => {
                self.fail(path, "is not allowed");
                return;
            }
            schema => schema.as_object().unwrap(),
        };
        for (keyword, argument) in keywords {
            self.keyword(keyword, argument, keywords, value, path);
        }
    }

    fn keyword(
        &mut self,
        keyword: &str,
        argument: &Value,
        keywords: &Map<String, Value>,
        value: &Value,
        path: &str,
    ) {
        match keyword {
            "$ref" => {
                let pointer = argument.as_str().unwrap().strip_prefix('#').unwrap();
                let schema = self
                    .document
                    .pointer(pointer)
                    .expect("a reference should have a target");
                self.schema(schema, value, path);
            }
            "type" if !is_of_type(argument, value) => {
                self.fail(path, format!("{value} is not {argument}"));
            }
            "const" if value != argument => {
                self.fail(path, format!("{value} is not {argument}"));
            }
            "enum" if !argument.as_array().unwrap().contains(value) => {
                self.fail(path, format!("{value} is not one of {argument}"));
            }
            "format" if !is_formatted(argument, value) => {
                self.fail(path, format!("{value} is not a {argument}"));
            }
            "pattern" => {
                let pattern = Regex::new(argument.as_str().unwrap()).unwrap();
                if value.as_str().is_some_and(|text| !pattern.is_match(text)) {
                    self.fail(path, format!("{value} does not match {argument}"));
                }
            }
            "type" | "const" | "enum" | "format" | "description" | "default" | "examples"
            // Applied by `if`.
            | "then" => {}
            "unevaluatedProperties" if argument == true => {}
            "properties"
            | "required"
            | "additionalProperties"
            | "maxProperties"
            | "propertyNames" => {
                if let Some(members) = value.as_object() {
                    self.members(keyword, argument, keywords, members, path);
                }
            }
            "items" | "prefixItems" | "minItems" | "maxItems" => {
                if let Some(elements) = value.as_array() {
                    self.elements(keyword, argument, keywords, elements, path);
                }
            }
            "anyOf" | "oneOf" => {
                let matching = argument.as_array().unwrap().iter();
                let matching =
                    matching.filter(|schema| errors(self.document, schema, value).is_empty());
                let count = matching.count();
                if count == 0 || (keyword == "oneOf" && count > 1) {
                    self.fail(path, format!("{value} matches {count} of {argument}"));
                }
            }
            "minLength" | "maxLength" => {
                let length = value.as_str().map(|text| text.chars().count() as u64);
                let limit = argument.as_u64().unwrap();
                let violates_limit = |length: u64| match keyword {
                    "minLength" => length < limit,
                    _ => length > limit,
                };
                if length.is_some_and(violates_limit) {
                    self.fail(path, format!("{value} violates {keyword} {argument}"));
                }
            }
            "minimum" | "maximum" => {
                let limit = argument.as_f64().unwrap();
                let violates_limit = |number: f64| match keyword {
                    "minimum" => number < limit,
                    _ => number > limit,
                };
                if value.as_f64().is_some_and(violates_limit) {
                    self.fail(path, format!("{value} violates {keyword} {argument}"));
                }
            }
            "not" => {
                if errors(self.document, argument, value).is_empty() {
                    self.fail(path, format!("{value} matches {argument}"));
                }
            }
            "if" => {
                if errors(self.document, argument, value).is_empty() {
                    self.schema(&keywords["then"], value, path);
                }
            }
            "dependentSchemas" => {
                for (name, schema) in argument.as_object().unwrap() {
                    if value.get(name).is_some() {
                        self.schema(schema, value, path);
                    }
                }
            }
            unknown => panic!("unknown keyword {unknown}"),
        }
    }

    fn members(
        &mut self,
        keyword: &str,
        argument: &Value,
        keywords: &Map<String, Value>,
        members: &Map<String, Value>,
        path: &str,
    ) {
        match keyword {
            "properties" => {
                for (name, schema) in argument.as_object().unwrap() {
                    if let Some(member) = members.get(name) {
                        self.schema(schema, member, &format!("{path}/{name}"));
                    }
                }
            }
            "required" => {
                for name in argument.as_array().unwrap() {
                    if !members.contains_key(name.as_str().unwrap()) {
                        self.fail(path, format!("{name} is missing"));
                    }
                }
            }
            "propertyNames" => {
                for name in members.keys() {
                    self.schema(
                        argument,
                        &Value::from(name.as_str()),
                        &format!("{path}/{name}"),
                    );
                }
            }
            "additionalProperties" => {
                let known = keywords.get("properties");
                for (name, member) in members {
                    if known.is_none_or(|known| known.get(name).is_none()) {
                        self.schema(argument, member, &format!("{path}/{name}"));
                    }
                }
            }
            "maxProperties" => {
                if members.len() as u64 > argument.as_u64().unwrap() {
                    self.fail(path, "has too many members");
                }
            }
            _ => unreachable!("{keyword}"),
        }
    }

    fn elements(
        &mut self,
        keyword: &str,
        argument: &Value,
        keywords: &Map<String, Value>,
        elements: &[Value],
        path: &str,
    ) {
        match keyword {
            "prefixItems" => {
                for (index, (schema, element)) in argument
                    .as_array()
                    .unwrap()
                    .iter()
                    .zip(elements)
                    .enumerate()
                {
                    self.schema(schema, element, &format!("{path}/{index}"));
                }
            }
            "items" => {
                let prefix_length = keywords
                    .get("prefixItems")
                    .and_then(Value::as_array)
                    .map_or(0, Vec::len);
                for (index, element) in elements.iter().enumerate().skip(prefix_length) {
                    self.schema(argument, element, &format!("{path}/{index}"));
                }
            }
            "minItems" if (elements.len() as u64) < argument.as_u64().unwrap() => {
                self.fail(path, "has too few elements");
            }
            "maxItems" if elements.len() as u64 > argument.as_u64().unwrap() => {
                self.fail(path, "has too many elements");
            }
            _ => {}
        }
    }

    fn fail(&mut self, path: &str, error: impl AsRef<str>) {
        self.errors.push(format!("{path}: {}", error.as_ref()));
    }
}

fn is_of_type(types: &Value, value: &Value) -> bool {
    let is_of = |name: &Value| match name.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        // 1.0 is an integer.
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        unknown => panic!("unknown type {unknown}"),
    };
    match types {
        Value::Array(types) => types.iter().any(is_of),
        name => is_of(name),
    }
}

fn is_formatted(format: &Value, value: &Value) -> bool {
    let Some(text) = value.as_str() else {
        return true;
    };
    match format.as_str().unwrap() {
        "date-time" => text.parse::<Timestamp>().is_ok(),
        "uri" => url::Url::parse(text).is_ok(),
        "uri-reference" => text.starts_with('/') || url::Url::parse(text).is_ok(),
        "int64" => true,
        "uuid" => uuid::Uuid::try_parse(text).is_ok(),
        unknown => panic!("unknown format {unknown}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn violations_of_a_schema_are_listed() {
        let document = json!({"components": {"Id": {"type": "string", "format": "uuid"}}});
        let schema = json!({
            "type": "object",
            "properties": {
                "id": {"$ref": "#/components/Id"},
                "at": {"type": ["string", "null"], "format": "date-time"},
                "kind": {"enum": ["A", "B"]},
                "point": {"type": "array", "prefixItems": [{"maximum": 90}], "items": false},
                "either": {"oneOf": [{"type": "integer"}, {"minimum": 3}]},
                "code": {"pattern": "^[A-Z]$"},
            },
            "propertyNames": {"maxLength": 6},
            "required": ["id"],
            "additionalProperties": false,
        });
        let id = "01932e5c-9f4a-7000-8000-000000000001";
        for (value, expected) in [
            (
                json!({"id": id, "at": null, "kind": "A", "point": [90], "either": 2}),
                0,
            ),
            (
                json!({"id": id, "at": "2020-04-02T12:00:00+02:00", "either": 3.5}),
                0,
            ),
            (json!({}), 1),
            (json!({"id": 1}), 1),
            (json!({"id": "1"}), 1),
            (json!({"id": id, "at": "soon"}), 1),
            (json!({"id": id, "kind": "C", "point": [91, 2]}), 3),
            (json!({"id": id, "either": 3}), 1),
            (json!({"id": id, "code": "A"}), 0),
            (json!({"id": id, "code": "a"}), 1),
            (json!({"id": id, "longest": 1}), 2),
            (json!({"id": id, "more": true}), 1),
            (json!([]), 1),
        ] {
            let errors = errors(&document, &schema, &value);

            assert_eq!(errors.len(), expected, "{value}: {errors:?}");
        }
    }
}
