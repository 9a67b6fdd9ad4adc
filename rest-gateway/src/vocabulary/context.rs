//! JSON-LD 1.1 contexts: what every term in a resource means, the resources in it included.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{Class, Field, HYDRA, Iri, Many, Named, Range, XSD, classes, object};

pub(super) const DAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];

/// The document at `/api/contexts/<name>`; none if there is no such context.
pub(crate) fn context(name: &str, public_url: &str) -> Option<Value> {
    let class = classes::ALL
        .iter()
        .find(|class| class.name == name && class.named != Named::Not)?;
    let mut terms = object([("@version", json!(1.1)), ("hydra", json!(HYDRA))]);
    for class in reachable(class) {
        add_terms(class, public_url, &mut terms);
    }
    Some(json!({ "@context": terms }))
}

/// The classes whose objects may stand in one of this class; and, as every resource may stand in
/// one, a collection's.
fn reachable(class: &'static Class) -> Vec<&'static Class> {
    let mut names = BTreeSet::new();
    let mut found = Vec::new();
    let mut next = vec![class];
    while let Some(class) = next.pop() {
        if !names.insert(class.name) {
            continue;
        }
        found.push(class);
        for field in class.fields {
            match field.range {
                Range::Object(class) => next.push(class),
                Range::AnyOf(classes) => next.extend(classes),
                _ => {}
            }
        }
    }
    found.extend(
        [&classes::api::COLLECTION, &classes::api::COLLECTION_VIEW]
            .into_iter()
            .filter(|class| !names.contains(class.name)),
    );
    found
}

fn add_terms(class: &Class, public_url: &str, terms: &mut Map<String, Value>) {
    if class.named == Named::Term {
        terms.insert(class.name.to_owned(), json!(class.iri.in_full(public_url)));
    }
    for field in class.fields {
        terms.insert(field.name.to_owned(), definition(field, public_url));
        if matches!(field.range, Range::DayOfWeek) {
            for day in DAYS {
                let iri = Iri::Schema(day).in_full(public_url);
                terms.insert(day.to_owned(), json!(iri));
            }
        }
    }
}

fn definition(field: &Field, public_url: &str) -> Value {
    let iri = json!(field.iri.in_full(public_url));
    let kind = match field.range {
        Range::Instant => Some(format!("{XSD}dateTime")),
        Range::Url => Some(format!("{XSD}anyURI")),
        Range::Link(_) | Range::Collection(_) => Some("@id".to_owned()),
        Range::DayOfWeek => Some("@vocab".to_owned()),
        Range::Json => Some("@json".to_owned()),
        Range::Text
        | Range::Boolean
        | Range::Integer
        | Range::Decimal
        | Range::Object(_)
        | Range::AnyOf(_) => None,
    };
    let container = match field.many {
        Many::One => None,
        Many::Set => Some("@set"),
        Many::List => Some("@list"),
    };
    if kind.is_none() && container.is_none() {
        return iri;
    }
    let mut definition = object([("@id", iri)]);
    definition.extend(kind.map(|kind| ("@type".to_owned(), json!(kind))));
    definition.extend(container.map(|container| ("@container".to_owned(), json!(container))));
    Value::Object(definition)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const PUBLIC_URL: &str = "https://delivery.example";

    #[test]
    fn in_one_context_a_term_has_one_meaning_and_a_meaning_one_term() {
        for root in classes::ALL {
            let mut meanings = BTreeMap::new();
            let mut terms = BTreeMap::new();
            for class in reachable(root) {
                for field in class.fields {
                    let definition = definition(field, PUBLIC_URL).to_string();
                    let iri = field.iri.in_full(PUBLIC_URL);
                    let meaning = meanings
                        .entry(field.name)
                        .or_insert_with(|| definition.clone());
                    assert_eq!(*meaning, definition, "{} in {}", field.name, root.name);
                    let term = terms.entry(iri).or_insert(field.name);
                    assert_eq!(*term, field.name, "in {}", root.name);
                }
            }
        }
    }

    #[test]
    fn a_class_has_one_name() {
        let names: BTreeSet<_> = classes::ALL.iter().map(|class| class.name).collect();

        assert_eq!(names.len(), classes::ALL.len());
        for root in classes::ALL {
            for class in reachable(root) {
                assert!(names.contains(class.name), "{} is not listed", class.name);
            }
        }
    }

    #[test]
    fn a_term_says_how_its_values_are_written() {
        let context = context("Store", PUBLIC_URL).unwrap();
        let terms = &context["@context"];

        assert_eq!(terms["name"], "http://schema.org/name");
        assert_eq!(
            terms["timeSlots"],
            json!({
                "@id": "https://delivery.example/api/docs.jsonld#timeSlots",
                "@type": "@id",
                "@container": "@set",
            })
        );
        assert_eq!(terms["streetAddress"], "http://schema.org/streetAddress");
        assert_eq!(super::context("Package", PUBLIC_URL), None);
    }
}
