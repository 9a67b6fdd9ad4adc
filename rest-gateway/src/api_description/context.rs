//! JSON-LD 1.1 contexts: the IRIs and types of all terms in a resource and in embedded resources.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    HYDRA, SCHEMA_ORG, XSD,
    classes::{self, Cardinality, Class, DAYS, Field, Range, TypeName, expand},
};

/// How the filters of lists are written.
pub(super) const BASIC_REPRESENTATION: &str = "BasicRepresentation";

/// The classes of the objects around the members of a collection.
const COLLECTION_CLASSES: [&str; 4] = [
    "Collection",
    "PartialCollectionView",
    "IriTemplate",
    "IriTemplateMapping",
];

/// The document at `/api/contexts/<name>`; none unless a class with an `@type` has the name.
pub(crate) fn context(name: &str, public_url: &str) -> Option<Value> {
    let class = classes::ALL
        .iter()
        .find(|class| class.name == name && class.type_name != TypeName::None)?;
    let mut terms = json!({"@version": 1.1, "hydra": HYDRA});
    for class in reachable(class) {
        add_terms(class, public_url, &mut terms);
    }
    Some(json!({ "@context": terms }))
}

/// A class, the classes of all objects embedded in its objects, and the collection classes, as a
/// collection has the context of its members.
fn reachable(class: &'static Class) -> Vec<&'static Class> {
    let mut names = BTreeSet::new();
    let mut found = Vec::new();
    let mut pending = vec![class];
    while let Some(class) = pending.pop() {
        if !names.insert(class.name.as_str()) {
            continue;
        }
        found.push(class);
        for field in &class.fields {
            match &field.range {
                Range::Object(class) => pending.push(classes::find(class)),
                Range::AnyOf(names) => pending.extend(names.iter().map(|name| classes::find(name))),
                _ => {}
            }
        }
    }
    let of_collections = COLLECTION_CLASSES.map(classes::find).into_iter();
    found.extend(of_collections.filter(|class| !names.contains(class.name.as_str())));
    found
}

fn add_terms(class: &Class, public_url: &str, terms: &mut Value) {
    if class.type_name == TypeName::Term {
        terms[&class.name] = json!(expand(&class.iri(), public_url));
    }
    for field in &class.fields {
        terms[&field.name] = definition(field, public_url);
        match field.range {
            Range::DayOfWeek => {
                for day in DAYS {
                    terms[day] = json!(format!("{SCHEMA_ORG}{day}"));
                }
            }
            Range::VariableRepresentation => {
                terms[BASIC_REPRESENTATION] = json!(format!("{HYDRA}{BASIC_REPRESENTATION}"));
            }
            _ => {}
        }
    }
}

fn definition(field: &Field, public_url: &str) -> Value {
    let iri = json!(expand(&field.iri(), public_url));
    let value_type = match field.range {
        Range::Instant => Some(format!("{XSD}dateTime")),
        Range::Url => Some(format!("{XSD}anyURI")),
        Range::Link(_) | Range::Collection(_) => Some("@id".to_owned()),
        Range::DayOfWeek | Range::VariableRepresentation => Some("@vocab".to_owned()),
        Range::Json => Some("@json".to_owned()),
        Range::Text
        | Range::Enum(_)
        | Range::Boolean
        | Range::Integer
        | Range::Decimal
        | Range::Object(_)
        | Range::AnyOf(_) => None,
    };
    let container = match field.cardinality {
        Cardinality::One => None,
        Cardinality::Set => Some("@set"),
        Cardinality::List => Some("@list"),
    };
    if value_type.is_none() && container.is_none() {
        return iri;
    }
    let mut definition = json!({"@id": iri});
    if let Some(value_type) = value_type {
        definition["@type"] = json!(value_type);
    }
    if let Some(container) = container {
        definition["@container"] = json!(container);
    }
    definition
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const PUBLIC_URL: &str = "https://delivery.example";

    #[test]
    fn in_a_context_each_term_has_one_definition_and_each_iri_one_term() {
        for root in classes::ALL.iter() {
            let mut definitions = BTreeMap::new();
            let mut terms = BTreeMap::new();
            for class in reachable(root) {
                for field in &class.fields {
                    let definition = definition(field, PUBLIC_URL).to_string();
                    let iri = expand(&field.iri(), PUBLIC_URL);
                    let first = definitions
                        .entry(&field.name)
                        .or_insert_with(|| definition.clone());
                    assert_eq!(*first, definition, "{} in {}", field.name, root.name);
                    let term = terms.entry(iri).or_insert(&field.name);
                    assert_eq!(**term, field.name, "in {}", root.name);
                }
            }
        }
    }

    #[test]
    fn class_names_are_unique_and_listed() {
        let names: BTreeSet<_> = classes::ALL.iter().map(|class| &class.name).collect();

        assert_eq!(names.len(), classes::ALL.len());
        for root in classes::ALL.iter() {
            for class in reachable(root) {
                assert!(names.contains(&class.name), "{} is not listed", class.name);
            }
        }
    }

    #[test]
    fn a_term_defines_the_type_and_container_of_its_values() {
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

    #[test]
    fn the_context_of_a_collection_has_the_terms_of_every_class_of_its_members() {
        let collection = context("Collection", PUBLIC_URL).unwrap();
        for class in [
            "Delivery",
            "TaskEvent",
            "Incident",
            "FailureReason",
            "Webhook",
            "Event",
            "Notification",
        ] {
            for field in &classes::find(class).fields {
                let term = collection["@context"].get(&field.name);

                assert_eq!(term, Some(&definition(field, PUBLIC_URL)), "{class}");
            }
        }
    }

    #[test]
    fn days_of_the_week_are_terms_where_one_can_be_a_value() {
        let context = context("TimeSlot", PUBLIC_URL).unwrap();
        let terms = &context["@context"];

        assert_eq!(terms["dayOfWeek"]["@type"], "@vocab");
        for day in DAYS {
            assert_eq!(terms[day], format!("http://schema.org/{day}"));
        }
    }
}
