//! Single parts of the document: tags, credentials, headers, examples, previews and collections.

use super::*;
use crate::{
    api_description::classes::{self, Access},
    representation::error_codes as codes,
};

fn document() -> Value {
    openapi("Service", PUBLIC_URL)
}

#[test]
fn every_tag_has_a_description_of_its_own() {
    let document = document();
    let tags = document["tags"].as_array().unwrap();

    let descriptions: BTreeSet<_> = tags.iter().map(|tag| tag["description"].as_str()).collect();

    assert_eq!(descriptions.len(), tags.len(), "{tags:#?}");
    assert!(!descriptions.contains(&None));
    let mut used: Vec<_> = operations::all().map(|operation| &operation.tag).collect();
    used.dedup();
    let described: Vec<_> = tags.iter().map(|tag| &tag["name"]).collect();
    assert_eq!(described, used, "in the order of the operations");
}

#[test]
fn every_scope_of_an_operation_is_described_and_advertised() {
    let document = document();
    let flow = "/components/securitySchemes/accessToken/flows/clientCredentials/scopes";
    let described = document.pointer(flow).unwrap().as_object().unwrap();

    let used: BTreeSet<_> = operations::all()
        .flat_map(|operation| match &operation.auth {
            Auth::Scope(scope) => std::slice::from_ref(scope),
            Auth::AnyScope(scopes) => scopes.as_slice(),
            _ => &[],
        })
        .map(String::as_str)
        .collect();

    assert_eq!(described.keys().collect::<Vec<_>>(), SCOPES);
    assert_eq!(used, SCOPES.into_iter().collect());
}

#[test]
fn every_event_has_the_request_that_a_webhook_gets() {
    let document = document();
    let events = &document["components"]["schemas"]["EventName"]["enum"];

    let mut described: Vec<_> = document["webhooks"].as_object().unwrap().keys().collect();
    let mut expected: Vec<_> = events.as_array().unwrap().iter().collect();

    described.sort();
    expected.sort_by_key(|event| event.as_str());
    assert_eq!(expected, described);
}

#[test]
fn the_request_that_a_webhook_gets_names_each_header() {
    let document = document();
    for (event, path) in document["webhooks"].as_object().unwrap() {
        let parameters = path["post"]["parameters"].as_array().unwrap();
        let names: Vec<_> = parameters
            .iter()
            .map(|parameter| &parameter["name"])
            .collect();

        let expected = [
            "X-Service-Signature",
            "webhook-id",
            "webhook-timestamp",
            "webhook-signature",
        ];
        assert_eq!(names, expected, "{event}");
    }
}

#[test]
fn every_part_of_a_path_in_braces_is_a_required_parameter() {
    let document = document();
    let mut found = 0;
    for operation in operations::all() {
        let method = operation.method.to_ascii_lowercase();
        let parameters = &document["paths"][&operation.path][method]["parameters"];
        let described: Vec<_> = parameters
            .as_array()
            .into_iter()
            .flatten()
            .filter(|parameter| parameter["in"] == "path" && parameter["required"] == true)
            .map(|parameter| &parameter["name"])
            .collect();

        let parts = operation.path.split('{').skip(1);
        let in_path: Vec<_> = parts.filter_map(|part| part.split('}').next()).collect();
        assert_eq!(described, in_path, "{}", operation.path);
        found += in_path.len();
    }
    assert!(found > 20, "{found}");
}

#[test]
fn an_operation_names_the_credentials_that_it_needs() {
    for (auth, expected) in [
        (Auth::None, json!([])),
        (Auth::ClientCredentials, json!([{"credentials": []}, {}])),
        (Auth::Token, json!([{"accessToken": []}])),
        (Auth::StoreToken, json!([{"accessToken": []}])),
        (
            Auth::Scope("tasks".to_owned()),
            json!([{"accessToken": ["tasks"]}]),
        ),
        (
            Auth::AnyScope(vec!["tasks".to_owned(), "courier".to_owned()]),
            json!([{"accessToken": ["tasks"]}, {"accessToken": ["courier"]}]),
        ),
    ] {
        assert_eq!(security(&auth), expected);
    }
    let document = document();
    for operation in operations::all() {
        let method = operation.method.to_ascii_lowercase();
        let described = &document["paths"][&operation.path][method]["security"];
        assert_eq!(*described, security(&operation.auth), "{}", operation.path);
    }
}

