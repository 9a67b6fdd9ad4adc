//! What every part of the OpenAPI document has: a description, examples, enums and bounds.

use super::*;

fn document() -> Value {
    openapi("Service", "https://delivery.example")
}

/// The object itself, or the component that it refers to.
fn resolve<'d>(document: &'d Value, value: &'d Value) -> &'d Value {
    match value["$ref"].as_str() {
        Some(reference) => document.pointer(&reference[1..]).unwrap(),
        None => value,
    }
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// The operations with their path and method.
fn named_operations(document: &Value) -> impl Iterator<Item = (String, &Value)> {
    members(&document["paths"]).flat_map(|(path, item)| {
        members(item).map(move |(method, operation)| (format!("{method} {path}"), operation))
    })
}

fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.trim().is_empty())
}

#[test]
fn every_operation_parameter_and_response_is_described() {
    let document = document();
    for (case, operation) in named_operations(&document) {
        for name in ["operationId", "summary", "description"] {
            assert!(is_text(&operation[name]), "{case}: {name}");
        }
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let parameter = resolve(&document, parameter);
            assert!(is_text(&parameter["description"]), "{case}: {parameter}");
            assert!(parameter["schema"].is_object(), "{case}: {parameter}");
        }
        for (status, response) in members(&operation["responses"]) {
            let response = resolve(&document, response);
            assert!(is_text(&response["description"]), "{case}: {status}");
        }
    }
}

/// Pages and files are not JSON and have no examples.
#[test]
fn every_json_response_and_request_has_an_example() {
    let document = document();
    let mut checked = 0;
    for (case, operation) in named_operations(&document) {
        let responses =
            members(&operation["responses"]).map(|(status, response)| (status.as_str(), response));
        for (part, body) in responses.chain(operation.get("requestBody").map(|body| ("body", body)))
        {
            for (media_type, content) in members(&resolve(&document, body)["content"]) {
                if ["text/", "image/"]
                    .iter()
                    .any(|kind| media_type.starts_with(kind))
                {
                    continue;
                }
                let examples = members(&content["examples"]).count()
                    + usize::from(!content["example"].is_null());
                assert!(examples > 0, "{case} {part} {media_type}");
                checked += 1;
            }
        }
        let codes = members(&operation["responses"]).filter(|(status, _)| status.as_str() >= "400");
        assert!(codes.count() > 0, "{case} has no error responses");
    }
    assert!(checked > 900, "{checked}");
}

/// An integer of 64 bits has the bounds of its format.
#[test]
fn every_number_in_a_request_has_bounds_and_every_page_size_a_default() {
    fn check(case: &str, schema: &Value, numbers: &mut usize) {
        let types = match &schema["type"] {
            Value::Array(types) => types.clone(),
            one => vec![one.clone()],
        };
        if types.contains(&json!("integer")) || types.contains(&json!("number")) {
            assert!(schema["minimum"].is_number(), "{case}: {schema}");
            let has_maximum = schema["maximum"].is_number() || schema["format"] == "int64";
            assert!(has_maximum, "{case}: {schema}");
            *numbers += 1;
        }
        match schema {
            Value::Object(parts) => parts.values().for_each(|part| check(case, part, numbers)),
            Value::Array(parts) => parts.iter().for_each(|part| check(case, part, numbers)),
            _ => {}
        }
    }
    let document = document();
    let mut numbers = 0;
    for (case, operation) in named_operations(&document) {
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let parameter = resolve(&document, parameter);
            check(&case, &parameter["schema"], &mut numbers);
            if parameter["name"] == "itemsPerPage" {
                assert_eq!(parameter["schema"]["default"], 30, "{case}");
            }
        }
    }
    for (name, schema) in members(&document["components"]["schemas"]) {
        if name.ends_with("Draft") {
            check(name, schema, &mut numbers);
        }
    }
    assert!(numbers >= 15, "{numbers}");
}

/// A member whose values the description names is an enum; a member with a schema of its own is described
/// in that schema.
#[test]
fn every_member_is_described_and_every_closed_set_is_an_enum() {
    let handwritten: Value = parse_json(include_str!("../schemas.json"));
    let document = document();
    let schemas = &document["components"]["schemas"];
    for enumeration in crate::api_description::classes::ENUMERATIONS.iter() {
        let schema = &schemas[&enumeration.name];
        assert_eq!(schema["enum"], json!(enumeration.values));
        assert!(is_text(&schema["description"]), "{}", enumeration.name);
    }
    for (name, schema) in members(schemas) {
        if handwritten.get(name).is_some() {
            continue;
        }
        assert!(is_text(&schema["description"]), "{name}");
        for (member, schema) in members(&schema["properties"]) {
            let is_elsewhere = ["$ref", "const", "anyOf"]
                .iter()
                .any(|key| schema.get(key).is_some());
            assert!(
                is_elsewhere || is_text(&schema["description"]),
                "{name}.{member}"
            );
        }
    }
}
