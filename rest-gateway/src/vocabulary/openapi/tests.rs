use std::collections::BTreeSet;

use super::{examples::parse, *};

const PUBLIC_URL: &str = "https://delivery.example";

#[test]
fn every_reference_leads_somewhere() {
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

#[test]
fn an_operation_has_a_name_of_its_own_and_says_what_it_does() {
    let mut names = BTreeSet::new();
    for operation in operations::all() {
        assert!(names.insert(operation.id), "{}", operation.id);
        for text in [operation.title, operation.subject] {
            assert!(!text.is_empty(), "{}", operation.id);
        }
        assert!(operation.path.starts_with('/'), "{}", operation.id);
    }
}

/// What is sent with `POST` because it has a body, or is sent on, and writes nothing.
const ASKS: &[&str] = &["assertDelivery", "calculateRetailPrice", "testWebhook"];

#[test]
fn every_post_that_writes_can_be_repeated_under_a_key() {
    let document = openapi("Service", PUBLIC_URL);
    let mut asking = Vec::new();
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
        if ASKS.contains(&id) {
            assert_eq!(keys.len(), 0, "{id}");
            asking.push(id);
            continue;
        }
        assert_eq!(keys.len(), 1, "{id} writes, so it takes an Idempotency-Key");
        assert_eq!(keys[0]["in"], "header");
        for (status, code) in [("409", "in_use"), ("422", "reused")] {
            let answer = post["responses"][status]["$ref"].as_str().unwrap();
            let code = format!("idempotency_key_{code}");
            assert!(answer.contains(&code), "{id} is not refused {code}");
        }
        let success = post["responses"]
            .as_object()
            .unwrap()
            .iter()
            .find(|(status, _)| status.starts_with('2'))
            .unwrap();
        let headers = &success.1["headers"];
        assert!(headers.get("Idempotent-Replayed").is_some(), "{id}");
    }
    asking.sort_unstable();
    assert_eq!(asking, ASKS);
}

#[test]
fn whatever_answers_json_has_an_example_and_no_other_has() {
    let examples: BTreeSet<_> = parse(include_str!("examples.json"))
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect();
    let answering: BTreeSet<_> = operations::all()
        .filter(|operation| answers_json(operation))
        .map(|operation| operation.id.to_owned())
        .collect();

    assert_eq!(
        examples, answering,
        "make them anew: UPDATE_EXAMPLES=1 cargo test --test e2e examples"
    );
}

/// The documents themselves are no examples of anything; and what happens by itself, and when it
/// likes, is not the same every time.
fn answers_json(operation: &Operation) -> bool {
    if ["Events", "Notifications"].contains(&operation.subject) {
        return false;
    }
    match operation.returns {
        Returns::Nothing | Returns::JsonLd(_) | Returns::Health => false,
        Returns::Document(media_types, _) => {
            media_types[0].ends_with("json") && operation.path != crate::vocabulary::OPENAPI
        }
        Returns::Resource(_) | Returns::Created(_) | Returns::Preview(_) | Returns::Members(_) => {
            true
        }
    }
}
