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
