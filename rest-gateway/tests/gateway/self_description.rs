//! Contexts, documentation, settings, and the links to them.

use http::Method;
use serde_json::{Value, json};

use crate::harness::{PUBLIC_URL, Platform};

const LINK: &str = "<https://delivery.example/api/docs.jsonld>; \
     rel=\"http://www.w3.org/ns/hydra/core#apiDocumentation\"";

#[tokio::test]
async fn a_context_maps_every_term_to_an_iri() {
    let platform = Platform::start().await;
    for name in [
        "ApiApp",
        "Collection",
        "ConstraintViolationList",
        "Delivery",
        "Entrypoint",
        "Error",
        "Event",
        "Notification",
        "RetailPrice",
        "Settings",
        "Store",
        "Task",
        "TimeSlot",
        "TimeSlotChoices",
        "Webhook",
        "WebhookRecovery",
        "WebhookTest",
    ] {
        let reply = platform.client.get(&format!("/api/contexts/{name}")).await;

        assert_eq!(reply.status, 200, "{name}");
        assert_eq!(
            reply.header("content-type"),
            Some("application/ld+json; charset=utf-8")
        );
        let context = reply.json();
        for (term, definition) in context["@context"].as_object().unwrap() {
            let iri = definition.as_str().or(definition["@id"].as_str());
            assert!(
                term == "@version" || iri.is_some_and(|iri| iri.starts_with("http")),
                "{term} in {name}: {definition}"
            );
        }
    }
    assert!(!platform.core.has_unread_call());
}

#[tokio::test]
async fn a_context_defines_the_type_of_each_term() {
    let platform = Platform::start().await;
    let own = |term: &str| format!("{PUBLIC_URL}/api/docs.jsonld#{term}");

    let delivery = platform.client.get("/api/contexts/Delivery").await.json();
    let choices = platform
        .client
        .get("/api/contexts/TimeSlotChoices")
        .await
        .json();

    let terms = &delivery["@context"];
    for (term, definition) in [
        ("@version", json!(1.1)),
        ("hydra", json!("http://www.w3.org/ns/hydra/core#")),
        ("Task", json!(own("Task"))),
        ("pickup", json!(own("pickup"))),
        ("GeoCoordinates", json!("http://schema.org/GeoCoordinates")),
        ("streetAddress", json!("http://schema.org/streetAddress")),
        (
            "before",
            json!({"@id": own("before"), "@type": "http://www.w3.org/2001/XMLSchema#dateTime"}),
        ),
        (
            "packages",
            json!({"@id": own("packages"), "@container": "@set"}),
        ),
        (
            "metadata",
            json!({"@id": own("metadata"), "@type": "@json"}),
        ),
    ] {
        assert_eq!(terms[term], definition, "{term}");
    }
    assert_eq!(
        choices["@context"]["choices"],
        json!({"@id": own("choices"), "@container": "@list"})
    );
}

#[tokio::test]
async fn an_unknown_context_is_404() {
    let platform = Platform::start().await;
    for name in ["Package", "delivery", "Delivery2", "%00"] {
        let reply = platform.client.get(&format!("/api/contexts/{name}")).await;

        assert_eq!(reply.status, 404, "{name}");
        assert_eq!(reply.error()["code"], "not_found");
    }
}

#[tokio::test]
async fn the_documentation_describes_every_class_with_its_fields_and_operations() {
    let platform = Platform::start().await;

    let reply = platform.client.get("/api/docs.jsonld").await;

    assert_eq!(reply.status, 200);
    let documentation = reply.json();
    assert_eq!(documentation["@type"], "hydra:ApiDocumentation");
    assert_eq!(documentation["hydra:title"], "Service API");
    assert_eq!(documentation["hydra:entrypoint"], "/api");
    let webhook = class(&documentation, "vocab:Webhook");
    let url = webhook["hydra:supportedProperty"]
        .as_array()
        .unwrap()
        .iter()
        .find(|property| property["hydra:title"] == "url")
        .unwrap();
    assert_eq!(
        url,
        &json!({
            "@type": "hydra:SupportedProperty",
            "hydra:property": {
                "@id": "schema:url",
                "@type": "rdf:Property",
                "rdfs:label": "url",
                "rdfs:domain": "vocab:Webhook",
                "rdfs:range": "xsd:anyURI",
            },
            "hydra:title": "url",
            "hydra:description": "The URL that receives the notifications.",
            "hydra:required": true,
            "hydra:readable": true,
            "hydra:writeable": true,
        })
    );
    let delete = webhook["hydra:supportedOperation"]
        .as_array()
        .unwrap()
        .iter()
        .find(|operation| operation["hydra:method"] == "DELETE")
        .unwrap();
    assert_eq!(delete["hydra:returns"], "owl:Nothing");
    assert_eq!(
        delete["hydra:possibleStatus"][0]["hydra:statusCode"],
        json!(204)
    );
}

fn class<'d>(documentation: &'d Value, id: &str) -> &'d Value {
    documentation["hydra:supportedClass"]
        .as_array()
        .unwrap()
        .iter()
        .find(|class| class["@id"] == id)
        .unwrap()
}

#[tokio::test]
async fn every_response_links_to_the_documentation() {
    let platform = Platform::start().await;
    for (method, path, status) in [
        (Method::GET, "/api", 200),
        (Method::HEAD, "/api", 200),
        (Method::GET, "/healthz", 200),
        (Method::GET, "/nowhere", 404),
        (Method::PATCH, "/api", 405),
        (Method::POST, "/oauth2/token", 400),
        (Method::OPTIONS, "/api", 204),
    ] {
        let reply = platform.client.method(method, path).await;

        assert_eq!(reply.status, status, "{path}");
        assert_eq!(reply.header("link"), Some(LINK), "{path}");
    }
}

#[tokio::test]
async fn the_settings_are_those_of_the_platform() {
    let default = Platform::start().await;
    let other = Platform::start_with(|config| {
        config.platform_name = "Coursiers".to_owned();
        config.platform.timezone = "America/Toronto".to_owned();
        config.platform.locale = "fr-CA".to_owned();
        config.platform.country = "CA".to_owned();
        config.platform.currency = rest_gateway::Currency::CAD;
        config.platform.map_center = "45.5,-73.567".parse().unwrap();
    })
    .await;

    let default = default.client.get("/api/settings").await;
    let other = other.client.get("/api/settings").await;

    assert_eq!(
        default.json(),
        json!({
            "@context": "/api/contexts/Settings",
            "@id": "/api/settings",
            "@type": "Settings",
            "brand_name": "Service",
            "country": "FR",
            "locale": "en",
            "timezone": "Europe/Paris",
            "currency_code": "EUR",
            "latlng": "48.8566,2.3522",
        })
    );
    assert_eq!(
        other.json(),
        json!({
            "@context": "/api/contexts/Settings",
            "@id": "/api/settings",
            "@type": "Settings",
            "brand_name": "Coursiers",
            "country": "CA",
            "locale": "fr-CA",
            "timezone": "America/Toronto",
            "currency_code": "CAD",
            "latlng": "45.5,-73.567",
        })
    );
}

#[tokio::test]
async fn the_openapi_document_needs_no_token() {
    let platform = Platform::start().await;

    let reply = platform.client.get("/api/docs.json").await;

    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("content-type"), Some("application/json"));
    let document = reply.json();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["info"]["title"], "Service API");
    assert_eq!(document["servers"][0]["url"], PUBLIC_URL);
    assert!(!platform.core.has_unread_call());
}