#[test]
fn an_operation_that_needs_a_token_may_lack_a_scope_and_an_enabled_store() {
    for operation in operations::all() {
        let forbidden = operations::error_codes_by_status(operation).remove(&403);
        let expected: &[_] = match operation.auth {
            Auth::Scope(_) | Auth::AnyScope(_) => &[
                &codes::INSUFFICIENT_SCOPE,
                &codes::NO_STORE,
                &codes::STORE_DISABLED,
            ],
            Auth::StoreToken => &[&codes::NO_STORE, &codes::STORE_DISABLED],
            Auth::Token => &[&codes::STORE_DISABLED],
            Auth::None | Auth::ClientCredentials => &[],
        };

        let forbidden = forbidden.unwrap_or_default();
        assert_eq!(forbidden, expected, "{}", operation.operation_id);
    }
}

#[test]
fn an_error_response_has_the_headers_of_its_status() {
    let document = document();
    let headers = |code: &str| {
        let response = &document["components"]["responses"][code];
        let headers = response["headers"].as_object().unwrap();
        headers.keys().cloned().collect::<Vec<_>>()
    };
    let common = headers("not_acceptable");
    for (code, expected) in [
        ("validation_failed", "Content-Language"),
        ("idempotency_key_reused", "Content-Language"),
        (
            "insufficient_scope-or-no_store-or-store_disabled",
            "WWW-Authenticate",
        ),
        ("method_not_allowed", "Allow"),
        ("too_many_requests", "Retry-After"),
    ] {
        let mut own = headers(code);
        own.retain(|header| !common.contains(header));
        assert_eq!(own, [expected], "{code}");
    }
    let calculate = &document["paths"]["/api/retail_prices/calculate"]["post"]["responses"];
    assert_eq!(
        calculate["200"]["headers"],
        responses::header_references(&[])
    );
    let token_errors = &document["paths"]["/oauth2/token"]["post"]["responses"];
    for (status, own) in [
        ("400", &["Cache-Control"][..]),
        ("401", &["Cache-Control", "WWW-Authenticate"]),
    ] {
        let expected = responses::header_references(own);
        assert_eq!(token_errors[status]["headers"], expected, "{status}");
    }
}

#[test]
fn an_example_of_a_validation_error_has_a_violation() {
    for (code, violation) in [
        (&codes::VALIDATION_FAILED, "required"),
        (&codes::PRICE_MISMATCH, "differs"),
    ] {
        let example = error_example(code, PUBLIC_URL);

        assert_eq!(example["violations"][0]["code"], violation, "{example}");
    }
}

#[test]
fn responses_have_no_member_that_is_only_written_and_previews_no_id() {
    let document = document();
    let properties = |schema: &str| &document["components"]["schemas"][schema]["properties"];
    let mut written = 0;
    for class in classes::ALL.iter() {
        let schema = schemas::name(class, SchemaForm::Stored);
        for field in &class.fields {
            if field.access == Access::Write {
                written += 1;
                for schema in [schema.clone(), format!("{schema}Preview")] {
                    assert!(properties(&schema)[&field.name].is_null(), "{schema}");
                }
            }
        }
    }
    assert!(written > 2, "{written}");
    assert!(properties("Delivery")["id"].is_object());
    assert!(properties("DeliveryPreview")["id"].is_null());
    assert!(properties("DeliveryPreview")["pickup"].is_object());
}

#[test]
fn a_collection_has_members_of_its_class_and_the_members_of_json_ld() {
    let document = document();
    let collection = &document["components"]["schemas"]["DeliveryCollection"];

    let members = &collection["properties"]["hydra:member"];

    assert_eq!(members["items"], named("Delivery"));
    let required = collection["required"].as_array().unwrap();
    for name in ["@context", "@type", "@id", "hydra:member"] {
        assert!(required.contains(&json!(name)), "{name}: {required:?}");
    }
}

/// `GET /api/deliveries/assert` is 405: that path has only `POST`.
#[test]
fn an_operation_whose_path_includes_one_with_another_method_may_be_405() {
    let may_be_405 = |operation: &&Operation| {
        let codes = operations::error_codes_by_status(operation);
        codes.contains_key(&405)
    };
    let found: Vec<_> = operations::all()
        .filter(may_be_405)
        .map(|operation| operation.operation_id.as_str())
        .collect();

    let expected = [
        "getDelivery",
        "cancelDelivery",
        "getTask",
        "updateTask",
        "getRetailPrice",
    ];
    assert_eq!(found, expected);
}
