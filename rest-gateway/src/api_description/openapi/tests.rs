mod completeness;
mod details;

use std::collections::BTreeSet;

use super::*;
use crate::representation::error_codes::{VIOLATIONS, WARNINGS, codes};

const PUBLIC_URL: &str = "https://delivery.example";

#[test]
fn every_reference_resolves() {
    fn check(document: &Value, value: &Value) {
        match value {
            Value::Object(members) => {
                if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
                    assert!(document.pointer(&reference[1..]).is_some(), "{reference}");
                }
                members.values().for_each(|member| check(document, member));
            }
            Value::Array(elements) => elements.iter().for_each(|element| check(document, element)),
            _ => {}
        }
    }
    let document = openapi("Service", PUBLIC_URL);

    check(&document, &document);
}

/// Generators reject siblings of `$ref`, rename schemas with the names of built-in types, and drop members
/// whose names differ only in characters that identifiers cannot have.
#[test]
fn generators_can_name_every_schema_and_member() {
    fn references_have_no_siblings(value: &Value) {
        match value {
            Value::Object(members) => {
                assert!(
                    !members.contains_key("$ref") || members.len() == 1,
                    "{value}"
                );
                members.values().for_each(references_have_no_siblings);
            }
            Value::Array(elements) => elements.iter().for_each(references_have_no_siblings),
            _ => {}
        }
    }
    let document = openapi("Service", PUBLIC_URL);

    references_have_no_siblings(&document);
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        let reserved = [
            "Error",
            "Exception",
            "File",
            "List",
            "Object",
            "Package",
            "Set",
        ];
        assert!(!reserved.contains(&name.as_str()), "{name}");
        let mut identifiers = BTreeSet::new();
        for member in schema["properties"].as_object().into_iter().flatten() {
            let identifier = member.0.replace(|c: char| !c.is_alphanumeric(), "");
            assert!(
                identifiers.insert(identifier.to_lowercase()),
                "{name}: {}",
                member.0
            );
        }
    }
    for operation in operations::all() {
        let method = operation.method.to_ascii_lowercase();
        let operation = &document["paths"][&operation.path][method];
        let responses = operation["responses"].as_object().unwrap().values();
        for body in responses.chain(operation.get("requestBody")) {
            for content in body["content"].as_object().into_iter().flatten() {
                let schema = &content.1["schema"];
                assert!(
                    schema.get("$ref").is_some() || schema["type"] == "string",
                    "{schema}"
                );
            }
        }
    }
}

#[test]
fn every_violation_and_warning_code_has_a_recorded_example() {
    let examples: Value = parse_json(include_str!("violation_examples.json"));
    let recorded: BTreeSet<_> = examples
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();

    let codes = [codes(&VIOLATIONS), codes(&WARNINGS)].concat();
    assert_eq!(recorded, codes.into_iter().collect());
}

#[test]
fn operation_ids_are_unique_and_every_operation_is_described() {
    let mut names = BTreeSet::new();
    for operation in operations::all() {
        assert!(
            names.insert(&operation.operation_id),
            "{}",
            operation.operation_id
        );
        for text in [&operation.summary, &operation.description, &operation.tag] {
            assert!(!text.is_empty(), "{}", operation.operation_id);
        }
        let verb = operation.summary.split(' ').next().unwrap();
        assert!(!verb.ends_with('s'), "{verb}: not an imperative");
        assert!(
            operation.path.starts_with('/'),
            "{}",
            operation.operation_id
        );
    }
}

