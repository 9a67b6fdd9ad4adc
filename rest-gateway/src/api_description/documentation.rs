//! The Hydra documentation of every class, field and operation, in a frame of texts,
//! `documentation.json`.

use serde_json::{Value, json};

use super::{
    DOCUMENTATION,
    classes::{self, Access, Class, Field, Range},
    operations::{self, Expects, HydraTarget, Operation, Returns},
    parse_json,
};

/// The document at `/api/docs.jsonld`.
pub(crate) fn api_documentation(platform_name: &str, public_url: &str) -> Value {
    let mut document: Value = parse_json(include_str!("documentation.json"));
    document["@context"]["vocab"] = json!(format!("{public_url}{DOCUMENTATION}#"));
    document["hydra:title"] = json!(format!("{platform_name} API"));
    document["hydra:supportedClass"] = classes::ALL.iter().map(supported_class).collect();
    document
}

fn supported_class(class: &Class) -> Value {
    let properties: Vec<_> = class
        .fields
        .iter()
        .map(|field| supported_property(class, field))
        .collect();
    let operations: Vec<_> = operations::all()
        .filter(|operation| match &operation.target {
            HydraTarget::Resource(target) | HydraTarget::Path(target) => target.name == class.name,
            HydraTarget::Collection(_) | HydraTarget::None => false,
        })
        .map(supported_operation)
        .collect();
    json!({
        "@id": class.iri(),
        "@type": "hydra:Class",
        "rdfs:label": class.name,
        "hydra:title": class.name,
        "hydra:description": class.description,
        "hydra:supportedProperty": properties,
        "hydra:supportedOperation": operations,
    })
}

fn supported_property(class: &Class, field: &Field) -> Value {
    let mut described = json!({
        "@type": "hydra:SupportedProperty",
        "hydra:property": property(class, field),
        "hydra:title": field.name,
        "hydra:required": field.required,
        "hydra:readable": field.access != Access::Write,
        "hydra:writeable": field.access != Access::Read,
    });
    if !field.description.is_empty() {
        described["hydra:description"] = json!(field.description);
    }
    described
}

fn property(class: &Class, field: &Field) -> Value {
    let kind = match field.range {
        Range::Link(_) | Range::Collection(_) => "hydra:Link",
        _ => "rdf:Property",
    };
    let mut property = json!({
        "@id": field.iri(),
        "@type": kind,
        "rdfs:label": field.name,
        "rdfs:domain": class.iri(),
    });
    if let Some(range) = range(&field.range) {
        property["rdfs:range"] = range;
    }
    if let Range::Collection(_) = field.range {
        let operations: Vec<_> = operations::all()
            .filter(|operation| matches!(&operation.target, HydraTarget::Collection(link) if *link == field.name))
            .map(supported_operation)
            .collect();
        property["hydra:supportedOperation"] = json!(operations);
    }
    property
}

fn range(range: &Range) -> Option<Value> {
    let range = match range {
        Range::Text | Range::Enum(_) => json!("xsd:string"),
        Range::Boolean => json!("xsd:boolean"),
        Range::Integer => json!("xsd:integer"),
        Range::Decimal => json!("xsd:double"),
        Range::Instant => json!("xsd:dateTime"),
        Range::Url => json!("xsd:anyURI"),
        Range::Json => json!("rdf:JSON"),
        Range::DayOfWeek => json!("schema:DayOfWeek"),
        Range::VariableRepresentation => json!("hydra:VariableRepresentation"),
        Range::Object(class) | Range::Link(Some(class)) => json!(classes::find(class).iri()),
        // Hydra clients read the class of a collection's members from it.
        Range::Collection(class) => json!([
            "hydra:Collection",
            {
                "owl:equivalentClass": {
                    "owl:onProperty": "hydra:member",
                    "owl:allValuesFrom": classes::find(class).iri(),
                },
            },
        ]),
        Range::Link(None) | Range::AnyOf(_) => return None,
    };
    Some(range)
}

fn supported_operation(operation: &Operation) -> Value {
    let mut statuses = vec![status(operation.returns.status())];
    statuses.extend(
        operations::error_codes_by_status(operation)
            .into_keys()
            .map(status),
    );
    let mut described = json!({
        "@type": "hydra:Operation",
        "rdfs:label": operation.summary,
        "hydra:title": operation.summary,
        "hydra:method": operation.method,
        "hydra:returns": class_or_nothing(returned_class(&operation.returns)),
        "hydra:possibleStatus": statuses,
    });
    if operation.method == "POST" {
        let expected = match operation.expects {
            Expects::Resource(class) | Expects::Optional(class) => Some(class),
            Expects::Nothing | Expects::EmptyObject | Expects::Form | Expects::Image => None,
        };
        described["hydra:expects"] = class_or_nothing(expected);
    }
    if let HydraTarget::Path(_) = operation.target {
        described["schema:target"] = json!({
            "@type": "schema:EntryPoint",
            "schema:urlTemplate": operation.path,
        });
    }
    described
}

fn returned_class(returns: &Returns) -> Option<&'static Class> {
    match returns {
        Returns::Resource(class) | Returns::Created(class) | Returns::Preview(class) => Some(class),
        Returns::Collection(_) => Some(classes::find("Collection")),
        Returns::Nothing
        | Returns::JsonLd(_)
        | Returns::Document(..)
        | Returns::Text(_)
        | Returns::Page
        | Returns::Image(_)
        | Returns::Health => None,
    }
}

fn class_or_nothing(class: Option<&Class>) -> Value {
    json!(class.map_or("owl:Nothing".to_owned(), Class::iri))
}

fn status(code: u16) -> Value {
    let title = http::StatusCode::from_u16(code)
        .ok()
        .and_then(|status| status.canonical_reason());
    json!({
        "@type": "hydra:Status",
        "hydra:statusCode": code,
        "hydra:title": title,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collection_link_names_its_member_class_and_operations() {
        let entrypoint = classes::find("Entrypoint");

        let property = property(entrypoint, &entrypoint.fields[0]);

        assert_eq!(property["@id"], "vocab:Entrypoint/delivery");
        assert_eq!(property["@type"], "hydra:Link");
        assert_eq!(
            property["rdfs:range"][1]["owl:equivalentClass"]["owl:allValuesFrom"],
            "schema:ParcelDelivery"
        );
        let operations = property["hydra:supportedOperation"].as_array().unwrap();
        let methods: Vec<_> = operations
            .iter()
            .map(|operation| &operation["hydra:method"])
            .collect();
        assert_eq!(methods, ["POST", "GET"]);
    }
}