/// Checked in the examples, which are recorded from real responses.
#[test]
fn every_link_leads_from_an_id_in_the_response_to_an_operation() {
    let document = openapi("Service", PUBLIC_URL);
    let examples = responses::examples();
    let mut links = Vec::new();
    for operation in operations::all() {
        let method = operation.method.to_ascii_lowercase();
        let status = operation.returns.status().to_string();
        let response = &document["paths"][&operation.path][method]["responses"][status];
        for (name, link) in response["links"].as_object().into_iter().flatten() {
            let target = operations::all()
                .find(|target| link["operationId"] == target.operation_id)
                .unwrap();
            assert_eq!(target.path.matches('{').count(), 1, "{name}");
            assert!(target.path.contains("/{id}"), "{name}");
            let expression = link["parameters"]["id"].as_str().unwrap();
            let pointer = expression.strip_prefix("$response.body#").unwrap();
            let example = examples.get(&operation.operation_id).unwrap();
            let id = example.pointer(pointer).and_then(Value::as_str);
            assert!(id.is_some_and(|id| id.len() == 36), "{name}: {id:?}");
            links.push(format!("{} -> {name}", operation.operation_id));
        }
    }

    assert_eq!(links.len(), 73, "{links:#?}");
    for link in [
        "createDelivery -> cancelDelivery",
        "createDelivery -> dropoff.completeTask",
        "createDelivery -> pickup.getTask",
        "createDelivery -> pickup.listTaskEvents",
        "createDelivery -> pickup.listTaskIncidents",
        "createDelivery -> dropoff.listFailureReasons",
        "createWebhook -> recoverWebhook",
        "listEvents -> getEvent",
        "listNotifications -> resendNotification",
    ] {
        assert!(links.iter().any(|found| found == link), "{link}");
    }
}

/// `POST` operations that write nothing, and uploads, which write the same content once.
const POSTS_WITHOUT_KEY: &[&str] = &[
    "assertDelivery",
    "calculateRetailPrice",
    "testWebhook",
    "uploadIncidentImage",
    "uploadTaskImage",
];

#[test]
fn every_post_that_would_write_twice_accepts_an_idempotency_key() {
    let document = openapi("Service", PUBLIC_URL);
    let mut without_key = Vec::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        let post = &operations["post"];
        if post.is_null() || !path.starts_with("/api/") {
            continue;
        }
        let parameters = post["parameters"].as_array().into_iter().flatten();
        let keys: Vec<_> = parameters
            .filter(|parameter| parameter["name"] == "Idempotency-Key")
            .collect();
        let id = post["operationId"].as_str().unwrap();
        if POSTS_WITHOUT_KEY.contains(&id) {
            assert_eq!(keys.len(), 0, "{id}");
            without_key.push(id);
            continue;
        }
        assert_eq!(keys.len(), 1, "{id} writes, so it takes an Idempotency-Key");
        assert_eq!(keys[0]["in"], "header");
        for (status, code) in [("409", "in_use"), ("422", "reused")] {
            let reference = post["responses"][status]["$ref"].as_str().unwrap();
            let code = format!("idempotency_key_{code}");
            assert!(reference.contains(&code), "{id} has no response {code}");
        }
        let (_, success) = post["responses"]
            .as_object()
            .unwrap()
            .iter()
            .find(|(status, _)| status.starts_with('2'))
            .unwrap();
        let headers = &success["headers"];
        assert!(headers.get("Idempotent-Replayed").is_some(), "{id}");
    }
    without_key.sort_unstable();
    assert_eq!(without_key, POSTS_WITHOUT_KEY);
}

#[test]
fn exactly_the_operations_that_need_an_example_have_one() {
    let examples: BTreeSet<_> = parse_json::<Value>(include_str!("examples.json"))
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect();
    let needed: BTreeSet<_> = operations::all()
        .filter(|operation| needs_example(operation))
        .map(|operation| operation.operation_id.clone())
        .collect();

    assert_eq!(
        examples, needed,
        "regenerate them: UPDATE_EXAMPLES=1 cargo test --test e2e examples"
    );
}

/// Whether the response is JSON. Excludes the API's own documents, and resources that change in
/// the background at any time.
fn needs_example(operation: &Operation) -> bool {
    if ["Events", "Notifications"].contains(&operation.tag.as_str()) {
        return false;
    }
    match &operation.returns {
        Returns::Nothing
        | Returns::JsonLd(_)
        | Returns::Text(_)
        | Returns::Page
        | Returns::Image(_)
        | Returns::Health => false,
        Returns::Document(media_type, _) => {
            media_type.ends_with("json") && operation.path != "/api/docs.json"
        }
        Returns::Resource(_)
        | Returns::Created(_)
        | Returns::Preview(_)
        | Returns::Collection(_) => true,
    }
}
